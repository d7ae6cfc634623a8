"""Solver and enumeration agree to the nanosecond; what they disagree on, or don't finish, is said."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from conftest import A100, axes, problem

from smtsynth import InputError, Level, Problem, Reduction, Status, System, compare, enumerate_programs, lower
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.meaning.goals import target_of
from smtsynth.model.placement import axes_of, placements
from smtsynth.search.compare import agree
from smtsynth.search.enumerate import StateGraph, cheapest_programs
from smtsynth.search.enumerate import enumerate_programs as count_programs
from smtsynth.search.inclusions import all_programs, inclusions

MIB = 2**20
THREE_LEVELS = System(
    [Level("rack", 2, "20 GB/s", "30 us"), Level("node", 4, "50 GB/s", "8 us"), Level("gpu", 8, "300 GB/s", "2 us")]
)
CASES = [(A100, sizes) for sizes in [(4, 16), (8, 8), (8, 2, 4), (2, 2, 16)]] + [
    (THREE_LEVELS, sizes) for sizes in [(8, 8), (4, 4, 4)]
]


def questions() -> list[tuple[System, tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...], int]]:
    """Every placement and every single-axis and two-axis reduction, with the payload of its turn."""
    result = []
    for system, sizes in CASES:
        for placement in placements(system, axes_of(axes(*sizes))):
            for number in (1, 2):
                for over in combinations(range(len(sizes)), number):
                    result.append((system, sizes, over, placement.matrix, len(result)))
    return result


def check(
    question: tuple[System, tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...], int], steps: int
) -> None:
    system, sizes, over, matrix, number = question
    payload = [MIB, 64 * MIB, 2048 * MIB][number % 3]
    (answer,) = compare(problem(system, sizes, over, payload), matrix, steps=steps)
    assert answer.solved.status is Status.OPTIMAL
    assert answer.agree is True, f"{over} of {sizes} on {matrix}, {payload} bytes"
    assert answer.enumerated.cost == answer.solved.cost


@pytest.mark.parametrize("question", Random(7).sample(questions(), 24))
def test_agreement_sample(
    question: tuple[System, tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...], int],
) -> None:
    check(question, 5)


@pytest.mark.full
@pytest.mark.parametrize("question", questions())
def test_agreement_everywhere(
    question: tuple[System, tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...], int],
) -> None:
    check(question, 5)
    system, sizes, over, matrix, _ = question
    if lower(problem(system, sizes, over, MIB), matrix).depth == 3:
        check(question, 7)


def test_agreement_over_three_factors_and_seven_steps() -> None:
    (answer,) = compare(problem(THREE_LEVELS, (64,), (0,), 8 * MIB), [[2, 4, 8]], steps=7)
    assert answer.agree is True and answer.enumerated.count == 8749


@pytest.mark.parametrize("merge", [True, False])
def test_merging_changes_nothing_but_the_time(merge: bool) -> None:
    for instructions, total in [("p2", 47), ("full", 93)]:
        (answer,) = compare(problem(A100, (64,), (0,), MIB), [[4, 16]], merge=merge, instruction_set=instructions)
        assert answer.enumerated.count == total and answer.agree is True
        assert answer.enumerated.program is not None


def test_every_hierarchy_agrees() -> None:
    given = problem(System(THREE_LEVELS.levels[:2]), (2, 4), (1,), 64 * MIB)
    for hierarchy in ("reduction", "reduction-factors", "rows", "columns"):
        for answer in compare(given, hierarchy=hierarchy, steps=4):
            assert answer.agree is True


def test_what_does_not_finish_is_not_agreement() -> None:
    answers = compare(problem(A100, (8, 2, 4), (0, 2), MIB), time_limit=1e-6)
    assert agree(answers) is None and all(answer.agree is None for answer in answers)
    assert all(not answer.enumerated.finished for answer in answers)


def test_disagreement_is_said() -> None:
    (answer,) = compare(problem(A100, (64,), (0,), MIB), [[4, 16]])
    from dataclasses import replace

    wrong = replace(answer, solved=replace(answer.solved, cost=(answer.solved.cost or 0) - 1))
    assert wrong.agree is False and agree([answer, wrong]) is False and agree([answer]) is True


def test_large_replicas_are_refused_by_enumeration_and_said() -> None:
    system = System([Level("a", 64, 10**9), Level("b", 64, 10**9)])
    (answer,) = compare(problem(system, (4096,), (0,), MIB), [[64, 64]])
    assert answer.agree is None and "1024" in str(answer.enumerated.reason)
    assert answer.solved.status is Status.OPTIMAL


def test_cheapest_first_is_sorted_and_complete() -> None:
    given = problem(A100, (64,), (0,), MIB)
    found = enumerate_programs(given, [[4, 16]])
    costs = [cost for cost, _ in found]
    assert len(found) == len({program for _, program in found}) == 93 and costs == sorted(costs)
    lowering = lower(given, [[4, 16]])
    prices = Prices(AlphaBeta(), lowering, given.reduction.payload)
    assert all(prices.program(program) == cost for cost, program in found)
    graph = StateGraph(target_of(lowering))
    assert {program for _, program in found} == set(all_programs(graph, 5))
    first = next(cheapest_programs(graph, prices, 5))
    assert first[0] == count_programs(graph, prices, 5).cost


def test_inclusions_of_the_models_example() -> None:
    system = System([Level("a", 2, 1), Level("b", 4, 1)])
    given = Problem(system, axes(4, 2), Reduction(["a0", "a1"], MIB))
    (placement,) = [one for one in placements(system, given.axes) if one.matrix == ((1, 4), (2, 1))]
    found = inclusions(given, placement, "p2")
    assert len(found.programs["columns"]) == len(found.programs["rows"]) == 47
    assert found.lacks("columns", "rows") > 0 and found.lacks("rows", "columns") > 0


@pytest.mark.parametrize("matrix", [((2, 2), (1, 2)), ((1, 4), (2, 1))])
def test_inclusions_of_one_axis_are_the_papers(matrix: tuple[tuple[int, ...], ...]) -> None:
    system = System([Level("a", 2, 1), Level("b", 4, 1)])
    given = Problem(system, axes(4, 2), Reduction(["a0"], MIB))
    (placement,) = [one for one in placements(system, given.axes) if one.matrix == matrix]
    found = inclusions(given, placement, "p2")
    for wide, narrow in [("reduction", "rows"), ("rows", "columns"), ("columns", "system")]:
        assert found.lacks(wide, narrow) == 0


def test_a_hierarchy_that_cannot_tell_parts_apart_has_no_programs() -> None:
    given, matrix = problem(A100, (8, 8), (0,), MIB), [[2, 4], [2, 4]]
    (answer,) = compare(given, matrix, hierarchy="system")
    assert answer.enumerated.count == 0 and answer.solved.status is Status.INFEASIBLE and answer.agree is True
    with pytest.raises(InputError, match="part of a level"):
        enumerate_programs(given, matrix, hierarchy="system")
