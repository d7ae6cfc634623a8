"""Where a schedule went wrong (model, section 7): which step made a fault that the buffers still show at the end.

The pieces that a wrong piece came from are followed back through the schedule, which takes lengths only; then the
buffers are run again, and marks for the first step at which something went wrong travel forward along these pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from smtsynth.meaning.pieces import Batch, Plan, State, states
from smtsynth.meaning.sums import UNDEFINED, Sums
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Schedule

Cell = tuple[int, int]
"""A device and a position in its buffer."""


class Link(NamedTuple):
    """How a cell came by its piece in a step: from these cells; more than one where they were added."""

    collective: Collective | None
    sources: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at the end: a device, the chunk, the cells that show it, and what its sum should have been.

    missing, wanted: contributors as bit sets (wanted is -1 where any will do); group: the device's goal group;
    misplaced: the chunk is there twice, or not of the device's part; scattered: the goal gives each device a part,
    which no scatter may take from it.
    """

    device: int
    chunk: int | None
    cells: tuple[int, ...]
    missing: int
    wanted: int
    group: frozenset[int]
    misplaced: bool = False
    scattered: bool = False


class Cause(NamedTuple):
    """A step, from 1, and the collective that ran in it."""

    step: int
    collective: Collective


class Origin(NamedTuple):
    """What made a fault, and how; no cause where something never came."""

    cause: Cause | None
    how: str


class Marks(NamedTuple):
    """What first made a piece go wrong: undefined (and whether that is a fault already), twice, from outside."""

    undefined: Cause | None = None
    definite: bool = False
    twice: Cause | None = None
    outside: Cause | None = None


class Seat(NamedTuple):
    """A device's place in a step: its group's collective, members and root, and its own place among them."""

    collective: Collective
    group: tuple[int, ...]
    root: int
    column: int


def _seats(batches: Sequence[Batch], wanted: Iterable[int], devices: int) -> dict[int, Seat]:
    """The places of the wanted devices that take part in a step."""
    seats = {}
    for batch in batches:
        width = batch.groups.shape[1]
        place = np.full(devices, -1, dtype=np.int64)
        place[batch.groups.reshape(-1)] = np.arange(batch.groups.size)
        for device in wanted:
            if place[device] >= 0:
                row, column = divmod(int(place[device]), width)
                group = tuple(batch.groups[row].tolist())
                seats[device] = Seat(batch.collective, group, group[int(batch.roots[row])], column)
    return seats


def _link(seat: Seat | None, length: int, cell: Cell) -> Link:
    """Where the cell's piece came from in a step, before which its device held `length` pieces."""
    device, position = cell
    if seat is None:
        return Link(None, (cell,))
    if seat.collective is Collective.BROADCAST:
        return Link(seat.collective, ((seat.root, position),))
    if seat.collective is Collective.ALL_GATHER:
        return Link(seat.collective, ((seat.group[position // length], position % length),))
    if seat.collective is Collective.REDUCE and device != seat.root:
        return Link(seat.collective, ())
    if seat.collective is Collective.REDUCE_SCATTER:
        position += seat.column * (length // len(seat.group))
    return Link(seat.collective, tuple((member, position) for member in seat.group))


def came_from(planned: Plan, cells: Iterable[Cell]) -> list[dict[Cell, Link]]:
    """Per step, the links of all cells that the given ones come from (at the end)."""
    wanted, history = set(cells), []
    for number in range(len(planned.steps), 0, -1):
        lengths = planned.counts(number - 1)
        seats = _seats(planned.steps[number - 1], {device for device, _ in wanted}, len(lengths))
        links = {cell: _link(seats.get(cell[0]), int(lengths[cell[0]]), cell) for cell in wanted}
        wanted = {source for link in links.values() for source in link.sources}
        history.append(links)
    return history[::-1]


def _path(history: Sequence[dict[Cell, Link]], cell: Cell) -> list[Cell]:
    """Where the cell's piece was after each step, from the start on (of a sum's parts, the device's own)."""
    path = [cell]
    for links in reversed(history):
        sources = links[cell].sources
        cell = next((source for source in sources if source[0] == cell[0]), sources[0] if sources else cell)
        path.append(cell)
    return path[::-1]


def _first(causes: Iterable[Cause | None]) -> Cause | None:
    return min((cause for cause in causes if cause is not None), default=None)


def _marks(
    number: int, link: Link, cell: Cell, before: dict[Cell, Marks], sums: Sums, here: int, fault: Fault
) -> Marks:
    """The marks of a cell after step `number` gave it the sum `here`."""
    sources = [before[source] for source in link.sources]
    now = Cause(number, link.collective) if link.collective else None
    if here == UNDEFINED:
        faults = _first(mark.undefined for mark in sources if mark.definite)
        if faults is not None:
            return Marks(faults, True)
        if all(mark.undefined for mark in sources):
            # What a Reduce leaves undefined is no fault until it is added to something, or stays.
            return Marks(_first([*(mark.undefined for mark in sources), now]), False)
        return Marks(now, True)
    twice = _first(mark.twice for mark in sources)
    if twice is None and sums.repeated(here):
        twice = now
    outside = None
    if cell[0] in fault.group and sums.present(here) & ~fault.wanted:
        outside = _first(before[source].outside for source in link.sources if source[0] in fault.group) or now
    return Marks(twice=twice, outside=outside)


def _there(state: State, sums: Sums, chunk: int | None, device: int | None = None) -> int:
    """All contributors to a chunk's pieces, anywhere or at one device, as a bit set."""
    cells = slice(None) if device is None else state.cells(device)
    found = 0
    for number in np.unique(state.sums[cells][state.chunks[cells] == chunk]).tolist():
        found |= sums.present(number)
    return found


def _lost(planned: Plan, fault: Fault, anywhere: Sequence[int], here: Sequence[int]) -> Cause | None:
    """What first lost something of what is missing: the last copy of it, or the device's own, overwritten or mixed up.

    anywhere, here: contributors to the chunk after each step, on any device and on this one.
    """
    found, left = None, fault.missing & ~here[-1]
    for number in range(len(planned.steps), 0, -1):
        batches = planned.steps[number - 1]
        dropped, left = left & here[number - 1], left & ~here[number - 1]
        if anywhere[number - 1] & ~anywhere[number] & fault.missing:
            kinds = [batch.collective for batch in batches]
            found = Cause(number, Collective.BROADCAST if Collective.BROADCAST in kinds else kinds[0])
        elif dropped:
            seat = _seats(batches, [fault.device], len(planned.names[0]))[fault.device]
            moved = seat.collective is Collective.REDUCE and seat.root != fault.device
            if not (moved or (seat.collective is Collective.REDUCE_SCATTER and not fault.scattered)):
                found = Cause(number, seat.collective)
    return found


def _brought(history: Sequence[dict[Cell, Link]], fault: Fault) -> Cause | None:
    """What put the chunk where it does not belong: beside another copy, or outside of the device's part."""
    if not fault.misplaced:
        return None
    paths = [_path(history, (fault.device, cell)) for cell in fault.cells[:2]]
    if len(paths) == 1:
        paths.append([(fault.device, 0)] * len(paths[0]))
    for number in range(len(history), 0, -1):
        collective = history[number - 1][paths[0][number]].collective
        if collective is not None and paths[0][number - 1][0] != paths[1][number - 1][0]:
            return Cause(number, collective)
    return None


def origin(schedule: Schedule, planned: Plan, sums: Sums, fault: Fault) -> Origin:
    """What made the fault (model, section 9, `step`).

    It is the first step of those that made the surviving piece undefined, counted a contributor again, brought in one
    from outside, lost what is missing, or put the chunk where it is too much; none if what is missing never came.
    """
    history = came_from(planned, [(fault.device, cell) for cell in fault.cells])
    marks: dict[Cell, Marks] = {}
    anywhere, here = [], []
    for number, state in enumerate(states(schedule, planned, sums)):
        anywhere.append(_there(state, sums, fault.chunk))
        here.append(_there(state, sums, fault.chunk, fault.device))
        if number == 0:
            marks = {source: Marks() for links in history[:1] for link in links.values() for source in link.sources}
        else:
            marks = {
                cell: _marks(number, link, cell, marks, sums, int(state.sums[state.starts[cell[0]] + cell[1]]), fault)
                for cell, link in history[number - 1].items()
            }
    final = [marks[fault.device, cell] for cell in fault.cells] if history else []
    undefined = _first(mark.undefined for mark in final)
    if undefined is not None:
        added = any(mark.definite for mark in final)
        return Origin(undefined, "added different chunks, or something undefined" if added else "left nothing there")
    candidates = [
        (_first(mark.twice for mark in final), "counted contributions again"),
        (_first(mark.outside for mark in final), "brought in contributions from outside"),
        (_lost(planned, fault, anywhere, here), "lost contributions"),
        (_brought(history, fault), "put the chunk there"),
    ]
    cause = _first(each for each, _ in candidates)
    return Origin(cause, next(how for each, how in [*candidates, (None, "")] if each == cause))


def order_origin(schedule: Schedule, planned: Plan, sums: Sums, device: int, cell: int) -> Cause | None:
    """The gather that brought the device's pieces out of chunk order, following the piece in `cell`: the first after
    the last that left them in order, or the last one where all did; none if there was no gather."""
    history = came_from(planned, [(device, cell)])
    path = _path(history, (device, cell))
    culprit, in_order = None, True
    for number, state in enumerate(states(schedule, planned, sums)):
        if number and history[number - 1][path[number]].collective is Collective.ALL_GATHER:
            ascending = bool(np.all(np.diff(state.chunks[state.cells(path[number][0])]) > 0))
            if in_order or ascending:
                culprit = Cause(number, Collective.ALL_GATHER)
            in_order = ascending
    return culprit
