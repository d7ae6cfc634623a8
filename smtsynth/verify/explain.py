"""What a refuted schedule's group held before and after the step that went wrong, small enough to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from smtsynth.errors import LimitReached
from smtsynth.meaning.buffers import Snapshot, Verdict, trace
from smtsynth.meaning.faults import Cell, came_from
from smtsynth.meaning.judge import show_devices
from smtsynth.meaning.pieces import plan
from smtsynth.meaning.sums import UNDEFINED
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Group, Schedule

MOST_RUNS = 6  # stretches of a buffer that are shown
MOST_LINES = 12  # of what a group's devices hold
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
    cells = [(verdict.device, position) for position in _positions(end, verdict.device, verdict.chunk)]
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


def _positions(snapshot: Snapshot, device: int, chunk: int | None) -> list[int]:
    """Where the chunk is in a device's buffer; where it isn't, the undefined pieces, or else all."""
    chunks = snapshot.state.chunks[snapshot.state.cells(device)].tolist()
    found = [position for position, held in enumerate(chunks) if held == chunk]
    return found or [position for position, held in enumerate(chunks) if held < 0] or list(range(len(chunks)))


def _shows(snapshot: Snapshot, cell: Cell, verdict: Verdict) -> bool:
    """Whether a piece is undefined, or has contributions that are twice, or from outside."""
    cells = snapshot.state.cells(cell[0])
    number = int(snapshot.state.sums[cells][cell[1]])
    if number == UNDEFINED:
        return True
    counts = snapshot.sums.counts(number)
    return any(counts.get(device, 0) > 1 for device in verdict.duplicated) or any(
        device in counts for device in verdict.foreign
    )


def _lost(before: Snapshot, after: Snapshot, group: Group, verdict: Verdict) -> bool:
    """Whether some device of the group had missing contributions to the chunk before and hasn't after."""
    missing = set(verdict.missing)

    def held(snapshot: Snapshot) -> set[int]:
        state, found = snapshot.state, set[int]()
        for device in group:
            cells = state.cells(device)
            found.update(state.sums[cells][state.chunks[cells] == verdict.chunk].tolist())
        return {source for number in found for source in snapshot.sums.counts(number)}

    return bool(missing & held(before) - held(after))


def _lines(snapshot: Snapshot, group: Group, verdict: Verdict) -> Lines:
    """What the group's devices hold, those that hold the same together, the verdict's device in any case."""
    state = snapshot.state
    same: dict[tuple[bytes, bytes], list[int]] = {}
    for device in group:
        cells = state.cells(device)
        same.setdefault((state.chunks[cells].tobytes(), state.sums[cells].tobytes()), []).append(device)
    together = list(same.values())
    shown = together[:MOST_LINES] + [devices for devices in together[MOST_LINES:] if verdict.device in devices]
    return tuple((tuple(devices), buffer_text(snapshot, devices[0], verdict.chunk)) for devices in shown)


def buffer_text(snapshot: Snapshot, device: int, chunk: int | None = None) -> str:
    """A buffer in words, piece by piece from its start: 'chunks 0-3 from 0, 1; chunk 4 from 0; 2 undefined pieces'.

    Where that is long, only the stretches with the chunk, or what is undefined, are named.
    """
    cells = snapshot.state.cells(device)
    pieces = list(zip(snapshot.state.chunks[cells].tolist(), snapshot.state.sums[cells].tolist(), strict=True))
    if not pieces:
        return "nothing"
    runs = [(number, [piece[0] for piece in run]) for number, run in groupby(pieces, key=lambda piece: piece[1])]
    if len(runs) <= MOST_RUNS:
        return "; ".join(_run_text(snapshot, *run) for run in runs)
    near = [(number, chunks) for number, chunks in runs if number == UNDEFINED or chunk in chunks] or runs
    return "; ".join([*(_run_text(snapshot, *run) for run in near[:MOST_RUNS]), f"… {len(pieces)} pieces in all"])


def _run_text(snapshot: Snapshot, number: int, chunks: Sequence[int]) -> str:
    """Neighbouring pieces of one sum."""
    if number == UNDEFINED:
        return f"{len(chunks)} undefined piece{'s' * (len(chunks) > 1)}"
    return f"chunk{'s' * (len(chunks) > 1)} {_in_order(chunks)} from {_counts_text(snapshot.sums.counts(number))}"


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
