"""Where chunks lie and what they must hold: buffer sizes, in-place aliases, first contents, goals per collective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from smtsynth.msccl.model import Algorithm, XmlStep
from smtsynth.msccl.values import Value, contribution

Cell = int
IN_PLACE, OUT_OF_PLACE = "in place", "out of place"
_INDEX_BITS = 20
_SPACES = {"i": 0, "o": 1, "s": 2}


def modes(algorithm: Algorithm) -> tuple[str, ...]:
    """The modes that the file claims to work in."""
    both = ((OUT_OF_PLACE, algorithm.outofplace), (IN_PLACE, algorithm.inplace))
    return tuple(mode for mode, claimed in both if claimed)


class Access(NamedTuple):
    """An operand of a step: `cnt` chunks from buffer[offset], which lie in `cells`; written, or else read."""

    buffer: str
    offset: int
    cells: range
    writes: bool


@dataclass(frozen=True, slots=True)
class Memory:
    """The buffers of an algorithm in one mode. A cell is one chunk of storage of one GPU, as a number.

    In place, input and output are one buffer: the same (allreduce, reduce, broadcast, alltoall, custom), or the
    input is the GPU's own part of the output (allgather), or the output its own part of the input (reduce_scatter).
    """

    algorithm: Algorithm
    mode: str

    @property
    def part(self) -> int:
        """Chunks of one GPU's part where a collective splits its chunks over the GPUs."""
        return self.algorithm.nchunksperloop // self.algorithm.ngpus

    def size(self, gpu: int, buffer: str) -> int:
        """Chunks that buffer i, o or s really has: what the collective gives, or as declared (scratch, custom)."""
        coll = self.algorithm.coll
        if buffer == "s" or coll == "custom":
            return self.algorithm.gpus[gpu].declared(buffer)
        split = (coll == "allgather" and buffer == "i") or (coll == "reduce_scatter" and buffer == "o")
        return self.part if split else self.algorithm.nchunksperloop

    def _shift(self, gpu: int, buffer: str) -> int:
        """Where the buffer starts inside the one that holds it, in chunks."""
        aliased = {"i": "allgather", "o": "reduce_scatter"}.get(buffer)
        return gpu * self.part if self.mode == IN_PLACE and self.algorithm.coll == aliased else 0

    def cell(self, gpu: int, buffer: str, offset: int) -> Cell:
        """The cell of chunk `offset` of a buffer; consecutive chunks have consecutive cells."""
        space = _SPACES[buffer]
        if self.mode == IN_PLACE and buffer == "o":
            space = _SPACES["i"]
        return ((gpu * 3 + space) << _INDEX_BITS) + self._shift(gpu, buffer) + offset

    def accesses(self, gpu: int, step: XmlStep) -> list[Access]:
        """What the step reads and writes of what the runtimes touch, reads first."""
        traits, found = step.traits, []
        for used, buffer, offset, writes in (
            (traits.reads_src, step.srcbuf, step.srcoff, False),
            (traits.reads_dst, step.dstbuf, step.dstoff, False),
            (traits.stores, step.dstbuf, step.dstoff, True),
        ):
            if used:
                start = self.cell(gpu, buffer, offset)
                found.append(Access(buffer, offset, range(start, start + step.cnt), writes))
        return found

    def conflicting(self, gpu: int, step: XmlStep) -> list[Access]:
        """The accesses that can be part of a race: a copy of chunks onto themselves (in place) only reads."""
        found = self.accesses(gpu, step)
        if step.type == "cpy" and found[0].cells == found[1].cells:
            return found[:1]
        return found

    def initial(self, cell: Cell) -> Value | None:
        """What the cell holds at the start: the GPU's own input chunk, or None (nothing defined)."""
        (gpu, space), index = divmod(cell >> _INDEX_BITS, 3), cell & ((1 << _INDEX_BITS) - 1)
        chunk = index - self._shift(gpu, "i")
        if space == _SPACES["i"] and 0 <= chunk < self.size(gpu, "i"):
            return contribution(gpu, chunk)
        return None

    def goal(self) -> Iterator[tuple[int, int, Value]]:
        """(GPU, output chunk, the value it must hold at the end), GPUs and chunks ascending; none for custom."""
        coll, total, part, root = self.algorithm.coll, self.algorithm.nchunksperloop, self.part, self.algorithm.root
        everyone = (1 << self.algorithm.ngpus) - 1
        for gpu in range(self.algorithm.ngpus):
            if coll == "allreduce" or (coll == "reduce" and gpu == root):
                yield from ((gpu, chunk, ((chunk, everyone, 0),)) for chunk in range(total))
            elif coll == "reduce_scatter":
                yield from ((gpu, chunk, ((gpu * part + chunk, everyone, 0),)) for chunk in range(part))
            elif coll == "broadcast":
                yield from ((gpu, chunk, contribution(root, chunk)) for chunk in range(total))
            elif coll == "allgather":
                yield from ((gpu, chunk, contribution(chunk // part, chunk % part)) for chunk in range(total))
            elif coll == "alltoall":
                for chunk in range(total):
                    yield gpu, chunk, contribution(chunk // part, gpu * part + chunk % part)
