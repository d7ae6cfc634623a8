"""Verification of programs and schedules: proofs, counterexamples, and what to say of them."""
