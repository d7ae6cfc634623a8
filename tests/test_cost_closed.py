"""Closed forms against explicit groups, lower bounds against prices, and the bound below every schedule."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smtsynth.cost.alphabeta import AlphaBeta, simulate_program, simulate_schedule
from smtsynth.cost.bound import any_schedule_bound
from smtsynth.cost.interface import CostModel, GroupLoad
from smtsynth.cost.shares import group_types
from smtsynth.model.lowering import HIERARCHIES, Lowering, lower
from smtsynth.model.placement import Axis, check_placement
from smtsynth.model.program import Collective, Instruction, Program, Span, instruction_set, named
from smtsynth.model.system import Level, System

Case = tuple[Lowering, Instruction, dict[int, Fraction]]
MODEL: CostModel = AlphaBeta()
RATES = st.fractions(min_value="1/3", max_value=9, max_denominator=7)
BYTES = st.fractions(0, 40, max_denominator=6)


def levels_of(sizes: list[int], rates: list[tuple[Fraction, Fraction, Fraction | None]]) -> list[Level]:
    return [Level(f"l{i}", size, *rate) for i, (size, rate) in enumerate(zip(sizes, rates, strict=True))]


@st.composite
def lowerings(draw: st.DrawFn, most: int = 96) -> Lowering:
    """2 to 4 levels, some of size 1, up to 3 axes, any reduction and hierarchy, with at least one factor."""
    rows = draw(st.integers(1, 3))
    matrix = [
        [draw(st.sampled_from([1, 1, 2, 2, 3, 4] if rows > 1 else [1, 2, 3, 4, 5, 6])) for _ in range(rows)]
        for _ in range(draw(st.integers(2, 4)))
    ]
    sizes = [math.prod(column) for column in matrix]
    assume(math.prod(sizes) <= most)
    rates = [
        (draw(RATES), draw(st.one_of(st.just(Fraction(0)), RATES)), draw(st.one_of(st.none(), RATES))) for _ in sizes
    ]
    system = System(levels_of(sizes, rates), draw(st.sampled_from(["0 s", "3 us", "0.7 ns"])))
    by_axis = [list(row) for row in zip(*matrix, strict=True)]
    axes = [Axis(f"a{i}", math.prod(row)) for i, row in enumerate(by_axis)]
    reduced = draw(st.sets(st.integers(0, rows - 1), min_size=1))
    result = lower(system, check_placement(by_axis, axes, system), sorted(reduced), draw(st.sampled_from(HIERARCHIES)))
    assume(result.depth > 0)
    return result


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A lowering, one of its instructions, and a share of its own for every group type."""
    where = draw(lowerings())
    instruction = draw(st.sampled_from(instruction_set(where.depth)))
    types = group_types(where.depth, instruction.span(where.depth))
    few = draw(st.lists(BYTES, min_size=1, max_size=4))  # so that ties come up as well
    return where, instruction, {mask: draw(st.sampled_from(few)) for mask in types}


def types_of_groups(where: Lowering, instruction: Instruction) -> list[int]:
    """The type of every synthesis group, from its first device's digits."""
    span = instruction.span(where.depth)
    digits = np.array(np.unravel_index(where.groups(instruction)[:, 0], where.sizes)).T
    outside = [f for f in range(where.depth) if not span.start <= f < span.stop]
    return [sum(1 << f for f in outside if row[f]) for row in digits.tolist()]


def explicit(where: Lowering, instruction: Instruction, shares: dict[int, Fraction]) -> GroupLoad:
    types = types_of_groups(where, instruction) * where.replicas
    payloads = [shares[mask] for mask in types]
    return GroupLoad(instruction.collective, where.device_groups(instruction), (), payloads)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(cases())
def test_closed_form_equals_explicit_groups(case: Case) -> None:
    check_closed_form(*case)


@pytest.mark.full
@settings(derandomize=True, deadline=None, max_examples=2000)
@given(cases())
def test_closed_form_equals_many_explicit_groups(case: Case) -> None:
    check_closed_form(*case)


def check_closed_form(where: Lowering, instruction: Instruction, shares: dict[int, Fraction]) -> None:
    """Costs and prices in closed form are those of the explicit groups, for these shares and for equal ones."""
    expected = MODEL.step(where.system, [explicit(where, instruction, shares)])
    assert MODEL.explain(where, instruction, shares) == expected
    assert MODEL.price(where, instruction, shares) == expected.nanoseconds
    one = dict.fromkeys(shares, shares[0])
    expected = MODEL.step(where.system, [explicit(where, instruction, one)])
    assert MODEL.explain(where, instruction, shares[0]) == expected
    assert MODEL.price(where, instruction, shares[0]) == MODEL.price(where, instruction, one) == expected.nanoseconds


FIXED = [
    ([[1, 2, 3], [2, 1, 2]], [0]),
    ([[1, 2, 3], [2, 1, 2]], [1]),
    ([[2, 3], [3, 1], [1, 2]], [0, 2]),
    ([[2, 1, 2, 2], [1, 3, 1, 2]], [0, 1]),
]


@pytest.mark.parametrize("hierarchy", HIERARCHIES)
@pytest.mark.parametrize(("matrix", "reduced"), FIXED)
def test_every_instruction_in_every_hierarchy(matrix: list[list[int]], reduced: list[int], hierarchy: str) -> None:
    sizes = [math.prod(column) for column in zip(*matrix, strict=True)]
    rates: list[tuple[Fraction, Fraction, Fraction | None]] = [
        (Fraction(5), Fraction(7), Fraction(2)),
        (Fraction(9), Fraction(3), None),
        (Fraction(11), Fraction(2), None),
        (Fraction(13, 3), Fraction(1), Fraction(4)),
    ]
    system = System(levels_of(sizes, rates[: len(sizes)]), "1 us")
    axes = [Axis(f"a{i}", math.prod(row)) for i, row in enumerate(matrix)]
    where = lower(system, check_placement(matrix, axes, system), reduced, hierarchy)
    instructions = instruction_set(where.depth)
    assert instructions
    for number, instruction in enumerate(instructions):
        types = group_types(where.depth, instruction.span(where.depth))
        shares = {mask: Fraction((mask * 7 + number * 3) % 11, 1 + mask % 3) for mask in types}
        expected = MODEL.step(system, [explicit(where, instruction, shares)])
        assert MODEL.explain(where, instruction, shares) == expected, instruction


@settings(derandomize=True, deadline=None, max_examples=80)
@given(cases(), BYTES)
def test_a_price_never_falls_when_shares_grow(case: Case, more: Fraction) -> None:
    where, instruction, shares = case
    price = MODEL.price(where, instruction, shares)
    for mask in shares:
        assert MODEL.price(where, instruction, shares | {mask: shares[mask] + more}) >= price
    assert MODEL.price(where, instruction, max(shares.values())) >= price


@settings(derandomize=True, deadline=None, max_examples=80)
@given(lowerings(60), st.data())
def test_programs_cost_the_same_by_classes_and_by_devices(where: Lowering, data: st.DataObject) -> None:
    """Any program, right or wrong, with different shares in one step: every step's whole cost is equal."""
    program = tuple(data.draw(st.lists(st.sampled_from(instruction_set(where.depth)), max_size=5)))
    by_class = simulate_program(MODEL, where, program, Fraction(1000, 3))
    schedule = where.schedule(program)
    assert simulate_schedule(MODEL, where.system, schedule, Fraction(1000, 3)) == by_class


def test_wrong_group_types_are_refused() -> None:
    system = System([Level("a", 2, 1), Level("b", 2, 1)])
    where = lower(system, check_placement([[2, 2]], [Axis("x", 4)], system), [0])
    master = named(Collective.ALL_REDUCE, Span(0, 1, True), 2)
    assert MODEL.price(where, master, {0: Fraction(2)}) == 2 * 10**9
    with pytest.raises(ValueError, match="group type 0"):
        MODEL.price(where, master, {2: Fraction(2)})


def counted_bound(where: Lowering, payload: Fraction) -> Fraction:
    """The bound by counting, unit by unit, the replicas with members on both sides."""
    system, bound = where.system, Fraction(0)
    for number, level in enumerate(system.levels):
        below = system.below(number)
        for unit in range(system.devices // below):
            inside = [[d for d in replica if d // below == unit] for replica in where.replica_groups]
            crossing = sum(0 < len(some) < len(all_) for some, all_ in zip(inside, where.replica_groups, strict=True))
            bound = max(bound, crossing * payload / level.bandwidth)
            if level.per_device is not None:
                bound = max(bound, crossing * payload / (below * level.per_device))
    return bound


def right_programs(depth: int) -> list[Program]:
    """Programs that reach the goal for all sizes: flat, and up and down the levels in three ways."""
    up, middle, down = Collective.REDUCE_SCATTER, Collective.ALL_REDUCE, Collective.ALL_GATHER
    programs: list[Program] = []
    for cut in range(1, depth):
        inside, across = Span(cut, depth, False), Span(0, cut, False)
        programs.append((named(up, inside, depth), named(middle, across, depth), named(down, inside, depth)))
        programs.append((named(middle, inside, depth), named(middle, across, depth)))
        first, last = named(Collective.REDUCE, inside, depth), named(Collective.BROADCAST, inside, depth)
        programs.append((first, named(middle, Span(0, cut, True), depth), last))
    whole = Span(0, depth, False)
    programs.append((named(middle, whole, depth),))
    programs.append((named(up, whole, depth), named(down, whole, depth)))
    programs.append((named(Collective.REDUCE, whole, depth), named(Collective.BROADCAST, whole, depth)))
    return programs


@settings(derandomize=True, deadline=None, max_examples=80)
@given(lowerings())
def test_any_schedule_bound(where: Lowering) -> None:
    """It is what counting gives, whatever the hierarchy, and no right program is below it."""
    bound = any_schedule_bound(where, Fraction(100, 3))
    assert bound == math.ceil(counted_bound(where, Fraction(100, 3)) * 10**9)
    if where.hierarchy.startswith("reduction"):
        for program in right_programs(where.depth):
            costs = simulate_program(MODEL, where, program, Fraction(100, 3))
            assert bound <= sum(cost.nanoseconds for cost in costs)


def test_any_schedule_bound_is_reached() -> None:
    """One device a node and no latency: a two-device AllReduce sends exactly the payload."""
    system = System([Level("a", 2, 3)])
    where = lower(system, check_placement([[2]], [Axis("x", 2)], system), [0])
    program = (named(Collective.ALL_REDUCE, Span(0, 1, False), 1),)
    (cost,) = simulate_program(MODEL, where, program, Fraction(7))
    assert any_schedule_bound(where, Fraction(7)) == cost.nanoseconds == math.ceil(Fraction(7, 3) * 10**9)
