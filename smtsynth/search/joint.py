"""One query for placement and program together: the parallelism matrix is unknown too (small systems).

Placements whose reductions have the same factors at the same levels form a case with one table of prices; the
matrix variables choose the case, and each case's constraints hold only where it is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from smtsynth.cost.prices import Prices
from smtsynth.encode.choice import Blocked, Choice, Exactly
from smtsynth.encode.clauses import Clauses
from smtsynth.encode.placement import MatrixVariables
from smtsynth.encode.placement import encode as encode_placement
from smtsynth.errors import InputError
from smtsynth.meaning.goals import target_of
from smtsynth.model.lowering import Lowering, lowering_of
from smtsynth.model.placement import Matrix, check_placement, placements
from smtsynth.model.problem import Problem
from smtsynth.model.program import Collective, Program, instruction_set
from smtsynth.search.incumbent import schemes
from smtsynth.search.loop import Query, Resources, Status, programs_of, to_block
from smtsynth.search.replay import Replay, replay
from smtsynth.search.solution import Solution
from smtsynth.search.solve import Options, PlacementTask, plain_cost
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.sat import solve_dimacs

MAX_CASES = 40


@dataclass
class Case:
    """The placements that share a synthesis hierarchy, and what the loop has learned of it."""

    task: PlacementTask
    mixed: dict[Any, None] = field(default_factory=dict)
    blocked: list[Blocked] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Best:
    """The cheapest replayed answer so far."""

    cost: int
    lowering: Lowering
    program: Program
    replay: Replay


def solve_joint(problem: Problem, options: Options, resources: Resources) -> Solution:
    """The best placement and program by one query with the matrix unknown. Hierarchy `reduction` only.

    Raises InputError for another hierarchy or more than MAX_CASES different synthesis hierarchies.
    """
    start = perf_counter()
    if options.hierarchy != "reduction":
        raise InputError(f"the joint query does not take hierarchy {options.hierarchy!r}", expected="reduction")
    if problem.reduction.collective is not Collective.ALL_REDUCE:
        raise InputError(f"the joint query does not take {problem.reduction.collective}", expected="AllReduce")
    cases = _cases(problem, options)
    best = _first(cases)
    queries: list[Query] = []
    reason: str | None = None
    proved = best.cost == 0
    while not proved:
        clock = perf_counter()
        left = resources.left()
        if left is not None and left <= 0:
            reason = "the time limit was reached"
            break
        try:
            matrix, choices = _encode(cases, problem, best.cost)
            outcome = solve_dimacs(matrix.clauses.dimacs(), resources.solver, resources.left(), resources.memory)
        except KeyboardInterrupt:
            reason = "interrupted"
            break
        queries.append(Query(best.cost, outcome.answer, perf_counter() - clock))
        if outcome.answer is Answer.UNKNOWN:
            reason = outcome.reason
            break
        proved = outcome.answer is Answer.UNSAT
        if not proved:
            best = _improve(cases, problem, matrix, choices, outcome.true, best)
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    blocked = programs_of(one for case in cases for one in case.blocked)
    return _solution(problem, options, best, status, reason, blocked, tuple(queries), perf_counter() - start)


def _cases(problem: Problem, options: Options) -> list[Case]:
    lowerings: dict[tuple[tuple[int, int], ...], Lowering] = {}
    for placement in placements(problem.system, problem.axes):
        lowering = lowering_of(problem, placement)
        first = lowerings.setdefault(tuple((factor.level, factor.size) for factor in lowering.factors), lowering)
        if options.cost_model.key(first) != options.cost_model.key(lowering):
            raise InputError("the joint query needs levels of switches", expected="no --joint on other wiring")
    if len(lowerings) > MAX_CASES:
        raise InputError(f"the joint query has {len(lowerings)} cases", expected=f"a system with at most {MAX_CASES}")
    return [
        Case(
            PlacementTask(
                Prices(options.cost_model, lowering, problem.reduction.payload),
                target_of(lowering),
                instruction_set(lowering.depth, options.instruction_set),
                options.step_limit(problem, lowering.depth),
                "reduced",
            )
        )
        for lowering in lowerings.values()
    ]


def _first(cases: Sequence[Case]) -> Best:
    """The cheapest of the schemes over all cases (plain AllReduce is one, so there is one)."""
    found = []
    for case in cases:
        lowering = case.task.lowering
        candidates = list(schemes(case.task.target.aim, case.task.instructions)) if lowering.depth else [()]
        for program in candidates:
            if len(program) <= case.task.steps:
                found.append(Best(case.task.cost(program), lowering, program, Replay(False)))
    for one in sorted(found, key=lambda best: (best.cost, len(best.program))):
        outcome = replay(one.lowering, one.program)
        if outcome.ok:
            return Best(one.cost, one.lowering, one.program, outcome)
    raise AssertionError("plain AllReduce did not replay")


def _encode(cases: Sequence[Case], problem: Problem, bound: int) -> tuple[MatrixVariables, list[Choice | None]]:
    clauses = Clauses()
    matrix = encode_placement(problem.axes, problem.system, clauses)
    choices: list[Choice | None] = []
    selectors = [clauses.var("case", number) for number in range(len(cases))]
    clauses.exactly_one(selectors)
    for number, (case, selector) in enumerate(zip(cases, selectors, strict=True)):
        sizes = {factor.level: factor.size for factor in case.task.lowering.factors}
        for level in range(len(problem.system.levels)):
            for literal in matrix.equals(problem.reduced, level, sizes.get(level, 1)):
                clauses.imply([selector], literal)
        choice = None
        if case.task.lowering.depth:
            with clauses.scope(("case", number)), clauses.when(selector):
                choice = case.task.encode(bound, case.mixed, case.blocked, clauses)
        choices.append(choice)
    return matrix, choices


def _improve(
    cases: Sequence[Case],
    problem: Problem,
    matrix: MatrixVariables,
    choices: Sequence[Choice | None],
    true: frozenset[int],
    best: Best,
) -> Best:
    """The better answer that a model gives, or the same with what is wrong with the model learned."""
    clauses = matrix.clauses
    number = next(number for number in range(len(cases)) if clauses.var("case", number) in true)
    case, choice = cases[number], choices[number]
    found: Matrix = matrix.decode(true)
    lowering = lowering_of(problem, check_placement(found, problem.axes, problem.system))
    if choice is None:
        return Best(0, lowering, (), Replay(True, layout="identity"))
    with clauses.scope(("case", number)):
        raw = choice.decode(true)
    program = case.task.tidy(raw)
    outcome = replay(lowering, program)
    if not outcome.ok:
        case.blocked.append(to_block(raw, program, outcome))
        return best
    cost = case.task.cost(program)
    if cost < best.cost:
        return Best(cost, lowering, program, outcome)
    new = [row for row in case.task.mixed(program) if row not in case.mixed]
    case.mixed.update(dict.fromkeys(new))
    if not new:
        case.blocked.append(Exactly(raw))
    return best


def _solution(
    problem: Problem,
    options: Options,
    best: Best,
    status: Status,
    reason: str | None,
    blocked: tuple[Program, ...],
    queries: tuple[Query, ...],
    seconds: float,
) -> Solution:
    return Solution(
        status=status,
        lowering=best.lowering,
        program=best.program,
        cost=best.cost,
        lower_bound=best.cost if status is Status.OPTIMAL else None,
        allreduce=plain_cost(best.lowering, problem, options.cost_model),
        any_schedule_bound=options.cost_model.any_schedule(best.lowering, problem.reduction.payload),
        steps_limit=options.step_limit(problem, best.lowering.depth),
        instruction_set=options.instruction_set,
        cost_model=options.cost_model.name,
        solver=options.solver,
        encoding="joint",
        layout=best.replay.layout,
        reason=reason,
        blocked=blocked,
        loop=queries,
        seconds=seconds,
    )
