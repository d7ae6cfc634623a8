"""The alpha-beta cost of an instruction in closed form, for systems of any size (model, section 6).

An instruction joins the factors J = start..stop-1. Take a group and a level l, and write S for the product of
J's sizes at levels <= l, M for that at levels > l. In id order a group goes through its S units of level l one
after the other, M devices in each. Hence

- of a ring's edges, S lead out of a unit of level l (none if S = 1), of a chain's S - 1; those that first differ
  at l are these less the same at l - 1: that gives the latency, which is the same for all groups;
- a unit of level l that the group leaves and enters carries one edge up and one down; on a chain the first unit
  only the one, the last only the other. All groups that touch a unit are at the same place of their chain, since
  a unit fixes J's digits at levels <= l, so that some unit carries an edge of every group that touches it;
- a unit fixes all digits at levels <= l and is touched by a group for every value of the others outside J (below a
  Master only zeros). The heaviest is found by trying which of its fixed digits are zero;
- a device's share is an edge's bytes / M.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

from smtsynth.cost.interface import FREE, Bottleneck, Shares, StepCost
from smtsynth.cost.patterns import edge_factor, is_chain, latency_factor, nanoseconds
from smtsynth.cost.shares import bit_mask, outer_bits
from smtsynth.meaning.classes import submasks
from smtsynth.model.lowering import Factor, Lowering
from smtsynth.model.program import Collective, Instruction, Span


class Crossing(NamedTuple):
    """A level whose uplinks an instruction's groups use.

    members: M, a group's devices in one unit it touches; copies: groups that are alike in one unit because they
    differ outside the synthesis hierarchy only; fixed: bits of the factors outside J at this level or further
    out; second: how far the least device of the group's second unit is from that of its first.
    """

    level: int
    members: int
    copies: int
    fixed: int
    second: int


@dataclass(frozen=True)
class Geometry:
    """Where an instruction's groups lie. latency: sum of a group's edge latencies, seconds, as ring and as chain."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    outer: tuple[int, ...]
    members: int
    ring: Fraction
    chain: Fraction
    crossings: tuple[Crossing, ...]

    @cached_property
    def types(self) -> tuple[int, ...]:
        """All group types."""
        return submasks(bit_mask(self.outer))

    @cached_property
    def weights(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per crossing, per type: (the type's fixed bits, how many groups of the type such a unit touches)."""
        return tuple(
            tuple((mask & crossing.fixed, self.groups(crossing, mask)) for mask in self.types)
            for crossing in self.crossings
        )

    def groups(self, crossing: Crossing, mask: int) -> int:
        """How many groups of type `mask` a unit touches, if its fixed digits allow that type."""
        free = mask & ~crossing.fixed
        return crossing.copies * math.prod(self.sizes[f] - 1 for f in self.outer if free >> f & 1)

    def all_groups(self, crossing: Crossing) -> int:
        """How many groups of all types a unit touches."""
        return crossing.copies * math.prod(self.sizes[f] for f in self.outer if not crossing.fixed >> f & 1)

    def first(self, mask: int) -> int:
        """The least device with non-zero digits in the factors of `mask` only."""
        return sum(self.strides[f] for f in self.outer if mask >> f & 1)


def _stride(lowering: Lowering, factor: Factor) -> int:
    """How far the factor's digit 1 is from its digit 0: the digit of its last row that has any."""
    matrix = lowering.placement.matrix
    row = max(row for row in factor.rows if matrix[row][factor.level] > 1)
    return lowering.system.below(factor.level) * math.prod(r[factor.level] for r in matrix[row + 1 :])


@lru_cache(maxsize=2048)
def geometry(lowering: Lowering, span: Span) -> Geometry:
    """Where the groups of span `span` lie on the system; span.start < span.stop."""
    system, factors = lowering.system, lowering.factors
    joined = factors[span.start : span.stop]
    outer = outer_bits(lowering.depth, span)
    strides = tuple(_stride(lowering, factor) for factor in factors)
    ring = chain = Fraction(0)
    crossings = []
    left = 1  # S of the level above
    for number, level in enumerate(system.levels):
        units = math.prod(f.size for f in joined if f.level <= number)
        if units > 1:
            ring += (units - (left if left > 1 else 0)) * level.latency
            chain += (units - left) * level.latency
            crossings.append(
                Crossing(
                    level=number,
                    members=math.prod(f.size for f in joined if f.level > number),
                    copies=system.below(number) // math.prod(f.size for f in factors if f.level > number),
                    fixed=sum(1 << bit for bit in outer if factors[bit].level <= number),
                    second=min(strides[b] for b in range(span.start, span.stop) if factors[b].level <= number),
                )
            )
        left = units
    members = math.prod(factor.size for factor in joined)
    return Geometry(lowering.sizes, strides, outer, members, ring, chain, tuple(crossings))


@dataclass(frozen=True)
class Rates:
    """An instruction's price list: seconds that don't depend on bytes, and per crossing the seconds that a byte
    held by one group costs at a unit's uplink and (0 where there is no such limit) at a device."""

    geometry: Geometry
    overhead: Fraction
    latency: Fraction
    uplink: tuple[Fraction, ...]
    device: tuple[Fraction, ...]

    @cached_property
    def uniform(self) -> Fraction:
        """Seconds a byte where all groups hold the same."""
        geometry = self.geometry
        loads = [geometry.all_groups(c) * rate for c, rate in zip(geometry.crossings, self.uplink, strict=True)]
        return max(*loads, *self.device)

    @cached_property
    def fixed(self) -> Fraction:
        """Seconds before any byte moves."""
        return self.overhead + self.latency


@lru_cache(maxsize=2048)
def rates(lowering: Lowering, instruction: Instruction) -> Rates | None:
    """The price list of an instruction on a lowering, or None where it has no group of two devices."""
    span = instruction.span(lowering.depth)
    if span.start >= span.stop:
        return None
    where, levels = geometry(lowering, span), lowering.system.levels
    edge = edge_factor(instruction.collective, where.members)
    way = where.chain if is_chain(instruction.collective) else where.ring
    uplink, device = [], []
    for crossing in where.crossings:
        limit = levels[crossing.level].per_device
        uplink.append(edge / levels[crossing.level].bandwidth)
        device.append(edge / (crossing.members * limit) if limit is not None else Fraction(0))
    latency = latency_factor(instruction.collective, where.members) * way
    return Rates(where, lowering.system.overhead, latency, tuple(uplink), tuple(device))


def _whole(where: Geometry, shares: Mapping[int, Fraction]) -> tuple[list[int], int]:
    """Shares of all types, in their order, as whole numbers over one denominator."""
    try:
        held = [shares[mask] for mask in where.types]
    except KeyError as error:
        raise ValueError(f"no share is given for group type {error}") from None
    scale = math.lcm(*[share.denominator for share in held])
    return [share.numerator * (scale // share.denominator) for share in held], scale


def _loads(weights: tuple[tuple[int, int], ...], held: list[int]) -> dict[int, int]:
    """Per choice of fixed non-zero digits: what such a unit's groups hold together."""
    loads: dict[int, int] = {}
    for (fixed, groups), share in zip(weights, held, strict=True):
        loads[fixed] = loads.get(fixed, 0) + groups * share
    return loads


def closed_price(lowering: Lowering, instruction: Instruction, shares: Shares) -> int:
    """Nanoseconds of an instruction on all replicas' groups at once (see CostModel.price)."""
    tariff = rates(lowering, instruction)
    if tariff is None:
        return 0
    if isinstance(shares, Fraction):
        return nanoseconds(tariff.fixed + shares * tariff.uniform)
    held, scale = _whole(tariff.geometry, shares)
    largest = max(held)
    transfer = max(
        max(max(_loads(weights, held).values()) * uplink, largest * device)
        for weights, uplink, device in zip(tariff.geometry.weights, tariff.uplink, tariff.device, strict=True)
    )
    return nanoseconds(tariff.fixed + transfer / scale)


def closed_step(lowering: Lowering, instruction: Instruction, shares: Shares) -> StepCost:
    """The whole cost of an instruction, as explicit_step gives it for the same groups."""
    tariff = rates(lowering, instruction)
    if tariff is None:
        return FREE
    where = tariff.geometry
    if isinstance(shares, Fraction):
        shares = dict.fromkeys(where.types, shares)
    held, scale = _whole(where, shares)
    # A Reduce's first unit only takes in; every other collective's sends up.
    receives = instruction.collective is Collective.REDUCE
    largest, bottleneck = Fraction(0), None
    for crossing, weights, uplink, device in zip(
        where.crossings, where.weights, tariff.uplink, tariff.device, strict=True
    ):
        below, shift = lowering.system.below(crossing.level), crossing.second if receives else 0
        loads = _loads(weights, held)
        load = max(loads.values())
        seconds = load * uplink / scale
        if seconds > largest:
            first = min(where.first(fixed) for fixed, amount in loads.items() if amount == load)
            largest, bottleneck = seconds, Bottleneck(crossing.level, (first + shift) // below, "up")
        seconds = max(held) * device / scale
        if seconds > largest:
            types = zip(where.types, held, strict=True)
            first = min(where.first(mask) for mask, amount in types if amount == max(held)) + shift
            largest, bottleneck = seconds, Bottleneck(crossing.level, first // below, "up", first)
    return StepCost(nanoseconds(tariff.fixed + largest), tariff.latency, largest, bottleneck)
