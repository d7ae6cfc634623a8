"""Comparing what the ranks of a trial ended with, element by element, with what the goal asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smtsynth.execute.values import Ints, Trial, elements_of
from smtsynth.meaning.judge import show_devices
from smtsynth.model.program import Collective


class Fault(NamedTuple):
    """The first thing that is wrong: lowest rank, then lowest chunk, in words too."""

    rank: int
    chunk: int | None
    reason: str


def judge(trial: Trial, results: Sequence[Ints]) -> Fault | None:
    """The first fault in the ranks' results, or None where every element is as the goal wants it.

    results: an array per rank. Of a proved schedule, those of the written program (order undone, zeros cut off);
    otherwise raw buffers, whose pieces may end in any one order.
    """
    if trial.script.proved:
        return _in_place(trial, results)
    return _raw(trial, results)


def _ranks(trial: Trial) -> list[tuple[int, int, int]]:
    """(rank, its goal group, which part is its own) of all ranks whose result matters, by rank."""
    script = trial.script
    place = {rank: place for group in script.split_groups for place, rank in enumerate(group)}
    return sorted(
        (rank, number, place.get(rank, 0))
        for number, group in enumerate(script.goal_groups)
        for rank in group
        if script.goal is not Collective.REDUCE or rank == script.goal_roots[number]
    )


def _in_place(trial: Trial, results: Sequence[Ints]) -> Fault | None:
    """The first element that is wrong, of results that stand where the plain collective would put them."""
    wanted = [trial.wanted(number) for number in range(len(trial.script.goal_groups))]
    seen = set()
    for rank, number, place in _ranks(trial):
        seen.add(rank)
        part = trial.part(place)
        expected = wanted[number][part]
        if len(results[rank]) != len(expected):
            held = len(results[rank])
            text = f"rank {rank} ends with {held} element{'s' * (held != 1)} instead of {len(expected)}"
            return Fault(rank, None, text)
        wrong = np.flatnonzero(results[rank] != expected)
        if len(wrong):
            first = int(wrong[0])
            chunk = int(trial.chunk_of[part.start + first])
            reason = (
                f"rank {rank}, element {first} (chunk {chunk}) is {results[rank][first]} instead of {expected[first]}; "
                f"{len(wrong)} of {len(expected)} element{'s are' if len(expected) != 1 else ' is'} wrong there"
            )
            return Fault(rank, chunk, reason)
    if trial.script.goal is Collective.REDUCE:
        return None
    for rank in range(trial.script.devices):
        if rank not in seen and not np.array_equal(results[rank], trial.inputs[rank]):
            return Fault(rank, None, f"rank {rank} is in no goal group, and what it had is changed")
    return None


class _Pieces(NamedTuple):
    """A rank's raw buffer: the chunk that each piece is of (-1: of none), and whether its sums are those wanted."""

    chunks: list[int]
    right: list[bool]


def _read(trial: Trial, buffer: Ints, wanted: Ints) -> _Pieces:
    """What the pieces of a raw buffer are, told from the values alone."""
    piece = trial.piece
    rows = buffer[: len(buffer) // piece * piece].reshape(-1, piece)
    where = {int(e): (c, i) for c, row in enumerate(trial.cells) for i, e in enumerate(row) if e >= 0}
    chunks, right = [], []
    for row, numbers in zip(rows, elements_of(rows, trial.whole), strict=True):
        first = next(((where[int(e)], i) for i, e in enumerate(numbers) if e >= 0), None)
        chunk = first[0][0] if first is not None else -1
        cells = trial.cells[chunk]
        if chunk < 0 or not np.array_equal(numbers[cells >= 0], cells[cells >= 0]):
            chunks.append(-1)
            right.append(False)
            continue
        chunks.append(chunk)
        right.append(bool((row[cells >= 0] == wanted[cells[cells >= 0]]).all()))
    return _Pieces(chunks, right)


def _raw(trial: Trial, results: Sequence[Ints]) -> Fault | None:
    """The first rank whose pieces are wrong, or whose pieces stand in another order than the first rank's.

    A chunk of added zeros alone tells nothing and is passed over.
    """
    script = trial.script
    real = np.array((trial.cells >= 0).any(axis=1))
    orders: dict[int, list[int]] = {}
    starts: dict[int, int] = {}
    for rank, number, place in _ranks(trial):
        pieces = _read(trial, results[rank], trial.wanted(number))
        part = range(script.pieces)
        if script.goal is Collective.REDUCE_SCATTER:
            part = range(place * trial.share, (place + 1) * trial.share)
        fault = _first_flaw(rank, pieces, part, real)
        if fault is not None:
            return fault
        orders[rank], starts[rank] = [chunk - part.start for chunk in pieces.chunks], part.start
    faults = []
    first = next(iter(orders), 0)
    for rank, order in orders.items():
        wrong = [c for c in range(len(order)) if c in order and order.index(c) != orders[first].index(c)]
        if wrong:
            chunk = wrong[0] + starts[rank]
            reason = f"rank {rank}, chunk {chunk}: all pieces are right, but this one is not where rank {first} has it"
            faults.append(Fault(rank, chunk, reason))
    return min(faults, default=None)


def _first_flaw(rank: int, pieces: _Pieces, part: range, real: npt.NDArray[np.bool_]) -> Fault | None:
    """The first chunk that is not there once and right where it belongs, or is there where it doesn't."""
    for chunk in np.flatnonzero(real).tolist():
        held = pieces.chunks.count(chunk)
        good = sum(ok for c, ok in zip(pieces.chunks, pieces.right, strict=True) if c == chunk)
        if chunk in part and (held != 1 or good != 1):
            what = "is not there" if not held else f"is there {held} times" if held > 1 else "is not the sum wanted"
            return Fault(rank, chunk, f"rank {rank}, chunk {chunk} {what}")
        if chunk not in part and held:
            return Fault(rank, chunk, f"rank {rank}, chunk {chunk} is there, and not of this rank's part")
    extra = len(pieces.chunks) - len(part)
    if extra > 0:
        return Fault(rank, None, f"rank {rank} holds {extra} undefined piece{'s' * (extra != 1)} too many")
    return None


def waiting_text(waits: Sequence[tuple[int | None, str]]) -> str:
    """What the ranks are at, or say: rank 0: in step 2 (…); ranks 1-3: finished. What is of no rank stands alone."""
    places: dict[str, list[int]] = {}
    for rank, place in waits:
        places.setdefault(place, []).extend([] if rank is None else [rank])
    return "; ".join(
        f"rank{'s' if len(ranks) > 1 else ''} {show_devices(ranks)}: {place}" if ranks else place
        for place, ranks in places.items()
    )
