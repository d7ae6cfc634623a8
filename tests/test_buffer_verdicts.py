"""Verdicts of the buffers meaning: faults made by hand, every goal, layouts, limits, and exact sums."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from buffers_support import ACROSS, AG, ALL, AR, BROADCAST, IN, REDUCE, RS, schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.errors import InputError, LimitReached
from smtsynth.meaning import pieces, sums
from smtsynth.meaning.buffers import Verdict, describe_piece, holdings, run, trace
from smtsynth.model.lowering import lower
from smtsynth.model.placement import Axis, check_placement
from smtsynth.model.program import parse_program
from smtsynth.model.schedule import Entry, Goal, Schedule, check_schedule
from smtsynth.model.system import Level, System

# --- Verdicts on faults made by hand


def test_the_models_example_is_proved_in_chunk_order() -> None:
    groups = ((0, 1, 2, 3), (4, 5, 6, 7))
    pairs = tuple((i, i + 4) for i in range(4))
    verdict = run(schedule((RS, groups), (AR, pairs), (AG, groups), devices=8))
    assert verdict == Verdict("proved", verdict.reason, layout="identity")


def test_gathering_in_another_order_permutes() -> None:
    """The model's own example: scatter inside, scatter across, gather inside, gather across."""
    plan = schedule((RS, IN), (RS, ACROSS), (AG, IN), (AG, ACROSS))
    assert run(plan).layout == (0, 2, 1, 3)
    strict = run(plan, layout="identity")
    assert (strict.verdict, strict.device, strict.chunk, strict.step) == ("refuted", 0, 1, 4)
    assert run(schedule((RS, IN), (RS, ACROSS), (AG, ACROSS), (AG, IN))).layout == "identity"


def facts(verdict: Verdict) -> tuple:
    assert verdict.verdict == "refuted" and verdict.layout is None and "\n" not in verdict.reason
    return verdict.step, verdict.device, verdict.chunk, verdict.missing, verdict.duplicated


FAULTS = {
    "a step is dropped": (schedule((RS, IN), (AG, IN)), (None, 0, 0, (2, 3), ())),
    "the last gather is dropped": (schedule((RS, IN), (AR, ACROSS)), (None, 0, 1, (0, 1, 2, 3), ())),
    "nothing is done": (schedule(), (None, 0, 0, (1, 2, 3), ())),
    "summed twice": (schedule((AR, IN), (AR, IN), (AR, ACROSS)), (2, 0, 0, (), (0, 1, 2, 3))),
    "summed twice at the end": (schedule((RS, IN), (AR, ACROSS), (AG, IN), (AR, IN)), (4, 0, 0, (), (0, 1, 2, 3))),
    "different chunks added": (schedule((RS, IN), (AR, IN), (AG, IN)), (2, 0, 0, (0, 1, 2, 3), ())),
    "mixed, then spread": (schedule((RS, IN), (AR, ((0, 1),)), (AR, ACROSS), (AG, IN)), (2, 0, 0, (0, 1, 2, 3), ())),
    "what a Reduce left was added": (
        schedule((REDUCE, IN), (AR, IN), (BROADCAST, IN)),
        (2, 0, 0, (0, 1, 2, 3), ()),
    ),
    "the last broadcast is dropped": (schedule((REDUCE, IN), (AR, ((0, 2),))), (1, 1, 0, (0, 1, 2, 3), ())),
    "a Reduce to the wrong root": (
        schedule((REDUCE, IN, (1, 2)), (AR, ((0, 2),)), (BROADCAST, IN)),
        (2, 0, 0, (0, 1, 2, 3), ()),
    ),
    "overwritten before it was added": (schedule((BROADCAST, IN), (AR, ACROSS)), (1, 0, 0, (1, 3), ())),
    "overwritten at the end": (schedule((AR, ((0, 2),)), (BROADCAST, IN)), (2, 0, 0, (1, 3), ())),
    "overwritten, though others have it still": (schedule((AR, IN), (BROADCAST, ((2, 0),))), (2, 0, 0, (0, 1), ())),
    "moved away by a Reduce, never back": (
        schedule((REDUCE, ((0, 1),), (1,)), (BROADCAST, ((2, 0),))),
        (None, 0, 0, (0, 1, 3), ()),
    ),
    "two holes, of which the first counts": (
        schedule((RS, IN), (REDUCE, ((0, 2),), (2,)), (REDUCE, ((1, 3),), (3,)), (AG, IN)),
        (2, 0, 0, (0, 1, 2, 3), ()),
    ),
    "a hole at another place of a scatter": (
        schedule((RS, IN), (REDUCE, ((1, 3),), (3,)), (AG, IN), (RS, ((1, 0),)), goal=Goal(RS, ((1, 0),))),
        (2, 0, 1, (0, 1), ()),
    ),
    "whole buffers gathered": (schedule((AR, ACROSS), (AG, IN)), (2, 0, 0, (1, 3), ())),
    "right, then gathered again": (schedule((AR, ALL), (AG, IN)), (2, 0, 0, (), (0, 1, 2, 3))),
    "right, then broadcast from a device that isn't": (
        schedule((REDUCE, ALL, (2,)), (BROADCAST, ((0, 2, 3),), (2,)), (BROADCAST, ((1, 3),))),
        (1, 1, 0, (0, 1, 2, 3), ()),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told_apart_and_dated(name: str) -> None:
    plan, expected = FAULTS[name]
    assert facts(run(plan)) == expected


def test_a_fault_that_was_overwritten_is_not_the_one_reported() -> None:
    """Devices 2 and 3 add twice in step 1 and 2; a broadcast hides it; what survives was made in step 4."""
    plan = schedule((AR, ALL), (AR, ((2, 3),)), (BROADCAST, ((0, 2), (1, 3))), (AR, ((2, 3),)))
    assert facts(run(plan)) == (4, 2, 0, (), (0, 1, 2, 3))


def test_mixed_contributions_that_are_gone_are_dated() -> None:
    """Step 2 mixes what devices 2 and 3 gave; it is overwritten later, but gone for good."""
    plan = schedule((RS, IN), (AR, ((2, 3),)), (BROADCAST, ACROSS), (AG, IN))
    assert facts(run(plan)) == (2, 0, 0, (2, 3), ())


def test_unequal_lengths_name_the_group() -> None:
    verdict = run(schedule((RS, ((0, 1),)), (AR, ACROSS)))
    assert facts(verdict) == (2, 2, None, (), ()) and verdict.collective is AR
    assert verdict.reason.startswith("step 2: AllReduce on group [0, 2]: devices 0 and 2 hold buffers of unequal")
    for collective in (RS, AG, REDUCE):
        assert run(schedule((RS, ((0, 1),)), (collective, ((1, 3),)))).step == 2
    # The second group of the first entry comes before the first group of the second.
    mixed = schedule((RS, ((0, 1), (4, 5))), [(AR, ((2, 3), (5, 6))), (AG, ((1, 7),))], devices=8)
    assert "group [5, 6]" in run(mixed).reason
    sizes = schedule((RS, ((0, 7),)), (AR, ((4, 5), (0, 1, 2), (3, 7))), devices=8)
    assert "group [0-2]" in run(sizes).reason


def test_a_broadcast_gives_the_roots_length() -> None:
    plan = schedule((RS, ((0, 1),)), (AG, ((0, 1),)), (RS, ((2, 3),)), (BROADCAST, ALL, (0,)))
    lengths = [len(list(trace(plan))[step].buffer(2)) for step in range(5)]
    assert lengths == [2, 2, 2, 1, 2]
    assert facts(run(plan)) == (4, 0, 0, (2, 3), ())


def test_contributions_from_outside_the_goal_group() -> None:
    verdict = run(schedule((AR, IN), (AR, ACROSS), goal=Goal(AR, IN)))
    assert facts(verdict) == (2, 0, 0, (), ()) and verdict.foreign == (2, 3)
    assert "devices 2, 3" in verdict.reason
    later = run(schedule((AR, IN), (AR, ACROSS), (BROADCAST, IN), goal=Goal(AR, IN)))
    assert (later.step, later.foreign) == (2, (2, 3))
    assert run(schedule((AR, IN), goal=Goal(AR, IN))).layout == "identity"
    assert run(schedule((AR, ((0, 1),)), goal=Goal(AR, ((0, 1),)))).verdict == "proved"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (schedule((RS, ALL), goal=Goal(RS)), "identity"),
        (schedule((RS, ACROSS), (RS, IN), goal=Goal(RS)), "identity"),
        (schedule((RS, IN), (RS, ACROSS), goal=Goal(RS, ((0, 2, 1, 3),))), "identity"),
        (schedule((AG, IN), (AG, ACROSS), goal=Goal(AG)), "identity"),
        (schedule((AG, ACROSS), (AG, IN), goal=Goal(AG)), (0, 2, 1, 3)),
        (schedule((AG, IN), goal=Goal(AG, IN)), "identity"),
        (schedule((REDUCE, IN), (REDUCE, ((0, 2),)), goal=Goal(REDUCE)), "identity"),
        (schedule((REDUCE, ALL, (3,)), goal=Goal(REDUCE, ALL, (3,))), "identity"),
        (schedule((AR, ALL), goal=Goal(REDUCE, ALL, (3,))), "identity"),
        (schedule((BROADCAST, ((1, 2),)), (BROADCAST, IN, (1, 2)), goal=Goal(BROADCAST, ALL, (1,))), "identity"),
        (schedule((RS, ((0, 1, 2),)), (AG, ((0, 1, 2),)), devices=4, goal=Goal(AR, ((0, 1, 2),))), "identity"),
    ],
)
def test_every_goal_can_be_reached(plan: Schedule, expected: object) -> None:
    verdict = run(plan)
    assert (verdict.verdict, verdict.layout) == ("proved", expected)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (schedule((AR, ALL), goal=Goal(RS)), (None, 0, 1, (), ())),
        (schedule((RS, ALL), (AG, ALL), goal=Goal(RS)), (2, 0, 1, (), ())),
        (schedule((RS, IN), (RS, ACROSS), goal=Goal(RS)), (1, 1, 1, (0, 1, 2, 3), ())),
        (schedule((RS, ((1, 0), (2, 3))), goal=Goal(RS, IN)), (1, 0, 0, (0, 1), ())),
        (schedule((AG, IN), goal=Goal(AG)), (None, 0, 2, (2,), ())),
        (schedule((AG, IN), (AR, ((0, 1),)), goal=Goal(AG, IN)), (2, 0, 0, (), (0,))),
        (schedule((REDUCE, ALL, (3,)), goal=Goal(REDUCE)), (1, 0, 0, (0, 1, 2, 3), ())),
        (schedule((BROADCAST, ALL, (1,)), goal=Goal(BROADCAST, ALL, (2,))), (1, 0, 0, (2,), ())),
        (schedule((BROADCAST, ((0, 1),)), goal=Goal(BROADCAST)), (None, 2, 0, (0,), ())),
    ],
)
def test_every_goal_can_be_missed(plan: Schedule, expected: tuple) -> None:
    assert facts(run(plan)) == expected


def test_different_orders_at_different_devices_are_refuted() -> None:
    verdict = run(schedule((RS, IN), (AR, ACROSS), (AG, ((1, 0), (2, 3)))))
    assert facts(verdict) == (3, 2, 0, (), ()) and verdict.collective is AG
    groups = Goal(AR, ((2, 3), (0, 1)))
    assert facts(run(schedule((RS, IN), (AG, ((1, 0), (2, 3))), goal=groups))) == (2, 2, 0, (), ())


def test_the_gather_that_broke_the_order_is_named() -> None:
    """The gather of step 3 is backwards; that of step 4 is in order."""
    plan = schedule((RS, ACROSS), (RS, IN), (AG, ((1, 0), (3, 2))), (AG, ACROSS))
    assert run(plan).layout == (1, 0, 3, 2)
    assert facts(run(plan, "identity")) == (3, 0, 0, (), ())


def test_pieces_are_no_more_than_the_scatters_need() -> None:
    assert holdings(schedule((AR, ALL))).pieces == 1
    assert holdings(schedule((RS, ((0, 1, 2),)), (RS, ((3, 4),)), devices=5)).pieces == 6
    assert holdings(schedule((RS, IN), (AG, IN), (RS, ALL))).pieces == 4
    assert holdings(schedule((AG, ALL), goal=Goal(AG))).pieces == 4
    nested = schedule(*[(RS, ((0, 1),))] * 3, devices=2)
    assert holdings(nested) == type(holdings(nested))(8, ((((8, 8),),), (((4, 4),),), (((2, 2),),)))
    assert len(holdings(schedule((RS, ((0, 1),)), (AR, ALL), (AR, ALL))).steps) == 2


def test_the_words_for_a_piece() -> None:
    assert describe_piece(None) == "undefined"
    assert describe_piece((3, {0: 1, 1: 1, 2: 1, 5: 1})) == "chunk 3 from 0-2, 5"
    assert describe_piece((0, {4: 2, 1: 1, 0: 1})) == "chunk 0 from 0, 1, 2 times 4"
    last = list(trace(schedule((AR, ALL), (REDUCE, ALL))))[-1]
    assert [describe_piece(piece) for device in (0, 1) for piece in last.buffer(device)] == [
        "chunk 0 from 4 times 0-3",
        "undefined",
    ]


def test_another_layout_is_bad_input() -> None:
    with pytest.raises(InputError, match="any or identity"):
        run(schedule(), layout="sorted")  # type: ignore[arg-type]


def test_what_is_too_large_is_unknown_with_the_reason() -> None:
    many = run(schedule(*[(RS, ((0, 1),))] * 70))
    assert many.verdict == "unknown" and "10^21 pieces" in many.reason and many.step is None
    long = schedule(*[(AG, ((0, 1),))] * 1500)
    assert run(long).verdict == "unknown" and "at most 16777216" in run(long).reason
    with pytest.raises(LimitReached):
        list(trace(long))
    # Unequal lengths are found by lengths alone, however long.
    assert run(schedule(*[(AG, ((0, 1),))] * 1500, (AR, ALL))).step == 1501


def test_too_many_different_sums_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "MAX_SUM_BYTES", 500)
    assert "different sums" in run(schedule((AR, IN), (AR, ACROSS))).reason


@pytest.mark.parametrize("block", [1, 3, 16])
def test_blocks_of_any_size_give_the_same(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [schedule((RS, IN), (RS, ACROSS), (AG, IN), (AG, ACROSS)), schedule((RS, IN), (REDUCE, ACROSS), (AG, IN))]
    before = [[s.buffer(d) for s in trace(plan) for d in range(4)] for plan in plans]
    monkeypatch.setattr(pieces, "BLOCK", block)
    assert [[s.buffer(d) for s in trace(plan) for d in range(4)] for plan in plans] == before


def test_a_thousand_devices() -> None:
    """1024 devices and as many pieces, right and wrong."""
    rows = tuple(tuple(range(i, i + 32)) for i in range(0, 1024, 32))
    columns = tuple(tuple(range(i, 1024, 32)) for i in range(32))
    good = [(RS, rows), (RS, columns), (AG, columns), (AG, rows)]
    assert run(schedule(*good, devices=1024)).layout == "identity"
    assert facts(run(schedule(*good[:3], devices=1024))) == (None, 0, 32, tuple(range(1024)), ())
    assert facts(run(schedule(*good, (AR, rows), devices=1024)))[:3] == (5, 0, 0)
    swapped = run(schedule(*good[:2], good[3], good[2], devices=1024))
    assert swapped.layout == tuple(32 * (i % 32) + i // 32 for i in range(1024))


def test_counts_are_exact_however_large() -> None:
    end = list(trace(schedule(*[(AR, ALL)] * 100)))[-1]
    assert end.buffer(2) == [(0, dict.fromkeys(range(4), 4**99))]
    assert facts(run(schedule(*[(AR, ALL)] * 100))) == (2, 0, 0, (), (0, 1, 2, 3))


def test_a_lowered_program_keeps_replicas_apart() -> None:
    system = System([Level("node", 2, "8 GB/s"), Level("gpu", 4, "100 GB/s")])
    placement = check_placement([[2, 2], [1, 2]], [Axis("data", 4), Axis("shard", 2)], system)
    lowering = lower(system, placement, [0])
    text = "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)"
    plan = check_schedule(lowering.schedule(parse_program(text, lowering.names)))
    assert run(plan).layout == "identity"
    assert plan.goal.groups == ((0, 2, 4, 6), (1, 3, 5, 7))
    across = Schedule(plan.devices, (*plan.steps, (Entry(AR, ((0, 1),)),)), plan.goal)
    verdict = run(across)
    assert facts(verdict) == (4, 0, 0, (), ()) and verdict.foreign == (1, 3, 5, 7)


@given(st.lists(st.lists(st.integers(0, 70), min_size=1, max_size=5), min_size=1, max_size=8))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_sums_count_like_counters(parts: list[list[int]]) -> None:
    table = sums.Sums()
    numbers = [table.of(set(part)) for part in parts]
    total, expected = numbers[0], Counter(set(parts[0]))
    for part, number in zip(parts[1:], numbers[1:], strict=True):
        total, expected = table.add(total, number), expected + Counter(set(part))
        total = table.add(number, total) if len(part) == 1 else total
        expected += Counter(part) if len(part) == 1 else Counter()
    assert table.counts(total) == expected
    assert table.present(total) == sum(1 << n for n in expected)
    assert table.repeated(total) == sum(1 << n for n, count in expected.items() if count > 1)
    assert table.add(total, sums.UNDEFINED) == sums.UNDEFINED
    again = table.of([min(expected)])
    for contributor, count in sorted(expected.items()):
        for _ in range(count - (contributor == min(expected))):
            again = table.add(again, table.of([contributor]))
    assert again == total


def test_fractions_of_lengths_are_exact() -> None:
    plan = schedule((RS, ((0, 1, 2),)), (AG, ((0, 1),)), devices=3)
    planned = pieces.plan(plan)
    assert [planned.lengths[name] for name in planned.names[2]] == [Fraction(2, 3), Fraction(2, 3), Fraction(1, 3)]
    assert planned.counts(2).tolist() == [2, 2, 1]
