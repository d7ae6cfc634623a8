"""Calibration: benchmark logs and published tables to the constants of systems and cost models."""
