"""What the loop does with models: failed replays are blocked, mixed prices added; and what bounds it from outside."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from conftest import A100, problem

from smtsynth import Level, LimitReached, Problem, Status, System, lower, solve
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.encode.choice import Blocked, Exactly
from smtsynth.meaning.goals import target, target_of
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Form, Instruction, Program, canonical, instruction_set, parse_program
from smtsynth.search import loop
from smtsynth.search.enumerate import StateGraph, cheapest_programs, enumerate_programs
from smtsynth.search.graph import ClassGraph, cheapest_path, class_graph
from smtsynth.search.incumbent import schemes
from smtsynth.search.replay import Replay, replay
from smtsynth.search.solve import PlacementTask
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.sat import solve_dimacs

GIB, MIB = 2**30, 2**20


# --- models that fail their replay ---

# Right on 2·2·2, wrong on 3·2·2: contiguous scatters that don't line up there.
MISALIGNED = (
    "ReduceScatter(c, Parallel(b)); ReduceScatter(b, Parallel(a)); AllGather(c, Parallel(b)); "
    "AllGather(b, Master(a)); ReduceScatter(a, Parallel(root)); Broadcast(c, Parallel(a)); AllGather(a, Parallel(root))"
)


def misaligned(lowering: Lowering) -> Program:
    """The program above, each instruction under its one name."""
    named = [canonical(instruction, 3) for instruction in parse_program(MISALIGNED, lowering.names)]
    return tuple(instruction for instruction in named if instruction is not None)


def test_the_classes_admit_it_the_replay_refuses_it_and_its_prefix_blocks_it() -> None:
    system = System([Level("a", 3, 1), Level("b", 2, 1), Level("c", 2, 1)])
    lowering = lower(problem(system, (12,), (0,), MIB), [[3, 2, 2]])
    bad = misaligned(lowering)
    task = PlacementTask(
        Prices(AlphaBeta(), lowering, Fraction(MIB)), target_of(lowering), instruction_set(3), 7, "reduced"
    )
    outcome = task.replay(bad)
    assert admits(task, bad, None) and not outcome.ok
    assert not admits(task, bad, None, blocked=[bad[: outcome.prefix]])
    (even,) = [lower(problem(System([Level(n, 2, 1) for n in "abc"]), (8,), (0,), MIB), [[2, 2, 2]])]
    assert replay(even, bad).ok


@pytest.mark.parametrize("refused", [1, 3])
def test_a_model_that_fails_its_replay_is_blocked_and_the_loop_goes_on(
    monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """Refuse every program that begins like the optimum: the loop ends with the best of the others."""
    given = problem(A100, (64,), (0,), 2 * GIB)
    lowering = lower(given, [[4, 16]])
    prefix = (solve(given, [[4, 16]]).program or ())[:refused]
    real = PlacementTask.replay

    def picky(task: PlacementTask, program: Program) -> Replay:
        fails = program[:refused] == prefix
        return Replay(False, refused, "refused by the test") if fails else real(task, program)

    monkeypatch.setattr(PlacementTask, "replay", picky)
    prices = Prices(AlphaBeta(), lowering, given.reduction.payload)
    every = cheapest_programs(StateGraph(target_of(lowering)), prices, 5)
    best = next(cost for cost, program in every if program[:refused] != prefix)
    for bounds in (True, False):
        solution = solve(given, [[4, 16]], bounds=bounds)
        assert solution.status is Status.OPTIMAL and solution.cost == best
        assert solution.blocked == (prefix,)


def test_blocked_prefixes_are_the_shortest_that_fail() -> None:
    system = System([Level("a", 3, 1), Level("b", 2, 1), Level("c", 2, 1)])
    given = problem(system, (12,), (0,), MIB)
    lowering = lower(given, [[3, 2, 2]])
    bad = misaligned(lowering)
    result = replay(lowering, bad)
    assert not result.ok and 0 < result.prefix <= len(bad)
    for length in range(1, result.prefix):
        reason = replay(lowering, bad[:length]).reason
        assert "goal is not reached" in reason, "a shorter prefix fails already"


def test_unequal_groups_get_exact_prices() -> None:
    """A model whose groups hold different parts is priced below its cost until its exact row is added."""
    system = System([Level("a", 2, "1 GB/s"), Level("b", 2, "1 GB/s"), Level("c", 2, "1 GB/s")])
    given = problem(system, (8,), (0,), MIB)
    lowering = lower(given, [[2, 2, 2]])
    prices = Prices(AlphaBeta(), lowering, Fraction(MIB))
    task = PlacementTask(prices, target_of(lowering), instruction_set(3), 5, "reduced")
    every = [program for _, program in cheapest_programs(StateGraph(target_of(lowering)), prices, 5)]
    unequal = [program for program in every if task.mixed(program)]
    assert unequal, "no program has groups of different parts"
    for program in unequal[:5]:
        cost = task.cost(program)
        assert admits(task, program, cost + 1, task.mixed(program))
        assert not admits(task, program, cost, task.mixed(program))


def admits(
    task: PlacementTask, program: Program, bound: int | None, mixed: Iterable[Any] = (), blocked: Iterable[Blocked] = ()
) -> bool:
    """Whether the constraints admit exactly this program below `bound`."""
    choice = task.encode(bound, mixed, blocked)
    for step, instruction in enumerate(program, 1):
        for literal in choice.chosen(step, instruction):
            choice.clauses.add(literal)
    if len(program) < choice.steps:
        choice.clauses.add(choice.idle(len(program) + 1))
    return solve_dimacs(choice.clauses.dimacs()).answer is Answer.SAT


def test_graph_bounds_every_program_from_below() -> None:
    for sizes in [(2, 3), (2, 2, 2)]:
        levels = [Level(f"l{n}", size, 10**9 * 7**n, Fraction(5, 10 ** (6 + n))) for n, size in enumerate(sizes)]
        lowering = lower(problem(System(levels), (math.prod(sizes),), (0,), MIB), [sizes])
        prices = Prices(AlphaBeta(), lowering, Fraction(MIB))
        graph = class_graph(target(sizes).aim, "full")
        for steps in range(1, 6):
            best = cheapest_path(graph, prices, steps)
            least = enumerate_programs(StateGraph(target_of(lowering)), prices, steps).cost
            assert best is not None and least is not None and best[0] <= least
            assert best[0] == prices.program(best[1]) and len(best[1]) <= steps


def test_a_graph_that_is_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smtsynth.search.graph.MAX_STATES", 100)
    given, matrix = _cube(4)
    lowering = lower(given, matrix)
    prices = Prices(AlphaBeta(), lowering, given.reduction.payload)
    with pytest.raises(LimitReached, match="more than 100 states"):
        cheapest_path(ClassGraph(target_of(lowering).aim, "full"), prices, 7)
    solution = solve(given, matrix, steps=3, instruction_set="p2")
    assert solution.status is Status.OPTIMAL


def test_schemes_are_programs_of_the_set() -> None:
    for depth in (1, 2, 3, 4):
        for name in ("p2", "full"):
            allowed = instruction_set(depth, name)
            found = list(schemes(target((2,) * depth).aim, allowed))
            assert found and len(set(found)) == len(found)
            lowering = lower(*_cube(depth))
            for program in found:
                assert set(program) <= set(allowed) and replay(lowering, program).ok


def _cube(depth: int) -> tuple[Problem, list[list[int]]]:
    system = System([Level(f"l{n}", 2, 1) for n in range(depth)])
    return problem(system, (2**depth,), (0,), MIB), [[2] * depth]


def test_a_program_that_only_lacks_the_goal_is_excluded_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that begin with it stay: refusing a one-step program for want of the goal refuses no longer one."""
    given = problem(A100, (64,), (0,), 2 * GIB)
    best = solve(given, [[4, 16]], steps=5)
    first = (best.program or ())[:1]
    real = PlacementTask.replay

    def picky(task: PlacementTask, program: Program) -> Replay:
        short = len(program) == 1
        return Replay(False, 1, "the goal is not reached", unfinished=True) if short else real(task, program)

    monkeypatch.setattr(PlacementTask, "replay", picky)
    task = PlacementTask(
        Prices(AlphaBeta(), best.lowering, given.reduction.payload),
        target_of(best.lowering),
        instruction_set(2),
        5,
        "reduced",
    )
    outcome = picky(task, first)
    blocked = loop.to_block(first, first, outcome)
    assert blocked == Exactly(first) and loop.to_block(first, first, Replay(False, 1, "no")) == first
    assert admits(task, best.program or (), (best.cost or 0) + 1, blocked=[blocked])
    assert not admits(task, best.program or (), (best.cost or 0) + 1, blocked=[first])
    flat = (Instruction(Collective.ALL_REDUCE, 0, Form.INSIDE_GROUP),)
    assert admits(task, flat, None) and not admits(task, flat, None, blocked=[Exactly(flat)])
    assert solve(given, [[4, 16]], bounds=False).cost == best.cost
