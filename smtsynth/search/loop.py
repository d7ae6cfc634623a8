"""The cost-bounded loop: ask for a program cheaper than the best one known until the solver refutes that there is one.

Every model is priced by the simulator and replayed. One that fails its replay is blocked by its shortest failing
prefix; one that costs more than its constraints knew adds its exact prices; then the loop goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event
from time import perf_counter
from typing import Any, Protocol

from smtsynth.encode.choice import Blocked, Choice, Exactly
from smtsynth.encode.clauses import Clauses
from smtsynth.errors import LimitReached
from smtsynth.model.program import Program
from smtsynth.search.replay import Replay
from smtsynth.solvers.outcome import Answer, Outcome
from smtsynth.solvers.sat import solve_dimacs


class Status(StrEnum):
    """What is claimed of an answer (model, section 7)."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Query:
    """One question of the loop: a program below `bound` ns (None: any program)?"""

    bound: int | None
    answer: Answer
    seconds: float


@dataclass(frozen=True)
class Resources:
    """What a solve may use: a deadline (of perf_counter), solver memory in bytes, which solver, progress lines.

    `interrupted` is set by the first interrupt and ends all that is left.
    """

    deadline: float | None = None
    memory: int | None = None
    solver: str = "z3"
    progress: Callable[[str], None] = field(default=lambda line: None)
    interrupted: Event = field(default_factory=Event)

    def left(self) -> float | None:
        """Seconds until the deadline."""
        return None if self.deadline is None else self.deadline - perf_counter()


class Task(Protocol):
    """A synthesis task, as the loop sees it."""

    def encode(
        self, bound: int | None, mixed: Iterable[Any], blocked: Iterable[Blocked], clauses: Clauses | None = None
    ) -> Choice:
        """Constraints on programs that cost less than `bound` ns."""
        ...

    def tidy(self, program: Program) -> Program:
        """The program of a model without steps that change nothing."""
        ...

    def cost(self, program: Program) -> int:
        """Its exact cost in nanoseconds."""
        ...

    def mixed(self, program: Program) -> list[Any]:
        """The exact price rows for its steps whose groups hold different parts."""
        ...

    def replay(self, program: Program) -> Replay:
        """Whether it reaches the goal."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """What the loop ends with; `program` was replayed. `proved`: the last question was refuted."""

    status: Status
    program: Program | None
    cost: int | None
    replay: Replay | None
    reason: str | None
    blocked: tuple[Program, ...]
    queries: tuple[Query, ...]


def first_that_replays(
    task: Task, programs: Iterable[Program], resources: Resources | None = None
) -> tuple[Program, Replay] | None:
    """The cheapest of `programs` that reaches the goal, the shortest of equals; None where none does.

    Once the deadline is past no further one is looked at but the first; an interrupt is kept for later.
    """
    resources = resources or Resources()
    priced: list[tuple[int, int, int, Program]] = []
    try:
        for number, program in enumerate(programs):
            left = resources.left()
            if priced and (resources.interrupted.is_set() or (left is not None and left <= 0)):
                break
            priced.append((task.cost(program), len(program), number, program))
    except KeyboardInterrupt:
        resources.interrupted.set()
    for _, _, _, program in sorted(priced):
        outcome = task.replay(program)
        if outcome.ok:
            return program, outcome
    return None


def to_block(raw: Program, program: Program, outcome: Replay) -> Blocked:
    """What to exclude when `program`, the tidied `raw` of a model, failed its replay."""
    if outcome.unfinished:
        return Exactly(raw)
    prefix = program[: outcome.prefix]
    return prefix if raw[: len(prefix)] == prefix else raw


def programs_of(blocked: Iterable[Blocked]) -> tuple[Program, ...]:
    """The programs and prefixes that were excluded."""
    return tuple(one.program if isinstance(one, Exactly) else one for one in blocked)


def search(task: Task, first: Iterable[Program], resources: Resources) -> Found:
    """The cheapest program of the task, from the cheapest of `first` that replays, by questions to the solver.

    An interrupt, the deadline or a limit of the solver ends it with the best program so far.
    """
    best: Program | None = None
    cost: int | None = None
    checked: Replay | None = None
    blocked: list[Blocked] = []
    mixed: dict[Any, None] = {}
    queries: list[Query] = []
    reason: str | None = None
    status = Status.UNKNOWN
    try:
        known = first_that_replays(task, first, resources)
        if known is not None:
            best, checked = known
            cost = task.cost(best)
        while True:
            answer, choice = _ask(task, cost, mixed, blocked, resources)
            queries.append(Query(cost, answer.answer, answer.seconds))
            below = "any cost" if cost is None else f"less than {cost / 1e6:.6g} ms"
            resources.progress(f"asked for a program of {below}: {answer.answer} ({answer.seconds:.2f} s)")
            if answer.answer is Answer.UNKNOWN:
                reason = answer.reason
                break
            if answer.answer is Answer.UNSAT:
                status = Status.INFEASIBLE if best is None else Status.OPTIMAL
                break
            assert choice is not None
            raw = choice.decode(answer.true)
            program = task.tidy(raw)
            outcome = task.replay(program)
            if not outcome.ok:
                blocked.append(to_block(raw, program, outcome))
                resources.progress(f"a model failed its replay ({outcome.reason}); its prefix is blocked")
                continue
            price = task.cost(program)
            if cost is None or price < cost:
                best, cost, checked = program, price, outcome
            else:
                new = [row for row in task.mixed(program) if row not in mixed]
                mixed.update(dict.fromkeys(new))
                if not new:
                    blocked.append(Exactly(raw))
                resources.progress("a model costs more than its constraints knew; its exact prices are added")
    except KeyboardInterrupt:
        resources.interrupted.set()
        reason = "interrupted"
    if best is not None and status is not Status.OPTIMAL:
        status = Status.FEASIBLE
    return Found(status, best, cost, checked, reason, programs_of(blocked), tuple(queries))


def _ask(
    task: Task, bound: int | None, mixed: Iterable[Any], blocked: Iterable[Blocked], resources: Resources
) -> tuple[Outcome, Choice | None]:
    """Build the constraints and ask the solver; the time is that of both."""
    start = perf_counter()
    left = resources.left()
    if resources.interrupted.is_set():
        return Outcome(Answer.UNKNOWN, reason="interrupted"), None
    if left is not None and left <= 0:
        return Outcome(Answer.UNKNOWN, reason="the time limit was reached"), None
    try:
        choice = task.encode(bound, mixed, blocked, Clauses(deadline=resources.deadline))
    except LimitReached as limit:
        return Outcome(Answer.UNKNOWN, reason=str(limit), seconds=perf_counter() - start), None
    outcome = solve_dimacs(
        choice.clauses.dimacs(), resources.solver, resources.left(), resources.memory, resources.interrupted
    )
    return Outcome(outcome.answer, outcome.true, outcome.reason, perf_counter() - start), choice
