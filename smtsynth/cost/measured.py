"""Prices from measurements: piecewise curves per collective and group shape, as `smtsynth calibrate` fits them.

A curve is of one group alone. What groups that run at once do to each other on shared uplinks is bounded by the
default model on the system: a step takes the longer of the two. Where there is no curve, or a size is outside its
pieces, the model refuses with one line, or (beyond: alpha-beta) takes the default model's price and its name says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.interface import FREE, GroupLoad, Shares, StepCost
from smtsynth.cost.patterns import nanoseconds
from smtsynth.cost.wired import alone, held_shares, wired_key
from smtsynth.errors import InputError
from smtsynth.model.choice import Curve
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Instruction
from smtsynth.model.system import System
from smtsynth.model.units import show_bytes


@dataclass(frozen=True)
class Measured:
    """See the module. `rest`: the default model, for uplinks that groups share and, if `beyond` allows, the gaps."""

    curves: tuple[Curve, ...]
    beyond: str = "refuse"
    rest: AlphaBeta = AlphaBeta()

    @property
    def name(self) -> str:
        """The name, and what fills the gaps."""
        return "measured" if self.beyond == "refuse" else f"measured (beyond its curves: {self.rest.name})"

    def step(self, system: System, entries: Sequence[GroupLoad]) -> StepCost:
        """See CostModel."""
        rest, times = self.rest.step(system, entries), []
        for entry in entries:
            for number, group in enumerate(entry.groups):
                if len(group) > 1:
                    share = entry.payloads if isinstance(entry.payloads, Fraction) else entry.payloads[number]
                    shape = _shape(system, group)
                    times.append(self._time(entry.collective, shape, len(group), share, rest))
        return self._cost(max(times), rest) if times else FREE

    def explain(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> StepCost:
        """See CostModel."""
        span = instruction.span(lowering.depth)
        if span.start >= span.stop:
            return FREE
        group = lowering.devices[0, lowering.groups(instruction)[0]]
        rest = self.rest.explain(lowering, instruction, shares)
        share = max(held_shares(lowering, instruction, shares))
        time = self._time(instruction.collective, _shape(lowering.system, group), len(group), share, rest)
        return self._cost(time, rest)

    def price(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> int:
        """See CostModel."""
        return self.explain(lowering, instruction, shares).nanoseconds

    def lower_bound(self, lowering: Lowering, instruction: Instruction, share: Fraction, mask: int) -> int:
        """See CostModel."""
        return self.price(lowering, instruction, alone(lowering, instruction, share, mask))

    def overlapped(self, system: System, steps: Sequence[Sequence[GroupLoad]]) -> int | None:
        """None: a curve doesn't tell which links it keeps busy."""
        return None

    def key(self, lowering: Lowering) -> Hashable:
        """See CostModel."""
        return wired_key(lowering)

    def any_schedule(self, lowering: Lowering, payload: Fraction) -> int | None:
        """None: measurements bound only what was measured."""
        return None

    @staticmethod
    def _cost(time: Fraction, rest: StepCost) -> StepCost:
        seconds = max(time, rest.transfer)
        return StepCost(nanoseconds(seconds), Fraction(0), seconds, rest.bottleneck)

    def _time(
        self, collective: Collective, shape: tuple[int, int] | None, size: int, share: Fraction, rest: StepCost
    ) -> Fraction:
        """Seconds of one group alone; never falls when the share grows."""
        found = [c for c in self.curves if c.collective is collective and (c.nodes, c.devices) == shape]
        amount = share * size if collective is Collective.ALL_GATHER else share
        known = Fraction(rest.nanoseconds, 10**9)
        if found:
            low, high = found[0].pieces[0].first, found[0].pieces[-1].last
            if low <= amount <= high:
                return curve_seconds(found[0], amount)
            edge = curve_seconds(found[0], Fraction(low if amount < low else high))
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
