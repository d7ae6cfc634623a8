"""MSCCL XML: reading, writing, and verification over all interleavings (order, races, deadlock, goal)."""
