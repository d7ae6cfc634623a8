"""Rows: all that a cost depends on in a placement, on switches and on other wiring."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import pytest
from conftest import A100, THREE

from smtsynth import InputError, Level, Limits, Reduction, Status, System
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.interface import CostModel
from smtsynth.cost.paper import Paper
from smtsynth.cost.patterns import nanoseconds
from smtsynth.cost.prices import Prices
from smtsynth.cost.traffic import traffic_cost
from smtsynth.cost.wired_traffic import traffic_step
from smtsynth.encode.clauses import Clauses
from smtsynth.encode.placement import encode
from smtsynth.encode.workload import is_row
from smtsynth.meaning.goals import Target, target_of
from smtsynth.model.choice import CostChoice
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import Axis, Placement, placements
from smtsynth.model.problem import Problem
from smtsynth.model.program import default_steps, instruction_set
from smtsynth.model.rows import Rows, divisors, vectors
from smtsynth.model.topology import Link, LinkKind, Topology
from smtsynth.model.workload import NamedReduction, Pattern, Traffic, Workload
from smtsynth.search.enumerate import StateGraph, enumerate_programs
from smtsynth.search.loop import Resources
from smtsynth.search.solve import Options
from smtsynth.search.workload import solve_workload
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.sat import solve_dimacs

MIB = 2**20
RING = System([Level("node", 4, "10 GB/s", "9 us"), Level("gpu", 4, "50 GB/s", "2 us", kind="ring")])
TORUS = System([Level("pod", 2, "5 GB/s", "20 us"), Level("chip", 8, "40 GB/s", "1 us", kind="torus", dims=[4, 2])])
BOTH = System(
    [Level("rack", 4, "8 GB/s", "5 us", kind="ring"), Level("node", 2, "12 GB/s"), Level("gpu", 2, 90e9, kind="full")]
)
HALF = System([Level("node", 4, "10 GB/s", "9 us", duplex="half"), Level("gpu", 4, "50 GB/s")], copy="200 GB/s")
LINKS = System(
    [Level("box", 2, "1 GB/s"), Level("gpu", 4, "1 GB/s")],
    topology=Topology(
        [LinkKind("near", "40 GB/s", "1 us"), LinkKind("far", "5 GB/s", "9 us")],
        [Link(one, one + 1, "near") for one in (0, 1, 2, 4, 5, 6)] + [Link(0, 4, "far"), Link(2, 6, "far")],
        forwards=True,
    ),
)
SYSTEMS = [RING, TORUS, BOTH, HALF, LINKS]


def axes_of(*sizes: int) -> tuple[Axis, ...]:
    return tuple(Axis(f"a{number}", size) for number, size in enumerate(sizes))


def sizes_of(system: System) -> tuple[int, ...]:
    return {16: (2, 4, 2), 8: (2, 2, 2)}[system.devices]


def kinds(system: System) -> Iterator[tuple[Reduction, tuple[Axis, ...]]]:
    axes = axes_of(*sizes_of(system))
    for over in (["a0"], ["a1"], ["a2"], ["a0", "a2"], ["a1", "a2"]):
        yield Reduction(over, MIB), axes
    yield Reduction(["a0", "a2"], MIB, {"a0": "ReduceScatter", "a2": "AllReduce"}), axes


def test_vectors_and_divisors() -> None:
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
    for size in (1, 6, 8, 24):
        wanted = [(a, b, c) for a in (1, 2) for b in (1, 3) for c in (1, 2, 4) if a * b * c == size]
        assert sorted(vectors(size, (2, 3, 4))) == sorted(wanted)
        assert sorted(vectors(size, (2, 3, 4), [None, 3, None])) == sorted(one for one in wanted if one[1] == 3)


@pytest.mark.parametrize("system", [A100, THREE, *SYSTEMS], ids=lambda one: "x".join(map(str, one.sizes)))
def test_rows_are_those_of_all_placements(system: System) -> None:
    sizes = {64: (4, 2, 8)}.get(system.devices) or sizes_of(system)
    for reduction, axes in kinds(RING):
        problem = Problem(system, axes_of(*sizes[: len(axes)]), reduction)
        rows = Rows.of_problem(problem)
        every = rows.every
        assert len(set(every)) == len(every)
        assert {rows.of(placement.matrix) for placement in placements(system, problem.axes)} <= set(every)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda one: "x".join(map(str, one.sizes)))
def test_a_stand_in_costs_what_all_placements_with_its_row_cost(system: System) -> None:
    models: list[CostModel] = [AlphaBeta(), AlphaBeta("alpha-beta (tree)", "tree"), Paper()]
    seeded, seen = Random(5), set()
    for reduction, axes in kinds(system):
        problem = Problem(system, axes, reduction)
        rows = Rows.of_problem(problem)
        for placement in placements(system, axes):
            row = rows.of(placement.matrix)
            stand_in, other = rows.problem(problem, row)
            assert Rows.of_problem(stand_in).of(other.matrix)[:2] == row[:2]
            here, there = lowering_of(problem, placement), lowering_of(stand_in, other)
            assert here.sizes == there.sizes and [one.level for one in here.factors] == [
                one.level for one in there.factors
            ]
            if not here.depth:
                continue
            model = seeded.choice(models)
            for instruction in seeded.sample(instruction_set(here.depth, "full"), 4):
                share = Fraction(seeded.randint(1, 10**6))
                assert model.price(here, instruction, share) == model.price(there, instruction, share)
            seen.add(row)
    assert len(seen) > 5


def test_where_neighbours_matter_rows_tell_placements_apart() -> None:
    axes, matrix = axes_of(4, 2, 2), ((4, 1), (1, 2), (1, 2))  # a1 joins GPUs two apart, a2 neighbours
    apart, near = Rows(RING, axes, (1,)).of(matrix), Rows(RING, axes, (2,)).of(matrix)
    assert apart.factors == near.factors and apart.strides != near.strides
    switched = System([Level(one.name, one.size, one.bandwidth, one.latency) for one in RING.levels])
    assert Rows(switched, axes, (1,)).of(matrix) == Rows(switched, axes, (2,)).of(matrix)
    price = {
        over: AlphaBeta().price(
            lowering_of(Problem(RING, axes, Reduction([over], MIB)), Placement(axes, matrix)),
            instruction_set(1, "full")[0],
            Fraction(MIB),
        )
        for over in ("a1", "a2")
    }
    assert price["a1"] > price["a2"]


@pytest.mark.parametrize("system", [RING, TORUS, A100], ids=["ring", "torus", "a100"])
def test_literals_of_a_row_hold_for_its_matrices_only(system: System) -> None:
    axes = axes_of(*({64: (4, 2, 8)}.get(system.devices) or sizes_of(system)))
    rows = Rows(system, axes, (0, 2), (2,))
    every = placements(system, axes)
    for row in rows.every:
        clauses = Clauses()
        matrix = encode(axes, system, clauses)
        for literal in is_row(matrix, rows, row):
            clauses.add(literal)
        found = set()
        while (outcome := solve_dimacs(clauses.dimacs(), "z3")).answer is Answer.SAT:
            found.add(matrix.decode(outcome.true))
            matrix.block(Placement(axes, matrix.decode(outcome.true)))
        assert found == {one.matrix for one in every if rows.of(one.matrix) == row}


@pytest.mark.parametrize("pattern", list(Pattern))
def test_traffic_message_by_message_is_the_closed_form(pattern: Pattern) -> None:
    levels = [Level("a", 2, "3 GB/s", "7 us", "1 GB/s"), Level("b", 3, "11 GB/s", "2 us"), Level("c", 2, 10**11)]
    plain, copied = System(levels, overhead="1 us"), System(levels, overhead="1 us", copy="10 GB/s")
    axes = axes_of(2, 3, 2)
    for placement in placements(plain, axes):
        for axis in range(3):
            closed = traffic_cost(plain, placement.matrix[axis], pattern, Fraction(MIB))
            assert traffic_step(plain, placement, axis, pattern, Fraction(MIB)) == closed
            found = traffic_step(copied, placement, axis, pattern, Fraction(MIB))
            part = Fraction(1) if pattern is Pattern.POINT_TO_POINT else 1 - Fraction(1, axes[axis].size)
            assert (found.latency, found.transfer) == (closed.latency, closed.transfer)
            copying = part * MIB / 10**10
            assert found.nanoseconds == nanoseconds(Fraction(1, 10**6) + closed.latency + closed.transfer + copying)


def test_traffic_round_a_ring() -> None:
    axes = axes_of(4, 4)
    near = Placement(axes, ((4, 1), (1, 4)))
    once = traffic_step(RING, near, 1, Pattern.POINT_TO_POINT, Fraction(10**6))
    assert once.transfer == Fraction(10**6, 50 * 10**9) and once.latency == Fraction(2, 10**6)
    every = traffic_step(RING, near, 1, Pattern.ALL_TO_ALL, Fraction(10**6))
    # each way round, a link carries the message between its ends, and two of those between devices two apart
    assert every.transfer == Fraction(3, 4) * Fraction(10**6, 50 * 10**9) and every.latency == Fraction(4, 10**6)
    assert (
        traffic_step(RING, Placement(axes_of(1, 16), ((1, 1), (4, 4))), 0, Pattern.ALL_TO_ALL, Fraction(1)).nanoseconds
        == 0
    )


def brute(workload: Workload, model: CostModel) -> int:
    """The best step by the enumerator over every placement."""
    graphs: dict[Target, StateGraph] = {}
    costs = []
    for placement in placements(workload.system, workload.axes):
        total = 0
        for one in workload.reductions:
            problem = workload.problem(one)
            lowering = lowering_of(problem, placement)
            goal = target_of(lowering, one.reduction.collective, problem.split)
            graph = graphs.setdefault(goal, StateGraph(goal))
            prices = Prices(model, lowering, one.reduction.payload, goal.collective)
            steps = workload.limits.steps or default_steps(lowering.depth)
            cost = enumerate_programs(graph, prices, steps).cost if lowering.depth else 0
            assert cost is not None
            total += one.count * cost
        for flow in workload.traffic:
            axis = workload.row(flow.axis)
            step = traffic_step(workload.system, placement, axis, flow.pattern, flow.payload)
            total += flow.count * step.nanoseconds
        costs.append(total)
    return min(costs)


@pytest.mark.parametrize("number", range(10))
def test_joint_optimum_on_other_wiring_is_the_best_of_all_placements(number: int) -> None:
    seeded = Random(number)
    system, model = SYSTEMS[number % len(SYSTEMS)], [AlphaBeta(), AlphaBeta("alpha-beta (tree)", "tree")][number % 2]
    axes = axes_of(*sizes_of(system))
    mix = {"a2": "AllReduce", "a0": "ReduceScatter"}
    kinds: list[str | dict[str, str]] = ["AllReduce", "ReduceScatter", "Broadcast", "AllGather"]
    one, two = seeded.sample(kinds, 2)
    reductions = [
        NamedReduction("r", Reduction(seeded.sample(["a0", "a1", "a2"], 1), seeded.choice([2**16, 32 * MIB]), one)),
        NamedReduction("s", Reduction(["a0", "a2"], seeded.choice([2**16, 32 * MIB]), mix if number % 3 else two), 2),
    ]
    traffic = [Traffic("t", "a0", seeded.choice(list(Pattern)), 8 * MIB, 3)]
    workload = Workload(system, axes, reductions, traffic, limits=Limits(steps=3))
    found = solve_workload(workload, Options(cost_model=model), Resources())
    assert found.status is Status.OPTIMAL and found.cost == found.lower_bound == brute(workload, model)


def test_the_paper_s_model_prices_workloads_without_traffic() -> None:
    reductions = [NamedReduction("r", Reduction(["a0"], MIB)), NamedReduction("s", Reduction(["a1"], 4 * MIB), 2)]
    workload = Workload(A100, axes_of(8, 8), reductions, limits=Limits(steps=3), cost_model=CostChoice("paper"))
    found = solve_workload(workload, Options(cost_model=Paper()), Resources())
    assert found.status is Status.OPTIMAL and found.cost == brute(workload, Paper())
    more = Workload(A100, workload.axes, reductions, [Traffic("t", "a0", Pattern.ALL_TO_ALL, MIB)])
    with pytest.raises(InputError, match="paper doesn't price given traffic"):
        solve_workload(more, Options(cost_model=Paper()), Resources())
