"""Certificates: what a stranger needs to check an answer again, and the checks."""
