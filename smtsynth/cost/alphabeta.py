"""The default cost model: alpha-beta on uplink loads (model, section 6), and the simulation of whole programs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from smtsynth.cost.bound import any_schedule_bound
from smtsynth.cost.closed import closed_price, closed_step
from smtsynth.cost.explicit import explicit_step
from smtsynth.cost.interface import CostModel, GroupLoad, Shares, StepCost
from smtsynth.cost.overlap import overlapped
from smtsynth.cost.shares import class_shares, piece_shares
from smtsynth.cost.wired import wired_explain, wired_key, wired_price, wired_step
from smtsynth.errors import InputError
from smtsynth.model.lowering import ROW_MAJOR, Lowering
from smtsynth.model.program import Collective, Instruction, Program
from smtsynth.model.schedule import Schedule
from smtsynth.model.system import System


@dataclass(frozen=True, slots=True)
class AlphaBeta:
    """Step time = overhead + latency + the transfer of the busiest uplink or device, in exact arithmetic.

    algorithm: how an AllReduce runs (see smtsynth.cost.algorithms). With rings on one of the model's trees prices
    are in closed form; anything else follows every edge (see smtsynth.cost.wired).
    """

    name: str = "alpha-beta"
    algorithm: str = "ring"

    def _closed(self, lowering: Lowering) -> bool:
        return self.algorithm == "ring" and lowering.system.plain and lowering.hierarchy != ROW_MAJOR

    def step(self, system: System, entries: Sequence[GroupLoad]) -> StepCost:
        """See smtsynth.cost.explicit.explicit_step."""
        if self.algorithm == "ring" and system.plain:
            return explicit_step(system, entries)
        return wired_step(system, entries, self.algorithm)

    def explain(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> StepCost:
        """See smtsynth.cost.closed.closed_step."""
        if self._closed(lowering):
            return closed_step(lowering, instruction, shares)
        return wired_explain(lowering, instruction, shares, self.algorithm)

    def price(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> int:
        """See smtsynth.cost.closed.closed_price."""
        if self._closed(lowering):
            return closed_price(lowering, instruction, shares)
        return wired_price(lowering, instruction, shares, self.algorithm)

    def overlapped(self, system: System, steps: Sequence[Sequence[GroupLoad]]) -> int | None:
        """See smtsynth.cost.overlap.overlapped."""
        return overlapped(system, steps, self.algorithm)

    def key(self, lowering: Lowering) -> Hashable:
        """See smtsynth.cost.wired.wired_key."""
        return wired_key(lowering)

    def any_schedule(
        self,
        lowering: Lowering,
        payload: Fraction,
        collective: Collective = Collective.ALL_REDUCE,
        split: Sequence[int] | None = None,
    ) -> int | None:
        """See smtsynth.cost.bound.any_schedule_bound, whose argument is about uplinks to switches."""
        if not lowering.system.switched:
            return None
        return any_schedule_bound(lowering, payload, collective, split)


def simulate_schedule(model: CostModel, system: System, schedule: Schedule, payload: Fraction) -> list[StepCost]:
    """The cost of each step of a schedule; payload: bytes per device of the whole buffer.

    The schedule must have passed check_schedule. A step without any group of two devices costs nothing. Raises
    InputError where the schedule has another number of devices than the system.
    """
    if schedule.devices != system.devices:
        raise InputError(f"the schedule has {schedule.devices} devices", expected=f"{system.devices}, as the system")
    return [model.step(system, loads) for loads in schedule_loads(schedule, payload)]


def schedule_loads(schedule: Schedule, payload: Fraction) -> list[list[GroupLoad]]:
    """What the groups of each step of a schedule hold, with `payload` bytes per device of the whole buffer."""
    return [
        [
            GroupLoad(entry.collective, entry.groups, entry.roots, [payload * part for part in parts])
            for entry, parts in zip(step, shares, strict=True)
        ]
        for step, shares in zip(schedule.steps, piece_shares(schedule), strict=True)
    ]


def simulate_program(
    model: CostModel,
    lowering: Lowering,
    program: Program,
    payload: Fraction,
    collective: Collective = Collective.ALL_REDUCE,
) -> list[StepCost]:
    """The cost of each step of a program on all replicas of a lowering of any size.

    payload: bytes per device of the whole buffer; collective: the reduction's, which says what is held at the
    start (model, section 5). An instruction without groups costs nothing, and so does every program where k = 1.
    Raises LimitReached above 16 factors (see class_shares).
    """
    parts = class_shares(lowering.sizes, program, collective)
    return [
        model.explain(lowering, instruction, {mask: payload * part for mask, part in shares.items()})
        for instruction, shares in zip(program, parts, strict=True)
    ]
