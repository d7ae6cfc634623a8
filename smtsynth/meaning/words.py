"""Words of cuts (model, sections 5 and 7): what a program does over factors of any sizes, never accepting too much.

Devices whose synthesis digits are zero in the same places form a class, and all devices of a class hold the same
up to their digits. Which rows: number the chunks in mixed radix over some order of the factors; that order, with the
factors in which the device holds its own digit only (cut) or all digits (free), is a word. Free factors side by side
are one run, which can be cut in any order of its factors, as its rows are consecutive. The rows of a word, in order,
are as many as its free factors multiply to, so they can be numbered again by a second word over just these factors,
and so on: a device holds a stack of words. Nothing here depends on sizes, so it holds for all sizes of at least 2:

* a scatter cuts the ordered rows in consecutive parts: in the last word where its factors, in order, can be taken
  from the word's first runs, else in a new word put on the stack;
* devices that differ only in factors that are cut have disjoint rows, and as many; a gather over these frees them in
  the last word and opens them in the earlier ones (all digits, but the later words still number the rows of one
  digit), and what no longer cuts leaves the stack;
* rows are equal where stacks are, and part of other rows where gathering gives the other stack.

Contributors are, along each factor, the device's own digit or all. What doesn't fit is refused, though the rules
may take it for some sizes or for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from smtsynth.errors import InputError
from smtsynth.meaning.classes import Shape, shape
from smtsynth.meaning.goals import Aim, target
from smtsynth.model.program import Collective, Instruction


class Kind(IntEnum):
    """What a device holds along a slot's factors: its own digit, all, or all but unnumbered by later words."""

    CUT = 0
    FREE = 1
    OPEN = 2


class Slot(NamedTuple):
    """A place in a word: one factor that is cut or open, or a run of free factors (bit mask, bit 0 outermost)."""

    kind: Kind
    factors: int


Word = tuple[Slot, ...]
Rows = tuple[Word, ...]


class Held(NamedTuple):
    """What a device of a class holds: its rows, and the mask of the factors along which contributors are complete."""

    rows: Rows
    contributors: int


State = tuple[Held | None, ...]
"""Per class (mask of the factors in which the device's digit is not zero) what its devices hold; None is nothing."""


@dataclass(frozen=True, slots=True)
class WordsResult:
    """Whether the program is proved for all sizes; else the step that was refused (None: after the last) and why."""

    proved: bool
    step: int | None
    reason: str


def initial(depth: int) -> State:
    """Every device holds all rows with its own contribution."""
    return (Held(((Slot(Kind.FREE, (1 << depth) - 1),),), 0),) * (1 << depth)


def complete(depth: int, reduced: Sequence[bool] | None = None) -> State:
    """The goal: every device all rows, with all contributors along the reduced factors (default all), its own else."""
    goal = sum(1 << factor for factor in range(depth) if reduced is None or reduced[factor])
    return tuple(Held(held.rows, goal) for held in initial(depth) if held is not None)


def _mask(word: Word, kind: Kind) -> int:
    """The factors of a word's slots of this kind."""
    return sum(slot.factors for slot in word if slot.kind is kind)


def cuts(rows: Rows) -> int:
    """The factors in which the rows are cut, in any word, as a mask."""
    return sum(_mask(word, Kind.CUT) for word in rows)


def _freed(word: Word, factors: int) -> Word:
    """The word with what is open, or cut and among `factors`, made free; neighbouring runs become one."""
    slots: list[Slot] = []
    for slot in word:
        if slot.kind is Kind.CUT and not slot.factors & factors:
            slots.append(slot)
        elif slots and slots[-1].kind is Kind.FREE:
            slots[-1] = Slot(Kind.FREE, slots[-1].factors | slot.factors)
        else:
            slots.append(Slot(Kind.FREE, slot.factors))
    return tuple(slots)


def gather(rows: Rows, factors: int) -> Rows:
    """The rows of all devices that differ in `factors` only; all these must be cut, and the devices' rows disjoint."""
    last = _freed(rows[-1], factors)
    below = [
        tuple(Slot(Kind.OPEN, s.factors) if s.kind is Kind.CUT and s.factors & factors else s for s in word)
        for word in rows[:-1]
    ]
    while below and not _mask(last, Kind.CUT):
        last = _freed(below.pop(), 0)
    return (*below, last)


def _cut(word: Word, factors: Sequence[int]) -> Word | None:
    """The word with its rows cut by the factors' digits, first most significant, or None where they don't line up."""
    slots, place = list(word), 0
    for factor in factors:
        while place < len(slots) and slots[place].kind is not Kind.FREE:
            place += 1
        bit = 1 << factor
        if place == len(slots) or not slots[place].factors & bit:
            return None
        rest = slots[place].factors & ~bit
        slots[place : place + 1] = [Slot(Kind.CUT, bit)] + ([Slot(Kind.FREE, rest)] if rest else [])
    return tuple(slots)


def scatter(rows: Rows, factors: int) -> Rows | None:
    """A device's part of the rows when they are cut in consecutive parts, one per value of the factors' digits.

    None of the factors may be cut already. None where a word has open factors, which lie between the parts.
    """
    if any(_mask(word, Kind.OPEN) for word in rows):
        return None
    order = [factor for factor in range(factors.bit_length()) if factors >> factor & 1]
    word = _cut(rows[-1], order)
    if word is not None:
        return (*rows[:-1], word)
    fresh = _cut((Slot(Kind.FREE, _mask(rows[-1], Kind.FREE)),), order)
    assert fresh is not None, "a scatter's factors are free in the last word"
    return (*rows, fresh)


def within(small: Rows, large: Rows) -> bool:
    """Whether the rows of `small` are surely among those of `large`, for devices that agree where `large` is cut."""
    return gather(small, cuts(small) & ~cuts(large)) == large


def on_group(collective: Collective, joined: int, states: Sequence[Held | None]) -> list[Held | None] | str:
    """What the collective makes of one kind of group, given by its members' classes, root first; or why it refuses."""
    root = states[0]
    if root is None:
        return "the first device of a group holds nothing"
    if collective is Collective.BROADCAST:
        return _broadcast(joined, root, states)
    if any(state is None for state in states):
        return "a member of a group holds nothing"
    if any(state != root for state in states):
        return "members of a group hold rows cut in different ways, or sums over different factors"
    if collective is Collective.ALL_GATHER:
        if joined & ~cuts(root.rows):
            return "members of a group hold the same rows"
        if joined & ~root.contributors:
            return "members of a group gather sums that lack each other's contributions"
        return [Held(gather(root.rows, joined), root.contributors)] * len(states)
    if joined & cuts(root.rows):
        return "members of a group hold different rows"
    if joined & root.contributors:
        return "a contribution would be counted twice"
    total = Held(root.rows, root.contributors | joined)
    if collective is Collective.ALL_REDUCE:
        return [total] * len(states)
    if collective is Collective.REDUCE:
        return [total, *([None] * (len(states) - 1))]
    part = scatter(total.rows, joined)
    if part is None:
        return "rows were cut again before they were gathered, so that their parts don't line up"
    return [Held(part, total.contributors)] * len(states)


def _broadcast(joined: int, root: Held, states: Sequence[Held | None]) -> list[Held | None] | str:
    if joined & cuts(root.rows):
        return "the root of a group holds rows of its own only"
    if joined & ~root.contributors:
        return "the root of a group lacks the others' contributions"
    for state in states[1:]:
        if state is not None and (state.contributors & ~root.contributors or not within(state.rows, root.rows)):
            return "a member of a group may hold what its root lacks"
    if all(state == root for state in states[1:]):
        return "all members of a group hold what the root holds"
    return [root] * len(states)


def step(state: State, collective: Collective, groups: Shape) -> State | str:
    """The state after the collective ran on all its groups, or why it is refused."""
    after = list(state)
    for root in groups.roots:
        members = groups.members(root)
        result = on_group(collective, groups.joined, [state[member] for member in members])
        if isinstance(result, str):
            return result
        for member, new in zip(members, result, strict=True):
            after[member] = new
    return tuple(after)


def start_of(aim: Aim) -> State:
    """What the devices hold where a reduction starts; where nothing is summed, contributors count as complete."""
    every = (1 << aim.depth) - 1
    everything = Held(((Slot(Kind.FREE, every),),), every)
    if aim.collective is Collective.BROADCAST:
        return (everything, *([None] * every))
    if aim.collective is Collective.ALL_GATHER:
        own = tuple(Slot(Kind.CUT, 1 << factor) for factor in range(aim.depth))
        return (Held((own,), every),) * (1 << aim.depth)
    return initial(aim.depth)


def reached(state: State, aim: Aim) -> bool:
    """Whether the state is surely what a reduction must reach.

    Where chunks end split, all classes must hold rows cut alike, so that parts can be assigned.
    """
    wanted = [state[kind] for kind in aim.kinds]
    if any(held is None or held.contributors != aim.summed or held.rows != (wanted[0] or held).rows for held in wanted):
        return False
    return all(held is not None and not cuts(held.rows) & aim.whole for held in wanted)


def run_words(
    depth: int, program: Sequence[Instruction], reduced: Sequence[bool] | None = None, aim: Aim | None = None
) -> WordsResult:
    """Whether the program surely reaches the goal, exactly with its last step, for all sizes of `depth` factors.

    reduced: the factors an AllReduce runs over (default all), or `aim`, any goal. A refusal proves nothing.
    Raises InputError for an instruction that doesn't fit the depth.
    """
    if reduced is not None and len(reduced) != depth:
        raise InputError(f"reduced has {len(reduced)} entries", expected=f"one per factor, {depth}")
    if aim is None:
        aim = target((2,) * depth, reduced=reduced).aim
    state = start_of(aim)
    for number, instruction in enumerate(program, 1):
        start, stop, _ = instruction.span(depth)
        if not 0 <= start < stop <= depth:
            raise InputError("the instruction has no groups", where=f"step {number}", expected=f"depths within {depth}")
        if reached(state, aim):
            return WordsResult(False, number, f"step {number}: the goal holds already before this step")
        after = step(state, instruction.collective, shape(instruction, depth))
        if isinstance(after, str):
            return WordsResult(False, number, f"step {number}: {instruction.collective}: {after}")
        state = after
    if reached(state, aim):
        return WordsResult(True, None, "proved for all sizes")
    return WordsResult(False, None, "after the last step the goal is not reached")
