"""The buffers meaning (model, section 5, "Buffers"): what a schedule does to machines' buffers, and if it is right.

This is for schedules that come from anywhere: every contribution is counted, and the goal is judged at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from smtsynth.errors import InputError, LimitReached
from smtsynth.meaning.judge import Verdict, judge, refuse_unequal, show_devices
from smtsynth.meaning.pieces import State, plan, states
from smtsynth.meaning.sums import Sums
from smtsynth.model.schedule import Schedule

__all__ = ["Holdings", "Piece", "Snapshot", "Verdict", "describe_piece", "holdings", "run", "trace"]

Piece = tuple[int, dict[int, int]] | None
"""A chunk number and how many times each contributor is in it; None is undefined."""


def run(schedule: Schedule, layout: Literal["any", "identity"] = "any") -> Verdict:
    """Run the schedule on buffers and judge its goal (model, section 5).

    layout: whether any one order of chunks at the end will do, or only chunk order. The schedule must have passed
    check_schedule. Verdict 'unknown' where the buffers are too large to follow piece by piece.
    Raises InputError for another layout.
    """
    if layout not in ("any", "identity"):
        raise InputError(f"layout {layout!r} is unknown", expected="any or identity")
    planned = plan(schedule)
    if planned.unequal is not None:
        return refuse_unequal(planned.unequal)
    sums = Sums()
    try:
        for state in states(schedule, planned, sums):
            end = state
        return judge(schedule, planned, sums, end, layout == "identity")
    except LimitReached as reached:
        return Verdict("unknown", str(reached))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All buffers after `step` steps (0: the start); `pieces` is K, the number of pieces of a whole buffer."""

    step: int
    pieces: int
    state: State
    sums: Sums

    def buffer(self, device: int) -> list[Piece]:
        """The device's pieces, in order."""
        cells = self.state.cells(device)
        pairs = zip(self.state.chunks[cells].tolist(), self.state.sums[cells].tolist(), strict=True)
        return [(chunk, self.sums.counts(number)) if chunk >= 0 else None for chunk, number in pairs]


def trace(schedule: Schedule) -> Iterator[Snapshot]:
    """The buffers at the start and after each step; ends before a step whose groups hold unequal lengths.

    Raises LimitReached where the buffers are too large to follow piece by piece.
    """
    planned, sums = plan(schedule), Sums()
    for step, state in enumerate(states(schedule, planned, sums)):
        yield Snapshot(step, planned.pieces, state, sums)


def incomplete(schedule: Schedule, end: Snapshot) -> int | None:
    """The first device of the goal that holds nothing, or a piece without each contribution of its goal group exactly
    once; None where there is none."""
    for group in schedule.goal_groups:
        wanted, whole = dict.fromkeys(group, 1), dict[int, bool]()
        for device in group:
            cells = end.state.cells(device)
            numbers = set(end.state.sums[cells].tolist())
            whole |= {number: end.sums.counts(number) == wanted for number in numbers - whole.keys()}
            undefined = (end.state.chunks[cells] < 0).any()
            if not numbers or undefined or not all(whole[number] for number in numbers):
                return device
    return None


def describe_piece(piece: Piece) -> str:
    """A piece in words: 'chunk 3 from 0-3, 5', with '2 times 4' for what is there more than once."""
    if piece is None:
        return "undefined"
    chunk, counts = piece
    times = sorted(set(counts.values()))
    parts = [(f"{n} times " if n > 1 else "") + show_devices(d for d, c in counts.items() if c == n) for n in times]
    return f"chunk {chunk} from " + ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much is held where it is used: steps[t][e][g][i] is how many pieces, of `pieces` to a whole buffer, the
    i-th device of group g of entry e holds before step t (from 0)."""

    pieces: int
    steps: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]


def holdings(schedule: Schedule) -> Holdings:
    """What the devices of each group hold before each step, as far as lengths let the schedule run.

    The last step listed may be one whose groups hold unequal lengths. No limit on sizes: only lengths are followed.
    """
    planned = plan(schedule)
    found = []
    for step, names in zip(schedule.steps, planned.names, strict=False):
        counts = [int(planned.lengths[name] * planned.pieces) for name in range(len(planned.lengths))]
        held = names.tolist()
        found.append(
            tuple(tuple(tuple(counts[held[device]] for device in group) for group in entry.groups) for entry in step)
        )
    return Holdings(planned.pieces, tuple(found))
