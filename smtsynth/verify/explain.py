"""What a refuted schedule's group held before and after the step that went wrong, small enough to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from smtsynth.errors import LimitReached
from smtsynth.meaning.buffers import Piece, Snapshot, Verdict, trace
from smtsynth.meaning.faults import Cell, came_from
from smtsynth.meaning.judge import show_devices
from smtsynth.meaning.pieces import plan
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Group, Schedule

MOST_RUNS = 6  # stretches of a buffer that are shown
MOST_DEVICES = 12  # lines of a group that are shown
Lines = tuple[tuple[Group, str], ...]
"""Devices that hold the same, and what they hold."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A group around a step: what its devices held before and after, in words.

    step: None for the end of the schedule, where there is no `before`. There is no `after` where the step can't run.
    """

    step: int | None
    collective: Collective | None
    group: Group
    pieces: int
    before: Lines | None
    after: Lines | None


def explain(schedule: Schedule, verdict: Verdict) -> Scene | None:
    """The scene of a refuted schedule's fault: the group at the step that the verdict names, else at the end.

    None where nothing is refuted, or where buffers are too large to follow.
    """
    if verdict.verdict != "refuted" or verdict.device is None:
        return None
    wanted = {verdict.step - 1, verdict.step} if verdict.step is not None else {len(schedule.steps)}
    kept: dict[int, Snapshot] = {}
    try:
        for snapshot in trace(schedule):
            last = snapshot
            if snapshot.step in wanted:
                kept[snapshot.step] = snapshot
    except LimitReached:
        return None
    if verdict.step is None:
        group = next((each for each in schedule.goal_groups if verdict.device in each), (verdict.device,))
        return Scene(None, None, group, last.pieces, None, _lines(last, group, verdict))
    before, after = kept[verdict.step - 1], kept.get(verdict.step)
    group = _group(schedule, verdict, before, after, last)
    return Scene(
        verdict.step,
        verdict.collective,
        group,
        last.pieces,
        _lines(before, group, verdict),
        None if after is None else _lines(after, group, verdict),
    )


def _group(schedule: Schedule, verdict: Verdict, before: Snapshot, after: Snapshot | None, end: Snapshot) -> Group:
    """The group in which the verdict's step made its fault.

    Of the groups that the wrong piece comes by, the first that shows the fault; else one that lost what is missing.
    """
    assert verdict.step is not None and verdict.device is not None
    entries = [entry for entry in schedule.steps[verdict.step - 1] if entry.collective is verdict.collective]
    groups = [group for entry in entries for group in entry.groups]
    if after is None:
        return next(group for group in groups if verdict.device in group and _uneven(before, group))
    cells = [(verdict.device, position) for position in _positions(end.buffer(verdict.device), verdict.chunk)]
    links = came_from(plan(schedule), cells)[verdict.step - 1]
    on_way = {device for device, _ in links}
    passed = [group for group in groups if not on_way.isdisjoint(group)]
    for group in passed:
        if any(_shows(after, cell, verdict) for cell in links if cell[0] in group):
            return group
    for group in groups:
        if _lost(before, after, group, verdict):
            return group
    return (passed or groups)[0]


def _uneven(snapshot: Snapshot, group: Group) -> bool:
    return len({int(snapshot.state.lengths[device]) for device in group}) > 1


def _positions(buffer: Sequence[Piece], chunk: int | None) -> list[int]:
    """Where the chunk is in a buffer; where it isn't, the undefined pieces, or else all."""
    found = [position for position, piece in enumerate(buffer) if piece is not None and piece[0] == chunk]
    return found or [position for position, piece in enumerate(buffer) if piece is None] or list(range(len(buffer)))


def _shows(snapshot: Snapshot, cell: Cell, verdict: Verdict) -> bool:
    """Whether a piece is undefined, or has contributions that are twice, or from outside."""
    cells = snapshot.state.cells(cell[0])
    number = int(snapshot.state.sums[cells][cell[1]])
    if number == 0:
        return True
    counts = snapshot.sums.counts(number)
    return any(counts.get(device, 0) > 1 for device in verdict.duplicated) or any(
        device in counts for device in verdict.foreign
    )


def _lost(before: Snapshot, after: Snapshot, group: Group, verdict: Verdict) -> bool:
    """Whether some device of the group had missing contributions to the chunk before and hasn't after."""
    missing = set(verdict.missing)

    def held(snapshot: Snapshot) -> set[int]:
        pieces = [piece for device in group for piece in snapshot.buffer(device)]
        return {source for piece in pieces if piece and piece[0] == verdict.chunk for source in piece[1]}

    return bool(missing & held(before) - held(after))


def _lines(snapshot: Snapshot, group: Group, verdict: Verdict) -> Lines:
    """What the group's devices hold, those that hold the same together, the verdict's device in any case."""
    same: dict[str, list[int]] = {}
    for device in group:
        same.setdefault(buffer_text(snapshot.buffer(device), verdict.chunk), []).append(device)
    lines = [(tuple(devices), text) for text, devices in same.items()]
    shown = lines[:MOST_DEVICES]
    shown += [line for line in lines[MOST_DEVICES:] if verdict.device in line[0]]
    return tuple(shown)


def buffer_text(buffer: Sequence[Piece], chunk: int | None = None) -> str:
    """A buffer in words, piece by piece from its start: 'chunks 0-3 from 0, 1; chunk 4 from 0; 2 undefined'.

    Where that is long, only the stretches with the chunk, or what is undefined, are named.
    """
    if not buffer:
        return "nothing"
    runs = [(key, list(pieces)) for key, pieces in groupby(buffer, key=_sources)]
    if len(runs) > MOST_RUNS:
        near = [run for run in runs if any(piece is None or piece[0] == chunk for piece in run[1])] or runs
        rest = f"… {len(buffer)} pieces in all"
        return "; ".join([*(_run_text(pieces) for _, pieces in near[:MOST_RUNS]), rest])
    return "; ".join(_run_text(pieces) for _, pieces in runs)


def _sources(piece: Piece) -> tuple[tuple[int, int], ...] | None:
    return None if piece is None else tuple(sorted(piece[1].items()))


def _run_text(pieces: Sequence[Piece]) -> str:
    """Neighbouring pieces with the same contributions."""
    first = pieces[0]
    if first is None:
        return f"{len(pieces)} undefined piece{'s' * (len(pieces) > 1)}"
    chunks = [piece[0] for piece in pieces if piece is not None]
    return f"chunk{'s' * (len(chunks) > 1)} {_in_order(chunks)} from {_counts_text(first[1])}"


def _counts_text(counts: dict[int, int]) -> str:
    """Contributors in words: '0-3, twice 4'."""
    parts = []
    for times in sorted(set(counts.values())):
        word = {1: "", 2: "twice "}.get(times, f"{times} times ")
        parts.append(word + show_devices(device for device, count in counts.items() if count == times))
    return ", ".join(parts)


def _in_order(numbers: Iterable[int], most: int = 8) -> str:
    """Numbers in their order, ascending runs of three and more joined."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(parts if len(parts) <= most else [*parts[:most], "…"])
