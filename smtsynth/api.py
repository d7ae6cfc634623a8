"""The Python API's functions: the same jobs as the command line's, on data instead of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

from smtsynth.cost.alphabeta import simulate_program, simulate_schedule
from smtsynth.cost.interface import CostModel, StepCost
from smtsynth.cost.models import cost_model_of
from smtsynth.cost.prices import Prices
from smtsynth.errors import InputError, check_type
from smtsynth.meaning.goals import check_whole, target_of
from smtsynth.model.lowering import Lowering, lowering_of
from smtsynth.model.placement import Axis, Matrix, Placement, check_placement, only_placement
from smtsynth.model.placement import placements as enumerate_placements
from smtsynth.model.problem import Limits, Problem
from smtsynth.model.program import Program, check_program, parse_program
from smtsynth.model.schedule import Schedule, check_schedule
from smtsynth.model.system import System
from smtsynth.model.workload import Workload
from smtsynth.search.compare import Comparison
from smtsynth.search.compare import compare as compare_placements
from smtsynth.search.enumerate import StateGraph, cheapest_programs
from smtsynth.search.loop import Resources
from smtsynth.search.solution import Solution
from smtsynth.search.solve import Options
from smtsynth.search.solve import solve as solve_problem
from smtsynth.search.workload import WorkloadSolution
from smtsynth.search.workload import solve_workload as solve_step

Where = Placement | Matrix | Sequence[Sequence[int]]


def placements(system: System, axes: Mapping[str, int] | Sequence[Axis]) -> list[Placement]:
    """Every placement of `axes` ({name: size}, or Axis objects) on `system`, sorted by matrix (model, section 2).

    Raises InputError where the sizes don't multiply up to the number of devices.
    """
    return enumerate_placements(system, axes)


def lower(problem: Problem, placement: Where, hierarchy: str = "reduction") -> Lowering:
    """The synthesis hierarchy of the problem's reduction on a placement: names, factors, device groups (section 3)."""
    return lowering_of(problem, _placement(problem, placement), hierarchy)


def solve(
    problem: Problem,
    placement: Where | None = None,
    *,
    instruction_set: str = "full",
    steps: int | None = None,
    hierarchy: str = "reduction",
    cost_model: CostModel | None = None,
    encoding: str = "reduced",
    solver: str = "z3",
    bounds: bool = True,
    jobs: int = 1,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Solution:
    """The cheapest program for `placement`, or over all placements (None), with its proof (model, section 7).

    time_limit: seconds for all of it; memory_limit: bytes for each solver process (both default to the problem's).
    The solver runs in a child process, so this works from a notebook, `python -c` and a script alike. An interrupt
    ends the search with the best program so far. Raises InputError where problem and options don't fit.
    """
    options = Options(instruction_set, steps, hierarchy, _model(problem, cost_model), encoding, solver, bounds, jobs)
    chosen = None if placement is None else _placement(problem, placement)
    return solve_problem(problem, chosen, options, _resources(problem, solver, time_limit, memory_limit, progress))


def solve_workload(
    workload: Workload,
    *,
    instruction_set: str = "full",
    steps: int | None = None,
    cost_model: CostModel | None = None,
    solver: str = "z3",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> WorkloadSolution:
    """The placement and the programs of the least time of a training step, with the proof; see solve for the rest."""
    check_type(workload, Workload, "workload", "a Workload")
    options = Options(instruction_set, steps, "reduction", _model(workload, cost_model), solver=solver)
    return solve_step(workload, options, _resources(workload, solver, time_limit, memory_limit, progress))


def compare(
    problem: Problem,
    placement: Where | None = None,
    *,
    instruction_set: str = "full",
    steps: int | None = None,
    hierarchy: str = "reduction",
    cost_model: CostModel | None = None,
    merge: bool = True,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Comparison]:
    """Enumerate and solve one placement, or all (None), and set the answers side by side (paper, section 6).

    merge: keep equal states once while enumerating; the paper's own method does not. See solve for the rest.
    """
    options = Options(instruction_set, steps, hierarchy, _model(problem, cost_model))
    chosen = (
        enumerate_placements(problem.system, problem.axes) if placement is None else [_placement(problem, placement)]
    )
    resources = _resources(problem, options.solver, time_limit, memory_limit, progress)
    return compare_placements(problem, chosen, options, resources, merge)


def simulate(
    problem: Problem,
    program: Program | str | Schedule,
    placement: Where | None = None,
    *,
    hierarchy: str = "reduction",
    cost_model: CostModel | None = None,
) -> list[StepCost]:
    """The cost of each step of a program (on `placement`) or of a schedule (model, section 6).

    program: instructions, their short text, or a Schedule over the system's devices. Raises InputError where it
    doesn't fit, or where a program comes without a placement.
    """
    model, payload = _model(problem, cost_model), problem.reduction.payload
    if isinstance(program, Schedule):
        return simulate_schedule(model, problem.system, check_schedule(program), payload)
    lowering = lower(
        problem, placement if placement is not None else only_placement(problem.system, problem.axes), hierarchy
    )
    steps = (
        parse_program(program, lowering.names) if isinstance(program, str) else check_program(program, lowering.depth)
    )
    return simulate_program(model, lowering, steps, payload, problem.reduction.collective)


def enumerate_programs(
    problem: Problem,
    placement: Where,
    *,
    instruction_set: str = "full",
    steps: int | None = None,
    hierarchy: str = "reduction",
    cost_model: CostModel | None = None,
) -> list[tuple[int, Program]]:
    """All programs of a placement within the step limit, as (nanoseconds, program), cheapest first."""
    lowering = lower(problem, placement, hierarchy)
    check_whole(lowering)
    target = target_of(lowering, problem.reduction.collective, problem.split)
    prices = Prices(_model(problem, cost_model), lowering, problem.reduction.payload, target.collective)
    limit = Options(instruction_set, steps).step_limit(problem, lowering.depth)
    return list(cheapest_programs(StateGraph(target, instruction_set), prices, limit))


def _placement(problem: Problem, placement: Where) -> Placement:
    check_type(problem, Problem, "problem", "a Problem")
    matrix = placement.matrix if isinstance(placement, Placement) else placement
    return check_placement(matrix, problem.axes, problem.system)


def _model(problem: Problem | Workload, given: CostModel | None) -> CostModel:
    """The cost model that was given, or the problem's."""
    if not isinstance(problem, Workload):
        check_type(problem, Problem, "problem", "a Problem")
    if given is not None:
        check_type(given, CostModel, "cost_model", "a cost model, such as AlphaBeta()")
    return cost_model_of(problem.cost_model) if given is None else given


def _resources(
    problem: Problem | Workload,
    solver: str,
    time_limit: float | None,
    memory_limit: int | None,
    progress: Callable[[str], None] | None,
) -> Resources:
    if progress is not None and not callable(progress):
        raise InputError(f"is {repr(progress)[:40]}", where="progress", expected="a function of one line of text")
    try:
        limits = Limits(
            seconds=problem.limits.seconds if time_limit is None else time_limit,
            memory=problem.limits.memory if memory_limit is None else memory_limit,
        )
    except InputError as error:  # the problem's own were checked with it
        raise InputError(error.what, where=f"{error.where}_limit", expected=error.expected) from None
    return Resources(
        deadline=None if limits.seconds is None else perf_counter() + limits.seconds,
        memory=limits.memory,
        solver=solver,
        progress=progress or (lambda line: None),
    )
