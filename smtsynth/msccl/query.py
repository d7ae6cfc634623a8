"""The verification's question as an SMT-LIB script, for small files: is there an order of the steps that goes wrong?

Written independently of the race analysis: it takes the direct predecessors of each step and nothing derived from
them. A step's time is a bit vector, all times differ, so that a model is one interleaving. A chunk's content is a pair
of bit vectors over contributions (gpu, chunk), `once` and `many`, and a Boolean `wild` (comes from undefined content);
what a step reads is chosen by the times of the writes to that cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from smtsynth.errors import InputError
from smtsynth.msccl.check import check_algorithm
from smtsynth.msccl.memory import Cell, Memory, modes
from smtsynth.msccl.model import Algorithm
from smtsynth.msccl.order import Order, build_order, fifos, find_fifo_fault
from smtsynth.msccl.values import Value, members

QUESTIONS = ("order", "race", "goal")


@dataclass(frozen=True, slots=True)
class _Term:
    """A chunk's content as SMT-LIB terms."""

    once: str
    many: str
    wild: str


# Strict SMT-LIB wants at least two operands.
def _all(parts: Iterable[str]) -> str:
    return f"(and true true {' '.join(parts)})"


def _any(parts: Iterable[str]) -> str:
    return f"(or false false {' '.join(parts)})"


def _times(order: Order, bounded: bool) -> list[str]:
    """Declarations and constraints of the times: distinct, below the number of steps, along the direct order."""
    count = len(order.ids)
    width = max(count.bit_length(), 1)
    lines = [f"; t{n} is {place}\n(declare-const t{n} (_ BitVec {width}))" for n, place in enumerate(order.ids)]
    lines += [f"(assert (bvult t{n} (_ bv{count} {width})))" for n in range(count)]
    if count > 1:
        lines.append(f"(assert (distinct {' '.join(f't{n}' for n in range(count))}))")
    for n, earlier in enumerate(order.waits if bounded else order.before):
        lines += [f"(assert (bvult t{p} t{n}))" for p in sorted(set(earlier))]
    return lines


def _race(memory: Memory, order: Order) -> str:
    """Some two conflicting steps come one right after the other, and not because the one waits for the other."""
    touched: dict[Cell, dict[int, bool]] = {}
    for n, (place, step) in enumerate(zip(order.ids, order.steps, strict=True)):
        for access in memory.conflicting(place.gpu, step):
            for cell in access.cells:
                users = touched.setdefault(cell, {})
                users[n] = users.get(n, False) or access.writes
    pairs = {
        (a, b)
        for users in touched.values()
        for a in users
        for b in users
        if a != b and (users[a] or users[b]) and a not in order.before[b]
    }
    width = max(len(order.ids).bit_length(), 1)
    return _any(f"(= t{b} (bvadd t{a} (_ bv1 {width})))" for a, b in sorted(pairs))


class _Contents:
    """Contents of messages and cells as terms over the times."""

    def __init__(self, memory: Memory, order: Order) -> None:
        self.memory = memory
        self.order = order
        self.lines: list[str] = []
        self.wild_reads: list[str] = []
        self.results: dict[int, list[_Term]] = {}
        self.writes: dict[Cell, list[tuple[int, int]]] = {}
        self.chunks = max(memory.size(gpu, "i") for gpu in range(memory.algorithm.ngpus)) or 1
        self.width = memory.algorithm.ngpus * self.chunks
        for n, (place, step) in enumerate(zip(order.ids, order.steps, strict=True)):
            # Every output is a constant of its own, so that reads can refer to writes in any order of time.
            self.results[n] = [self._declare(f"v{n}_{j}") for j in range(step.cnt)]
            for access in memory.accesses(place.gpu, step):
                for j, cell in enumerate(access.cells if access.writes else ()):
                    self.writes.setdefault(cell, []).append((n, j))
        for n in range(len(order.ids)):
            self._define(n)

    def _declare(self, name: str) -> _Term:
        sort = f"(_ BitVec {self.width})"
        self.lines.append(f"(declare-const {name}o {sort}) (declare-const {name}m {sort}) (declare-const {name}w Bool)")
        return _Term(f"{name}o", f"{name}m", f"{name}w")

    def constant(self, value: Value | None) -> _Term:
        """A known content."""
        masks = [0, 0]
        for chunk, once, many in value or ():
            for side, mask in enumerate((once, many)):
                for gpu in members(mask):
                    masks[side] |= 1 << gpu * self.chunks + chunk
        texts = [f"(_ bv{mask} {self.width})" for mask in masks]
        return _Term(texts[0], texts[1], "true" if value is None else "false")

    def at(self, cell: Cell, reader: int | None) -> _Term:
        """The cell's content when step `reader` reads it, or at the end (None): the last write before, if any."""
        content = self.constant(self.memory.initial(cell))
        writers = [(n, j) for n, j in self.writes.get(cell, ()) if n != reader]
        for n, j in writers:
            before = [] if reader is None else [f"(bvult t{n} t{reader})"]
            for other, _ in writers:
                if other != n:
                    later = [] if reader is None else [f"(bvugt t{other} t{reader})"]
                    before.append(_any([f"(bvult t{other} t{n})", *later]))
            last, new = _all(before), self.results[n][j]
            content = _Term(
                f"(ite {last} {new.once} {content.once})",
                f"(ite {last} {new.many} {content.many})",
                f"(ite {last} {new.wild} {content.wild})",
            )
        return content

    def _sum(self, a: _Term, b: _Term) -> _Term:
        many = f"(bvor {a.many} {b.many} (bvand {a.once} {b.once}))"
        return _Term(f"(bvand (bvor {a.once} {b.once}) (bvnot {many}))", many, f"(or {a.wild} {b.wild})")

    def _define(self, n: int) -> None:
        place, step = self.order.ids[n], self.order.steps[n]
        for j, result in enumerate(self.results[n]):
            accesses = self.memory.accesses(place.gpu, step)
            inputs = [self.at(access.cells[j], n) for access in accesses if not access.writes]
            self.wild_reads += [term.wild for term in inputs]
            if step.traits.receives:
                inputs.append(self.results[self.order.sender[n]][j])
            if not inputs:
                continue
            content = inputs[0]
            for other in inputs[1:]:
                content = self._sum(content, other)
            self.lines.append(
                f"(assert (and (= {result.once} {content.once}) (= {result.many} {content.many}) "
                f"(= {result.wild} {content.wild})))"
            )

    def wrong(self) -> str:
        """Some read finds undefined content, or some output chunk isn't what the goal asks for."""
        faults = list(self.wild_reads)
        for gpu, chunk, value in self.memory.goal():
            found, wanted = self.at(self.memory.cell(gpu, "o", chunk), None), self.constant(value)
            faults += [found.wild, f"(distinct {found.once} {wanted.once})", f"(distinct {found.many} {wanted.many})"]
        return _any(faults)


def order_query(algorithm: Algorithm, question: str, mode: str | None = None, fifo_slots: int = 8) -> str:
    """An SMT-LIB script (QF_BV) over the orders in which the steps can run.

    question `order`: satisfiable if some order of all steps respects every wait, free slots included (else: deadlock);
    `race`: satisfiable if two conflicting accesses can come in either order; `goal`: satisfiable if some order reads
    undefined content or ends with a wrong output chunk. mode: "in place" or "out of place" (default: the first that
    the file claims). Raises InputError for an unknown question or mode, and where the messages don't match up.
    """
    check_algorithm(algorithm)
    mode = modes(algorithm)[0] if mode is None else mode
    for word, known in ((question, QUESTIONS), (mode, modes(algorithm))):
        if word not in known:
            raise InputError(f"{word!r} cannot be asked", expected=" or ".join(known))
    queues = fifos(algorithm)
    ids = [place for place, _ in algorithm.steps()]
    fault = find_fifo_fault(algorithm, ids, queues)
    if fault is not None:
        raise InputError(fault.reason, expected="messages that match up")
    order = build_order(algorithm, queues, fifo_slots)
    memory = Memory(algorithm, mode)
    lines = ["(set-logic QF_BV)", *_times(order, question == "order")]
    if question == "race":
        lines.append(f"(assert {_race(memory, order)})")
    elif question == "goal":
        contents = _Contents(memory, order)
        lines += [*contents.lines, f"(assert {contents.wrong()})"]
    return "\n".join([*lines, "(check-sat)"]) + "\n"
