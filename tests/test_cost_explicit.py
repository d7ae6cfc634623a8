"""The cost of a step of explicit groups against a slow edge-by-edge reading of the model, section 6."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.cost.alphabeta import AlphaBeta, simulate_schedule
from smtsynth.cost.interface import FREE, Bottleneck, GroupLoad, StepCost
from smtsynth.errors import InputError
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Entry, Goal, Schedule
from smtsynth.model.system import Level, System

MODEL = AlphaBeta()
RINGS = (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


def reference(system: System, groups: list[tuple[Collective, tuple[int, ...], int, Fraction]]) -> StepCost:
    """groups: (collective, devices, root, bytes). Every edge, level and device by itself."""
    load: dict[tuple[int, str, int], Fraction] = defaultdict(Fraction)
    share: dict[tuple[int, str, int], Fraction] = defaultdict(Fraction)
    slowest, any_group = Fraction(0), False
    for collective, devices, root, held in groups:
        m = len(devices)
        if m == 1:
            continue
        any_group = True
        if collective in RINGS:
            order = sorted(devices)
            edges = [(order[i], order[(i + 1) % m]) for i in range(m)]
        else:
            order = [root, *sorted(d for d in devices if d != root)]
            edges = [(order[i], order[i + 1]) for i in range(m - 1)]
            if collective is Collective.REDUCE:
                edges = [(w, u) for u, w in edges]
        carried, times = {
            Collective.ALL_REDUCE: (Fraction(2 * (m - 1), m) * held, Fraction(2 * (m - 1), m)),
            Collective.REDUCE_SCATTER: (Fraction(m - 1, m) * held, Fraction(m - 1, m)),
            Collective.ALL_GATHER: ((m - 1) * held, Fraction(m - 1, m)),
            Collective.REDUCE: (held, Fraction(1)),
            Collective.BROADCAST: (held, Fraction(1)),
        }[collective]
        own: dict[tuple[int, str, int], Fraction] = defaultdict(Fraction)
        latency = Fraction(0)
        for u, w in edges:
            a, b = system.coordinates(u), system.coordinates(w)
            first = next(i for i in range(len(a)) if a[i] != b[i])
            latency += system.levels[first].latency
            for level in range(first, len(a)):
                own[level, "up", unit(system, level, u)] += carried
                own[level, "down", unit(system, level, w)] += carried
        slowest = max(slowest, latency * times)
        for (level, direction, place), amount in own.items():
            load[level, direction, place] += amount
            members = [d for d in devices if unit(system, level, d) == place]
            for device in members:
                share[level, direction, device] += amount / len(members)
    if not any_group:
        return FREE
    waits = []  # (seconds, then what breaks ties)
    for (level, direction, place), amount in load.items():
        key = (level, 0, direction == "down", place)
        waits.append((amount / system.levels[level].bandwidth, key, Bottleneck(level, place, direction)))  # type: ignore[arg-type]
    for (level, direction, device), amount in share.items():
        limit = system.levels[level].per_device
        if limit is not None:
            key = (level, 1, direction == "down", device)
            place = unit(system, level, device)
            waits.append((amount / limit, key, Bottleneck(level, place, direction, device)))  # type: ignore[arg-type]
    seconds, _, bottleneck = min(waits, key=lambda wait: (-wait[0], wait[1]))
    total = system.overhead + slowest + seconds
    return StepCost(math.ceil(total * 10**9), slowest, seconds, bottleneck if seconds else None)


def unit(system: System, level: int, device: int) -> int:
    """The unit's number among all of its level, from the coordinates."""
    number = 0
    for coordinate, size in zip(system.coordinates(device)[: level + 1], system.sizes[: level + 1], strict=True):
        number = number * size + coordinate
    return number


RATES = st.fractions(min_value="1/3", max_value=9, max_denominator=7)


@st.composite
def systems(draw: st.DrawFn) -> System:
    levels = [
        Level(
            f"l{number}",
            draw(st.integers(1, 4)),
            draw(RATES),
            draw(st.one_of(st.just(Fraction(0)), RATES)),
            draw(st.one_of(st.none(), RATES)),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    return System(levels, draw(st.sampled_from(["0 s", "1 us", "0.7 ns"])))


@st.composite
def steps(draw: st.DrawFn) -> tuple[System, list[GroupLoad]]:
    """A system and entries over disjoint groups of any sizes, shares of their own, any roots."""
    system = draw(systems())
    left = draw(st.permutations(range(system.devices)))
    entries: list[GroupLoad] = []
    while left and len(entries) < 3:
        groups, roots, payloads = [], [], []
        for _ in range(draw(st.integers(1, 4))):
            if left:
                count = draw(st.integers(1, min(len(left), 9)))
                groups.append(tuple(left[:count]))
                left = left[count:]
                roots.append(draw(st.sampled_from(groups[-1])))
                payloads.append(draw(st.fractions(0, 50, max_denominator=6)))
        collective = draw(st.sampled_from(list(Collective)))
        chosen = tuple(roots) if collective not in RINGS and draw(st.booleans()) else ()
        entries.append(GroupLoad(collective, groups, chosen, payloads))
    return system, entries


def flat(entries: list[GroupLoad]) -> list[tuple[Collective, tuple[int, ...], int, Fraction]]:
    rows = []
    for entry in entries:
        assert not isinstance(entry.payloads, Fraction)
        for number, group in enumerate(entry.groups):
            root = entry.roots[number] if entry.roots else int(group[0])
            rows.append((entry.collective, tuple(map(int, group)), root, entry.payloads[number]))
    return rows


@settings(derandomize=True, deadline=None, max_examples=100)
@given(steps())
def test_step_equals_the_edge_by_edge_reference(case: tuple[System, list[GroupLoad]]) -> None:
    system, entries = case
    assert MODEL.step(system, entries) == reference(system, flat(entries))


@pytest.mark.full
@settings(derandomize=True, deadline=None, max_examples=2000)
@given(steps())
def test_many_steps_equal_the_edge_by_edge_reference(case: tuple[System, list[GroupLoad]]) -> None:
    system, entries = case
    assert MODEL.step(system, entries) == reference(system, flat(entries))


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.full)])
def test_many_random_groups_equal_the_reference(count: int) -> None:
    """48 devices in 2 to 12 groups of equal size, as arrays: the shape that lowered instructions have."""
    random_ = random.Random(6)
    levels = [Level("a", 2, 3, 5, 1), Level("b", 4, 7, "0.3 s", 2), Level("c", 6, 11, 1)]
    system = System(levels, 1)
    for _ in range(count):
        devices = list(range(48))
        random_.shuffle(devices)
        m = random_.choice([2, 3, 4, 6, 24])
        groups = np.array(devices, dtype=np.int64).reshape(-1, m)
        collective = random_.choice(list(Collective))
        payloads = [Fraction(random_.randrange(100), random_.randrange(1, 9)) for _ in groups]
        entry = GroupLoad(collective, groups, (), payloads)
        assert MODEL.step(system, [entry]) == reference(system, flat([entry]))


def test_numbers_beyond_machine_words_stay_exact() -> None:
    """The same step with payloads scaled by 2^80 / 3 costs exactly as much more."""
    system = System([Level("a", 4, 3), Level("b", 4, 7, 0, 1)])
    groups = [tuple(range(16))]
    small = MODEL.step(system, [GroupLoad(Collective.ALL_REDUCE, groups, (), Fraction(5))])
    large = MODEL.step(system, [GroupLoad(Collective.ALL_REDUCE, groups, (), Fraction(5 * 2**80, 3))])
    assert large.transfer == small.transfer * Fraction(2**80, 3)
    assert large.bottleneck == small.bottleneck


def test_one_payload_for_all_groups() -> None:
    system = System([Level("a", 4, 3, 1), Level("b", 4, 7, 2)])
    groups = [(0, 4), (1, 5, 9), (2,)]
    one = GroupLoad(Collective.BROADCAST, groups, (4, 9, 2), Fraction(7))
    each = GroupLoad(Collective.BROADCAST, groups, (4, 9, 2), [Fraction(7)] * 3)
    assert MODEL.step(system, [one]) == MODEL.step(system, [each])


def test_root_in_the_middle_enters_its_unit_again() -> None:
    """Devices 0..3 in two nodes, root 1: 1 -> 0 -> 2 -> 3 crosses once; root 2: 2 -> 0 -> 1 -> 3 crosses twice."""
    system = System([Level("node", 2, 1, 10), Level("gpu", 2, 10, 1)])
    inside = MODEL.step(system, [GroupLoad(Collective.BROADCAST, [(0, 1, 2, 3)], (1,), Fraction(6))])
    across = MODEL.step(system, [GroupLoad(Collective.BROADCAST, [(0, 1, 2, 3)], (2,), Fraction(6))])
    assert [inside.latency, across.latency] == [12, 21]
    assert inside.transfer == across.transfer == 6
    assert inside.bottleneck == Bottleneck(0, 0, "up")
    reduce = MODEL.step(system, [GroupLoad(Collective.REDUCE, [(0, 1, 2, 3)], (1,), Fraction(6))])
    assert reduce.latency == 12
    assert reduce.bottleneck == Bottleneck(0, 1, "up")


@pytest.mark.parametrize("groups", [[(2, 6), (0, 1, 4, 5)], [(0, 4), (1, 2, 5, 6)]])
def test_of_equal_device_shares_the_least_device_is_named(groups: list[tuple[int, ...]]) -> None:
    """4 bytes at the one device of a pair in node 0, 8 at the two of a group of four: all three carry 4."""
    system = System([Level("node", 2, 1000, 0, 1), Level("gpu", 4, 1000)])
    cost = MODEL.step(system, [GroupLoad(Collective.BROADCAST, groups, (), [Fraction(4), Fraction(8)])])
    assert cost.transfer == 4
    assert cost.bottleneck == Bottleneck(0, 0, "up", 0)


def test_entries_of_a_mixed_step_add_up() -> None:
    """Loads on a shared uplink add, the latency is the larger one, the overhead is paid once."""
    system = System([Level("node", 2, 1, 10), Level("gpu", 4, 100, 1)], 5)
    first = GroupLoad(Collective.ALL_REDUCE, [(0, 4)], (), Fraction(6))
    second = GroupLoad(Collective.BROADCAST, [(1, 5, 6)], (1,), Fraction(8))
    alone = [MODEL.step(system, [entry]) for entry in (first, second)]
    both = MODEL.step(system, [first, second])
    assert both.transfer == alone[0].transfer + alone[1].transfer == 14
    assert both.latency == max(alone[0].latency, alone[1].latency) == 20
    assert both.nanoseconds == (5 + 20 + 14) * 10**9


def test_a_step_without_pairs_is_free() -> None:
    system = System([Level("node", 2, 1, 10)], "1 us")
    singles = GroupLoad(Collective.ALL_REDUCE, [(0,), (1,)], (), Fraction(6))
    array = GroupLoad(Collective.ALL_REDUCE, np.array([[0], [1]]), (), Fraction(6))
    assert MODEL.step(system, []) == MODEL.step(system, [singles]) == MODEL.step(system, [array]) == FREE
    pair = MODEL.step(system, [GroupLoad(Collective.ALL_REDUCE, [(0, 1)], (), Fraction(0))])
    assert pair.nanoseconds == 20 * 10**9 + 1000
    assert pair.transfer == 0
    assert pair.bottleneck is None


@pytest.mark.parametrize(
    ("groups", "roots", "message"),
    [
        ([(0, 4)], (), "unknown device"),
        ([(0, -1)], (), "unknown device"),
        ([(0, 1), (1, 2)], (), "two groups"),
        ([(0, 0)], (), "twice"),
        ([(0, 1)], (2,), "root is not in its group"),
    ],
)
def test_bad_groups_are_input_errors(groups: list[tuple[int, ...]], roots: tuple[int, ...], message: str) -> None:
    system = System([Level("node", 4, 1, 10)])
    with pytest.raises(InputError, match=message):
        MODEL.step(system, [GroupLoad(Collective.REDUCE, groups, roots, Fraction(1))])


def test_schedule_of_another_size_is_an_input_error() -> None:
    system = System([Level("node", 4, 1, 10)])
    with pytest.raises(InputError, match="8 devices; expected 4"):
        simulate_schedule(MODEL, system, Schedule(8, ()), Fraction(1))


def test_schedule_steps_use_what_groups_hold() -> None:
    """ReduceScatter in pairs leaves half, which both entries of the mixed step send out of node 1.

    Where the goal is AllGather everyone starts with its own part only.
    """
    system = System([Level("node", 2, 1), Level("gpu", 2, 1)])
    scatter = (Entry(Collective.REDUCE_SCATTER, ((0, 1), (2, 3))),)
    mixed = (Entry(Collective.REDUCE, ((2, 0),), (0,)), Entry(Collective.BROADCAST, ((1, 3),), (3,)))
    costs = simulate_schedule(MODEL, system, Schedule(4, (scatter, mixed)), Fraction(8))
    assert [cost.transfer for cost in costs] == [4, 4 + 4]
    gather = (Entry(Collective.ALL_GATHER, ((0, 1, 2, 3),)),)
    goal = Goal(Collective.ALL_GATHER)
    (cost,) = simulate_schedule(MODEL, system, Schedule(4, (gather,), goal), Fraction(8))
    assert cost.transfer == 3 * 2


def test_schedule_roots_are_used() -> None:
    """From device 2 the chain 2, 0, 1, 3 crosses the nodes twice, from device 0 once."""
    system = System([Level("node", 2, 1, 10), Level("gpu", 2, 1)])
    latencies = []
    for roots in ((), (0,), (2,)):
        entry = Entry(Collective.BROADCAST, ((0, 1, 2, 3),), roots)
        (cost,) = simulate_schedule(MODEL, system, Schedule(4, ((entry,),)), Fraction(1))
        latencies.append(cost.latency)
    assert latencies == [10, 10, 20]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(steps(), st.fractions(0, 1, max_denominator=5))
def test_splitting_a_step_never_pays_by_rounding(case: tuple[System, list[GroupLoad]], part: Fraction) -> None:
    """Two steps with parts of every payload cost at least the one; and rounding adds less than a nanosecond."""
    system, entries = case
    scaled = [
        [
            GroupLoad(entry.collective, entry.groups, entry.roots, [p * factor / 10**9 for p in entry.payloads])  # type: ignore[union-attr]
            for entry in entries
        ]
        for factor in (part, 1 - part, Fraction(1))
    ]
    first, second, whole = (MODEL.step(system, load) for load in scaled)
    assert first.nanoseconds + second.nanoseconds >= whole.nanoseconds
    if whole != FREE:
        exact = (system.overhead + whole.latency + whole.transfer) * 10**9
        assert exact <= whole.nanoseconds < exact + 1
