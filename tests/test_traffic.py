"""The price of given traffic against every device, unit and level by itself."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.cost.interface import FREE, Bottleneck, StepCost
from smtsynth.cost.traffic import traffic_cost
from smtsynth.errors import InputError
from smtsynth.model.placement import Axis, Placement, placements
from smtsynth.model.system import Level, System
from smtsynth.model.workload import Pattern

PATTERNS = list(Pattern)


def coordinate(system: System, placement: Placement, device: int, row: int) -> int:
    """A device's coordinate on an axis: its digits, outermost level most significant, row 0 first in a level."""
    found = 0
    for level, place in enumerate(system.coordinates(device)):
        factors = [entries[level] for entries in placement.matrix]
        found = found * factors[row] + place // math.prod(factors[row + 1 :]) % factors[row]
    return found


Sent = dict[tuple[int, str, int], Fraction]  # bytes by level, direction, and device


def reference(
    system: System, placement: Placement, row: int, pattern: Pattern, payload: Fraction
) -> tuple[StepCost, Sent]:
    """Message by message: the cost (without a bottleneck), and what each device sends or takes over each level.

    The latency is that of the outermost level at which the ends of any message differ.
    """
    places = [
        tuple(coordinate(system, placement, device, other) for other in range(len(placement.axes)))
        for device in range(system.devices)
    ]
    device_at = {place: device for device, place in enumerate(places)}
    at = [system.coordinates(device) for device in range(system.devices)]
    size = placement.axes[row].size
    each = payload / size if pattern is Pattern.ALL_TO_ALL else payload
    messages: dict[tuple[int, str, int], int] = defaultdict(int)
    outermost = len(system.levels)
    for device, place in enumerate(places):
        for other in range(size):
            if other == place[row] or (pattern is Pattern.POINT_TO_POINT and other != place[row] + 1):
                continue
            target = device_at[(*place[:row], other, *place[row + 1 :])]
            first = next(level for level in range(len(system.levels)) if at[device][level] != at[target][level])
            outermost = min(outermost, first)
            for level in range(first, len(system.levels)):
                messages[level, "up", device] += 1
                messages[level, "down", target] += 1
    if not messages:
        return FREE, {}
    share = {key: count * each for key, count in messages.items()}
    load: dict[tuple[int, str, int], Fraction] = defaultdict(Fraction)
    for (level, direction, device), amount in share.items():
        load[level, direction, device // system.below(level)] += amount
    times = [amount / system.levels[level].bandwidth for (level, _, _), amount in load.items()]
    for (level, _, _), amount in share.items():
        limit = system.levels[level].per_device
        times += [] if limit is None else [amount / limit]
    latency = system.levels[outermost].latency
    total = system.overhead + latency + max(times)
    return StepCost(math.ceil(total * 10**9), latency, max(times), None), share


amounts = st.fractions(min_value=Fraction(1, 7), max_value=50, max_denominator=9)


def _axes(*sizes: int) -> tuple[Axis, ...]:
    return tuple(Axis(f"a{number}", size) for number, size in enumerate(sizes))


def divisors(number: int) -> st.SearchStrategy[int]:
    return st.sampled_from([one for one in range(1, number + 1) if number % one == 0])


@st.composite
def cases(draw: st.DrawFn) -> tuple[System, Placement, int, Fraction]:
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=2, max_size=4).filter(lambda s: math.prod(s) < 40))
    levels = []
    for number, size in enumerate(sizes):
        limit = draw(st.none() | amounts)
        levels.append(Level(f"l{number}", size, draw(amounts) * 10**6, draw(amounts) / 10**6, limit and limit * 10**5))
    system = System(levels, draw(st.sampled_from([0, Fraction(1, 3 * 10**6)])))
    first = draw(divisors(system.devices))
    second = draw(divisors(system.devices // first))
    found = placements(system, _axes(first, second, system.devices // first // second))
    return system, draw(st.sampled_from(found)), draw(st.integers(0, 2)), draw(amounts)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(cases(), st.sampled_from(PATTERNS))
def test_every_message_by_itself(case: tuple[System, Placement, int, Fraction], pattern: Pattern) -> None:
    system, placement, row, payload = case
    expected, share = reference(system, placement, row, pattern, payload)
    found = traffic_cost(system, placement.matrix[row], pattern, payload)
    assert (found.nanoseconds, found.latency, found.transfer) == (
        expected.nanoseconds,
        expected.latency,
        expected.transfer,
    )
    where = found.bottleneck
    if not share:
        assert found == FREE
        return
    assert where is not None and where.direction == "up"
    level = system.levels[where.level]
    if where.device is None:
        sent = sum(
            amount
            for (at, direction, device), amount in share.items()
            if (at, direction) == (where.level, "up") and device // system.below(where.level) == where.unit
        )
        assert sent / level.bandwidth == found.transfer
    else:
        assert where.device // system.below(where.level) == where.unit
        assert level.per_device is not None
        assert share[where.level, "up", where.device] / level.per_device == found.transfer


NODES = System([Level("node", 4, "400 GB/s", "8 us", "50 GB/s"), Level("gpu", 8, "450 GB/s", "2 us")])


def test_by_hand() -> None:
    payload = Fraction(2 * 10**9)
    # Pipeline over the nodes: 8 chains leave a node, 16 GB at 400 GB/s and 2 GB at 50 GB/s: the same, the uplink named.
    across = traffic_cost(NODES, (4, 1), Pattern.POINT_TO_POINT, payload)
    assert across == StepCost(40_008_000, Fraction(8, 10**6), Fraction(4, 100), Bottleneck(0, 0, "up"))
    # Two stages inside a node: 4 chains leave it, and the device at the end of each drives its payload alone.
    both = traffic_cost(NODES, (4, 2), Pattern.POINT_TO_POINT, payload)
    assert both == StepCost(40_008_000, Fraction(8, 10**6), Fraction(4, 100), Bottleneck(0, 0, "up", 7))
    inside = traffic_cost(NODES, (1, 8), Pattern.POINT_TO_POINT, payload)
    assert inside == StepCost(4_446_445, Fraction(2, 10**6), Fraction(2, 450), Bottleneck(1, 0, "up"))
    # All-to-all of 8 inside a node: 7/8 of the payload leaves a GPU; of 32 over all: 24/32 leave a node, eightfold.
    exchange = traffic_cost(NODES, (1, 8), Pattern.ALL_TO_ALL, payload)
    assert exchange.transfer == payload * Fraction(7, 8) / (450 * 10**9)
    everywhere = traffic_cost(NODES, (4, 8), Pattern.ALL_TO_ALL, payload)
    assert everywhere.transfer == 8 * payload * Fraction(3, 4) / (400 * 10**9)
    assert everywhere.bottleneck == Bottleneck(0, 0, "up")
    assert everywhere.nanoseconds == 30_008_000


def test_an_axis_of_one_device_is_free() -> None:
    system = System(NODES.levels, "1 us")
    for pattern in PATTERNS:
        assert traffic_cost(system, (1, 1), pattern, Fraction(1)) == FREE
        assert traffic_cost(system, (2, 1), pattern, Fraction(1)).nanoseconds > 9000


def test_the_cost_is_the_same_whatever_the_other_rows_are() -> None:
    system = System([Level("a", 4, 10, 1, 3), Level("b", 6, 20, 1, 2), Level("c", 2, 7, 1)])
    seen: dict[tuple[Pattern, tuple[int, ...]], set[int]] = defaultdict(set)
    for sizes in itertools.permutations((4, 6, 2)):
        for placement in placements(system, _axes(*sizes)):
            for row, pattern in itertools.product(range(3), PATTERNS):
                cost, _ = reference(system, placement, row, pattern, Fraction(5))
                seen[pattern, placement.matrix[row]].add(cost.nanoseconds)
    assert len(seen) == 20
    for (pattern, entries), costs in seen.items():
        assert costs == {traffic_cost(system, entries, pattern, Fraction(5)).nanoseconds}


@pytest.mark.parametrize("row", [(4,), (4, 1, 1), (3, 1), (0, 1)])
def test_rows_that_fit_no_placement(row: tuple[int, ...]) -> None:
    with pytest.raises(InputError):
        traffic_cost(NODES, row, Pattern.ALL_TO_ALL, Fraction(1))


def test_other_wirings_are_refused_not_mispriced() -> None:
    ring = System([Level("node", 4, "8 GB/s", kind="ring"), Level("gpu", 2, "8 GB/s")])
    with pytest.raises(InputError, match="wiring"):
        traffic_cost(ring, (4, 1), Pattern.POINT_TO_POINT, Fraction(1))
