"""Rules that every MSCCL algorithm keeps before its meaning can be asked for; the reader and the writer share them."""

from __future__ import annotations

from smtsynth.errors import InputError
from smtsynth.msccl.model import (
    BUFFERS,
    COLLECTIVES,
    MAX_CHUNKS,
    MAX_COUNT,
    MAX_GPUS,
    MAX_STEPS_PER_BLOCK,
    PROTOCOLS,
    STEP_TYPES,
    Algorithm,
    Gpu,
    StepId,
    ThreadBlock,
    XmlStep,
)

SPLIT = ("allgather", "reduce_scatter", "alltoall")


class _Checker:
    """Raises InputError at the file and line of the element that breaks a rule (or at its place, without a file)."""

    def __init__(self, algorithm: Algorithm, file: str) -> None:
        self.algorithm = algorithm
        self.file = file

    def fail(self, line: int, place: str, what: str, expected: str) -> InputError:
        where = f"{self.file}:{line}" if self.file and line else place
        return InputError(f"{place}: {what}" if where != place else what, where=where, expected=expected)

    def number(self, line: int, place: str, key: str, value: int, low: int, high: int) -> None:
        if not low <= value <= high:
            raise self.fail(line, place, f"{key} is {value}", f"{low} to {high}")

    def word(self, line: int, place: str, key: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            raise self.fail(line, place, f"{key} {value[:40]!r} is unknown", " ".join(known))

    def all(self) -> None:
        a, place = self.algorithm, "algo"
        if not a.name.isprintable() or len(a.name) > 255:
            raise self.fail(a.line, place, "the name cannot be used", "at most 255 printable characters")
        self.word(a.line, place, "proto", a.proto, PROTOCOLS)
        self.word(a.line, place, "coll", a.coll, COLLECTIVES)
        self.number(a.line, place, "ngpus", a.ngpus, 1, MAX_GPUS)
        self.number(a.line, place, "nchannels", a.nchannels, 1, MAX_CHUNKS)
        self.number(a.line, place, "nchunksperloop", a.nchunksperloop, 1, MAX_CHUNKS)
        self.number(a.line, place, "root", a.root, 0, a.ngpus - 1)
        if a.coll in SPLIT and a.nchunksperloop % a.ngpus:
            raise self.fail(
                a.line, place, f"{a.coll} of {a.nchunksperloop} chunks (nchunksperloop)", f"a multiple of {a.ngpus}"
            )
        if not (a.inplace or a.outofplace):
            raise self.fail(a.line, place, "neither inplace nor outofplace is 1", "at least one of them")
        if not 0 <= a.min_bytes <= a.max_bytes:
            what = f"minBytes is {a.min_bytes} and maxBytes {a.max_bytes}"
            raise self.fail(a.line, place, what, "0 <= minBytes <= maxBytes")
        for number, gpu in enumerate(a.gpus):
            self.gpu(number, gpu)

    def gpu(self, number: int, gpu: Gpu) -> None:
        place = f"gpu {number}"
        for buffer in BUFFERS:
            self.number(gpu.line, place, f"{buffer}_chunks", gpu.declared(buffer), 0, MAX_CHUNKS)
        for t, block in enumerate(gpu.blocks):
            self.block(number, t, block)

    def block(self, g: int, t: int, block: ThreadBlock) -> None:
        place = f"gpu {g} tb {t}"
        for key, peer in (("send", block.send), ("recv", block.recv)):
            self.number(block.line, place, key, peer, -1, self.algorithm.ngpus - 1)
            if peer == g:
                raise self.fail(block.line, place, f"{key} names the GPU itself", "another GPU, or -1")
        self.number(block.line, place, "chan", block.chan, 0, self.algorithm.nchannels - 1)
        if len(block.steps) > MAX_STEPS_PER_BLOCK:
            raise self.fail(block.line, place, f"{len(block.steps)} steps", f"at most {MAX_STEPS_PER_BLOCK}")
        for s, step in enumerate(block.steps):
            self.step(StepId(g, t, s), block, step)

    def step(self, at: StepId, block: ThreadBlock, step: XmlStep) -> None:
        place, line = str(at), step.line
        self.word(line, place, "type", step.type, tuple(STEP_TYPES))
        self.word(line, place, "srcbuf", step.srcbuf, BUFFERS)
        self.word(line, place, "dstbuf", step.dstbuf, BUFFERS)
        traits = step.traits
        # What the runtimes don't read is often -1 (offsets) or 0 (the count of a nop).
        self.number(line, place, "srcoff", step.srcoff, 0 if traits.reads_src else -1, MAX_CHUNKS)
        self.number(line, place, "dstoff", step.dstoff, 0 if traits.stores else -1, MAX_CHUNKS)
        self.number(line, place, "cnt", step.cnt, 0 if step.type == "nop" else 1, MAX_COUNT)
        if traits.sends and block.send < 0:
            raise self.fail(line, place, f"type {step.type} sends, but its tb has send -1", "a GPU to send to")
        if traits.receives and block.recv < 0:
            raise self.fail(line, place, f"type {step.type} receives, but its tb has recv -1", "a GPU to receive from")
        blocks = self.algorithm.gpus[at.gpu].blocks
        self.number(line, place, "depid", step.depid, -1, len(blocks) - 1)
        if step.depid >= 0:
            count = len(blocks[step.depid].steps)
            if not 0 <= step.deps < count:
                known = f"a step of tb {step.depid}" + (f": 0 to {count - 1}" if count else ", which has none")
                raise self.fail(line, place, f"deps is {step.deps}", known)


def check_algorithm(algorithm: Algorithm, file: str = "") -> Algorithm:
    """The algorithm, if it keeps the rules of the format; InputError at `file` and line, or at the GPU, tb and step.

    Checked: known words, numbers in range, peers and dependencies that exist, a peer where a step needs one, sizes
    that divide. Whether offsets lie inside the buffers is a question of meaning and left to the verification.
    """
    _Checker(algorithm, file).all()
    return algorithm


def runtime_warnings(algorithm: Algorithm) -> tuple[str, ...]:
    """Spellings of waits that the format allows and the public runtimes refuse or miscount, one line each.

    They fold a `nop` into the step after it, which must have a dependency of its own, and count only nops that wait.
    """
    warnings = []
    for place, step in algorithm.steps():
        if step.type != "nop":
            continue
        steps = algorithm.gpus[place.gpu].blocks[place.tb].steps
        if step.depid < 0:
            warnings.append(f"{place} is a nop without a dependency: the runtimes number later steps wrongly")
        elif place.step + 1 < len(steps) and steps[place.step + 1].depid < 0:
            warnings.append(f"{place} is a nop before a step without a dependency: the runtimes refuse the file")
    return tuple(warnings)
