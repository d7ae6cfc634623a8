"""The loop: worked optima, limits, interrupts, every hierarchy, every encoding."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from threading import Event

import pytest
from conftest import A100, THREE, problem

from smtsynth import Level, Limits, Problem, Solution, Status, System, lower, show_program, solve
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.errors import InputError
from smtsynth.meaning.goals import target_of
from smtsynth.search import loop
from smtsynth.search.enumerate import StateGraph, enumerate_programs
from smtsynth.search.incumbent import schemes
from smtsynth.search.joint import solve_joint
from smtsynth.search.loop import Resources
from smtsynth.search.replay import Replay, replay
from smtsynth.search.solve import Options
from smtsynth.solvers.outcome import Answer

GIB, MIB = 2**30, 2**20


def check_proof(solution: Solution) -> None:
    """`optimal` rests on an unsatisfiable question below its own cost, and on a program that was replayed."""
    assert solution.status is Status.OPTIMAL
    assert solution.loop[-1].answer is Answer.UNSAT and solution.loop[-1].bound == solution.cost
    assert solution.lower_bound == solution.cost
    assert solution.program is not None and replay(solution.lowering, solution.program).ok
    assert all(query.answer is Answer.SAT for query in solution.loop[:-1])


@pytest.mark.parametrize("solver", ["z3", "cadical"])
@pytest.mark.parametrize("bounds", [True, False])
def test_worked_optimum_of_two_factors(solver: str, bounds: bool) -> None:
    solution = solve(problem(A100, (64,), (0,), 2 * GIB), [[4, 16]], solver=solver, bounds=bounds)
    check_proof(solution)
    assert solution.cost == 417776266 and solution.allreduce == 528994179
    assert show_program(solution.program or (), solution.lowering.names) == (
        "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)"
    )


@pytest.mark.parametrize(
    ("payload", "overhead", "cost", "plain", "steps"),
    [
        (MIB, "0 us", 109323, 367411, 5),
        (64 * MIB, "0 us", 603447, 692552, 3),
        (GIB, "0 us", 5647074, 5647074, 1),
        (MIB, "10 us", 153254, 377411, 4),
    ],
)
@pytest.mark.parametrize("bounds", [True, False])
def test_worked_optima_of_three_factors(
    payload: int, overhead: str, cost: int, plain: int, steps: int, bounds: bool
) -> None:
    system = System(THREE.levels, overhead)
    solution = solve(problem(system, (64,), (0,), payload), [[2, 4, 8]], steps=7, bounds=bounds)
    check_proof(solution)
    assert (solution.cost, solution.allreduce, len(solution.program or ())) == (cost, plain, steps)


def test_scatter_over_two_levels_at_once() -> None:
    solution = solve(problem(THREE, (64,), (0,), 64 * MIB), [[2, 4, 8]], steps=7)
    assert show_program((solution.program or ())[:1], solution.lowering.names) == "ReduceScatter(su, InsideGroup)"


def test_all_placements_of_two_axes() -> None:
    solution = solve(problem(A100, (8, 2, 4), (0, 2), 2 * GIB))
    found = {one.placement.matrix: one.cost for one in solution.placements}
    assert found == {
        ((1, 8), (1, 2), (4, 1)): 819387244,
        ((1, 8), (2, 1), (2, 2)): 283478538,
        ((2, 4), (1, 2), (2, 2)): 819387244,
        ((2, 4), (2, 1), (1, 4)): 283478538,
        ((4, 2), (1, 2), (1, 4)): 819387244,
    }
    assert solution.status is Status.OPTIMAL and solution.cost == 283478538 == solution.lower_bound
    for one in solution.placements:
        check_proof(one)
    again = solve(problem(A100, (8, 2, 4), (0, 2), 2 * GIB), jobs=2)
    assert [one.cost for one in again.placements] == [one.cost for one in solution.placements]


def test_worked_cluster_of_ten_nodes() -> None:
    system = System([Level("node", 10, "400 GB/s", "8 us", "50 GB/s"), Level("gpu", 8, "450 GB/s", "2 us")])
    small = solve(problem(system, (80,), (0,), 32 * MIB), [[10, 8]])
    assert (small.allreduce, small.cost) == (600176, 453485)
    large = solve(problem(system, (80,), (0,), GIB), [[10, 8]])
    assert large.cost == large.allreduce == 5736101


def test_nothing_to_reduce_is_one_empty_program() -> None:
    solution = solve(problem(A100, (64, 1), (1,), GIB), [[4, 16], [1, 1]])
    assert (solution.status, solution.cost, solution.program, solution.lower_bound) == (Status.OPTIMAL, 0, (), 0)


def optimum(given: Problem, matrix: list[list[int]], hierarchy: str, instructions: str, steps: int) -> int | None:
    """The cheapest program by enumeration."""
    lowering = lower(given, matrix, hierarchy)
    prices = Prices(AlphaBeta(), lowering, given.reduction.payload)
    return enumerate_programs(StateGraph(target_of(lowering), instructions), prices, steps).cost


@pytest.mark.parametrize("hierarchy", ["reduction", "reduction-factors", "rows", "columns"])
@pytest.mark.parametrize("instructions", ["p2", "full"])
def test_every_hierarchy_agrees_with_enumeration(hierarchy: str, instructions: str) -> None:
    system = System([Level("node", 2, "8 GB/s", "20 us"), Level("gpu", 8, "270 GB/s", "3 us")])
    given = problem(system, (4, 4), (0,), 64 * MIB)
    matrix = [[2, 2], [1, 4]]
    solution = solve(given, matrix, hierarchy=hierarchy, instruction_set=instructions, steps=5)
    check_proof(solution)
    assert solution.cost == optimum(given, matrix, hierarchy, instructions, 5)


def test_a_hierarchy_that_cannot_tell_the_axes_apart_is_infeasible() -> None:
    solution = solve(problem(A100, (8, 8), (0,), GIB), [[2, 4], [2, 4]], hierarchy="system")
    assert solution.status is Status.INFEASIBLE and solution.program is None and "in part" in str(solution.reason)


@pytest.mark.parametrize("encoding", ["reduced", "concrete"])
def test_too_few_steps_is_infeasible_by_the_solver(encoding: str) -> None:
    system = System([Level("node", 2, "1 GB/s"), Level("gpu", 4, "5 GB/s")])
    given, matrix = problem(system, (2, 4), (1,), MIB), [[1, 2], [2, 2]]
    one = solve(given, matrix, hierarchy="columns", steps=1, encoding=encoding)
    assert one.status is Status.INFEASIBLE and one.loop[-1].answer is Answer.UNSAT and one.loop[-1].bound is None
    check_proof(solve(given, matrix, hierarchy="columns", steps=2, encoding=encoding))


@pytest.mark.parametrize(
    ("sizes", "instructions"),
    [
        *product([(2, 2), (2, 3), (4, 2)], ["p2", "full"]),
        ((2, 2, 2), "full"),
        pytest.param((2, 2, 2), "p2", marks=pytest.mark.full),
    ],
)
def test_concrete_reduced_and_enumerated_agree(sizes: tuple[int, ...], instructions: str) -> None:
    levels = [Level(f"l{n}", size, 10**9 * 7**n, Fraction(5, 10 ** (6 + n))) for n, size in enumerate(sizes)]
    given = problem(System(levels), (math.prod(sizes),), (0,), 3 * MIB)
    costs = set()
    for encoding in ("reduced", "concrete"):
        solution = solve(given, [sizes], encoding=encoding, steps=3, instruction_set=instructions, bounds=False)
        check_proof(solution)
        costs.add(solution.cost)
    assert costs == {optimum(given, [list(sizes)], "reduction", instructions, 3)}


def test_joint_query_is_the_best_over_placements() -> None:
    small = System([Level("one", 1, "1 GB/s"), Level("node", 2, "1 GB/s", "9 us"), Level("gpu", 6, "5 GB/s", "1 us")])
    cases = [
        problem(A100, (8, 2, 4), (0, 2), 256 * MIB),
        problem(A100, (4, 16), (0,), MIB),
        problem(A100, (16, 2, 2), (1, 2), 2 * GIB),
        problem(small, (3, 4), (1,), MIB),
        problem(small, (12, 1), (1,), MIB),
        problem(THREE, (8, 8), (1,), 4 * MIB),
    ]
    for given in cases:
        joint = solve_joint(given, Options(), Resources())
        each = solve(given)
        assert joint.status is Status.OPTIMAL and joint.cost == each.cost
        assert joint.cost == 0 or joint.loop[-1].answer is Answer.UNSAT
        assert joint.program is not None and replay(joint.lowering, joint.program).ok


def test_joint_query_improves_by_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a poor first program the models of the solver lead to the optimum, matrix included."""
    given = problem(A100, (4, 16), (1,), 256 * MIB)
    monkeypatch.setattr("smtsynth.search.joint.schemes", lambda aim, allowed: list(schemes(aim, allowed))[:1])
    joint = solve_joint(given, Options(), Resources())
    assert joint.cost == solve(given).cost


# --- limits, interrupts, size ---


def test_no_time_is_never_infeasible() -> None:
    for limit in (1e-9, 0.01):
        solution = solve(problem(A100, (8, 2, 4), (0, 2), GIB), time_limit=limit)
        assert solution.status in (Status.UNKNOWN, Status.FEASIBLE)
        assert "time limit" in str(solution.reason)
        if solution.cost is not None:
            assert solution.lower_bound is not None and solution.lower_bound <= solution.cost


@pytest.mark.parametrize("solver", ["z3", "cadical"])
def test_memory_limit_is_said(solver: str) -> None:
    memory = {"z3": 2**20, "cadical": 2**25}[solver]
    solution = solve(problem(THREE, (64,), (0,), MIB), [[2, 4, 8]], steps=7, memory_limit=memory, solver=solver)
    assert solution.status is Status.FEASIBLE and f"{solver} reached the memory limit" in str(solution.reason)
    assert solution.program is not None


def test_interrupt_keeps_the_best_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "solve_dimacs", interrupted)
    solution = solve(problem(A100, (8, 2, 4), (0, 2), GIB))
    assert solution.status is Status.FEASIBLE and solution.reason == "interrupted"
    assert len(solution.placements) == 5 and solution.program is not None


def test_a_disagreement_of_ours_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from smtsynth import InternalError
    from smtsynth.search import solve as module

    monkeypatch.setattr(module, "cheapest_path", lambda *_: (10**12, ()))
    with pytest.raises(InternalError):
        solve(problem(A100, (64,), (0,), GIB), [[4, 16]])


def test_65536_devices_are_replayed_symbolically() -> None:
    levels = [Level(f"l{n}", 16, 10**11, Fraction(5, 10 ** (6 + n))) for n in range(4)]
    given = problem(System(levels), (256, 256), (0,), GIB)
    solution = solve(given, [[16, 16, 1, 1], [1, 1, 16, 16]])
    check_proof(solution)
    large = problem(System(levels), (65536,), (0,), GIB)
    symbolic = solve(large, [[16, 16, 16, 16]], steps=3)
    check_proof(symbolic)
    assert symbolic.layout is None


def test_what_the_symbolic_replay_refuses_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from smtsynth.search import solve as module

    monkeypatch.setattr(module, "replay", lambda lowering, program, target: Replay(False, len(program), "refused"))
    solution = solve(problem(A100, (64,), (0,), GIB), [[4, 16]], steps=1)
    assert solution.program is None and solution.blocked


def test_options_are_checked() -> None:
    given = problem(A100, (64,), (0,), GIB)
    for words in ({"instruction_set": "p3"}, {"steps": 0}, {"hierarchy": "tree"}, {"encoding": "dense"}, {"jobs": 0}):
        with pytest.raises(InputError):
            solve(given, [[4, 16]], **words)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="row of axis 'a0' multiplies to 32"):
        solve(given, [[2, 16]])


def test_the_step_limit_is_the_options_then_the_problems_then_the_models() -> None:
    given = problem(THREE, (64,), (0,), GIB)
    limited = replace(given, limits=Limits(steps=6))
    assert [Options().step_limit(given, depth) for depth in (1, 2, 3, 4)] == [5, 5, 5, 7]
    assert Options().step_limit(limited, 4) == 6
    assert Options(steps=3).step_limit(limited, 4) == Options(steps=3).step_limit(given, 4) == 3


def test_resources_count_down() -> None:
    assert Resources().left() is None
    resources = replace(Resources(deadline=0.0), interrupted=Event())
    left = resources.left()
    assert left is not None and left < 0


def test_of_equal_costs_the_shorter_program_is_chosen() -> None:
    system = System([Level("a", 2, "1 GB/s", "1 us"), Level("b", 2, "1 GB/s")])
    solution = solve(problem(system, (4,), (0,), 1000), [[2, 2]])
    check_proof(solution)
    assert solution.cost == 4000 and len(solution.program or ()) == 2


def test_many_levels_keep_to_the_time_limit_with_a_program() -> None:
    levels = [Level(f"l{n}", 2, f"{100 + n} GB/s", f"{12 - n} us") for n in range(10)]
    solution = solve(problem(System(levels), (1024,), (0,), MIB), [[2] * 10], time_limit=0.01)
    assert solution.status is Status.FEASIBLE and solution.program and "limit" in str(solution.reason)
