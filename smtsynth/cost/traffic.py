"""The alpha-beta cost of given traffic: neighbours along an axis, or each to each (model, section 6).

Given traffic is priced, never synthesized: pipeline stages pass activations on, experts exchange tokens. It takes the
same uplinks as reductions do: what leaves a unit of a level loads the up direction of its uplink, what enters it the
down direction, and all groups (all coordinates of the other axes) send at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from smtsynth.cost.interface import FREE, Bottleneck, StepCost
from smtsynth.cost.patterns import nanoseconds
from smtsynth.errors import InputError
from smtsynth.model.system import System
from smtsynth.model.workload import Pattern


def traffic_cost(system: System, row: Sequence[int], pattern: Pattern, payload: Fraction) -> StepCost:
    """The cost of one exchange along an axis with these factors, one per level, outermost first.

    payload: bytes that each device sends (see smtsynth.model.workload.Traffic). With m = product of the row, M_l =
    product of its factors below level l, U_l = devices of a unit of level l:

    - point-to-point, coordinate c to c + 1: a unit sends the payload of each of its U_l / M_l chains once, if the
      axis has a factor above 1 at level l or further out; the device at the chain's end drives the payload alone;
    - all-to-all, an m-th of the payload to each of the m: a device sends (m - M_l) / m of it out of its unit of level
      l, and the unit U_l times as much.

    Latency: that of the outermost level which the axis spans. An axis of size 1 costs nothing, not even overhead.
    The row fixes the cost but not all device ids, so that a device named as bottleneck is one that has the largest
    share whatever the other rows are: device 0 (all-to-all) or the last of unit 0 (point-to-point). Raises
    InputError where the row has another length than the system has levels, a factor does not divide its level, or the
    system is wired otherwise than the model's tree of uplinks.
    """
    if not system.plain:
        raise InputError("given traffic can't be priced on this wiring", expected="a tree of plain levels")
    if len(row) != len(system.levels):
        raise InputError(f"a row of {len(row)} factors", expected=f"{len(system.levels)}, one for each level")
    for factor, level in zip(row, system.levels, strict=True):
        if factor < 1 or level.size % factor:
            raise InputError(f"factor {factor} does not divide level {level.name!r}", expected=f"of {level.size}")
    outermost = next((number for number, factor in enumerate(row) if factor > 1), None)
    if outermost is None:
        return FREE
    latency = system.levels[outermost].latency
    transfer, bottleneck = Fraction(0), None
    for seconds, where in _waits(system, row, pattern, payload, outermost):
        if seconds > transfer:
            transfer, bottleneck = seconds, where
    return StepCost(nanoseconds(system.overhead + latency + transfer), latency, transfer, bottleneck)


def _waits(
    system: System, row: Sequence[int], pattern: Pattern, payload: Fraction, outermost: int
) -> Iterator[tuple[Fraction, Bottleneck]]:
    """What the transfer may wait for, in the order in which ties are broken: seconds, and where."""
    size = math.prod(row)
    for number, level in enumerate(system.levels):
        if number < outermost:
            continue
        devices, inside = system.below(number), math.prod(row[number + 1 :])
        if pattern is Pattern.POINT_TO_POINT:
            load, share, device = payload * (devices // inside), payload, devices - 1
        else:
            share, device = payload * Fraction(size - inside, size), 0
            load = share * devices
        yield load / level.bandwidth, Bottleneck(number, 0, "up")
        if level.per_device is not None:
            yield share / level.per_device, Bottleneck(number, 0, "up", device)
