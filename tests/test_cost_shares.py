"""What groups hold at each step: by classes of devices and device by device."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.cost.alphabeta import AlphaBeta, simulate_program
from smtsynth.cost.interface import FREE
from smtsynth.cost.shares import MAX_DEPTH, class_shares, group_types, piece_shares
from smtsynth.errors import LimitReached
from smtsynth.model.lowering import lower, span_groups
from smtsynth.model.placement import Axis, check_placement
from smtsynth.model.program import Collective, Form, Instruction, Program, Span, instruction_set, named
from smtsynth.model.schedule import Entry, Goal, Schedule
from smtsynth.model.system import Level, System


def mask_of(device: int, sizes: tuple[int, ...]) -> int:
    """The factors in which the synthesis device has a non-zero digit."""
    digits = list(product(*map(range, sizes)))[device]
    return sum(1 << factor for factor, digit in enumerate(digits) if digit)


def type_of(group: tuple[int, ...], sizes: tuple[int, ...], span: Span) -> int:
    joined = sum(1 << factor for factor in range(span.start, span.stop))
    (mask,) = {mask_of(device, sizes) & ~joined for device in group}
    return mask


@st.composite
def programs(draw: st.DrawFn) -> tuple[tuple[int, ...], Program, Collective]:
    """Sizes and any program, right or wrong, with up to 6 steps."""
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=4)))
    every = instruction_set(len(sizes))
    program = tuple(draw(st.lists(st.sampled_from(every), max_size=6)))
    return sizes, program, draw(st.sampled_from([Collective.ALL_REDUCE, Collective.ALL_GATHER]))


@settings(derandomize=True, deadline=None, max_examples=250)
@given(programs())
def test_classes_hold_what_their_devices_hold(case: tuple[tuple[int, ...], Program, Collective]) -> None:
    sizes, program, collective = case
    steps = tuple((Entry(i.collective, tuple(map(tuple, span_groups(sizes, i).tolist()))),) for i in program)
    schedule = Schedule(math.prod(sizes), steps, Goal(collective))
    by_class = class_shares(sizes, program, collective)
    assert len(by_class) == len(program)
    for instruction, shares, ((entry,), (held,)) in zip(
        program, by_class, zip(schedule.steps, piece_shares(schedule), strict=True), strict=True
    ):
        span = instruction.span(len(sizes))
        seen = {}
        for group, share in zip(entry.groups, held, strict=True):
            mask = type_of(group, sizes, span)
            assert shares[mask] == share
            seen[mask] = share
        assert seen == shares
        assert set(group_types(len(sizes), span)) == set(shares)


def test_shares_of_a_right_program() -> None:
    """ReduceScatter inside, AllReduce across, AllGather inside: all, a third, a third."""
    program = (
        Instruction(Collective.REDUCE_SCATTER, 1, Form.INSIDE_GROUP),
        Instruction(Collective.ALL_REDUCE, 1, Form.PARALLEL, 0),
        Instruction(Collective.ALL_GATHER, 1, Form.INSIDE_GROUP),
        Instruction(Collective.ALL_REDUCE, 0, Form.INSIDE_GROUP),
    )
    third = Fraction(1, 3)
    expected = [{0: 1, 1: 1}, {0: third, 2: third}, {0: third, 1: third}, {0: 1}]
    assert class_shares((2, 3), program) == expected


def test_groups_of_one_step_may_hold_different_parts() -> None:
    """After a Reduce to the first of each node and a ReduceScatter over these, the rest holds nothing."""
    program = (
        Instruction(Collective.REDUCE, 1, Form.INSIDE_GROUP),
        Instruction(Collective.REDUCE_SCATTER, 1, Form.MASTER, 0),
        Instruction(Collective.ALL_REDUCE, 1, Form.PARALLEL, 0),
    )
    assert class_shares((4, 3), program) == [{0: 1, 1: 1}, {0: 1}, {0: Fraction(1, 4), 2: 0}]


def test_starts_of_other_goals() -> None:
    masters, inside = Span(0, 1, True), Span(1, 2, False)
    program = (named(Collective.BROADCAST, masters, 2), named(Collective.BROADCAST, inside, 2))
    assert class_shares((2, 3), program, Collective.BROADCAST) == [{0: 1}, {0: 1, 1: 1}]
    assert class_shares((2, 3), program[1:], Collective.BROADCAST) == [{0: 1, 1: 0}]
    gather = (named(Collective.ALL_GATHER, inside, 2), named(Collective.ALL_GATHER, Span(0, 1, False), 2))
    sixth = Fraction(1, 6)
    assert class_shares((2, 3), gather, Collective.ALL_GATHER) == [{0: sixth, 1: sixth}, {0: 3 * sixth, 2: 3 * sixth}]


def test_unequal_members_count_by_the_largest_and_a_broadcast_by_its_root() -> None:
    scatter = (Entry(Collective.REDUCE_SCATTER, ((0, 1),)),)
    last = [
        (Entry(Collective.ALL_REDUCE, ((1, 2),)),),
        (Entry(Collective.BROADCAST, ((2, 1),), (1,)),),
        (Entry(Collective.ALL_GATHER, ((0, 2),)),),
        (Entry(Collective.ALL_REDUCE, ((0, 2, 1),)),),
    ]
    shares = list(piece_shares(Schedule(3, (scatter, *last))))
    half = Fraction(1, 2)
    assert shares == [[[1]], [[1]], [[1]], [[1]], [[half + 1]]]
    broadcast = list(piece_shares(Schedule(3, (scatter, last[1], last[3]))))
    assert broadcast == [[[1]], [[half]], [[half]]]


def test_a_reduce_leaves_all_at_its_root() -> None:
    """Wherever the root stands in its group."""
    reduce = (Entry(Collective.REDUCE, ((0, 1, 2),), (2,)),)
    parts = (Entry(Collective.ALL_REDUCE, ((0, 1), (2,))),)
    assert list(piece_shares(Schedule(3, (reduce, parts)))) == [[[1]], [[0, 1]]]


def test_an_instruction_without_groups_is_free() -> None:
    system = System([Level("a", 3, 1, 1)], 1)
    where = lower(system, check_placement([[3]], [Axis("x", 3)], system), [0])
    nothing = Instruction(Collective.REDUCE_SCATTER, 1, Form.INSIDE_GROUP)
    whole = Instruction(Collective.ALL_REDUCE, 0, Form.INSIDE_GROUP)
    costs = simulate_program(AlphaBeta(), where, (nothing, whole), Fraction(3))
    assert costs[0] == FREE
    assert costs[1].transfer == 4
    assert AlphaBeta().price(where, nothing, Fraction(3)) == 0


def test_too_many_factors_reach_the_limit() -> None:
    with pytest.raises(LimitReached, match="at most 16 factors, not 17"):
        class_shares((2,) * (MAX_DEPTH + 1), ())
