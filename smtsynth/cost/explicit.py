"""The alpha-beta cost of a step of explicit groups, edge by edge and exactly (model, section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from smtsynth.cost.interface import FREE, Bottleneck, Direction, GroupLoad, StepCost
from smtsynth.cost.patterns import edge_factor, is_chain, latency_factor, nanoseconds
from smtsynth.errors import InputError
from smtsynth.model.program import Collective
from smtsynth.model.system import System

Ints = npt.NDArray[np.int64]
Exact = npt.NDArray[np.generic]  # int64 where every sum fits, else Python ints
DIRECTIONS: tuple[Direction, ...] = ("up", "down")


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """All edges and members of a step's groups of two devices or more, flat.

    Edge i runs from device ends["up"][i] to ends["down"][i] in group owner[i] and carries amount[i] / scale bytes.
    kinds: (collective, m) per group.
    """

    ends: dict[Direction, Ints]
    owner: Ints
    amount: Exact
    scale: int
    member: Ints
    member_owner: Ints
    kinds: list[tuple[Collective, int]]


def explicit_step(system: System, entries: Sequence[GroupLoad]) -> StepCost:
    """The cost of one step; loads of all entries add up, its latency is the largest over the groups.

    A step without any group of two devices is free: it is no step (model, section 4), so not even the overhead
    is paid. Raises InputError where a device is unknown or there twice, or a root is not in its group.
    """
    edges = _edges(system, entries)
    if edges is None:
        return FREE
    latency = _latency(system, edges)
    transfer, bottleneck = _transfer(system, edges)
    return StepCost(nanoseconds(system.overhead + latency + transfer), latency, transfer, bottleneck)


def _by_size(entry: GroupLoad) -> Iterator[tuple[Ints, list[int]]]:
    """The entry's groups of two devices or more as arrays (g, m), with their numbers in the entry."""
    if isinstance(entry.groups, np.ndarray):
        if entry.groups.ndim == 2 and entry.groups.shape[0] and entry.groups.shape[1] > 1:
            yield entry.groups, list(range(len(entry.groups)))
        return
    numbers: dict[int, list[int]] = {}
    for number, group in enumerate(entry.groups):
        numbers.setdefault(len(group), []).append(number)
    for size, chosen in numbers.items():
        if size > 1:
            yield np.array([entry.groups[number] for number in chosen], dtype=np.int64), chosen


def _ordered(groups: Ints, roots: Ints | None) -> Ints:
    """Each group in id order; a chain's root (where given) first."""
    ids = np.sort(groups, axis=1)
    if roots is None:
        return ids
    other = ids != roots[:, None]
    if other.all(axis=1).any():
        raise InputError("a root is not in its group", expected="a member")
    return np.take_along_axis(ids, np.argsort(other, axis=1, kind="stable"), axis=1)


def _edges(system: System, entries: Sequence[GroupLoad]) -> Edges | None:
    starts, stops, owners, members, member_owners = [], [], [], [], []
    carried: list[Fraction] = []  # bytes on each edge, per group
    repeats: list[int] = []  # edges per group
    kinds: list[tuple[Collective, int]] = []
    for entry in entries:
        chain = is_chain(entry.collective)
        for groups, numbers in _by_size(entry):
            size = groups.shape[1]
            roots = None
            if chain:
                roots = np.array([entry.roots[n] for n in numbers], dtype=np.int64) if entry.roots else groups[:, 0]
            ids = _ordered(groups, roots)
            source, target = (ids[:, :-1], ids[:, 1:]) if chain else (ids, np.roll(ids, -1, axis=1))
            if entry.collective is Collective.REDUCE:
                source, target = target, source
            own = np.arange(len(kinds), len(kinds) + len(numbers), dtype=np.int64)
            starts.append(source.reshape(-1))
            stops.append(target.reshape(-1))
            owners.append(np.repeat(own, source.shape[1]))
            members.append(ids.reshape(-1))
            member_owners.append(np.repeat(own, size))
            factor = edge_factor(entry.collective, size)
            if isinstance(entry.payloads, Fraction):
                carried += [entry.payloads * factor] * len(numbers)
            else:
                carried += [entry.payloads[number] * factor for number in numbers]
            repeats += [source.shape[1]] * len(numbers)
            kinds += [(entry.collective, size)] * len(numbers)
    if not kinds:
        return None
    member = np.concatenate(members)
    if member.min() < 0 or member.max() >= system.devices:
        raise InputError("a group has an unknown device", expected=f"0 to {system.devices - 1}")
    if np.unique(member).size < member.size:
        raise InputError("a device is in two groups of one step, or twice in one", expected="each at most once")
    scale = math.lcm(*{share.denominator for share in carried})
    whole = [share.numerator * (scale // share.denominator) for share in carried]
    total = sum(number * edges for number, edges in zip(whole, repeats, strict=True))
    per_group: Exact = np.array(whole, dtype=np.int64 if total < 2**63 else object)
    owner = np.concatenate(owners)
    ends: dict[Direction, Ints] = {"up": np.concatenate(starts), "down": np.concatenate(stops)}
    return Edges(ends, owner, per_group[owner], scale, member, np.concatenate(member_owners), kinds)


def _latency(system: System, edges: Edges) -> Fraction:
    """The largest group latency; an edge counts at the outermost level at which its ends differ."""
    levels = len(system.levels)
    differ = np.zeros(len(edges.owner), dtype=np.int64)
    for level in range(levels):
        below = system.below(level)
        differ += edges.ends["up"] // below == edges.ends["down"] // below
    counts = np.bincount(edges.owner * levels + differ, minlength=len(edges.kinds) * levels).reshape(-1, levels)
    largest = Fraction(0)
    for (collective, size), row in set(zip(edges.kinds, map(tuple, counts.tolist()), strict=True)):
        total = sum((n * level.latency for n, level in zip(row, system.levels, strict=True)), Fraction(0))
        largest = max(largest, latency_factor(collective, size) * total)
    return largest


def _sums(keys: Ints, amount: Exact) -> tuple[Ints, Exact]:
    """Distinct keys, ascending, and the sum of the amounts of each."""
    distinct, place = np.unique(keys, return_inverse=True)
    sums: Exact = np.zeros(len(distinct), dtype=amount.dtype)
    np.add.at(sums, place, amount)
    return distinct, sums


def _transfer(system: System, edges: Edges) -> tuple[Fraction, Bottleneck | None]:
    """The largest of load/bandwidth and of share/per_device, and where it is."""
    largest, bottleneck = Fraction(0), None
    for number, level in enumerate(system.levels):
        below = system.below(number)
        units = {direction: ids // below for direction, ids in edges.ends.items()}
        crossing = units["up"] != units["down"]
        if not crossing.any():
            continue
        amount, owner = edges.amount[crossing], edges.owner[crossing]
        for direction in DIRECTIONS:
            touched, loads = _sums(units[direction][crossing], amount)
            place = int(loads.argmax())
            seconds = Fraction(int(loads[place]), edges.scale) / level.bandwidth
            if seconds > largest:
                largest, bottleneck = seconds, Bottleneck(number, int(touched[place]), direction)
        if level.per_device is None:
            continue
        for direction in DIRECTIONS:
            share, device = _device_share(edges, below, owner, units[direction][crossing], amount)
            seconds = share / level.per_device
            if seconds > largest:
                largest, bottleneck = seconds, Bottleneck(number, device // below, direction, device)
    return largest, bottleneck


def _device_share(edges: Edges, below: int, owner: Ints, unit: Ints, amount: Exact) -> tuple[Fraction, int]:
    """The largest share of a device in its unit's uplink, bytes, and the least device that has it.

    A group's load on a unit is spread evenly over its members in that unit.
    """
    touched = np.unique(edges.member // below)
    member_keys = edges.member_owner * len(touched) + np.searchsorted(touched, edges.member // below)
    pairs, loads = _sums(owner * len(touched) + np.searchsorted(touched, unit), amount)
    every, counts = np.unique(member_keys, return_counts=True)
    counts = counts[np.searchsorted(every, pairs)]
    best, device = Fraction(0), -1
    for count in np.unique(counts).tolist():
        same = counts == count
        top = loads[same].max()
        share = Fraction(int(top), count * edges.scale)
        first = int(edges.member[np.isin(member_keys, pairs[same & (loads == top)])].min())
        if share > best or (share == best and first < device):
            best, device = share, first
    return best, device
