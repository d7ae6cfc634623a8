"""The cost of steps on any wiring, by any algorithm: loads per lane, exactly (the model's section 6, carried further).

Step time = overhead + latency + transfer + copy. Transfer is the busiest lane's; a pipeline that must be filled chunk
by chunk, of latency B, makes it A + B + 2 sqrt(A B), which is that of the best chunk size. The copy is of the mean
of what a device reads and writes, twice under a tree (up and down). Prices never fall when a share grows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from smtsynth.cost.algorithms import Flows, chain_flows, ring_flows, tree_flows
from smtsynth.cost.interface import FREE, GroupLoad, Shares, StepCost
from smtsynth.cost.patterns import is_chain, nanoseconds
from smtsynth.cost.shares import group_types
from smtsynth.cost.wiring import GraphWiring, Lane, LevelWiring, wiring_of
from smtsynth.errors import InputError, LimitReached
from smtsynth.model.lowering import ROW_MAJOR, Lowering
from smtsynth.model.program import Collective, Instruction
from smtsynth.model.system import System

MAX_DEVICES = 4096  # edges are followed one by one


@dataclass(frozen=True, slots=True)
class Group:
    """One group of a step: its devices (a chain's root first), and the number of the share it holds."""

    collective: Collective
    ids: tuple[int, ...]
    share: int


@dataclass(frozen=True)
class Loads:
    """What a step asks of the wiring. lanes: per lane and share, bytes on it per byte held (0 left out).

    copied: per share, the most bytes that a device copies per byte held; latency and filled: see Flows, the largest.
    """

    system: System
    shares: int
    lanes: Mapping[Lane, Mapping[int, Fraction]]
    copied: tuple[Fraction, ...]
    latency: Fraction
    filled: Fraction

    @cached_property
    def rows(self) -> tuple[tuple[Fraction, ...], ...]:
        """Per kind of lane: seconds per byte of each share; lanes that load alike once."""
        wiring = wiring_of(self.system)
        found: dict[tuple[Fraction, ...], None] = {}
        for lane, amounts in self.lanes.items():
            _, bandwidth = wiring.capacity(lane)
            found[tuple(amounts.get(share, Fraction(0)) / bandwidth for share in range(self.shares))] = None
        return tuple(found)

    def transfer(self, held: Sequence[Fraction]) -> Fraction:
        """Seconds of the busiest lane."""
        return max((sum(map(Fraction.__mul__, row, held), Fraction(0)) for row in self.rows), default=Fraction(0))

    def copying(self, held: Sequence[Fraction]) -> Fraction:
        """Seconds of the largest copy."""
        if self.system.copy is None:
            return Fraction(0)
        return max(map(Fraction.__mul__, self.copied, held)) / self.system.copy

    def price(self, held: Sequence[Fraction]) -> int:
        """Whole nanoseconds, rounded up."""
        moved = self.transfer(held)
        fixed = self.system.overhead + self.latency + self.copying(held)
        return filled_nanoseconds(fixed + moved + self.filled, moved * self.filled)

    def busiest(self, held: Sequence[Fraction]) -> dict[str, Fraction]:
        """Per constant of the system, the most bytes that a lane of its kind carries, and what is copied."""
        wiring, found = wiring_of(self.system), dict[str, Fraction]()
        for lane, amounts in self.lanes.items():
            name, _ = wiring.capacity(lane)
            load = sum((part * held[share] for share, part in amounts.items()), Fraction(0))
            found[name] = max(found.get(name, Fraction(0)), load)
        return found | {"copy": max(map(Fraction.__mul__, self.copied, held))}

    def seconds(self, held: Sequence[Fraction]) -> dict[Lane, Fraction]:
        """Seconds of every lane."""
        wiring = wiring_of(self.system)
        return {
            lane: sum((part * held[share] for share, part in amounts.items()), Fraction(0)) / wiring.capacity(lane)[1]
            for lane, amounts in self.lanes.items()
        }

    def cost(self, held: Sequence[Fraction]) -> StepCost:
        """The whole cost; the first of equal lanes (in the order of levels and units) is the bottleneck."""
        wiring, every = wiring_of(self.system), self.seconds(held)
        where = bottleneck_lane(every)
        moved = Fraction(0) if where is None else every[where]
        place = None if where is None else wiring.place(where)
        return StepCost(self.price(held), self.latency + self.filled, moved, place)


def bottleneck_lane(seconds: Mapping[Lane, Fraction]) -> Lane | None:
    """The lane that takes longest, the first of several in the order of levels and units; None if nothing moves."""
    moved = max(seconds.values(), default=Fraction(0))
    return min((lane for lane, value in seconds.items() if value == moved), key=_order) if moved else None


def _order(lane: Lane) -> tuple[object, ...]:
    """Levels from outside in, uplinks before what a device or group can drive, up before down."""
    kind, number, *rest = lane
    if not isinstance(number, int):
        return (0, number.name, list(map(str, rest)))
    return (number, kind == "per_device", "down" in rest, [part for part in rest if isinstance(part, int)])


def filled_nanoseconds(known: Fraction, product: Fraction) -> int:
    """known + 2 sqrt(product) seconds in whole nanoseconds, rounded up exactly."""
    if not product:
        return nanoseconds(known)
    scaled = 4 * product * 10**18  # (2 sqrt(product) in ns) squared
    least = nanoseconds(known + Fraction(math.isqrt(math.floor(scaled)), 10**9))
    while True:
        room = least - known * 10**9
        if room >= 0 and room * room >= scaled:
            return least
        least += 1


def flows_of(wiring: LevelWiring | GraphWiring, group: Group, algorithm: str, closed: bool) -> Flows:
    """What a group sends: an AllReduce by the algorithm, everything else on the model's ring or chain."""
    if group.collective is Collective.ALL_REDUCE and algorithm == "tree":
        return tree_flows(wiring, group.ids)
    if group.collective is Collective.ALL_REDUCE and algorithm == "chain":
        return chain_flows(wiring, group.ids)
    return ring_flows(wiring, group.collective, group.ids, closed)


def step_loads(
    system: System, groups: Sequence[Group], shares: int, algorithm: str = "ring", closed: bool = False
) -> Loads:
    """What the groups of one step ask of the wiring together. Raises LimitReached above MAX_DEVICES devices."""
    if system.devices > MAX_DEVICES:
        raise LimitReached(f"edges are followed one by one on at most {MAX_DEVICES} devices, not {system.devices}")
    wiring, lanes = wiring_of(system), dict[Lane, dict[int, Fraction]]()
    copied, latency, filled = [Fraction(0)] * shares, Fraction(0), Fraction(0)
    for number, group in enumerate(groups):
        found = flows_of(wiring, group, algorithm, closed)
        latency, filled = max(latency, found.latency), max(filled, found.filled)
        copied[group.share] = max(copied[group.share], _copied(group, algorithm))
        counts: dict[Lane, int] = {}
        for one, two, amount in found.flows:
            for lane in wiring.route(one, two):
                counts[lane] = counts.get(lane, 0) + amount
        for lane, count in (*counts.items(), *_limits(system, number, group, counts)):
            amounts = lanes.setdefault(lane, {})
            amounts[group.share] = amounts.get(group.share, Fraction(0)) + count * found.unit
    return Loads(system, shares, lanes, tuple(copied), latency, filled)


def _copied(group: Group, algorithm: str) -> Fraction:
    """Bytes that a device copies per byte it holds: the mean of what it reads and what it writes."""
    size = len(group.ids)
    if group.collective is Collective.REDUCE_SCATTER:
        return Fraction(size + 1, 2 * size)
    if group.collective is Collective.ALL_GATHER:
        return Fraction(size + 1, 2)
    return Fraction(2 if group.collective is Collective.ALL_REDUCE and algorithm == "tree" else 1)


def _limits(
    system: System, number: int, group: Group, counts: Mapping[Lane, int]
) -> Iterator[tuple[Lane, int | Fraction]]:
    """The lanes that stand for what a device or a group alone can drive of an uplink."""
    for place, level in enumerate(system.levels):
        if system.topology is not None or (level.per_device is None and level.per_group is None):
            continue
        below = system.below(place)
        units: dict[int, list[int]] = {}
        for device in group.ids:
            units.setdefault(device // below, []).append(device)
        for unit, members in units.items():
            for direction in ("both",) if level.duplex == "half" else ("up", "down"):
                load = counts.get(("uplink", place, unit, direction))
                if load is None:
                    continue
                if level.per_group is not None:
                    yield ("per_group", place, unit, number, direction), load
                if level.per_device is not None:
                    for device in members:
                        yield ("per_device", place, unit, device, direction), Fraction(load, len(members))


def entry_groups(system: System, entries: Sequence[GroupLoad]) -> tuple[list[Group], list[Fraction]]:
    """The groups of two devices or more of a step's entries, and the distinct shares they hold.

    Raises InputError where a device is unknown or there twice, or a root is not in its group.
    """
    groups: list[Group] = []
    numbers: dict[Fraction, int] = {}
    seen: set[int] = set()
    for entry in entries:
        for place, members in enumerate(entry.groups):
            ids = [int(device) for device in members]
            if len(ids) < 2:
                continue
            if min(ids) < 0 or max(ids) >= system.devices:
                raise InputError("a group has an unknown device", expected=f"0 to {system.devices - 1}")
            if len(set(ids)) < len(ids) or not seen.isdisjoint(ids):
                raise InputError("a device is in two groups of one step, or twice in one", expected="each at most once")
            seen.update(ids)
            share = entry.payloads if isinstance(entry.payloads, Fraction) else entry.payloads[place]
            root = (entry.roots[place] if entry.roots else ids[0]) if is_chain(entry.collective) else None
            groups.append(Group(entry.collective, _ordered(ids, root), numbers.setdefault(share, len(numbers))))
    return groups, list(numbers)


def _ordered(ids: Sequence[int], root: int | None) -> tuple[int, ...]:
    """In id order, the root first."""
    rest = sorted(device for device in ids if device != root)
    if root is None:
        return tuple(rest)
    if len(rest) == len(ids):
        raise InputError("a root is not in its group", expected="a member")
    return (root, *rest)


@lru_cache(maxsize=4096)
def lowered_loads(lowering: Lowering, instruction: Instruction, algorithm: str, closed: bool) -> Loads | None:
    """The loads of an instruction on all replicas' groups, a share per group type; None where it has no group."""
    span = instruction.span(lowering.depth)
    if span.start >= span.stop:
        return None
    types = {mask: number for number, mask in enumerate(group_types(lowering.depth, span))}
    first = lowering.groups(instruction)[:, 0]
    masks = [0] * len(first)
    for bit in range(lowering.depth):
        size, inner = lowering.sizes[bit], math.prod(lowering.sizes[bit + 1 :])
        if not span.start <= bit < span.stop:
            masks = [mask | (int(one) // inner % size > 0) << bit for mask, one in zip(masks, first, strict=True)]
    chain = is_chain(instruction.collective)
    groups = [
        Group(instruction.collective, _ordered(ids, ids[0] if chain else None), types[masks[number % len(masks)]])
        for number, ids in enumerate(lowering.device_groups(instruction).tolist())
    ]
    return step_loads(lowering.system, groups, len(types), algorithm, closed)


def held_shares(lowering: Lowering, instruction: Instruction, shares: Shares) -> list[Fraction]:
    """The share of every group type, in their order."""
    types = group_types(lowering.depth, instruction.span(lowering.depth))
    if isinstance(shares, Fraction):
        return [shares] * len(types)
    try:
        return [shares[mask] for mask in types]
    except KeyError as error:
        raise ValueError(f"no share is given for group type {error}") from None


def algorithms_of(collectives: Sequence[Collective], algorithm: str) -> tuple[str, ...]:
    """The ways to try: `auto` tries all that differ."""
    if Collective.ALL_REDUCE not in collectives:
        return ("ring",)
    return ("ring", "tree", "chain") if algorithm == "auto" else (algorithm,)


def wired_step(system: System, entries: Sequence[GroupLoad], algorithm: str = "ring", closed: bool = False) -> StepCost:
    """The cost of one step of explicit groups on any wiring, by its cheapest algorithm (see CostModel.step)."""
    groups, held = entry_groups(system, entries)
    if not groups:
        return FREE
    ways = algorithms_of([group.collective for group in groups], algorithm)
    costs = [step_loads(system, groups, len(held), way, closed).cost(held) for way in ways]
    return min(costs, key=lambda cost: cost.nanoseconds)


def wired_price(
    lowering: Lowering, instruction: Instruction, shares: Shares, algorithm: str = "ring", closed: bool = False
) -> int:
    """Nanoseconds of an instruction on any wiring (see CostModel.price)."""
    prices = []
    for way in algorithms_of([instruction.collective], algorithm):
        loads = lowered_loads(lowering, instruction, way, closed)
        if loads is None:
            return 0
        prices.append(loads.price(held_shares(lowering, instruction, shares)))
    return min(prices)


def wired_explain(
    lowering: Lowering, instruction: Instruction, shares: Shares, algorithm: str = "ring", closed: bool = False
) -> StepCost:
    """The whole cost of an instruction on any wiring (see CostModel.explain)."""
    costs = []
    for way in algorithms_of([instruction.collective], algorithm):
        loads = lowered_loads(lowering, instruction, way, closed)
        if loads is None:
            return FREE
        costs.append(loads.cost(held_shares(lowering, instruction, shares)))
    return min(costs, key=lambda cost: cost.nanoseconds)


def wired_key(lowering: Lowering) -> Hashable:
    """What prices on any wiring depend on: on switches the factors, else the placement and its reduced rows too."""
    factors = tuple((factor.level, factor.size, factor.reduced) for factor in lowering.factors)
    if lowering.system.switched and lowering.hierarchy != ROW_MAJOR:
        return factors
    return factors, lowering.placement.matrix, lowering.reduced_rows
