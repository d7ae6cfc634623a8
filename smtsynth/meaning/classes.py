"""The class meaning: one state for all devices whose synthesis digits are zero in the same places.

Such devices behave alike under the forms of the model's section 4, and their rows and contributors are boxes in the
digits: along each factor a device holds its own rows or all, with its own contributors or all. So 2^D classes of
2D + 1 Booleans stand for any factor sizes. The meaning over-approximates the rules: it keeps every program that the
rules accept (tested exhaustively on small sizes) and admits a few more, where contiguous scatters don't line up. It
serves for lower bounds and search; what it finds wants a replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from smtsynth.model.program import Collective, Instruction


class ClassState(NamedTuple):
    """What the devices of one class hold: anything at all; factors with all rows; factors with all contributors.

    `rows` and `contributors` are bit masks over the factors (bit 0 outermost); both 0 where nothing is held.
    """

    held: bool
    rows: int
    contributors: int


EMPTY = ClassState(False, 0, 0)
States = tuple[ClassState, ...]


class Shape(NamedTuple):
    """The groups of an instruction, by class: the joined factors, and the classes of roots (one per kind of group)."""

    joined: int
    roots: tuple[int, ...]

    def members(self, root: int) -> list[int]:
        """The classes of a group's devices, the root's first."""
        return [root | part for part in submasks(self.joined)]


@lru_cache(maxsize=4096)
def submasks(mask: int) -> tuple[int, ...]:
    """Every mask within `mask`, ascending."""
    found, part = [], 0
    while True:
        found.append(part)
        if part == mask:
            return tuple(found)
        part = (part - mask) & mask


def shape(instruction: Instruction, depth: int) -> Shape:
    """Which classes the instruction's groups join (model, section 4)."""
    start, stop, master = instruction.span(depth)
    joined = (1 << stop) - (1 << start)
    others = ((1 << depth) - 1) & ~joined
    if master:
        others &= (1 << start) - 1
    return Shape(joined, submasks(others))


def initial(depth: int) -> States:
    """Every device holds all rows with its own contribution."""
    return tuple([ClassState(True, (1 << depth) - 1, 0)] * (1 << depth))


def complete(depth: int, reduced: int | None = None) -> States:
    """Every device holds all rows, from all contributors along the factors of the mask `reduced` (default all)."""
    every = (1 << depth) - 1
    return tuple([ClassState(True, every, every if reduced is None else reduced)] * (1 << depth))


def on_group(collective: Collective, joined: int, states: Sequence[ClassState]) -> list[ClassState] | None:
    """What the collective makes of one group's classes (root first), or None where a need fails.

    A reduction needs equal rows, all of them along the joined factors, and equal contributors, its own along these.
    A gather needs its own rows along the joined factors, and all else equal. A broadcast needs a root that holds
    all along the joined factors, at least what the others hold, and more than one of them.
    """
    root, rest = states[0], states[1:]
    if not root.held:
        return None
    if collective is Collective.BROADCAST:
        if joined & ~(root.rows & root.contributors):
            return None
        if any(state.rows & ~root.rows or state.contributors & ~root.contributors for state in rest):
            return None
        return [root] * len(states) if any(state != root for state in rest) else None
    if any(state != root for state in rest):
        return None
    if collective is Collective.ALL_GATHER:
        return None if root.rows & joined else [root._replace(rows=root.rows | joined)] * len(states)
    if joined & ~root.rows or joined & root.contributors:
        return None
    total = root._replace(contributors=root.contributors | joined)
    if collective is Collective.ALL_REDUCE:
        return [total] * len(states)
    if collective is Collective.REDUCE_SCATTER:
        return [total._replace(rows=root.rows & ~joined)] * len(states)
    return [total] + [EMPTY] * len(rest)


def step(states: States, collective: Collective, groups: Shape) -> States | None:
    """The classes after the collective ran on all its groups, or None where it cannot run."""
    after = list(states)
    for root in groups.roots:
        members = groups.members(root)
        result = on_group(collective, groups.joined, [states[member] for member in members])
        if result is None:
            return None
        for member, new in zip(members, result, strict=True):
            after[member] = new
    return tuple(after)


def shares(states: States, groups: Shape) -> tuple[int, ...]:
    """Per kind of group, the mask of factors along which its devices (its root) hold all rows: what is moved."""
    return tuple(states[root].rows for root in groups.roots)
