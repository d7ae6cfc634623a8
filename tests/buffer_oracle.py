"""Buffers once more (model, section 5), for small sizes and apart from smtsynth.meaning: tuples of pieces, and sums as
integers. It judges programs over factors under every goal, and a thousand times as many as the interpreter could."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

from smtsynth.meaning.rules import instruction_groups
from smtsynth.model.program import Collective, Instruction

Piece = tuple[int, int] | None
Buffers = tuple[tuple[Piece, ...], ...]
Sizes = tuple[int, ...]
DIGIT = 24  # bits of the number of times that a contributor is in a sum


def own(device: int) -> int:
    """A sum of one contribution."""
    return 1 << DIGIT * device


@cache
def start(sizes: Sizes, collective: Collective) -> Buffers:
    """The buffers where the goal starts, as many chunks as devices."""
    k = math.prod(sizes)
    if collective is Collective.ALL_GATHER:
        return tuple(((device, own(device)),) for device in range(k))
    return tuple(tuple((chunk, own(device)) for chunk in range(k)) for device in range(k))


def _add(pieces: Sequence[Piece]) -> Piece:
    first, total = pieces[0], 0
    for piece in pieces:
        if first is None or piece is None or piece[0] != first[0]:
            return None
        total += piece[1]
    return None if first is None else (first[0], total)


@cache
def step(buffers: Buffers, sizes: Sizes, instruction: Instruction) -> Buffers | None:
    """The buffers after an instruction; None where lengths are unequal or don't divide."""
    after, collective = list(buffers), instruction.collective
    for group in instruction_groups(sizes, instruction):
        held = [buffers[device] for device in group]
        if collective is Collective.BROADCAST:
            results = [held[0]] * len(group)
        elif len(set(map(len, held))) > 1:
            return None
        elif collective is Collective.ALL_GATHER:
            results = [tuple(piece for each in held for piece in each)] * len(group)
        else:
            total = tuple(_add(pieces) for pieces in zip(*held, strict=True))
            part, rest = divmod(len(total), len(group))
            results = [total] * len(group)
            if collective is Collective.REDUCE:
                results[1:] = [(None,) * len(total)] * (len(group) - 1)
            if collective is Collective.REDUCE_SCATTER:
                if rest:
                    return None
                results = [total[place * part : (place + 1) * part] for place in range(len(group))]
        for device, result in zip(group, results, strict=True):
            after[device] = result
    return tuple(after)


def right(
    buffers: Buffers, sizes: Sizes, collective: Collective, split: Sequence[int] = (), identity: bool = False
) -> bool:
    """Whether the buffers are what the goal demands, with any assignment of parts where chunks end split over factors
    (`split`, or all), devices of a part all holding the same; identity: in chunk order, the j-th part at the j-th."""
    k = len(buffers)
    full = sum(map(own, range(k)))
    wanted = {Collective.BROADCAST: own(0)}.get(collective, full)
    matter = buffers[:1] if collective is Collective.REDUCE else buffers
    for buffer in matter:
        for piece in buffer:
            if piece is None or piece[1] != (own(piece[0]) if collective is Collective.ALL_GATHER else wanted):
                return False
    orders = [[piece[0] for piece in buffer if piece is not None] for buffer in matter]
    if collective is not Collective.REDUCE_SCATTER:
        return sorted(orders[0]) == list(range(k)) and all(
            order == (list(range(k)) if identity else orders[0]) for order in orders
        )
    factors = sorted(split) or range(len(sizes))
    many = math.prod(sizes[factor] for factor in factors)
    held: dict[int, list[int]] = {}
    for order, digits in zip(orders, product(*map(range, sizes)), strict=True):
        part = 0
        for factor in factors:
            part = part * sizes[factor] + digits[factor]
        if held.setdefault(part, order) != order:
            return False
    if identity:
        return all(order == list(range(part * k // many, (part + 1) * k // many)) for part, order in held.items())
    sets = [tuple(order) for order in held.values()]
    different = set(sets)
    if sorted(chunk for each in different for chunk in each) != list(range(k)):
        return False
    return len({(len(each), sets.count(each)) for each in different}) == 1
