"""The joint optimum against brute force, constraints and their conflicts, defaults, bounds."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random
from time import perf_counter

import pytest
from conftest import A100, THREE

import smtsynth
from smtsynth import InputError, Level, Limits, Reduction, Status, System, read_workload
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.cost.traffic import traffic_cost
from smtsynth.meaning.goals import Target, target_of
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import Placement, placements
from smtsynth.model.program import Collective, default_steps
from smtsynth.model.workload import Constraint, NamedReduction, Pattern, Traffic, Workload
from smtsynth.search.changes import FACTORS, answer, changes
from smtsynth.search.defaults import default_matrices, order_matrix
from smtsynth.search.enumerate import StateGraph, enumerate_programs
from smtsynth.search.loop import Resources
from smtsynth.search.rows import RowTable
from smtsynth.search.solve import Options
from smtsynth.search.why import best_plain, defaults, innermost, runners_up
from smtsynth.search.workload import (
    Tables,
    achieved,
    best_matrix,
    conflict,
    lower_bound,
    solve_on,
    solve_workload,
)
from smtsynth.solvers.outcome import Answer

MIB = 2**20
TINY = System(
    [Level("rack", 2, "5 GB/s", "20 us"), Level("node", 3, "25 GB/s", "8 us"), Level("gpu", 4, "200 GB/s", "2 us")]
)


class Brute:
    """Costs by the enumerator, over the real placements, one after the other."""

    def __init__(self) -> None:
        self.graphs: dict[Target, StateGraph] = {}

    def reduction(self, workload: Workload, one: NamedReduction, placement: Placement) -> int:
        problem = workload.problem(one)
        lowering = lowering_of(problem, placement)
        goal = target_of(lowering, one.reduction.collective, problem.split)
        graph = self.graphs.setdefault(goal, StateGraph(goal))
        prices = Prices(AlphaBeta(), lowering, one.reduction.payload, goal.collective)
        steps = workload.limits.steps or default_steps(lowering.depth)
        cost = enumerate_programs(graph, prices, steps).cost
        assert cost is not None
        return cost

    def step(self, workload: Workload, placement: Placement) -> int:
        total = sum(one.count * self.reduction(workload, one, placement) for one in workload.reductions)
        for one in workload.traffic:
            row = placement.matrix[workload.row(one.axis)]
            total += one.count * traffic_cost(workload.system, row, one.pattern, one.payload).nanoseconds
        return total

    def best(self, workload: Workload) -> int | None:
        allowed = [one for one in placements(workload.system, workload.axes) if not workload.broken(one.matrix)]
        return min((self.step(workload, one) for one in allowed), default=None)


BRUTE = Brute()
COLLECTIVES = ["AllReduce", "AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Reduce"]


def workloads(count: int) -> list[Workload]:
    """Seeded workloads of up to 64 devices: two or three axes, one to three reductions, traffic, constraints."""
    seeded, found = Random(11), []
    while len(found) < count:
        system, sizes = seeded.choice(
            [
                (A100, (4, 16)),
                (A100, (8, 2, 4)),
                (A100, (2, 2, 16)),
                (THREE, (8, 8)),
                (THREE, (4, 4, 4)),
                (THREE, (2, 32)),
                (TINY, (6, 4)),
                (TINY, (2, 3, 4)),
                (TINY, (12, 2)),
            ]
        )
        axes = {f"a{n}": size for n, size in enumerate(sizes)}
        names = list(axes)
        reductions = []
        for number in range(seeded.randint(1, 3)):
            over = seeded.sample(names, seeded.choice([1, 1, 2]))
            kind: str | dict[str, str] = seeded.choice(COLLECTIVES)
            if len(over) == 2 and len(system.levels) == 2 and seeded.random() < 0.4:
                kind = {over[0]: "ReduceScatter", over[1]: "AllReduce"}
            payload = seeded.choice([64 * 1024, MIB, 37 * MIB + 1, 512 * MIB])
            reductions.append(NamedReduction(f"r{number}", Reduction(over, payload, kind), seeded.randint(1, 9)))
        traffic = []
        if seeded.random() < 0.4:
            pattern = seeded.choice(list(Pattern))
            traffic.append(Traffic("t", seeded.choice(names), pattern, seeded.choice([MIB, 64 * MIB]), 3))
        constraints = []
        if seeded.random() < 0.4:
            level = seeded.choice([one.name for one in system.levels[:-1]])
            constraints.append(seeded.choice([Constraint(names[-1], inside=level), Constraint(names[0], unsplit=True)]))
        found.append(Workload(system, axes, reductions, traffic, constraints, Limits(steps=4)))
    return found


@pytest.mark.parametrize("number", range(30))
def test_joint_optimum_is_the_best_of_all_placements(number: int) -> None:
    workload = workloads(30)[number]
    best = BRUTE.best(workload)
    found = solve_workload(workload, Options(), Resources())
    if best is None:
        assert found.status is Status.INFEASIBLE and found.conflict
        return
    assert found.status is Status.OPTIMAL and found.cost == best == found.lower_bound
    assert found.placement is not None and not workload.broken(found.placement.matrix)
    assert found.loop[-1].answer is Answer.UNSAT and found.loop[-1].bound == best
    assert BRUTE.step(workload, found.placement) == best
    assert found.cost == sum(one.total or 0 for one in found.reductions) + sum(
        one.count * cost for one, cost in found.traffic
    )


@pytest.mark.full
@pytest.mark.parametrize("number", range(30, 90))
def test_joint_optimum_on_more_workloads(number: int) -> None:
    workload = workloads(90)[number]
    best = BRUTE.best(workload)
    found = solve_workload(workload, Options(), Resources())
    assert found.cost == best and found.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)


def test_a_row_costs_what_its_placements_cost() -> None:
    for workload in workloads(10):
        for placement in placements(workload.system, workload.axes):
            for one in workload.reductions:
                table = RowTable(workload.problem(one), Options())
                bounds = table.evaluate(table.rows.of(placement.matrix), Resources())
                assert bounds.exact and bounds.high == BRUTE.reduction(workload, one, placement)


def demand(*constraints: Constraint) -> Workload:
    return Workload(
        A100, {"data": 8, "tensor": 8}, [NamedReduction("grads", Reduction(["data"], MIB))], (), constraints
    )


def test_constraints_that_cannot_all_hold_are_named() -> None:
    inside, pinned = Constraint("tensor", inside="node"), Constraint("tensor", level="node", factor=2)
    harmless = Constraint("data", unsplit=False, level="gpu", factor=2)
    found = solve_workload(demand(harmless, inside, pinned), Options(), Resources())
    assert found.status is Status.INFEASIBLE and found.conflict == (inside, pinned)
    assert found.reason == "these constraints can't all hold: tensor inside node; tensor 2 at node"
    assert conflict(demand(inside, harmless), Resources()) is None
    alone = Constraint("data", level="node", factor=3)
    assert conflict(demand(alone, inside), Resources()) == (alone,)


def test_constraints_are_obeyed_and_cost() -> None:
    free = solve_workload(demand(), Options(), Resources())
    bound = solve_workload(demand(Constraint("data", level="node", factor=4)), Options(), Resources())
    assert free.cost is not None and bound.cost is not None and free.cost < bound.cost
    assert bound.placement is not None and bound.placement.matrix[0][0] == 4
    spread = solve_workload(demand(Constraint("data", unsplit=True)), Options(), Resources())
    assert spread.placement is not None and sum(entry > 1 for entry in spread.placement.matrix[0]) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"inside": "gpu", "unsplit": True},
        {"level": "gpu"},
        {"factor": 2},
        {"inside": "gpu", "level": "gpu", "factor": 2},
    ],
)
def test_unclear_constraints(bad: dict[str, object]) -> None:
    with pytest.raises(InputError, match="unclear"):
        Constraint("data", **bad)  # type: ignore[arg-type]


def test_bad_workloads() -> None:
    one = NamedReduction("grads", Reduction(["data"], MIB))
    for arguments, match in [
        ({"reductions": []}, "no reductions"),
        ({"reductions": [one, one]}, "two entries are named 'grads'"),
        ({"reductions": [NamedReduction("x", Reduction(["model"], MIB))]}, "no axis 'model'"),
        ({"constraints": [Constraint("data", inside="rack")]}, "no level 'rack'"),
        ({"constraints": [Constraint("pipe", unsplit=True)]}, "no axis 'pipe'"),
        ({"traffic": [Traffic("grads", "data", "all-to-all", MIB)]}, "two entries are named"),
    ]:
        with pytest.raises(InputError, match=match):
            Workload(A100, {"data": 64}, **{"reductions": [one], **arguments})  # type: ignore[arg-type]
    for count in (-1, 0, 1.5, True, 10**30):
        with pytest.raises(InputError, match="count is"):
            NamedReduction("grads", Reduction(["data"], MIB), count)  # type: ignore[arg-type]


def test_orders() -> None:
    axes = demand().axes
    assert order_matrix(A100, axes, [1, 0]) == ((4, 2), (1, 8))
    assert order_matrix(A100, axes, [0, 1]) == ((1, 8), (4, 2))
    uneven = System([Level("node", 4, 1), Level("gpu", 6, 1)])
    eight = Workload(uneven, {"a": 3, "b": 8}, [NamedReduction("r", Reduction(["a"], 1))]).axes
    assert order_matrix(uneven, eight, [1, 0]) is None, "8 devices cut a level of 6 unevenly"


@pytest.mark.parametrize("number", range(12))
def test_default_matrices_number_devices_through_the_axes(number: int) -> None:
    """With the first axis outermost, device ids are the mixed radix of the axis coordinates."""
    workload = workloads(12)[number]
    rows = list(range(len(workload.axes)))
    matrix = order_matrix(workload.system, workload.axes, rows[::-1])
    step = 1
    for row in rows[::-1] if matrix is not None else []:
        assert matrix is not None
        one = NamedReduction("r", Reduction([workload.axes[row].name], MIB))
        if workload.axes[row].size > 1:
            lowering = lowering_of(workload.problem(one), Placement(workload.axes, matrix))
            group = lowering.devices[0].tolist()
            assert group == [step * n for n in range(workload.axes[row].size)]
        step *= workload.axes[row].size
    assert len(default_matrices(workload)) >= 2


def workload_reductions(axis: str) -> list[NamedReduction]:
    return [NamedReduction("r", Reduction([axis], MIB))]


def test_megatron_order_is_named_where_the_axes_are_megatrons() -> None:
    workload = Workload(A100, {"dp": 8, "tp": 8}, [NamedReduction("r", Reduction(["dp"], MIB))])
    names = dict(default_matrices(workload))
    (name,) = [one for one in names if "Megatron" in one]
    assert names[name] == ((4, 2), (1, 8))
    sharded = Workload(A100, {"replicate": 4, "shard": 4, "tensor": 4}, workload_reductions("shard"))
    assert dict(default_matrices(sharded))[name] == ((4, 1), (1, 4), (1, 4))
    other = Workload(A100, {"x": 64}, [NamedReduction("r", Reduction(["x"], MIB))])
    assert not any("Megatron" in one for one, _ in default_matrices(other))


def test_runners_up_are_other_placements() -> None:
    tables = Tables(demand(), Options())
    first = best_matrix(tables, [], (), Resources())
    assert first.matrix is not None and first.refuted
    second = best_matrix(tables, [], [first.matrix], Resources())
    assert second.matrix not in (None, first.matrix) and (second.cost or 0) >= (first.cost or 0)


def test_lower_bound_by_bisection_never_passes_the_optimum() -> None:
    for workload in workloads(8):
        tables = Tables(workload, Options())
        best = best_matrix(tables, [], (), Resources())
        if best.cost is None:
            continue
        bound, queries = lower_bound(tables, best.cost, Resources())
        assert bound == best.cost and all(one.answer is Answer.UNSAT for one in queries[:1])
        fresh, _ = lower_bound(Tables(workload, Options()), best.cost, Resources())
        assert 0 <= fresh <= best.cost


def test_no_time_is_unknown_or_feasible() -> None:
    found = solve_workload(demand(), Options(), Resources(deadline=0.0))
    assert found.status in (Status.UNKNOWN, Status.FEASIBLE) and found.reason is not None


def test_goals_of_a_workload_are_priced_by_their_collective() -> None:
    for collective in Collective:
        one = NamedReduction("r", Reduction(["data"], MIB, collective))
        workload = Workload(A100, {"data": 8, "tensor": 8}, [one])
        assert solve_workload(workload, Options(), Resources()).cost == BRUTE.best(workload)


def test_changes_are_where_the_lines_cross() -> None:
    """Between two changes the answer found stays the best; just beyond them the next one is."""
    one = NamedReduction("grads", Reduction(["data"], 4 * MIB))
    two = NamedReduction("acts", Reduction(["tensor"], 64 * MIB, "ReduceScatter"), 3)
    workload = Workload(THREE, {"data": 8, "tensor": 8}, [one, two], limits=Limits(steps=5))
    pieces = changes(workload, Options(), Resources())
    assert len(pieces) >= 3, "no change found"
    assert [piece.start for piece in pieces] == sorted({piece.start for piece in pieces})
    for piece, after in zip(pieces, [*pieces[1:], None], strict=True):
        end = after.start if after is not None else FACTORS[1]
        for factor in ((piece.start * 3 + end) / 4, (piece.start + end) / 2, (piece.start + end * 3) / 4):
            best = answer(workload, factor, Options(), Resources())
            assert best is not None and abs(best.at(factor) - piece.at(factor)) < Fraction(1, 10**6)
        if after is not None:
            assert piece.at(after.start) == after.at(after.start) and piece.slope > after.slope


def test_why_names_costs_that_brute_force_has() -> None:
    workload = demand()
    tables = Tables(workload, Options())
    best = best_matrix(tables, (), (), Resources())
    assert best.matrix is not None
    every = sorted(BRUTE.step(workload, one) for one in placements(workload.system, workload.axes))
    assert [one.cost for one in runners_up(tables, best.matrix, 2, Resources())] == every[1:3]
    for one in defaults(tables, Resources()):
        assert one.matrix is not None
        assert one.cost == BRUTE.step(workload, Placement(workload.axes, one.matrix))
    for axis, one in innermost(tables, best.matrix, Resources()):
        row = workload.row(axis)
        allowed = [p for p in placements(workload.system, workload.axes) if p.matrix[row][-1] == 8]
        assert one.cost == min(BRUTE.step(workload, placement) for placement in allowed)
    alone = best_plain(tables, best.matrix, Resources())
    assert alone.plain is not None and alone.plain >= (best.cost or 0)


def test_the_api_solves_a_file_s_workload() -> None:
    workload = read_workload(Path(__file__).parents[1] / "examples" / "workloads" / "hsdp-64.yaml")
    said: list[str] = []
    found = smtsynth.solve_workload(workload, solver="z3", steps=5, progress=said.append)
    assert found.status is Status.OPTIMAL and found.cost == solve_workload(workload, Options(steps=5), Resources()).cost
    assert found.placement is not None and said
    late = smtsynth.solve_workload(workload, time_limit=1e-9)
    assert late.status in (Status.FEASIBLE, Status.UNKNOWN) and late.reason


def test_why_says_what_a_limit_left_out() -> None:
    workload = workloads(8)[0]
    found = solve_workload(workload, Options(), Resources())
    assert found.placement is not None and found.tables is not None
    winner, late = found.placement.matrix, Resources(deadline=perf_counter() - 1)
    for one in (
        *runners_up(found.tables, winner, 3, late),
        *(choice for _, choice in innermost(found.tables, winner, late)),
        best_plain(found.tables, winner, late),
        *(choice for choice in defaults(found.tables, late) if choice.matrix is not None),
    ):
        assert one.cost is None and one.reason and "time limit" in one.reason
    for one in runners_up(found.tables, winner, 3, Resources()):
        assert one.cost is not None and one.reason is None


def test_as_much_innermost_as_the_constraints_allow() -> None:
    system = System([Level("node", 2, "10 GB/s"), Level("gpu", 8, "100 GB/s")])
    pinned = Constraint("replicate", level="node", factor=2)
    workload = Workload(system, {"replicate": 4, "shard": 4}, workload_reductions("shard"), constraints=[pinned])
    tables = Tables(workload, Options())
    found = dict(innermost(tables, ((2, 2), (1, 4)), Resources()))
    assert found["replicate"].matrix == ((2, 2), (1, 4)) and "(2 at gpu)" in found["replicate"].name
    assert found["shard"].matrix == ((2, 2), (1, 4)) and found["shard"].cost is not None


def test_a_late_answer_is_no_worse_than_what_was_found() -> None:
    """The programs that the tables know are kept where no time is left to look again."""
    workload = workloads(8)[3]
    tables = Tables(workload, Options())
    best = best_matrix(tables, (), (), Resources())
    assert best.matrix is not None and best.cost is not None
    late = solve_on(tables, best.matrix, Resources(deadline=perf_counter() - 1))
    traffic = sum(one.flow.count * achieved(one, one.rows.of(best.matrix)) for one in tables.flows)
    assert sum(one.total or 0 for one in late) + traffic == best.cost
    assert all(one.solution.status is not Status.OPTIMAL for one in late if one.solution.cost)


def test_a_lower_bound_takes_no_time() -> None:
    for workload in workloads(12):
        found = solve_workload(workload, Options(), Resources())
        if found.tables is not None and found.cost:
            bound, _ = lower_bound(found.tables, found.cost, Resources(deadline=perf_counter() - 1))
            assert 0 < bound <= found.cost
