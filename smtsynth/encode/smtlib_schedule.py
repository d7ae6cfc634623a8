"""A schedule's correctness as an SMT-LIB question, from the files of the folder `encodings` (see smtlib).

Written apart from the buffers meaning (smtsynth.meaning.buffers), which it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from smtsynth.encode.smtlib import Values, binary, encoding_text, fill
from smtsynth.encode.smtlib_questions import HEAD
from smtsynth.errors import LimitReached
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Entry, Schedule

MAX_DEVICES = 32
MAX_PIECES = 4096  # of all devices together
KINDS = (
    *("buffer", "start", "group", "addition", "summed", "scattered", "emptied", "gather", "joining", "gathered"),
    *("copied", "goal", "part", "place", "range", "pair", "wanted"),
)


@dataclass
class _Run:
    """The values of schedule-run.smt2 as they are found, step by step."""

    pieces: int
    length: list[Fraction]
    last: list[int]
    bits: int
    groups: int = 0
    lists: dict[str, list[Values]] = field(default_factory=dict)

    def count(self, device: int) -> int:
        """Pieces that the device holds."""
        return int(self.length[device] * self.pieces)

    def name(self, device: int) -> str:
        """The device's buffer as it was last written."""
        return f"b{self.last[device]}.{device}"

    def put(self, kind: str, **values: object) -> None:
        """One more line of a kind."""
        self.lists.setdefault(kind, []).append(values)

    def write(self, device: int, step: int, length: Fraction) -> str:
        """A new buffer of the device after `step`, declared unless it is empty."""
        self.last[device], self.length[device] = step, length
        if length:
            self.put("buffer", name=self.name(device), l=self.count(device))
        return self.name(device)


def _lengths(schedule: Schedule) -> list[Fraction]:
    """What each device holds at the start, as a part of the whole."""
    if schedule.goal.collective is not Collective.ALL_GATHER:
        return [Fraction(1)] * schedule.devices
    part = {device: Fraction(1, len(group)) for group in schedule.goal_groups for device in group}
    return [part.get(device, Fraction(0)) for device in range(schedule.devices)]


def _after(lengths: list[Fraction], entry: Entry, number: int) -> list[Fraction] | None:
    """The lengths of a group's members after the step, or None where they would have to be equal and are not."""
    group = entry.groups[number]
    held = [lengths[device] for device in group]
    if entry.collective is Collective.BROADCAST:
        return [lengths[entry.root(number)]] * len(group)
    if len(set(held)) > 1:
        return None
    factor = {Collective.REDUCE_SCATTER: Fraction(1, len(group)), Collective.ALL_GATHER: Fraction(len(group))}
    return [held[0] * factor.get(entry.collective, Fraction(1))] * len(group)


def _plan(schedule: Schedule) -> tuple[int, set[Fraction]] | None:
    """K, and all lengths there are; None where a step joins unequal ones."""
    lengths = _lengths(schedule)
    seen = set(lengths)
    for step in schedule.steps:
        for entry in step:
            for number, group in enumerate(entry.groups):
                after = _after(lengths, entry, number)
                if after is None:
                    return None
                for device, length in zip(group, after, strict=True):
                    lengths[device] = length
        seen |= set(lengths)
    parts = [len(group) for group in schedule.split_groups]
    if schedule.goal.collective not in (Collective.REDUCE_SCATTER, Collective.ALL_GATHER):
        parts = []
    return math.lcm(*(length.denominator for length in seen), *parts), seen


def _group(run: _Run, entry: Entry, number: int, step: int) -> None:
    """One group of a step."""
    group, root, collective = entry.groups[number], entry.root(number), entry.collective
    was = {device: run.name(device) for device in group}
    after = _after(run.length, entry, number)
    assert after is not None
    held = run.count(root)
    now = {device: run.write(device, step, length) for device, length in zip(group, after, strict=True)}
    if not held:
        return
    if collective is Collective.BROADCAST:
        for device in group:
            run.put("copied", now=now[device], was=was[root])
        return
    g, run.groups = run.groups, run.groups + 1
    first, more = ("gather", "joining") if collective is Collective.ALL_GATHER else ("group", "addition")
    run.put(first, g=g, l=held, bits=held * run.bits, was=was[group[0]])
    for i, device in enumerate(group[1:]):
        run.put(more, g=g, i=i, next=i + 1, l=held, bits=(i + 2) * held * run.bits, was=was[device])
    for place, device in enumerate(group):
        if collective is Collective.ALL_GATHER:
            run.put("gathered", now=now[device], g=g, last=len(group) - 1)
        elif collective is Collective.REDUCE_SCATTER:
            width = run.count(device) * run.bits
            run.put(
                "scattered", now=now[device], g=g, last=len(group) - 1, high=(place + 1) * width - 1, low=place * width
            )
        elif collective is Collective.ALL_REDUCE or device == root:
            run.put("summed", now=now[device], g=g, last=len(group) - 1)
        else:
            run.put("emptied", now=now[device], l=held)


def _goal(schedule: Schedule, run: _Run, width: int, identity: bool) -> bool:
    """The goal's lists; False where a buffer hasn't the length it must have."""
    goal, n, k = schedule.goal, schedule.devices, run.pieces
    split = goal.collective is Collective.REDUCE_SCATTER
    rows: list[list[tuple[str, int, int, int, int]]] = []  # per order of chunks: its pieces, by place
    seen: dict[int, list[tuple[str, int, int, int, int]]] = {}  # by device
    for f, group in enumerate(schedule.goal_groups):
        root, share = goal.roots[f] if goal.roots else group[0], k // len(group)
        parts = [(0, k - 1, sum(1 << device for device in group))]
        if goal.collective is Collective.BROADCAST:
            parts = [(0, k - 1, 1 << root)]
        if goal.collective is Collective.ALL_GATHER:
            parts = [(place * share, (place + 1) * share - 1, 1 << device) for place, device in enumerate(group)]
        run.put("goal", f=f)
        for i, (first, end, source) in enumerate(parts):
            ends = {"first": binary(first, width), "end": binary(end, width)}
            run.put("part", f=f, i=i, next=i + 1, **{"from": binary(source, n)}, **ends)
        devices = [root] if goal.collective is Collective.REDUCE else list(group)
        if not split and any(run.count(device) != k for device in devices):
            return False
        for device in devices:
            seen[device] = [(run.name(device), run.count(device), i, f, len(parts)) for i in range(run.count(device))]
            rows += [] if split else [seen[device]]
    for group in schedule.split_groups if split else ():
        if any(run.count(device) * len(group) != k for device in group):
            return False
        rows.append([piece for device in group for piece in seen[device]])
    for row in rows:
        for p, (name, length, i, f, count) in enumerate(row):
            run.put("wanted", name=name, l=length, i=i, p=p, f=f, parts=count)
    for p, (name, length, i, _, _) in enumerate(rows[0]):
        run.put("place", p=p, chunk=binary(p, width) if identity else f"(chunk (at.{length}.{i} {name}))")
    for share in sorted({k // len(group) if split else k for group in schedule.split_groups}):
        for p in range(k):
            first = p // share * share
            run.put("range", p=p, first=binary(first, width), end=binary(first + share - 1, width))
    for p, q in combinations(range(k), 2):
        run.put("pair", p=p, q=q)
    return True


def schedule_obligation(schedule: Schedule, layout: str = "any", without: Collection[str] = ()) -> str:
    """A script that is unsatisfiable exactly if the schedule reaches its goal (model, section 5, "Buffers").

    layout: `any` one order of the chunks for all devices, or `identity`, chunk order. The schedule must have passed
    check_schedule. Raises LimitReached above MAX_DEVICES devices or MAX_PIECES pieces in all.
    """
    never = HEAD + "; lengths that do not fit: no goal is reached\n(assert true)\n(check-sat)\n"
    planned = _plan(schedule)
    if planned is None:
        return never
    k, lengths = planned
    n = schedule.devices
    if n > MAX_DEVICES or max(n, k) * k > MAX_PIECES:
        raise LimitReached(f"an SMT question takes at most {MAX_DEVICES} devices and {MAX_PIECES} pieces in all")
    width = max(1, (k - 1).bit_length())
    bits = 1 + width + 2 * n
    values = {
        "n": n,
        "width": width,
        "bits": bits,
        "last": bits - 1,
        "chunk-high": bits - 2,
        "chunk-low": 2 * n,
        "some-high": 2 * n - 1,
        "some-low": n,
        "more-high": n - 1,
    }
    text = HEAD + fill(encoding_text("schedule.smt2"), values, {}, without)
    for count in sorted({int(length * k) for length in lengths} - {0}):
        pieces: list[Values] = [{"i": i, "high": (i + 1) * bits - 1, "low": i * bits} for i in range(count)]
        own = {"l": count, "bits": count * bits}
        text += fill(encoding_text("schedule-length.smt2"), own, {"piece": pieces, "later": pieces[:0:-1]}, without)
    run = _Run(k, _lengths(schedule), [0] * n, bits)
    _start(schedule, run, width)
    for number, step in enumerate(schedule.steps, 1):
        for entry in step:
            for group in range(len(entry.groups)):
                _group(run, entry, group, number)
    if not _goal(schedule, run, width, layout == "identity"):
        return never
    lists = {kind: run.lists.get(kind, []) for kind in KINDS}
    return text + fill(encoding_text("schedule-run.smt2"), {}, lists, without) + "(check-sat)\n"


def _start(schedule: Schedule, run: _Run, width: int) -> None:
    """The buffers at the start."""
    first = [0] * schedule.devices
    if schedule.goal.collective is Collective.ALL_GATHER:
        for group in schedule.goal_groups:
            for place, device in enumerate(group):
                first[device] = place * (run.pieces // len(group))
    for device in range(schedule.devices):
        name = run.write(device, 0, run.length[device])
        own = binary(1 << device, schedule.devices)
        for i in range(run.count(device)):
            run.put("start", name=name, l=run.count(device), i=i, chunk=binary(first[device] + i, width), own=own)
