"""The cost of given traffic on any wiring, by following every message (the model's section 6, carried further)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from smtsynth.cost.interface import FREE, StepCost
from smtsynth.cost.patterns import nanoseconds
from smtsynth.cost.traffic import traffic_cost
from smtsynth.cost.wired import bottleneck_lane
from smtsynth.cost.wiring import Lane, wiring_of
from smtsynth.errors import LimitReached
from smtsynth.model.lowering import lower
from smtsynth.model.placement import Placement
from smtsynth.model.rows import WHOLE, Row, Rows
from smtsynth.model.system import System
from smtsynth.model.workload import Pattern, Traffic

MAX_MESSAGES = 2**20


def traffic_step(system: System, placement: Placement, axis: int, pattern: Pattern, payload: Fraction) -> StepCost:
    """The cost of one exchange along axis number `axis` of a placement, on a system of any wiring.

    payload: bytes that each device sends (see smtsynth.model.workload.Traffic). On the model's trees that is
    traffic_cost; elsewhere every message loads the lanes of its route, an uplink's limits for a device and for a
    group count what that device or the axis' group moves over it, and the largest copy is of what a device sends.
    Raises LimitReached above MAX_MESSAGES messages.
    """
    row = placement.matrix[axis]
    if system.plain:
        return traffic_cost(system, row, pattern, payload)
    if math.prod(row) == 1:
        return FREE
    count = system.devices * (1 if pattern is Pattern.POINT_TO_POINT else math.prod(row))
    if count > MAX_MESSAGES:
        raise LimitReached(f"messages are followed one by one, at most {MAX_MESSAGES} of them, not {count}")
    wiring, lanes, latency = wiring_of(system), dict[Lane, int](), Fraction(0)
    groups = lower(system, placement, (axis,)).replica_groups
    for number, group in enumerate(groups):
        for one, two in _messages(pattern, group):
            latency = max(latency, wiring.latency(one, two))
            for lane in wiring.route(one, two):
                for part in (lane, *_limits(system, number, one, two, lane)):
                    lanes[part] = lanes.get(part, 0) + 1
    sent, size = payload, len(groups[0])
    if pattern is Pattern.ALL_TO_ALL:
        sent, payload = payload * Fraction(size - 1, size), payload / size
    seconds = {lane: count * payload / wiring.capacity(lane)[1] for lane, count in lanes.items()}
    where = bottleneck_lane(seconds)
    assert where is not None
    copying = sent / system.copy if system.copy is not None else Fraction(0)
    whole = nanoseconds(system.overhead + latency + seconds[where] + copying)
    return StepCost(whole, latency, seconds[where], wiring.place(where))


def _messages(pattern: Pattern, group: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """From which device to which, in a group in the axis' order."""
    if pattern is Pattern.POINT_TO_POINT:
        yield from zip(group, group[1:], strict=False)
    else:
        yield from ((one, two) for one in group for two in group if one != two)


def _limits(system: System, number: int, one: int, two: int, lane: Lane) -> Iterator[Lane]:
    """The lanes that stand for what a device, and what group `number`, can drive of an uplink."""
    if lane[0] != "uplink":
        return
    _, place, unit, direction = lane
    level = system.levels[place]
    if level.per_group is not None:
        yield ("per_group", place, unit, number, direction)
    if level.per_device is not None:
        yield ("per_device", place, unit, one if unit == one // system.below(place) else two, direction)


def row_traffic(rows: Rows, row: Row, flow: Traffic) -> int:
    """Nanoseconds of one exchange of `flow` on every placement whose row of the flow's axis is `row`.

    Its axis is one run of the stand-in, as a single axis can't lie apart. Raises LimitReached as traffic_step does.
    """
    placement = rows.stand_in(row)
    (axis,) = (number for number, one in enumerate(placement.axes) if one.name.startswith(WHOLE))
    return traffic_step(rows.system, placement, axis, flow.pattern, flow.payload).nanoseconds
