"""Reading the output of nccl-tests (`all_reduce_perf` and its siblings) as people paste it.

Taken: both layouts (with `root` and `#wrong`; the old one with `error`), several runs in a file, prefixes that
launchers put at the start of a line or inside a row, NCCL's and other programs' lines in between, missing or cut rank
lists (the number of devices then follows from busbw / algbw), sizes of 0, `N/A`, and files that end anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from smtsynth.errors import InputError
from smtsynth.model.program import Collective

MAX_BYTES = 64 * 2**20
COLLECTIVES = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "reduce": Collective.REDUCE,
    "broadcast": Collective.BROADCAST,
}
OTHERS = ("alltoall", "sendrecv", "scatter", "gather", "hypercube")
SIZES = {1: ("int8", "uint8", "char"), 2: ("half", "bfloat16"), 4: ("float", "int32", "uint32", "int")}
SIZES |= {8: ("double", "int64", "uint64")}
TYPE_BYTES = {name: size for size, names in SIZES.items() for name in names}
TYPE_BYTES |= {"fp8_e4m3": 1, "fp8_e5m2": 1, "f8e4m3": 1, "f8e5m2": 1}

_PREFIX = re.compile(r"\[\d+,\d+\]<std(?:out|err)>:")
_START = re.compile(r"#\s*Collective test starting:\s*(\w+?)_perf\b")
_OPTIONS = re.compile(r"#\s*nThread\b")
_RANK = re.compile(r"#\s+Rank\s+([0-9]{1,7})\s.*?\bon\s+(\S+)\s+device\s+\d+")
_HEADER = re.compile(r"#\s+size\s+count\b(.*)")
_ROW = re.compile(r"\s*[0-9]{1,18}\s+[0-9]{1,18}\s+[a-z]\w*\s")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,9})?(?:[eE][+-]?[0-9]{1,2})?")


@dataclass(frozen=True, slots=True)
class Sample:
    """A row: size in bytes as printed, elements, seconds (out of place, or in place where that is missing)."""

    line: int
    size: int
    count: int
    kind: str
    redop: str | None
    seconds: Fraction
    algbw: Fraction
    busbw: Fraction


@dataclass(frozen=True)
class Run:
    """A run: collective by nccl-tests' name, devices, nodes (None where the ranks' hosts don't tell), its samples,
    and how many rows were left out (size 0, no time, wrong results, cut)."""

    file: str
    line: int
    collective: str
    devices: int
    nodes: int | None
    samples: tuple[Sample, ...]
    skipped: int


@dataclass
class _Open:
    """A run that is being read."""

    line: int
    name: str | None = None
    ranks: dict[int, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    skipped: int = 0


def read_runs(path: str | os.PathLike[str]) -> list[Run]:
    """The runs of a log, in order. InputError with file and line where it holds none, or isn't text."""
    where = "".join(c if c.isprintable() else "?" for c in os.fspath(path))
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=where, expected="a log") from None
    if len(data) > MAX_BYTES:
        raise InputError("is too large", where=where, expected=f"at most {MAX_BYTES // 2**20} MiB")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError("is not text", where=f"{where}:{line}", expected="the output of nccl-tests")
    lines = data.decode("utf-8", errors="replace").splitlines()
    runs = list(_runs(lines, where))
    if not runs:
        last = f"{where}:{max(1, len(lines))}"
        raise InputError("ends without a row", where=last, expected="the output of nccl-tests")
    return runs


def _runs(lines: Iterable[str], where: str) -> Iterator[Run]:
    run = _Open(1)
    for number, raw in enumerate(lines, 1):
        line = _PREFIX.sub("", raw)
        start, header = _START.search(line), _HEADER.match(line)
        if start or _OPTIONS.match(line):
            if run.samples or run.skipped:
                yield from _closed(run, where)
                run = _Open(number)
            if start:
                run = _Open(number, start[1])
        elif header:
            if run.samples or run.skipped:
                yield from _closed(run, where)
                run = _Open(number, None)
            run.columns = ["size", "count", *header[1].split()]
        elif rank := _RANK.match(line):
            if run.samples or run.skipped:
                yield from _closed(run, where)
                run = _Open(number)
            run.ranks[int(rank[1])] = rank[2]
        elif _ROW.match(line):
            sample = _sample(line.split(), run.columns, number)
            if sample is None:
                run.skipped += 1
            else:
                run.samples.append(sample)
    yield from _closed(run, where)


def _sample(words: list[str], columns: list[str], line: int) -> Sample | None:
    """A row's sample, or None where it can't be used."""
    if "type" not in columns or columns[-4:-1] != ["time", "algbw", "busbw"]:  # no heading, or a damaged one
        old = len(words) == 12
        times = ["time", "algbw", "busbw", "error" if old else "#wrong"]
        columns = ["size", "count", "type", "redop", *([] if old else ["root"]), *times, *times]
    fixed = columns.index("time")
    values = words[fixed:]
    if len(words) < fixed + 3 or fixed + 3 >= len(columns) or "type" not in columns[:fixed]:
        return None
    for half in (values[:4], values[4:8]):
        if len(half) < 3 or not all(_NUMBER.fullmatch(word) for word in half[:3]):
            continue
        if len(half) > 3 and columns[fixed + 3] == "#wrong" and half[3] not in ("0", "N/A"):
            continue
        microseconds, algbw, busbw = (Fraction(word) for word in half[:3])
        if int(words[0]) == 0 or microseconds == 0:
            return None
        redop = words[columns.index("redop")] if "redop" in columns[:fixed] else None
        seconds = microseconds / 10**6
        kind = words[columns.index("type")]
        return Sample(line, int(words[0]), int(words[1]), kind, redop, seconds, algbw, busbw)
    return None


def _closed(run: _Open, where: str) -> Iterator[Run]:
    """The run, if it has a sample. Raises InputError where it is none of a collective's, or its figures disagree."""
    if not run.samples:
        return
    largest = max(run.samples, key=lambda one: one.busbw)
    place = f"{where}:{largest.line}"
    name = run.name or _collective(largest, place)
    devices = max(run.ranks, default=0) + 1
    whole = len(run.ranks) == devices > 1
    if devices == 1 or not _fits(largest, _ratio(name, devices)):
        told = _devices(name, largest, place)
        if told < devices:
            raise InputError(
                f"busbw {float(largest.busbw):g} does not fit to algbw {float(largest.algbw):g}",
                where=place,
                expected=f"the ratio of {name} on {devices} devices",
            )
        devices, whole = told, False  # the list of ranks is cut
    nodes = len(set(run.ranks.values())) if whole else None
    yield Run(where, run.line, name, devices, nodes, tuple(run.samples), run.skipped)


def _fits(sample: Sample, ratio: Fraction | None) -> bool:
    """Whether busbw / algbw is the ratio, as far as their printed digits tell."""
    if ratio is None or not sample.algbw or not sample.busbw:
        return True
    rounding = Fraction(1, 100) / sample.algbw + Fraction(1, 100) / sample.busbw
    return abs(sample.busbw / sample.algbw / ratio - 1) <= rounding


def _ratio(name: str, devices: int) -> Fraction | None:
    """busbw / algbw of a collective; None where it is no function of the devices."""
    if name == "all_reduce":
        return Fraction(2 * (devices - 1), devices)
    if name in ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter"):
        return Fraction(devices - 1, devices)
    return Fraction(1) if name in ("reduce", "broadcast", "sendrecv") else None


def _collective(sample: Sample, place: str) -> str:
    """Which collective a row is of, where the log doesn't say."""
    ratio = sample.busbw / sample.algbw if sample.algbw else Fraction(0)
    whole = sample.count * TYPE_BYTES.get(sample.kind, 0) == sample.size
    if ratio > Fraction(101, 100) and whole:
        return "all_reduce"
    if 0 < ratio < Fraction(99, 100) and not whole:
        return "all_gather" if sample.redop == "none" else "reduce_scatter"
    raise InputError("the log doesn't say which collective ran", where=place, expected="a line naming the test")


def _devices(name: str, sample: Sample, place: str) -> int:
    """The number of devices from busbw / algbw."""
    once = sample.busbw / sample.algbw if sample.algbw else Fraction(0)
    once = once / 2 if name == "all_reduce" else once
    if _ratio(name, 2) == 1 and name != "all_reduce":
        raise InputError(f"nothing tells how many devices ran {name}", where=place, expected="the list of ranks")
    if not 0 < once < 1:
        raise InputError(
            f"busbw {float(sample.busbw):g} and algbw {float(sample.algbw):g} fit to no number of devices", where=place
        )
    return max(2, round(1 / (1 - once)))
