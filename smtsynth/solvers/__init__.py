"""Solvers: the only folder that knows solver libraries. A problem goes in whole, as text; an Outcome comes back."""
