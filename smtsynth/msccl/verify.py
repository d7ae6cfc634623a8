"""Verification over all interleavings: order, races and deadlock first, then one run along a topological order.

Without a race every interleaving gives each read the same writes, so that one run stands for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smtsynth.errors import InputError
from smtsynth.msccl.check import check_algorithm, runtime_warnings
from smtsynth.msccl.memory import Access, Cell, Memory, modes
from smtsynth.msccl.model import Algorithm, StepId, XmlStep
from smtsynth.msccl.order import (
    Order,
    ancestor_sets,
    build_order,
    fifos,
    find_deadlock,
    find_fifo_fault,
    find_unposted,
    topological,
)
from smtsynth.msccl.values import Value, add, members, show_gpus
from smtsynth.msccl.verdict import Kind, MscclVerdict, describe, refuted

MAX_STEPS = 100_000  # the bitsets of the happens-before order take steps**2 / 16 bytes


def find_out_of_bounds(algorithm: Algorithm) -> MscclVerdict | None:
    """The first step that touches a chunk outside its buffer, as declared or as the collective gives it."""
    memory = Memory(algorithm, modes(algorithm)[0])
    for place, step in algorithm.steps():
        for access in memory.accesses(place.gpu, step):
            declared = algorithm.gpus[place.gpu].declared(access.buffer)
            size = min(declared, memory.size(place.gpu, access.buffer))
            last = access.offset + step.cnt - 1
            if last >= size:
                verb = "writes" if access.writes else "reads"
                reason = (
                    f"{describe(algorithm, place)} {verb} {access.buffer}[{last}], but gpu "
                    f"{place.gpu} has {size} chunks there"
                    + ("" if size == declared else f" ({declared} declared, nchunksperloop gives {size})")
                )
                return refuted(Kind.BOUNDS, reason, [place], last)
    return None


def find_race(memory: Memory, order: Order, line: Sequence[int]) -> MscclVerdict | None:
    """Two accesses to one cell, one of them a write, that no order relates; `line` is a topological order.

    By transitivity it is enough that every access follows the last write, and every write all reads since.
    """
    position, ancestors = ancestor_sets(order.before, line)
    written: dict[Cell, int] = {}
    read_since: dict[Cell, list[int]] = {}

    def ordered(first: int, second: int) -> bool:
        return first == second or bool(ancestors[second] >> position[first] & 1)

    for node in line:
        place, step = order.ids[node], order.steps[node]
        for access in memory.conflicting(place.gpu, step):
            for chunk, cell in enumerate(access.cells, access.offset):
                last = written.get(cell)
                if last is not None and not ordered(last, node):
                    return _race(memory, order, (last, "writes"), node, access, chunk)
                if not access.writes:
                    read_since.setdefault(cell, []).append(node)
                    continue
                for reader in read_since.pop(cell, ()):
                    if not ordered(reader, node):
                        return _race(memory, order, (reader, "reads"), node, access, chunk)
                written[cell] = node
        overlap = _overlap(memory, place, step)
        if overlap is not None:
            reason = (
                f"{describe(memory.algorithm, place)} reads {step.srcbuf}[{step.srcoff}] to {step.srcbuf}"
                f"[{step.srcoff + step.cnt - 1}] while it writes the overlapping {step.dstbuf}[{step.dstoff}] to "
                f"{step.dstbuf}[{step.dstoff + step.cnt - 1}]"
            )
            return refuted(Kind.RACE, reason, [place, place], overlap)
    return None


def _race(
    memory: Memory, order: Order, first: tuple[int, str], second: int, access: Access, chunk: int
) -> MscclVerdict:
    """The refutation: step `first` (with its verb) and step `second`, which makes `access`, both touch `chunk`."""
    places = [order.ids[first[0]], order.ids[second]]
    names = [describe(memory.algorithm, place) for place in places]
    reason = (
        f"race on {access.buffer}[{chunk}] of gpu {places[0].gpu}: {names[0]} {first[1]} it and {names[1]} "
        f"{'writes' if access.writes else 'reads'} it, and nothing orders the two"
    )
    return refuted(Kind.RACE, reason, places, chunk)


def _overlap(memory: Memory, place: StepId, step: XmlStep) -> int | None:
    """The first destination chunk that a step both reads as source and overwrites, where the two ranges differ.

    The threads of a block go through the chunks of one step in no fixed order.
    """
    if not (step.traits.reads_src and step.traits.stores) or step.cnt == 1:
        return None
    source = memory.cell(place.gpu, step.srcbuf, step.srcoff)
    target = memory.cell(place.gpu, step.dstbuf, step.dstoff)
    return step.dstoff + max(0, source - target) if 0 < abs(source - target) < step.cnt else None


class _Run:
    """Contents of cells and messages while the steps run in a topological order."""

    def __init__(self, memory: Memory, order: Order) -> None:
        self.memory = memory
        self.order = order
        self.cells: dict[Cell, Value] = {}
        self.last_writer: dict[Cell, int] = {}
        self.messages: dict[int, list[Value]] = {}
        self.sums: dict[tuple[Value, Value], Value] = {}

    def load(self, cell: Cell) -> Value | None:
        return self.cells[cell] if cell in self.cells else self.memory.initial(cell)

    def add(self, first: Value, second: Value) -> Value:
        key = (first, second)
        if key not in self.sums:
            self.sums[key] = add(first, second)
        return self.sums[key]

    def step(self, node: int) -> MscclVerdict | None:
        """Run one step; the refutation, if it reads what nothing has written."""
        place, step = self.order.ids[node], self.order.steps[node]
        inputs: list[list[Value]] = []
        accesses = self.memory.accesses(place.gpu, step)
        for access in accesses:
            if access.writes:
                continue
            values = []
            for chunk, cell in enumerate(access.cells, access.offset):
                value = self.load(cell)
                if value is None:
                    name = describe(self.memory.algorithm, place)
                    reason = f"{name} reads {access.buffer}[{chunk}], which nothing has written by then"
                    return refuted(Kind.UNWRITTEN, reason, [place], chunk)
                values.append(value)
            inputs.append(values)
        if step.traits.receives:
            inputs.append(self.messages.pop(self.order.sender[node]))
        result = inputs[0] if inputs else []
        for other in inputs[1:]:
            result = [self.add(a, b) for a, b in zip(result, other, strict=True)]
        if step.traits.stores:
            for cell, value in zip(accesses[-1].cells, result, strict=True):
                self.cells[cell] = value
                self.last_writer[cell] = node
        if step.traits.sends:
            self.messages[node] = result
        return None

    def judge(self) -> MscclVerdict | None:
        """The first output chunk that doesn't hold what the goal asks for."""
        for gpu, chunk, wanted in self.memory.goal():
            cell = self.memory.cell(gpu, "o", chunk)
            value = self.load(cell)
            if value != wanted:
                return self._wrong(gpu, chunk, cell, value, wanted[0])
        return None

    def _wrong(
        self, gpu: int, chunk: int, cell: Cell, value: Value | None, wanted: tuple[int, int, int]
    ) -> MscclVerdict:
        number, every, _ = wanted
        once, many = next(((o, m) for n, o, m in value or () if n == number), (0, 0))
        missing, twice, extra = every & ~(once | many), every & many, (once | many) & ~every
        faults = []
        if value is None:
            faults.append("is undefined")
        elif missing:
            has = f" (it has {show_gpus(once | many)})" if once | many else ""
            faults.append(f"lacks chunk {number} of {show_gpus(missing)}{has}")
        if twice:
            faults.append(f"has chunk {number} of {show_gpus(twice)} more than once")
        if extra:
            faults.append(f"has chunk {number} of {show_gpus(extra)} too")
        faults += [f"has chunk {n} of {show_gpus(o | m)} mixed in" for n, o, m in value or () if n != number]
        writer = self.last_writer.get(cell)
        last = "no step writes it"
        if writer is not None:
            last = f"last written by {describe(self.memory.algorithm, self.order.ids[writer])}"
        return MscclVerdict(
            "refuted",
            f"at the end o[{chunk}] of gpu {gpu} {', '.join(faults)} ({last})",
            Kind.WRONG_SUM,
            gpu,
            chunk,
            tuple(members(missing)),
            tuple(members(twice)),
            tuple(members(once | many)),
            () if writer is None else (self.order.ids[writer],),
        )


def run_in_order(memory: Memory, order: Order, line: Sequence[int]) -> MscclVerdict | None:
    """The fault that one run along `line` shows: a read of nothing, or a wrong output chunk; None if the goal holds."""
    run = _Run(memory, order)
    for node in line:
        fault = run.step(node)
        if fault is not None:
            return fault
    return run.judge()


def _find_fault(algorithm: Algorithm, fifo_slots: int) -> MscclVerdict | None:
    queues = fifos(algorithm)
    ids = tuple(place for place, _ in algorithm.steps())
    fault = find_out_of_bounds(algorithm) or find_fifo_fault(algorithm, ids, queues) or find_unposted(algorithm)
    if fault is not None:
        return fault
    order = build_order(algorithm, queues, fifo_slots)
    fault = find_deadlock(algorithm, order)
    if fault is not None:
        return fault
    line = topological(order.before)
    for mode in modes(algorithm):
        memory = Memory(algorithm, mode)
        fault = find_race(memory, order, line) or run_in_order(memory, order, line)
        if fault is not None:
            return replace(fault, mode=mode)
    return None


def verify_msccl(algorithm: Algorithm, fifo_slots: int = 8) -> MscclVerdict:
    """Whether the algorithm reaches its collective's goal in every interleaving, in each mode that it claims.

    A FIFO holds `fifo_slots` messages (any count of chunks each). Interleavings keep the order of a thread block,
    dependencies, and the k-th receive of a FIFO after its k-th send. A dependency waits for a posted flag, so the
    step waited for, or a later one of its thread block, must have hasdep 1. Verdicts: proved; refuted with a witness;
    unknown for a custom collective without a fault (it has no goal) and above 100 000 steps.
    Raises InputError if the algorithm breaks a rule of the format, or `fifo_slots` isn't a whole number from 1 up.
    """
    if isinstance(fifo_slots, bool) or not isinstance(fifo_slots, int) or fifo_slots < 1:
        raise InputError(f"fifo slots is {str(fifo_slots)[:40]}", expected="a whole number of at least 1")
    check_algorithm(algorithm)
    if algorithm.step_count > MAX_STEPS:
        return MscclVerdict("unknown", f"{algorithm.step_count} steps are more than the {MAX_STEPS} that fit in memory")
    verdict = _find_fault(algorithm, fifo_slots)
    if verdict is None:
        verdict = MscclVerdict("proved")
        if algorithm.coll == "custom":
            reason = "a custom collective has no goal to prove; no race, deadlock, unmatched message or unwritten read"
            verdict = MscclVerdict("unknown", reason)
    return replace(verdict, warnings=runtime_warnings(algorithm))
