"""The way data takes inside a group, a ring or a chain, and what its edges carry (model, section 6)."""

from __future__ import annotations

from fractions import Fraction

from smtsynth.model.program import Collective


def is_chain(collective: Collective) -> bool:
    """Broadcast and Reduce use an open chain from (to) the root, the others one closed ring."""
    return collective in (Collective.BROADCAST, Collective.REDUCE)


def edge_factor(collective: Collective, members: int) -> Fraction:
    """Bytes on each edge of a group of `members` devices per byte that a device holds at input."""
    if is_chain(collective):
        return Fraction(1)
    if collective is Collective.ALL_GATHER:
        return Fraction(members - 1)
    once = Fraction(members - 1, members)
    return 2 * once if collective is Collective.ALL_REDUCE else once


def latency_factor(collective: Collective, members: int) -> Fraction:
    """A group's latency as a multiple of the sum of its edges' latencies."""
    if is_chain(collective):
        return Fraction(1)
    once = Fraction(members - 1, members)
    return 2 * once if collective is Collective.ALL_REDUCE else once


def nanoseconds(seconds: Fraction) -> int:
    """Seconds as whole nanoseconds, rounded up."""
    return -(-seconds.numerator * 10**9 // seconds.denominator)
