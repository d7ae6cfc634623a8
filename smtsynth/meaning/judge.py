"""Judging the buffers that a schedule ends with (model, sections 5 and 7): right, or what is wrong first and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from smtsynth.meaning.faults import Fault, order_origin, origin
from smtsynth.meaning.pieces import Cells, Plan, State, Unequal
from smtsynth.meaning.sums import UNDEFINED, Sums, numbers_of
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Group, Schedule


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is claimed of a schedule (model, sections 7 and 9).

    step: from 1, the one that made the surviving fault (None: something never came); device and chunk: the first that
    are wrong, device first; missing, duplicated, foreign: contributors that this chunk lacks there, that are counted
    more than once, and that are none of the goal's. layout: 'identity', or chunk at position i, when proved.
    """

    verdict: Literal["proved", "refuted", "unknown"]
    reason: str
    step: int | None = None
    collective: Collective | None = None
    device: int | None = None
    chunk: int | None = None
    missing: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    layout: Literal["identity"] | tuple[int, ...] | None = None
    foreign: tuple[int, ...] = ()


class Want(NamedTuple):
    """What a goal group must end with: its devices that matter, their parts of the chunks, and each chunk's sum."""

    group: Group
    devices: tuple[int, ...]
    parts: tuple[tuple[int, int], ...]
    sums: Cells


def _wants(schedule: Schedule, pieces: int, sums: Sums) -> list[Want]:
    """The goal, group by group (model, section 5, second table)."""
    goal, wants = schedule.goal, []
    seats = {device: (place, len(group)) for group in schedule.split_groups for place, device in enumerate(group)}
    for number, group in enumerate(schedule.goal_groups):
        root = goal.roots[number] if goal.roots else group[0]
        devices = (root,) if goal.collective is Collective.REDUCE else group
        parts = ((0, pieces),) * len(devices)
        if goal.collective is Collective.REDUCE_SCATTER:
            places = [seats[device] for device in group]
            parts = tuple((place * pieces // many, (place + 1) * pieces // many) for place, many in places)
        if goal.collective is Collective.ALL_GATHER:
            own = np.array([sums.of([device]) for device in group], dtype=np.int32)
            wanted = np.repeat(own, pieces // len(group))
        else:
            one = sums.of([root] if goal.collective is Collective.BROADCAST else group)
            wanted = np.full(pieces, one, dtype=np.int32)
        wants.append(Want(group, devices, parts, wanted))
    return wants


def _is_right(chunks: Cells, numbers: Cells, part: tuple[int, int], wanted: Cells) -> bool:
    """Whether a buffer holds the part's chunks, in any order, with the wanted sums."""
    if len(chunks) != part[1] - part[0]:
        return False
    in_order = np.arange(*part)
    if not np.array_equal(chunks, in_order) and not np.array_equal(np.sort(chunks), in_order):
        return False
    return bool(np.all(numbers == wanted[chunks]))


def judge(schedule: Schedule, planned: Plan, sums: Sums, end: State, identity: bool) -> Verdict:
    """The verdict on the buffers at the end of the plan; identity: whether they must be in chunk order."""
    wants = _wants(schedule, planned.pieces, sums)
    wrong: tuple[int, Want, tuple[int, int]] | None = None
    for want in wants:
        for device, part in zip(want.devices, want.parts, strict=True):
            if wrong is None or device < wrong[0]:
                cells = end.cells(device)
                if not _is_right(end.chunks[cells], end.sums[cells], part, want.sums):
                    wrong = (device, want, part)
    if wrong is not None:
        return _wrong(schedule, planned, sums, end, *wrong)
    return _order(schedule, planned, sums, end, wants, identity)


def _order(schedule: Schedule, planned: Plan, sums: Sums, end: State, wants: Sequence[Want], identity: bool) -> Verdict:
    """The verdict where all pieces are right: the order of the chunks, which must be one for all devices.

    Where each device keeps a part only, the order is that of a whole group's parts, one after the other.
    """
    in_order = np.arange(planned.pieces, dtype=np.int32)
    if schedule.goal.collective is Collective.REDUCE_SCATTER:
        rows = [(group, np.concatenate([end.chunks[end.cells(d)] for d in group])) for group in schedule.split_groups]
    else:
        rows = [((device,), end.chunks[end.cells(device)]) for want in wants for device in want.devices]
        rows.sort(key=lambda row: row[0])
    first, common = rows[0][0][0], in_order if identity else rows[0][1]
    found: tuple[int, int, int] | None = None
    for devices, row in rows:
        if not np.array_equal(row, common):
            chunk = int(np.flatnonzero(np.argsort(row) != np.argsort(common))[0])
            share = planned.pieces // len(devices)
            place, cell = divmod(int(np.flatnonzero(row == chunk)[0]), share)
            found = min(found or (devices[place], chunk, cell), (devices[place], chunk, cell))
    if found is None:
        layout: Literal["identity"] | tuple[int, ...] = "identity"
        if not np.array_equal(common, in_order):
            layout = tuple(common.tolist())
        order = "in chunk order" if layout == "identity" else "in one other order of chunks"
        return Verdict("proved", f"the goal holds on every device, {order}", layout=layout)
    device, chunk, cell = found
    cause = order_origin(schedule, planned, sums, device, cell)
    other = "in chunk order" if identity else f"where device {first} has it"
    reason = f"device {device}, chunk {chunk}: all pieces are right, but this one is not {other}"
    if cause is not None:
        reason += f" since step {cause.step} ({cause.collective})"
    step, collective = cause or (None, None)
    return Verdict("refuted", reason, step, collective, device, chunk)


class Flaw(NamedTuple):
    """A device's first wrong chunk (None: only undefined pieces too many), whether it is of the device's part, and the
    cells that show it: those that hold the chunk, or else an undefined one."""

    chunk: int | None
    belongs: bool
    cells: tuple[int, ...]


def _first_flaw(chunks: Cells, numbers: Cells, part: tuple[int, int], wanted: Cells) -> Flaw:
    """What is wrong first in a buffer that should hold the part's chunks, once each, with the wanted sums."""
    pieces = len(wanted)
    held = np.bincount(chunks[chunks >= 0], minlength=pieces)
    good = np.bincount(chunks[(chunks >= 0) & (numbers == wanted[chunks])], minlength=pieces)
    ours = np.zeros(pieces, dtype=bool)
    ours[slice(*part)] = True
    bad = np.flatnonzero(np.where(ours, (held != 1) | (good != 1), held > 0))
    holes = np.flatnonzero(chunks < 0).tolist()
    if not len(bad):
        return Flaw(None, True, (holes[0],))
    chunk = int(bad[0])
    cells = np.flatnonzero(chunks == chunk).tolist()
    if not cells and holes:
        cells = [chunk - part[0] if chunk - part[0] in holes else holes[0]]
    return Flaw(chunk, bool(ours[chunk]), tuple(cells))


def _wrong(
    schedule: Schedule, planned: Plan, sums: Sums, end: State, device: int, want: Want, part: tuple[int, int]
) -> Verdict:
    """The verdict on a device that ends with something wrong: its first wrong chunk, and the step that made it."""
    chunks, numbers = end.chunks[end.cells(device)], end.sums[end.cells(device)]
    flaw = _first_flaw(chunks, numbers, part, want.sums)
    held = [int(numbers[cell]) for cell in flaw.cells]
    wanted = sums.present(int(want.sums[flaw.chunk])) if flaw.chunk is not None and flaw.belongs else 0
    # Where the chunk is there more than once, the sum that comes nearest is the one that is judged.
    missing = wanted & ~max((sums.present(number) & wanted for number in held), key=int.bit_count, default=0)
    present = twice = 0
    for number in held if wanted else []:
        twice |= sums.repeated(number) | (present & sums.present(number))
        present |= sums.present(number)
    foreign = present & ~wanted
    fault = Fault(
        device,
        flaw.chunk,
        flaw.cells,
        missing,
        wanted or -1,
        frozenset(want.group),
        misplaced=not flaw.belongs or len(flaw.cells) > 1,
        scattered=schedule.goal.collective is Collective.REDUCE_SCATTER,
    )
    cause, how = origin(schedule, planned, sums, fault)
    step, collective = cause or (None, None)
    notes = []
    if not held:
        notes.append("not there")
    elif UNDEFINED in held:
        notes.append("undefined")
    else:
        named = {"is missing": missing, "is there more than once": twice, "does not belong there": foreign}
        notes += [f"what {_named(bits)} gave {text}" for text, bits in named.items() if bits]
        if not flaw.belongs:
            notes.append("not of this device's part")
        elif len(held) > 1:
            notes.append(f"there {len(held)} times")
    what = f"chunk {flaw.chunk}" if flaw.chunk is not None else f"position {flaw.cells[0]}"
    why = f"step {cause.step} ({cause.collective}) {how}" if cause else "no step sent it away"
    if cause is None and flaw.belongs:
        why = "what is missing never came"
    return Verdict(
        "refuted",
        f"device {device}, {what}: {', '.join(notes)}; {why}",
        step,
        collective,
        device,
        flaw.chunk,
        tuple(numbers_of(missing)),
        tuple(numbers_of(twice)),
        foreign=tuple(numbers_of(foreign)),
    )


def refuse_unequal(unequal: Unequal) -> Verdict:
    """The verdict on a step whose group holds buffers of unequal lengths."""
    one, two = unequal.devices
    parts = " and ".join("nothing" if not part else f"{part} of the whole" for part in unequal.lengths)
    reason = (
        f"step {unequal.step}: {unequal.collective} on group [{show_devices(unequal.group)}]: "
        f"devices {one} and {two} hold buffers of unequal lengths ({parts})"
    )
    return Verdict("refuted", reason, unequal.step, unequal.collective, two)


def show_devices(devices: Iterable[int]) -> str:
    """Device numbers, ascending, with runs of three and more joined: 0-3, 5, 8, 9."""
    numbers = sorted(devices)
    breaks = [0, *(i for i, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1), len(numbers)]
    runs = [numbers[a:b] for a, b in pairwise(breaks)]
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(parts if len(parts) <= 12 else [*parts[:12], f"… {len(numbers)} in all"])


def _named(bits: int) -> str:
    """'device 3' or 'devices 0-3', of a bit set."""
    return f"device{'s' * (bits.bit_count() > 1)} {show_devices(numbers_of(bits))}"
