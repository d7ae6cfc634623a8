"""Prices from measurements: piecewise curves per collective and group shape, as `smtsynth calibrate` fits them.

A curve is of one group alone. Where a step's groups share uplinks, it takes as many times longer as the default model
says that the busiest link is busier with all of them than with one. Where there is no curve, or a size is outside its
pieces, the model refuses with one line, or (beyond: alpha-beta) takes the default model's price and its name says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.interface import FREE, GroupLoad, Shares, StepCost
from smtsynth.cost.patterns import nanoseconds
from smtsynth.cost.plain import StepPrices
from smtsynth.cost.wired import held_shares
from smtsynth.errors import InputError
from smtsynth.model.choice import Curve
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Instruction
from smtsynth.model.system import System
from smtsynth.model.units import show_bytes


@dataclass(frozen=True)
class Measured(StepPrices):
    """See the module. `rest`: the default model, for uplinks that groups share and, if `beyond` allows, the gaps.

    Where a price is `rest`'s, the crowding is in it already.
    """

    curves: tuple[Curve, ...]
    beyond: str = "refuse"
    rest: AlphaBeta = AlphaBeta()

    @property
    def name(self) -> str:
        """The name, and what fills the gaps."""
        return "measured" if self.beyond == "refuse" else f"measured (beyond its curves: {self.rest.name})"

    def step(self, system: System, entries: Sequence[GroupLoad]) -> StepCost:
        """See CostModel."""
        rest, crowding = self.rest.step(system, entries), self._crowded(system, entries)
        times = [Fraction(0)]
        for entry in entries:
            for number, group in enumerate(entry.groups):
                if len(group) > 1:
                    share = entry.payloads if isinstance(entry.payloads, Fraction) else entry.payloads[number]
                    times.append(self._time(entry.collective, _shape(system, group), len(group), share, rest, crowding))
        return self._cost(max(times), rest) if len(times) > 1 else FREE

    def _crowded(self, system: System, entries: Sequence[GroupLoad]) -> Fraction:
        """How much busier the busiest link is with all groups of a step than with the one that needs it most."""
        every, alone = [], Fraction(0)
        for entry in entries:
            every.append(GroupLoad(entry.collective, entry.groups, entry.roots, Fraction(1)))
            for number, group in enumerate(entry.groups):
                one = GroupLoad(entry.collective, [tuple(group)], entry.roots[number : number + 1], Fraction(1))
                alone = max(alone, self.rest.step(system, [one]).transfer)
        return self.rest.step(system, every).transfer / alone if alone else Fraction(1)

    def explain(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> StepCost:
        """See CostModel."""
        span = instruction.span(lowering.depth)
        if span.start >= span.stop:
            return FREE
        group = lowering.devices[0, lowering.groups(instruction)[0]]
        rest = self.rest.explain(lowering, instruction, shares)
        share = max(held_shares(lowering, instruction, shares))
        crowding, shape = _crowding(self.rest, lowering, instruction), _shape(lowering.system, group)
        return self._cost(self._time(instruction.collective, shape, len(group), share, rest, crowding), rest)

    def price(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> int:
        """See CostModel."""
        return self.explain(lowering, instruction, shares).nanoseconds

    @staticmethod
    def _cost(time: Fraction, rest: StepCost) -> StepCost:
        return StepCost(nanoseconds(time), Fraction(0), time, rest.bottleneck)

    def _time(
        self,
        collective: Collective,
        shape: tuple[int, int] | None,
        size: int,
        share: Fraction,
        rest: StepCost,
        crowding: Fraction,
    ) -> Fraction:
        """Seconds of groups of this shape, so much crowded; never falls when the share grows."""
        found = [c for c in self.curves if c.collective is collective and (c.nodes, c.devices) == shape]
        amount = share * size if collective is Collective.ALL_GATHER else share
        known = Fraction(rest.nanoseconds, 10**9)
        if found:
            low, high = found[0].pieces[0].first, found[0].pieces[-1].last
            if low <= amount <= high:
                return curve_seconds(found[0], amount) * crowding
            edge = curve_seconds(found[0], Fraction(low if amount < low else high)) * crowding
            filled = min(known, edge) if amount < low else max(known, edge)
        else:
            filled = known
        if self.beyond == "refuse":
            where = f"{shape[0]} nodes x {shape[1]} devices" if shape else f"uneven groups of {size}"
            have = f"measured from {show_bytes(low)} to {show_bytes(high)}" if found else "a curve of that shape"
            raise InputError(
                f"{collective} on {where} was not measured at {show_bytes(amount)}",
                where="cost model 'measured'",
                expected=f"{have}, or beyond: alpha-beta",
            )
        return filled


@lru_cache(maxsize=4096)
def _crowding(rest: AlphaBeta, lowering: Lowering, instruction: Instruction) -> Fraction:
    """How much busier the busiest link is with all groups of an instruction than with one, by the default model."""
    group = lowering.device_groups(instruction)[:1]
    alone = rest.step(lowering.system, [GroupLoad(instruction.collective, group, (), Fraction(1))]).transfer
    return rest.explain(lowering, instruction, Fraction(1)).transfer / alone


def curve_seconds(curve: Curve, amount: Fraction) -> Fraction:
    """Seconds at a size within the curve: the largest that any piece up to it gives, so that it never falls."""
    return max(
        piece.alpha + min(amount, Fraction(piece.last)) / piece.rate for piece in curve.pieces if piece.first <= amount
    )


def _shape(system: System, group: Sequence[int]) -> tuple[int, int] | None:
    """(nodes, devices on each) of a group; None where nodes hold different numbers."""
    size = system.levels[-1].size
    nodes: dict[int, int] = {}
    for device in group:
        nodes[int(device) // size] = nodes.get(int(device) // size, 0) + 1
    counts = set(nodes.values())
    return (len(nodes), counts.pop()) if len(counts) == 1 else None
