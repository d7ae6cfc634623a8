"""Chunk contents as sums of contributions, each counted 0, once, or more than once.

A value is a tuple of (chunk, once, many), ascending by chunk: `once` and `many` are bit masks of the GPUs whose input
chunk of that number is in the sum once, or more than once. Nothing ever subtracts, so "more than once" need not count.
"""

from __future__ import annotations

from collections.abc import Iterator

Value = tuple[tuple[int, int, int], ...]

# A sum over different chunks is wrong for good, so only the first few are kept, for the report.
KEPT_CHUNKS = 4


def contribution(gpu: int, chunk: int) -> Value:
    """The content of input chunk `chunk` of `gpu`."""
    return ((chunk, 1 << gpu, 0),)


def add(first: Value, second: Value) -> Value:
    """The sum of two values."""
    parts: dict[int, tuple[int, int]] = {chunk: (once, many) for chunk, once, many in first}
    for chunk, once, many in second:
        old_once, old_many = parts.get(chunk, (0, 0))
        new_many = old_many | many | (old_once & once)
        parts[chunk] = ((old_once | once) & ~new_many, new_many)
    return tuple((chunk, *parts[chunk]) for chunk in sorted(parts)[:KEPT_CHUNKS])


def members(mask: int) -> Iterator[int]:
    """The GPUs of a bit mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def show_gpus(mask: int) -> str:
    """The GPUs of a bit mask in words, at most eight by number."""
    every = list(members(mask))
    text = ", ".join(map(str, every[:8])) + (f", … ({len(every)} in all)" if len(every) > 8 else "")
    return f"gpu{'s' * (len(every) != 1)} {text}"
