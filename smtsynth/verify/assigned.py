"""Chunks that end split (model, section 5): by the rules it doesn't matter which device ends with which part.

The buffers demand the j-th part of the j-th device. Where devices end with the parts in another assignment, or several
with the same larger part, all that counts is that each piece is complete and each chunk at the devices of one part.
Where the parts are stretches of the chunks, that is a goal of its own: the same groups, their devices in the order of
what they hold. It is what solvers are asked, and what is wrong by it is wrong in any assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from smtsynth.errors import LimitReached
from smtsynth.meaning.buffers import Snapshot, Verdict, incomplete, run, trace
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Group, Schedule
from smtsynth.verify.schedules import Layout

OTHER = "every chunk ends complete at a device of its part, in another assignment"
MORE = "every chunk ends complete at the devices of its part, which hold others too"

BY_RULES = "by the rules every chunk ends complete at a device of its part, in some assignment"


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and the schedule that has it by the buffers alone, with a goal that names the assignment of the parts;
    None where there is none, as the parts are no stretches of the chunks, or the buffers alone leave it open."""

    verdict: Verdict
    schedule: Schedule | None


def judge_assigned(schedule: Schedule, layout: Layout = "any") -> Judged:
    """The verdict by the buffers, where layout `any` allows any assignment of parts to devices, and holding more.

    The verdict's layout then lists chunks as the goal's first group holds them, device by device. The schedule must
    have passed check_schedule.
    """
    verdict = run(schedule, layout)
    if verdict.verdict != "refuted" or layout != "any" or schedule.goal.collective is not Collective.REDUCE_SCATTER:
        return Judged(verdict, schedule)
    end, split, earlier = _ends(schedule)
    if end is None or split is None:
        named = schedule if earlier is None else _split_over(schedule, earlier)
        return Judged(run(named, layout), named)
    other = _split_over(schedule, split)
    found = run(other, layout)
    if incomplete(schedule, end) is not None:
        return Judged(found if found.verdict == "refuted" else verdict, other)
    reason = OTHER if len(split[0]) == len(schedule.split_groups[0]) else MORE
    right = Verdict("proved", reason, layout=_layout(schedule, end))
    return Judged(right, other if found.verdict == "proved" else None)


def _split_over(schedule: Schedule, split: tuple[Group, ...]) -> Schedule:
    return replace(schedule, goal=replace(schedule.goal, split=split))


def _ends(schedule: Schedule) -> tuple[Snapshot | None, tuple[Group, ...] | None, tuple[Group, ...] | None]:
    """The buffers at the end (None where they can't be followed there) and their assignment of parts; and the last one
    on the way in which each part had a device of its own: where the end has none, it tells what went wrong."""
    end, split, earlier = None, None, None
    try:
        for snapshot in trace(schedule):
            split = _assignment(schedule, snapshot)
            if split is not None and len(split[0]) == len(schedule.split_groups[0]):
                earlier = split
            if snapshot.step == len(schedule.steps):
                end = snapshot
    except LimitReached:
        return None, None, None
    return end, split, earlier


def _chunks(end: Snapshot, device: int) -> tuple[int, ...]:
    """The chunks in a device's buffer, in its order; -1 is undefined."""
    return tuple(end.state.chunks[end.state.cells(device)].tolist())


def _assignment(schedule: Schedule, end: Snapshot) -> tuple[Group, ...] | None:
    """The groups that the chunks end split over, their devices in the order of what they hold.

    Devices of one part must hold the same chunks, each chunk once, and each set of chunks must be held by as many
    parts, disjoint from others; else None. Where several parts hold a set, groups are that much smaller.
    """
    number = {device: place for place, group in enumerate(schedule.goal_groups) for device in group}
    together: dict[int, list[Group]] = {}
    for row in schedule.split_groups:
        together.setdefault(number[row[0]], []).append(row)
    found: list[Group] = []
    for rows in together.values():
        if len({len(row) for row in rows}) > 1:
            return None
        places: dict[tuple[int, ...], list[int]] = {}
        for place in range(len(rows[0])):
            held = {tuple(sorted(_chunks(end, row[place]))) for row in rows}
            if len(held) > 1:
                return None
            places.setdefault(held.pop(), []).append(place)
        parts = [places[chunks] for chunks in sorted(places)]
        if sorted(chunk for chunks in places for chunk in chunks) != list(range(end.pieces)):
            return None
        if len({(len(chunks), len(part)) for chunks, part in places.items()}) > 1:
            return None
        found += [tuple(row[place] for place in seats) for row in rows for seats in zip(*parts, strict=True)]
    return tuple(found)


def _layout(schedule: Schedule, end: Snapshot) -> tuple[int, ...]:
    """The chunks of the first split group, device by device; those that hold the same share it in their order."""
    row = schedule.split_groups[0]
    share = end.pieces // len(row)
    shared: dict[tuple[int, ...], int] = {}
    order: list[int] = []
    for device in row:
        chunks = _chunks(end, device)
        key = tuple(sorted(chunks))
        first = shared.get(key, 0)
        order += chunks[first : first + share]
        shared[key] = first + share
    return tuple(order)
