"""A bound below every AllReduce schedule, not only our instructions' (under the model, section 6)."""

from __future__ import annotations

import math
from fractions import Fraction

from smtsynth.cost.patterns import nanoseconds
from smtsynth.model.lowering import Lowering


def any_schedule_bound(lowering: Lowering, payload: Fraction) -> int:
    """Nanoseconds that no schedule of the AllReduce takes less than; 0 where nothing is reduced.

    payload: bytes per device. The argument: take a unit of a level and a replica with members inside and outside
    of it. Every chunk must reach some member outside with the contribution of a member inside, and a piece never
    loses a contributor, so one that serves this must leave the unit as a piece of this chunk that has
    contributors of this replica only (what is mixed with another chunk or replica stays wrong). That is `payload`
    bytes out for every such replica, and likewise in. No collective moves a piece over an uplink without loading
    it at least that much: out of a unit with i of a group's m members a ReduceScatter must bring the m - i parts
    of the others, of s/m each, and loads (m-1)/m*s; an AllGather i*s and (m-1)*s; an AllReduce s and at least s;
    Reduce and Broadcast s and s. A step takes at least load / bandwidth of every uplink, and load / (U * per_device)
    where the unit has U devices, since the largest share is not below the mean. Summed over the steps that is
    the bound; latency and overhead are left out, and rounding each step up only adds.
    """
    system, matrix = lowering.system, lowering.placement.matrix
    reduced = [math.prod(matrix[row][level] for row in lowering.reduced_rows) for level in range(len(system.levels))]
    bound = Fraction(0)
    for number, level in enumerate(system.levels):
        if math.prod(reduced[: number + 1]) == 1:
            continue  # every replica that touches a unit lies inside it
        inside = math.prod(reduced[number + 1 :])
        replicas = system.below(number) // inside
        bound = max(bound, replicas * payload / level.bandwidth)
        if level.per_device is not None:
            bound = max(bound, payload / (inside * level.per_device))
    return nanoseconds(bound)
