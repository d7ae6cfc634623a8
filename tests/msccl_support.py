"""Small MSCCL algorithms, their mutants, and a concrete executor of random interleavings, for the MSCCL tests.

The executor shares nothing with the verification: integers in buffers, queues, one thread block advanced at a time.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from smtsynth.msccl.model import STEP_TYPES, Algorithm, Gpu, StepId, ThreadBlock, XmlStep

SEVEN = (
    "a2a_8gpu",
    "ag_8gpu",
    "ag_hier_4gpu",
    "ar_hier_4gpu",
    "ar_lowlatency_ll",
    "ar_ring_8gpu",
    "ar_tree_4gpu",
)


def data_file(name: str) -> Path:
    """One of the seven production files, or a skip."""
    root = os.environ.get("SMTSYNTH_DATA")
    if not root:
        pytest.skip("SMTSYNTH_DATA isn't set: the production files are outside the repository")
    return Path(root) / "msccl-xml" / f"{name}.xml"


# ---------------------------------------------------------------------------------------------- building


def on(kind: str, buffer: str, offset: int, cnt: int = 1, **more: object) -> XmlStep:
    """A step with the same source and destination."""
    return XmlStep(kind, buffer, offset, buffer, offset, cnt, **more)  # type: ignore[arg-type]


def move(kind: str, src: tuple[str, int], dst: tuple[str, int], cnt: int = 1, **more: object) -> XmlStep:
    """A step from `src` to `dst`."""
    return XmlStep(kind, *src, *dst, cnt, **more)  # type: ignore[arg-type]


def algorithm(coll: str, chunks: int, gpus: list[Gpu], **more: object) -> Algorithm:
    """An algorithm with as many channels as its thread blocks use."""
    channels = 1 + max((block.chan for gpu in gpus for block in gpu.blocks), default=0)
    return Algorithm(f"{coll}_test", "Simple", channels, chunks, coll, tuple(gpus), **more)  # type: ignore[arg-type]


def ring_allreduce(count: int, channels: int = 1, rounds: int = 1, cnt: int = 1) -> Algorithm:
    """In place; every channel goes round the ring `rounds` times, one part of `count * cnt` chunks each time."""
    chunks = count * channels * rounds * cnt
    gpus = []
    for g in range(count):
        blocks = []
        for channel in range(channels):
            steps = []
            for turn in range(rounds):
                base = (channel * rounds + turn) * count
                kinds = ["s"] + ["rrs"] * (count - 2) + ["rrcs"] + ["rcs"] * (count - 2) + ["r"]
                steps += [on(kind, "i", (base + (g - k) % count) * cnt, cnt) for k, kind in enumerate(kinds)]
            blocks.append(ThreadBlock((g + 1) % count, (g - 1) % count, channel, tuple(steps)))
        gpus.append(Gpu(chunks, 0, 0, tuple(blocks)))
    return algorithm("allreduce", chunks, gpus, inplace=True, outofplace=False)


def pairs_allreduce(count: int) -> Algorithm:
    """In place through scratch: each GPU collects its chunk from all, block 0 adds them up, all send it back."""
    gpus = []
    for g in range(count):
        peers = [p for p in range(count) if p != g]
        blocks = []
        for t, p in enumerate(peers):
            steps = [on("s", "i", p), move("r", ("i", g), ("s", t), hasdep=t > 0)]
            if t == 0:
                waits = [on("nop", "i", 0, 0, depid=other, deps=1) for other in range(1, len(peers) - 1)]
                last = {"depid": len(peers) - 1, "deps": 1} if len(peers) > 1 else {}
                sums = [move("re", ("s", n), ("i", g), **(last if n == 0 else {})) for n in range(len(peers))]
                sums[-1] = replace(sums[-1], hasdep=True)
                steps += waits + sums
                done = len(steps) - 1
            steps += [on("s", "i", g, depid=0, deps=done), on("r", "i", p)]
            blocks.append(ThreadBlock(p, p, 0, tuple(steps)))
        gpus.append(Gpu(count, 0, count - 1, tuple(blocks)))
    return algorithm("allreduce", count, gpus, inplace=True, outofplace=False)


def tree_allreduce(count: int) -> Algorithm:
    """A chain up (rrc at gpu 0) and down again, in thread blocks of their own joined by dependencies."""
    gpus = []
    for g in range(count):
        first, last = g == 0, g == count - 1
        up = [on("rrc" if first else "s" if last else "rrs", "i", 0, hasdep=True)]
        down = [on("s" if first else "r" if last else "rcs", "i", 0, depid=0, deps=0)]
        blocks = [
            ThreadBlock(-1 if first else g - 1, -1 if last else g + 1, 0, tuple(up)),
            ThreadBlock(-1 if last else g + 1, -1 if first else g - 1, 1, tuple(down)),
        ]
        gpus.append(Gpu(1, 0, 0, tuple(blocks)))
    return algorithm("allreduce", 1, gpus, inplace=True, outofplace=False)


def direct(coll: str, count: int, part: int = 1, **more: object) -> Algorithm:
    """Allgather (in both modes) or alltoall (out of place) by one send to each peer."""
    chunks = count * part
    gathers = coll == "allgather"
    gpus = []
    for g in range(count):
        own = move("cpy", ("i", 0 if gathers else g * part), ("o", g * part), part)
        blocks = [ThreadBlock(-1, -1, 0, (own,))]
        for p in (p for p in range(count) if p != g):
            sends = move("s", ("i", 0 if gathers else p * part), ("o", g * part), part)
            takes = move("r", ("i", -1), ("o", p * part), part)
            blocks.append(ThreadBlock(p, p, 0, (sends, takes)))
        gpus.append(Gpu(part if gathers else chunks, chunks, 0, tuple(blocks)))
    return algorithm(coll, chunks, gpus, **({"inplace": gathers} | more))


def chain(coll: str, count: int, chunks: int = 1) -> Algorithm:
    """Broadcast from gpu 0, or reduce to it, along a line of GPUs, in both modes."""
    sends = coll == "broadcast"
    gpus = []
    for g in range(count):
        ahead, behind = (-1 if g == count - 1 else g + 1), (-1 if g == 0 else g - 1)
        if g == 0:
            kind = "s" if sends else "rrc"
        elif g == count - 1:
            kind = "r" if sends else "s"
        else:
            kind = "rcs" if sends else "rrs"
        steps = [move(kind, ("i", 0), ("o", 0), chunks)]
        if g == 0 and sends:
            steps.append(move("cpy", ("i", 0), ("o", 0), chunks))
        peers = (ahead, behind) if sends else (behind, ahead)
        gpus.append(Gpu(chunks, chunks, 0, (ThreadBlock(*peers, 0, tuple(steps)),)))
    return algorithm(coll, chunks, gpus, inplace=True, outofplace=True)


def pairs_reduce_scatter(count: int, part: int = 1) -> Algorithm:
    """Through scratch, in both modes: every GPU adds what the others send of its part."""
    gpus = []
    for g in range(count):
        peers = [p for p in range(count) if p != g]
        blocks = []
        for t, p in enumerate(peers):
            takes = move("r", ("i", 0), ("s", t * part), part, hasdep=True)
            blocks.append(ThreadBlock(p, p, 0, (on("s", "i", p * part, part), takes)))
        steps = [move("cpy", ("i", g * part), ("o", 0), part)]
        steps += [move("re", ("s", t * part), ("o", 0), part, depid=t, deps=1) for t in range(len(peers))]
        blocks.append(ThreadBlock(-1, -1, 1, tuple(steps)))
        gpus.append(Gpu(count * part, part, part * len(peers), tuple(blocks)))
    return algorithm("reduce_scatter", count * part, gpus, inplace=True, outofplace=True)


def small_algorithms() -> dict[str, Algorithm]:
    """Right algorithms of every collective, by name."""
    return {
        "ring 2": ring_allreduce(2),
        "ring 4x2": ring_allreduce(4, channels=2, rounds=2),
        "ring 3 of 2": ring_allreduce(3, cnt=2),
        "pairs 2": pairs_allreduce(2),
        "pairs 3": pairs_allreduce(3),
        "pairs 4": pairs_allreduce(4),
        "tree 2": tree_allreduce(2),
        "tree 3": tree_allreduce(3),
        "allgather 3": direct("allgather", 3, 2),
        "alltoall 3": direct("alltoall", 3, 2),
        "broadcast 3": chain("broadcast", 3, 2),
        "reduce 3": chain("reduce", 3),
        "reduce_scatter 3": pairs_reduce_scatter(3, 2),
    }


# ---------------------------------------------------------------------------------------------- mutants


def with_step(algo: Algorithm, place: StepId, **changes: object) -> Algorithm:
    """The algorithm with fields of one step changed."""
    gpu = algo.gpus[place.gpu]
    block = gpu.blocks[place.tb]
    steps = list(block.steps)
    steps[place.step] = replace(steps[place.step], **changes)  # type: ignore[arg-type]
    blocks = list(gpu.blocks)
    blocks[place.tb] = replace(block, steps=tuple(steps))
    gpus = list(algo.gpus)
    gpus[place.gpu] = replace(gpu, blocks=tuple(blocks))
    return replace(algo, gpus=tuple(gpus))


@dataclass(frozen=True)
class Mutant:
    """One change to one step."""

    family: str
    place: StepId
    algorithm: Algorithm = field(repr=False)


TO_COPY = {"rrc": "r", "rrcs": "rcs", "rrs": "rcs", "re": "cpy"}


def mutants(algo: Algorithm, every_offset: bool = False) -> Iterator[Mutant]:
    """Reduce to copy, changed offsets that are read (to the next one, or each other one), dropped dependencies."""
    for place, step in algo.steps():
        traits = STEP_TYPES[step.type]
        if step.type in TO_COPY:
            yield Mutant("reduce to copy", place, with_step(algo, place, type=TO_COPY[step.type]))
        for side, used in (("src", traits.reads_src), ("dst", traits.stores)):
            if not used:
                continue
            size = algo.gpus[place.gpu].declared(getattr(step, f"{side}buf"))
            old = getattr(step, f"{side}off")
            count = size - step.cnt + 1
            new = range(1, count) if every_offset else range(1, min(2, count))
            for shift in new:
                changed = with_step(algo, place, **{f"{side}off": (old + shift) % count})
                yield Mutant(f"{side} of {step.type}", place, changed)
        if step.depid >= 0:
            yield Mutant("dropped dependency", place, with_step(algo, place, depid=-1, deps=-1))


# ---------------------------------------------------------------------------------------------- executor


@dataclass(frozen=True)
class Outcome:
    """How one random interleaving ended."""

    finished: bool
    right: bool
    undefined_read: bool


class Executor:
    """One run of an algorithm with random numbers; a step first reads, and writes at a later turn of its block."""

    def __init__(self, algo: Algorithm, inplace: bool, slots: int, rng: random.Random) -> None:
        self.algo, self.inplace, self.slots, self.rng = algo, inplace, slots, rng
        self.n, self.total = len(algo.gpus), algo.nchunksperloop
        self.part = self.total // self.n
        own = self.part if algo.coll == "allgather" else self.total
        self.inputs = [[rng.getrandbits(62) for _ in range(own)] for _ in range(self.n)]
        self.memory: list[dict[tuple[str, int], int]] = [{} for _ in range(self.n)]
        for g in range(self.n):
            for chunk, number in enumerate(self.inputs[g]):
                self.memory[g][self.home(g, "i", chunk)] = number
        self.queues: dict[tuple[int, int, int], deque[list[int]]] = {}
        self.undefined = False

    def home(self, gpu: int, buffer: str, offset: int) -> tuple[str, int]:
        """Where a chunk lies: input and output share a buffer "io" in place."""
        if buffer == "s" or not self.inplace:
            return buffer, offset
        if (self.algo.coll, buffer) in (("allgather", "i"), ("reduce_scatter", "o")):
            offset += gpu * self.part
        return "io", offset

    def load(self, gpu: int, buffer: str, offset: int, cnt: int) -> list[int]:
        found = []
        for chunk in range(offset, offset + cnt):
            home = self.home(gpu, buffer, chunk)
            if home not in self.memory[gpu]:
                self.undefined = True
                self.memory[gpu][home] = self.rng.getrandbits(62)
            found.append(self.memory[gpu][home])
        return found

    def queue(self, source: int, target: int, chan: int) -> deque[list[int]]:
        return self.queues.setdefault((source, target, chan), deque())

    def run(self) -> Outcome:
        blocks = [(g, t, block) for g, gpu in enumerate(self.algo.gpus) for t, block in enumerate(gpu.blocks)]
        at = {(g, t): 0 for g, t, _ in blocks}
        pending: dict[tuple[int, int], list[int]] = {}
        live = [entry for entry in blocks if entry[2].steps]
        while live:
            self.rng.shuffle(live)
            moved = False
            # Some blocks get ahead of others: a pass gives turns to a random part of them.
            for g, t, block in live[: self.rng.randint(1, len(live))] + live:
                key = (g, t)
                while at[key] < len(block.steps):
                    step = block.steps[at[key]]
                    if key in pending:
                        self.finish(g, block, step, pending.pop(key))
                        at[key] += 1
                    elif self.ready(g, block, step, at):
                        pending[key] = self.begin(g, block, step)
                    else:
                        break
                    moved = True
                    if self.rng.random() < 0.5:
                        break
            live = [entry for entry in live if at[entry[:2]] < len(entry[2].steps)]
            if not moved:
                return Outcome(False, False, self.undefined)
        clean = not any(self.queues.values())
        return Outcome(clean, clean and self.correct(), self.undefined)

    def ready(self, g: int, block: ThreadBlock, step: XmlStep, at: dict[tuple[int, int], int]) -> bool:
        kind = STEP_TYPES[step.type]
        if step.depid >= 0 and at[g, step.depid] <= step.deps:
            return False
        if kind.receives and not self.queue(block.recv, g, block.chan):
            return False
        return not kind.sends or len(self.queue(g, block.send, block.chan)) < self.slots

    def begin(self, g: int, block: ThreadBlock, step: XmlStep) -> list[int]:
        if step.type == "nop":
            return []
        message = self.queue(block.recv, g, block.chan)[0] if step.type[0] == "r" and step.type != "re" else []
        if step.type in ("r", "rcs"):
            return list(message)
        source = self.load(g, step.srcbuf, step.srcoff, step.cnt)
        if step.type in ("s", "cpy"):
            return source
        other = self.load(g, step.dstbuf, step.dstoff, step.cnt) if step.type == "re" else message
        return [a + b for a, b in zip(source, other, strict=True)]

    def finish(self, g: int, block: ThreadBlock, step: XmlStep, result: list[int]) -> None:
        if step.type in ("r", "rcs", "rrc", "rrcs", "re", "cpy"):
            for chunk, number in enumerate(result, step.dstoff):
                self.memory[g][self.home(g, step.dstbuf, chunk)] = number
        if step.type in ("r", "rcs", "rrc", "rrcs", "rrs"):
            self.queue(block.recv, g, block.chan).popleft()
        if step.type in ("s", "rcs", "rrcs", "rrs"):
            self.queue(g, block.send, block.chan).append(result)

    def correct(self) -> bool:
        return all(
            self.memory[g].get(self.home(g, "o", chunk)) == number
            for g in range(self.n)
            for chunk, number in self.wanted(g)
        )

    def wanted(self, g: int) -> Iterator[tuple[int, int]]:
        coll, inputs, part = self.algo.coll, self.inputs, self.part
        if coll == "allreduce" or (coll == "reduce" and g == self.algo.root):
            yield from enumerate(map(sum, zip(*inputs, strict=True)))
        elif coll == "reduce_scatter":
            yield from enumerate(sum(own[g * part + c] for own in inputs) for c in range(part))
        elif coll == "allgather":
            yield from enumerate(number for own in inputs for number in own)
        elif coll == "broadcast":
            yield from enumerate(inputs[self.algo.root])
        elif coll == "alltoall":
            yield from enumerate(own[g * part + c] for own in inputs for c in range(part))


def execute(algo: Algorithm, seed: int, slots: int = 8) -> list[Outcome]:
    """One random interleaving in each mode that the algorithm claims."""
    rng = random.Random(seed)
    wanted = (mode for mode, claimed in ((False, algo.outofplace), (True, algo.inplace)) if claimed)
    return [Executor(algo, mode, slots, rng).run() for mode in wanted]
