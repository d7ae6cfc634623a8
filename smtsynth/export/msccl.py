"""A program or schedule as an MSCCL algorithm, each collective as the library's ring, proved before it is given out.

A ring goes over a group's devices in id order, a Reduce or Broadcast down a chain: the root, then the others in id
order (model, section 6). Every chunk stays at its own offset, in place, so that no order of chunks is left to undo. A
step of the schedule is a thread block on each of its devices, and waits for the last block of its device before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from smtsynth.errors import InputError, InternalError
from smtsynth.export.script import ROOTED, Move, Script, require_proved
from smtsynth.meaning.buffers import trace
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Group
from smtsynth.msccl.model import MAX_CHUNKS, MAX_COUNT, MAX_STEPS_PER_BLOCK, Algorithm, Gpu, ThreadBlock, XmlStep
from smtsynth.msccl.verify import verify_msccl
from smtsynth.msccl.writer import write_msccl

MAX_RANKS = 64
MAX_CHANNELS = 32
NAMES = {
    Collective.ALL_REDUCE: "allreduce",
    Collective.REDUCE_SCATTER: "reduce_scatter",
    Collective.ALL_GATHER: "allgather",
    Collective.REDUCE: "reduce",
    Collective.BROADCAST: "broadcast",
}

Chunks = tuple[int, ...]
"""Chunk numbers in the order in which a buffer holds them."""


@dataclass
class _Block:
    """A thread block while it is written."""

    send: int
    recv: int
    chan: int
    steps: list[XmlStep] = field(default_factory=list)


class _Blocks:
    """The thread blocks of all GPUs while they are written, in one buffer of each."""

    def __init__(self, ranks: int, buffer: str) -> None:
        self.buffer = buffer
        self.of: list[list[_Block]] = [[] for _ in range(ranks)]

    def add(self, rank: int, send: int, recv: int, chan: int, moves: Sequence[tuple[str, Chunks]]) -> None:
        """A block of moves (step type, chunks), which waits for the rank's block before it."""
        block = _Block(send, recv, chan)
        for kind, chunks in moves:
            for first, count in runs(chunks):
                block.steps.append(XmlStep(kind, self.buffer, first, self.buffer, first, count))
        mine = self.of[rank]
        if mine:
            last = mine[-1]
            last.steps[-1] = replace(last.steps[-1], hasdep=True)
            block.steps[0] = replace(block.steps[0], depid=len(mine) - 1, deps=len(last.steps) - 1)
        mine.append(block)

    def gpus(self, sizes: tuple[int, int]) -> tuple[Gpu, ...]:
        """All GPUs, with input and output buffers of these sizes."""
        return tuple(
            Gpu(*sizes, 0, tuple(ThreadBlock(b.send, b.recv, b.chan, tuple(b.steps)) for b in blocks))
            for blocks in self.of
        )


def runs(chunks: Chunks) -> Iterator[tuple[int, int]]:
    """(first, count) of the runs of consecutive chunks, none longer than a step may move."""
    start = 0
    for place in range(1, len(chunks) + 1):
        if place == len(chunks) or chunks[place] != chunks[place - 1] + 1 or place - start == MAX_COUNT:
            yield chunks[start], place - start
            start = place


def msccl_algorithm(given: Script, name: str = "smtsynth") -> Algorithm:
    """The schedule as an MSCCL algorithm, in place, proved right in every interleaving.

    Raises InputError for a schedule that isn't proved, more than 64 ranks, or a goal that is no collective over all
    ranks in order; InternalError if the verification does not prove what was written.
    """
    require_proved(given)
    _check(given)
    held = _held(given)
    split = math.lcm(*(_ring_parts(given, move, held) for move in given.moves))
    chunks = given.pieces * split
    if chunks > MAX_CHUNKS:
        raise InputError(f"{chunks} chunks", where="msccl", expected=f"at most {MAX_CHUNKS}")
    blocks = _Blocks(given.devices, "o" if given.goal is Collective.ALL_GATHER else "i")
    for channel, move in enumerate(given.moves):
        for number, group in enumerate(move.groups):
            before = [_refined(held[move.step - 1][rank], split) for rank in group]
            if move.collective in ROOTED:
                _chain(blocks, channel, move, number, before[group.index(move.roots[number])])
            else:
                _ring(blocks, channel, move.collective, group, before)
    part = chunks // given.devices
    sizes = {
        Collective.REDUCE_SCATTER: (chunks, part),
        Collective.ALL_GATHER: (part, chunks),
    }.get(given.goal, (chunks, chunks))
    algorithm = Algorithm(
        name,
        "Simple",
        max(1, len(given.moves)),
        chunks,
        NAMES[given.goal],
        blocks.gpus(sizes),
        inplace=True,
        outofplace=False,
        root=given.goal_roots[0] if given.goal in ROOTED else 0,
    )
    longest = max((len(block.steps) for gpu in algorithm.gpus for block in gpu.blocks), default=0)
    if longest > MAX_STEPS_PER_BLOCK:
        raise InputError(
            f"a thread block would have {longest} steps", where="msccl", expected=f"at most {MAX_STEPS_PER_BLOCK}"
        )
    verdict = verify_msccl(algorithm)
    if verdict.verdict != "proved":
        raise InternalError(f"the MSCCL algorithm of a proved schedule is {verdict.verdict}: {verdict.reason}")
    return algorithm


def msccl_text(given: Script, name: str = "smtsynth") -> str:
    """The algorithm's XML; see msccl_algorithm."""
    return write_msccl(msccl_algorithm(given, name))


def msccl_note(given: Script) -> str | None:
    """What has to be known to call the algorithm of a goal other than AllReduce, in a sentence."""
    called = f'registered as "{NAMES[given.goal]}"'
    if given.goal is Collective.REDUCE_SCATTER:
        return f"{called}: the j-th rank ends with the j-th part of the sum, at its place in the input buffer"
    if given.goal is Collective.ALL_GATHER:
        return f"{called}: in place, the j-th rank's part at its place in the output buffer"
    if given.goal in ROOTED:
        return f"{called}: for calls with root {given.goal_roots[0]} only"
    return None


def _check(given: Script) -> None:
    if given.devices > MAX_RANKS:
        raise InputError(f"{given.devices} ranks", where="msccl", expected=f"at most {MAX_RANKS}")
    if given.goal_groups != (tuple(range(given.devices)),) or given.schedule.goal.split:
        raise InputError(
            "MSCCL algorithms are collectives of all their ranks, in order",
            where="msccl",
            expected="a goal over one group of all devices (of a program, one replica is written)",
        )
    if len(given.moves) > MAX_CHANNELS:
        raise InputError(f"{len(given.moves)} steps", where="msccl", expected=f"at most {MAX_CHANNELS}, a channel each")


def _held(given: Script) -> list[list[Chunks]]:
    """The chunks of each rank's buffer before each step, in their order; those of a script that deals out parts by
    where its pieces come from, so that nothing has to be moved before the first step."""
    of = given.arrange or range(given.pieces)
    return [
        [
            tuple(of[chunk] if chunk >= 0 else chunk for chunk in snapshot.state.chunks[snapshot.state.cells(rank)])
            for rank in range(given.devices)
        ]
        for snapshot in trace(given.schedule)
    ]


def _refined(chunks: Chunks, split: int) -> Chunks:
    """The same chunks, each cut in `split`."""
    return tuple(chunk * split + part for chunk in chunks for part in range(split))


def _ring_parts(given: Script, move: Move, held: Sequence[Sequence[Chunks]]) -> int:
    """How fine the pieces must be cut for the rings of this move: an AllReduce's ring needs a part for each rank."""
    if move.collective is not Collective.ALL_REDUCE:
        return 1
    return math.lcm(*(len(group) // math.gcd(len(group), len(held[move.step - 1][group[0]])) for group in move.groups))


def _ring(blocks: _Blocks, channel: int, collective: Collective, group: Group, before: Sequence[Chunks]) -> None:
    """AllReduce, ReduceScatter or AllGather of one group, as a ring over its devices in id order.

    The part that stands at place p of the ring, in turn p's own, sets out at p + 1 and comes to p, summed, last.
    """
    ring = sorted(range(len(group)), key=lambda place: group[place])
    size = len(ring)
    if collective is Collective.ALL_GATHER:
        parts = [before[place] for place in ring]
    else:
        share = len(before[0]) // size
        # A ReduceScatter's parts go by the group's own order; an AllReduce's can be dealt out as the ring goes.
        places = ring if collective is Collective.REDUCE_SCATTER else range(size)
        parts = [before[0][place * share : (place + 1) * share] for place in places]
    for here, place in enumerate(ring):
        moves: list[tuple[str, Chunks]] = []
        if collective is not Collective.ALL_GATHER:
            moves.append(("s", parts[here - 1]))
            moves += [("rrs", parts[(here - 1 - hop) % size]) for hop in range(1, size - 1)]
            moves.append(("rrc" if collective is Collective.REDUCE_SCATTER else "rrcs", parts[here]))
        else:
            moves.append(("s", parts[here]))
        if collective is not Collective.REDUCE_SCATTER:
            moves += [("rcs", parts[(here - hop) % size]) for hop in range(1, size - 1)]
            moves.append(("r", parts[(here + 1) % size]))
        after, previous = ring[(here + 1) % size], ring[here - 1]
        blocks.add(group[place], group[after], group[previous], channel, moves)


def _chain(blocks: _Blocks, channel: int, move: Move, number: int, chunks: Chunks) -> None:
    """Reduce or Broadcast of one group along a chain: the root, then the others in id order."""
    root = move.roots[number]
    chain = [root, *sorted(rank for rank in move.groups[number] if rank != root)]
    if move.collective is Collective.REDUCE:
        chain.reverse()
    kinds = ("s", "rrs", "rrc") if move.collective is Collective.REDUCE else ("s", "rcs", "r")
    for place, rank in enumerate(chain):
        first, last = place == 0, place == len(chain) - 1
        kind = kinds[0] if first else kinds[2] if last else kinds[1]
        send, recv = (-1 if last else chain[place + 1]), (-1 if first else chain[place - 1])
        blocks.add(rank, send, recv, channel, [(kind, chunks)])
