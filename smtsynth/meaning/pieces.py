"""Buffers of pieces (model, section 5, "Buffers"): their lengths, and what a step makes of them.

A piece is a chunk number and the number of a sum (smtsynth.meaning.sums), so that a state is two flat integer arrays
however many devices and pieces there are.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from smtsynth.errors import LimitReached
from smtsynth.meaning.sums import Sums
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Group, Schedule

Ints = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int32]

MAX_PIECES = 2**20
MAX_CELLS = 2**24
BLOCK = 2**20
"""Cells that are worked on at once: bounds the memory of index arrays, not what can be done."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Groups of one entry that have the same size, shape (g, m), the places of their roots in them, their numbers."""

    collective: Collective
    groups: Ints
    roots: Ints
    numbers: Ints


@dataclass(frozen=True, slots=True)
class Unequal:
    """A group whose members' buffers differ in length where they may not: the step, and the first two that differ."""

    step: int
    collective: Collective
    group: Group
    devices: tuple[int, int]
    lengths: tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule's buffer lengths: K, each step's batches, and each device's length before each step and at the end.

    Lengths are parts of the whole: device d holds lengths[names[t][d]] * pieces pieces after t steps. Where a step
    meets unequal lengths the plan ends before it: `names` has len(steps) + 1 entries.
    """

    pieces: int
    steps: tuple[tuple[Batch, ...], ...]
    lengths: tuple[Fraction, ...]
    names: tuple[Ints, ...]
    unequal: Unequal | None

    def counts(self, step: int) -> Ints:
        """Each device's number of pieces after `step` steps."""
        return np.array([int(length * self.pieces) for length in self.lengths], dtype=np.int64)[self.names[step]]


def _batches(schedule: Schedule, number: int) -> list[Batch]:
    batches, first = [], 0
    for entry in schedule.steps[number]:
        sizes: dict[int, list[int]] = {}
        for place, group in enumerate(entry.groups):
            sizes.setdefault(len(group), []).append(place)
        for places in sizes.values():
            groups = np.array([entry.groups[place] for place in places], dtype=np.int64)
            roots = np.zeros(len(places), dtype=np.int64)
            if entry.roots:
                wanted = np.array([entry.roots[place] for place in places], dtype=np.int64)
                roots = np.argmax(groups == wanted[:, None], axis=1)
            batches.append(Batch(entry.collective, groups, roots, first + np.array(places, dtype=np.int64)))
        first += len(entry.groups)
    return batches


def start_lengths(schedule: Schedule) -> list[Fraction]:
    """Each device's buffer at the start, as a part of the whole; for an AllGather, nothing outside the goal groups."""
    if schedule.goal.collective is not Collective.ALL_GATHER:
        return [Fraction(1)] * schedule.devices
    lengths = [Fraction(0)] * schedule.devices
    for group in schedule.goal_groups:
        for device in group:
            lengths[device] = Fraction(1, len(group))
    return lengths


def plan(schedule: Schedule) -> Plan:
    """Buffer lengths through the schedule, and K: the least number of pieces for which every ReduceScatter divides
    and the goal's parts exist (model, section 5)."""
    lengths = start_lengths(schedule)
    table: list[Fraction] = []
    known: dict[Fraction, int] = {}

    def name(length: Fraction) -> int:
        if length not in known:
            known[length] = len(table)
            table.append(length)
        return known[length]

    now = np.array([name(length) for length in lengths], dtype=np.int64)
    names, steps, unequal = [now], [], None
    for number in range(len(schedule.steps)):
        batches = _batches(schedule, number)
        unequal = _unequal(schedule, number, batches, now, table)
        if unequal is not None:
            break
        after = now.copy()
        for batch in batches:
            m = batch.groups.shape[1]
            held = now[batch.groups[np.arange(len(batch.groups)), batch.roots]]
            for old in np.unique(held):
                scale = {Collective.REDUCE_SCATTER: Fraction(1, m), Collective.ALL_GATHER: Fraction(m)}
                new = name(table[old] * scale.get(batch.collective, Fraction(1)))
                after[batch.groups[held == old]] = new
        steps.append(tuple(batches))
        names.append(after)
        now = after
    parts = [len(group) for group in schedule.split_groups]
    if schedule.goal.collective not in (Collective.REDUCE_SCATTER, Collective.ALL_GATHER):
        parts = []
    pieces = math.lcm(*(length.denominator for length in table), *parts)
    return Plan(pieces, tuple(steps), tuple(table), tuple(names), unequal)


def _unequal(
    schedule: Schedule, number: int, batches: Sequence[Batch], now: Ints, table: Sequence[Fraction]
) -> Unequal | None:
    found: list[tuple[int, Batch, int]] = []
    for batch in batches:
        if batch.collective is not Collective.BROADCAST:
            held = now[batch.groups]
            bad = np.flatnonzero((held != held[:, :1]).any(axis=1))
            if len(bad):
                found.append((int(batch.numbers[bad[0]]), batch, int(bad[0])))
    if not found:
        return None
    _, batch, row = min(found, key=lambda each: each[0])
    group = tuple(batch.groups[row].tolist())
    other = next(device for device in group if now[device] != now[group[0]])
    held2 = (table[now[group[0]]], table[now[other]])
    return Unequal(number + 1, batch.collective, group, (group[0], other), held2)


@dataclass(frozen=True, slots=True)
class State:
    """All devices' buffers, one after the other: device d has cells starts[d] to starts[d] + lengths[d] - 1.

    chunks: chunk numbers (-1 where undefined); sums: numbers in the table of sums (0 where undefined).
    """

    chunks: Cells
    sums: Cells
    starts: Ints
    lengths: Ints

    def cells(self, device: int) -> slice:
        """Where the device's buffer is."""
        return slice(int(self.starts[device]), int(self.starts[device] + self.lengths[device]))


def _room(lengths: Ints) -> State:
    """Undefined buffers of these lengths."""
    cells = int(lengths.sum())
    starts = np.cumsum(lengths) - lengths
    return State(np.full(cells, -1, dtype=np.int32), np.zeros(cells, dtype=np.int32), starts, lengths)


def check_size(planned: Plan) -> None:
    """LimitReached if the buffers are too many pieces to be followed one by one."""
    if planned.pieces > MAX_PIECES:
        pieces = _rough(Fraction(planned.pieces))
        raise LimitReached(f"the schedule cuts buffers in {pieces} pieces; at most {MAX_PIECES} are followed")
    for names in planned.names:
        devices = np.bincount(names, minlength=len(planned.lengths)).tolist()
        cells = planned.pieces * sum(map(operator.mul, devices, planned.lengths))
        if cells > MAX_CELLS:
            raise LimitReached(f"the buffers come to {_rough(cells)} pieces; at most {MAX_CELLS} are followed")


def _rough(number: Fraction) -> str:
    """A whole number, or its power of ten where it is long."""
    bits = int(number).bit_length()
    return str(int(number)) if bits <= 40 else f"about 10^{round(bits * math.log10(2))}"


def states(schedule: Schedule, planned: Plan, sums: Sums) -> Iterator[State]:
    """The buffers at the start and after each step of the plan. Raises LimitReached (sizes, different sums)."""
    check_size(planned)
    state = _start(schedule, planned, sums)
    yield state
    for number, batches in enumerate(planned.steps, 1):
        state = _after(state, batches, planned.counts(number), sums)
        yield state


def _start(schedule: Schedule, planned: Plan, sums: Sums) -> State:
    state = _room(planned.counts(0))
    own = np.array([sums.of([device]) for device in range(schedule.devices)], dtype=np.int32)
    state.sums[:] = np.repeat(own, state.lengths)
    first = np.zeros(schedule.devices, dtype=np.int64)
    if schedule.goal.collective is Collective.ALL_GATHER:
        for group in schedule.goal_groups:
            first[list(group)] = np.arange(len(group)) * (planned.pieces // len(group))
    state.chunks[:] = np.repeat(first - state.starts, state.lengths) + np.arange(len(state.chunks))
    return state


def _after(state: State, batches: Sequence[Batch], lengths: Ints, sums: Sums) -> State:
    new = _room(lengths)
    idle = np.ones(len(lengths), dtype=bool)
    for batch in batches:
        idle[batch.groups] = False
    for length, devices in _by_length(np.flatnonzero(idle), lengths):
        for part in _blocks(devices, length):
            _write(new, part[:, None], *_read(state, part, 0, length))
    for batch in batches:
        roots = batch.groups[np.arange(len(batch.groups)), batch.roots]
        for length, places in _by_length(np.arange(len(roots)), state.lengths[roots]):
            for part in _blocks(places, length * batch.groups.shape[1]):
                _run(state, new, batch.collective, batch.groups[part], roots[part], length, sums)
    return new


def _by_length(places: Ints, lengths: Ints) -> list[tuple[int, Ints]]:
    """The places with each length but 0."""
    held = lengths[places]
    return [(int(length), places[held == length]) for length in np.unique(held) if length]


def _blocks(items: Ints, cells: int) -> Iterator[Ints]:
    """The items in blocks of at most BLOCK cells in all, or of one."""
    size = max(1, BLOCK // cells)
    for first in range(0, len(items), size):
        yield items[first : first + size]


def _read(state: State, devices: Ints, first: int, last: int) -> tuple[Cells, Cells]:
    """Cells first to last - 1 of these devices' buffers, shape (*devices, cells)."""
    index = state.starts[devices][..., None] + np.arange(first, last)
    return state.chunks[index], state.sums[index]


def _write(new: State, devices: Ints, chunks: Cells, sums: Cells) -> None:
    """Give the devices of row i of `devices`, shape (g, m), what row i of `chunks` and `sums` holds, shape (g, n)."""
    places = np.arange(chunks.shape[1])
    for columns in _blocks(np.arange(devices.shape[1]), max(1, chunks.size)):
        index = new.starts[devices[:, columns]][..., None] + places
        new.chunks[index] = chunks[:, None, :]
        new.sums[index] = sums[:, None, :]


def _run(state: State, new: State, collective: Collective, groups: Ints, roots: Ints, length: int, sums: Sums) -> None:
    """Run the collective on groups, shape (g, m), whose members (Broadcast: whose roots) hold `length` pieces."""
    m = groups.shape[1]
    if collective is Collective.BROADCAST:
        _write(new, groups, *_read(state, roots, 0, length))
    elif collective is Collective.ALL_GATHER:
        chunks, numbers = _read(state, groups, 0, length)
        _write(new, groups, chunks.reshape(len(groups), -1), numbers.reshape(len(groups), -1))
    else:
        chunks, numbers = _total(state, groups, length, sums)
        if collective is Collective.ALL_REDUCE:
            _write(new, groups, chunks, numbers)
        elif collective is Collective.REDUCE:
            _write(new, roots[:, None], chunks, numbers)
        else:
            part = length // m
            _write(new, groups.reshape(-1, 1), chunks.reshape(-1, part), numbers.reshape(-1, part))


def _total(state: State, groups: Ints, length: int, sums: Sums) -> tuple[Cells, Cells]:
    """The members' buffers added position by position, shape (g, length)."""
    width = max(1, BLOCK // groups.size)
    found = []
    for first in range(0, length, width):
        chunks, numbers = _read(state, groups, first, min(first + width, length))
        while chunks.shape[1] > 1:
            half = chunks.shape[1] // 2
            left, right, rest = np.s_[:, :half], np.s_[:, half : 2 * half], np.s_[:, 2 * half :]
            added = _add(chunks[left], numbers[left], chunks[right], numbers[right], sums)
            chunks = np.concatenate([added[0], chunks[rest]], axis=1)
            numbers = np.concatenate([added[1], numbers[rest]], axis=1)
        found.append((chunks[:, 0], numbers[:, 0]))
    return np.concatenate([c for c, _ in found], axis=1), np.concatenate([n for _, n in found], axis=1)


def _add(chunks1: Cells, sums1: Cells, chunks2: Cells, sums2: Cells, sums: Sums) -> tuple[Cells, Cells]:
    """Pieces added: undefined where chunks differ or a sum is undefined. The few distinct pairs are added once each."""
    fits = (chunks1 == chunks2) & (sums1 > 0) & (sums2 > 0)
    pairs, which = np.unique(sums1[fits].astype(np.int64) << 32 | sums2[fits], return_inverse=True)
    added = np.array([sums.add(pair >> 32, pair & (2**32 - 1)) for pair in pairs.tolist()], dtype=np.int32)
    total = np.zeros(chunks1.shape, dtype=np.int32)
    if len(pairs):
        total[fits] = added[which.reshape(-1)]
    return np.where(fits, chunks1, np.int32(-1)), total
