"""A bound below every schedule of a reduction, not only our instructions' (under the model, section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from smtsynth.cost.patterns import nanoseconds
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective


def any_schedule_bound(
    lowering: Lowering,
    payload: Fraction,
    collective: Collective = Collective.ALL_REDUCE,
    split: Sequence[int] | None = None,
) -> int:
    """Nanoseconds that no schedule of the reduction takes less than; 0 where nothing is reduced.

    payload: bytes per device of the whole buffer; split: the matrix rows that a ReduceScatter ends split over (None:
    all). The argument, for AllReduce: take a unit of a level and a replica with members inside and outside
    of it. Every chunk must reach some member outside with the contribution of a member inside, and a piece never
    loses a contributor, so one that serves this must leave the unit as a piece of this chunk that has
    contributors of this replica only (what is mixed with another chunk or replica stays wrong). That is `payload`
    bytes out for every such replica, and likewise in. For the other collectives it is the part of the chunks that
    members outside (or inside) need from inside (or outside), see `crossing`. No collective moves a piece over an
    uplink without loading it at least that much: out of a unit with i of a group's m members a ReduceScatter must
    bring the m - i parts of the others, of s/m each, and loads (m-1)/m*s; an AllGather i*s and (m-1)*s; an AllReduce s
    and at least s; Reduce and Broadcast s and s. A step takes at least load / bandwidth of every uplink, and load /
    (U * per_device) where the unit has U devices, since the largest share is not below the mean. Summed over the
    steps that is the bound; latency and overhead are left out, and rounding each step up only adds.
    """
    system = lowering.system
    bound = Fraction(0)
    for number, level in enumerate(system.levels):
        part = crossing(lowering, number, collective, lowering.reduced_rows if split is None else split)
        inside = _product(lowering, lowering.reduced_rows, range(number + 1, len(system.levels)))
        replicas = system.below(number) // inside
        bound = max(bound, replicas * part * payload / level.bandwidth)
        if level.per_device is not None:
            bound = max(bound, part * payload / (inside * level.per_device))
    return nanoseconds(bound)


def crossing(lowering: Lowering, level: int, collective: Collective, split: Sequence[int]) -> Fraction:
    """The part of the buffer that some unit of `level` must send, or take in, for each replica that leaves it.

    AllGather: members outside need the parts of those inside, and the other way round. ReduceScatter, and mixes:
    parts that end outside need what those inside contribute; all parts do where an unsplit axis leaves the unit.
    """
    levels = len(lowering.system.levels)
    rows, inner, outer = lowering.reduced_rows, range(level + 1, levels), range(level + 1)
    if _product(lowering, rows, outer) == 1:
        return Fraction(0)  # every replica that touches a unit lies inside it
    if collective is Collective.ALL_GATHER:
        inside = Fraction(_product(lowering, rows, inner), _product(lowering, rows, range(levels)))
        return max(inside, 1 - inside)
    if collective is Collective.REDUCE_SCATTER:
        inside = Fraction(_product(lowering, split, inner), _product(lowering, split, range(levels)))
        unsplit = [row for row in rows if row not in split]
        return Fraction(1) if _product(lowering, unsplit, outer) > 1 else max(inside, 1 - inside)
    return Fraction(1)


def _product(lowering: Lowering, rows: Sequence[int], levels: Iterable[int]) -> int:
    """The product of these rows' factors at these levels."""
    return math.prod(lowering.placement.matrix[row][level] for row in rows for level in levels)
