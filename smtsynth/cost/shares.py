"""How much of the payload each group holds at each step (model, section 6: s = bytes * rows held / k)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from smtsynth.errors import LimitReached
from smtsynth.meaning.classes import submasks
from smtsynth.model.program import Collective, Program, Span
from smtsynth.model.schedule import Group, Schedule

MAX_DEPTH = 16  # 2^D classes are tracked one by one


def outer_bits(depth: int, span: Span) -> tuple[int, ...]:
    """The factors outside the joined ones in which a group's devices may have a non-zero digit."""
    inner = () if span.master else range(span.stop, depth)
    return (*range(span.start), *inner)


def bit_mask(bits: Iterable[int]) -> int:
    """The mask with these bits."""
    return sum(1 << bit for bit in bits)


def group_types(depth: int, span: Span) -> tuple[int, ...]:
    """All group types of an instruction over `depth` factors, as bitmasks (see CostModel)."""
    return submasks(bit_mask(outer_bits(depth, span)))


def piece_shares(schedule: Schedule) -> Iterator[list[list[Fraction]]]:
    """Per step, per entry, per group: the part of the payload that the group holds at input.

    Lengths follow the buffers (model, section 5): AllReduce keeps, ReduceScatter divides, AllGather adds up,
    Reduce leaves all at the root and nothing elsewhere, Broadcast gives everyone the root's. Where members hold
    different amounts the largest counts, for a Broadcast the root's. At the start everyone holds everything, or
    its own part where the goal is AllGather.
    """
    held = [Fraction(1)] * schedule.devices
    if schedule.goal.collective is Collective.ALL_GATHER:
        for group in schedule.goal_groups:
            _put(held, group, Fraction(1, len(group)))
    for step in schedule.steps:
        shares: list[list[Fraction]] = []
        for entry in step:
            shares.append([])
            for number, group in enumerate(entry.groups):
                amounts = [held[device] for device in group]
                alike = all(amount is amounts[0] for amount in amounts)  # saves comparing equal fractions
                largest = amounts[0] if alike else max(amounts)
                root = entry.root(number)
                share = held[root] if entry.collective is Collective.BROADCAST else largest
                shares[-1].append(share)
                if entry.collective is Collective.ALL_GATHER:
                    share = largest * len(group) if alike else sum(amounts, Fraction(0))
                elif entry.collective is Collective.REDUCE_SCATTER:
                    share = largest / len(group)
                elif entry.collective is Collective.REDUCE:
                    _put(held, group, Fraction(0))
                    group = (root,)
                _put(held, group, share)
        yield shares


def _put(held: list[Fraction], group: Group, amount: Fraction) -> None:
    for device in group:
        held[device] = amount


def class_shares(
    sizes: Sequence[int], program: Program, collective: Collective = Collective.ALL_REDUCE
) -> list[dict[int, Fraction]]:
    """Per step of a program over factors of these sizes: {group type: part of the payload the groups hold}.

    The same tracking as piece_shares, for any sizes: devices whose digits are zero in the same factors behave
    alike, so 2^D classes stand for all devices. `collective` is the reduction's: it says what is held at the
    start (model, section 5). Raises LimitReached above MAX_DEPTH factors.
    """
    depth = len(sizes)
    if depth > MAX_DEPTH:
        raise LimitReached(f"shares are tracked over at most {MAX_DEPTH} factors, not {depth}")
    held = dict.fromkeys(range(2**depth), Fraction(1))
    if collective is Collective.ALL_GATHER:
        held = dict.fromkeys(held, Fraction(1, math.prod(sizes)))
    elif collective is Collective.BROADCAST:
        held = {mask: Fraction(mask == 0) for mask in held}
    result = []
    for instruction in program:
        span = instruction.span(depth)
        inner = submasks(bit_mask(range(span.start, span.stop)))
        weights = [math.prod(sizes[f] - 1 for f in range(span.start, span.stop) if mask >> f & 1) for mask in inner]
        shares: dict[int, Fraction] = {}
        for outer in group_types(depth, span):
            amounts = [held[outer | mask] for mask in inner]
            share = amounts[0] if instruction.collective is Collective.BROADCAST else max(amounts)
            shares[outer] = share
            if instruction.collective is Collective.ALL_GATHER:
                share = sum((w * amount for w, amount in zip(weights, amounts, strict=True)), Fraction(0))
            elif instruction.collective is Collective.REDUCE_SCATTER:
                share /= math.prod(sizes[span.start : span.stop])
            for mask in inner:
                held[outer | mask] = share
            if instruction.collective is Collective.REDUCE:
                held.update({outer | mask: Fraction(0) for mask in inner[1:]})
        result.append(shares)
    return result
