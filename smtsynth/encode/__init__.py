"""Constraints: a clause builder and the encodings of placements, states, instructions and costs."""
