"""Data of the model: systems, placements, lowerings, programs, schedules, problems (no meaning yet)."""
