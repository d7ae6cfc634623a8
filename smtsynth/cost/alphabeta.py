"""The default cost model: alpha-beta on uplink loads (model, section 6), and the simulation of whole programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from smtsynth.cost.bound import any_schedule_bound
from smtsynth.cost.closed import closed_bound, closed_price, closed_step
from smtsynth.cost.explicit import explicit_step
from smtsynth.cost.interface import CostModel, GroupLoad, Shares, StepCost
from smtsynth.cost.shares import class_shares, piece_shares
from smtsynth.errors import InputError
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Instruction, Program
from smtsynth.model.schedule import Schedule
from smtsynth.model.system import System


@dataclass(frozen=True, slots=True)
class AlphaBeta:
    """Step time = overhead + latency + the transfer of the busiest uplink or device, in exact arithmetic."""

    name: str = "alpha-beta"

    def step(self, system: System, entries: Sequence[GroupLoad]) -> StepCost:
        """See smtsynth.cost.explicit.explicit_step."""
        return explicit_step(system, entries)

    def explain(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> StepCost:
        """See smtsynth.cost.closed.closed_step."""
        return closed_step(lowering, instruction, shares)

    def price(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> int:
        """See smtsynth.cost.closed.closed_price."""
        return closed_price(lowering, instruction, shares)

    def lower_bound(self, lowering: Lowering, instruction: Instruction, share: Fraction, mask: int) -> int:
        """See smtsynth.cost.closed.closed_bound."""
        return closed_bound(lowering, instruction, share, mask)

    def any_schedule(self, lowering: Lowering, payload: Fraction) -> int | None:
        """See smtsynth.cost.bound.any_schedule_bound."""
        return any_schedule_bound(lowering, payload)


def simulate_schedule(model: CostModel, system: System, schedule: Schedule, payload: Fraction) -> list[StepCost]:
    """The cost of each step of a schedule; payload: bytes per device of the whole buffer.

    The schedule must have passed check_schedule. A step without any group of two devices costs nothing. Raises
    InputError where the schedule has another number of devices than the system.
    """
    if schedule.devices != system.devices:
        raise InputError(f"the schedule has {schedule.devices} devices", expected=f"{system.devices}, as the system")
    costs = []
    for step, shares in zip(schedule.steps, piece_shares(schedule), strict=True):
        loads = [
            GroupLoad(entry.collective, entry.groups, entry.roots, [payload * part for part in parts])
            for entry, parts in zip(step, shares, strict=True)
        ]
        costs.append(model.step(system, loads))
    return costs


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
