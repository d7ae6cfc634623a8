"""Data of an MSCCL XML file: an algorithm, its GPUs, thread blocks and steps, and what each step type does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

PROTOCOLS = ("Simple", "LL", "LL128")
COLLECTIVES = ("allreduce", "allgather", "reduce", "broadcast", "alltoall", "reduce_scatter", "custom")
BUFFERS = ("i", "o", "s")

# Limits of the public runtimes: chunk offsets are 16-bit, counts and steps sit in fixed tables.
MAX_COUNT = 71
MAX_STEPS_PER_BLOCK = 256
MAX_CHUNKS = 2**15 - 1
MAX_GPUS = 2**15 - 1
NO_LIMIT = 2**63 - 1


class Traits(NamedTuple):
    """What a step of one type does: takes a message, sends one, reads src, reads dst, stores into dst."""

    receives: bool = False
    sends: bool = False
    reads_src: bool = False
    reads_dst: bool = False
    stores: bool = False

    @property
    def adds(self) -> bool:
        """Whether two values are summed: src and the message, or src and dst."""
        return self.reads_dst or (self.receives and self.reads_src)


STEP_TYPES = {
    "s": Traits(sends=True, reads_src=True),
    "r": Traits(receives=True, stores=True),
    "rcs": Traits(receives=True, sends=True, stores=True),
    "rrc": Traits(receives=True, reads_src=True, stores=True),
    "rrcs": Traits(receives=True, sends=True, reads_src=True, stores=True),
    "rrs": Traits(receives=True, sends=True, reads_src=True),
    "re": Traits(reads_src=True, reads_dst=True, stores=True),
    "cpy": Traits(reads_src=True, stores=True),
    "nop": Traits(),
}


class StepId(NamedTuple):
    """Where a step is: GPU, thread block, number in the thread block."""

    gpu: int
    tb: int
    step: int

    def __str__(self) -> str:
        return f"gpu {self.gpu} tb {self.tb} step {self.step}"


@dataclass(frozen=True, slots=True)
class XmlStep:
    """One step; offsets and `cnt` count chunks; (depid, deps) = (thread block, step) waited for, -1 for none.

    `hasdep` says that the step posts its completion, so that others can wait for it. `line` is the step's line
    in the file it was read from (0: none); it takes no part in equality.
    """

    type: str
    srcbuf: str = "i"
    srcoff: int = 0
    dstbuf: str = "i"
    dstoff: int = 0
    cnt: int = 1
    depid: int = -1
    deps: int = -1
    hasdep: bool = False
    line: int = field(default=0, compare=False)

    @property
    def traits(self) -> Traits:
        """What the step does."""
        return STEP_TYPES[self.type]


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """A thread block: peers it sends to and receives from (-1: none), its channel, its steps in order."""

    send: int
    recv: int
    chan: int
    steps: tuple[XmlStep, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: sizes of its input, output and scratch buffers in chunks, and its thread blocks by id."""

    i_chunks: int
    o_chunks: int
    s_chunks: int
    blocks: tuple[ThreadBlock, ...]
    line: int = field(default=0, compare=False)

    def declared(self, buffer: str) -> int:
        """Chunks the file declares for buffer i, o or s."""
        return {"i": self.i_chunks, "o": self.o_chunks, "s": self.s_chunks}[buffer]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A whole file; `gpus[g]` is the GPU with id g. `root` matters for reduce and broadcast only."""

    name: str
    proto: str
    nchannels: int
    nchunksperloop: int
    coll: str
    gpus: tuple[Gpu, ...]
    inplace: bool = False
    outofplace: bool = True
    min_bytes: int = 0
    max_bytes: int = NO_LIMIT
    root: int = 0
    line: int = field(default=0, compare=False)

    @property
    def ngpus(self) -> int:
        """The number of GPUs."""
        return len(self.gpus)

    @property
    def step_count(self) -> int:
        """The number of steps of all GPUs."""
        return sum(len(block.steps) for gpu in self.gpus for block in gpu.blocks)

    def steps(self) -> Iterator[tuple[StepId, XmlStep]]:
        """Every step with its place, by GPU, thread block and step number."""
        for g, gpu in enumerate(self.gpus):
            for t, block in enumerate(gpu.blocks):
                for s, step in enumerate(block.steps):
                    yield StepId(g, t, s), step

    def step(self, place: StepId) -> XmlStep:
        """The step at `place`."""
        return self.gpus[place.gpu].blocks[place.tb].steps[place.step]
