"""What a cost model offers, and the data it takes and gives (model, section 6)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from smtsynth.model.lowering import Lowering, lower
from smtsynth.model.problem import Problem
from smtsynth.model.program import Collective, Instruction
from smtsynth.model.rows import Row, Rows
from smtsynth.model.schedule import Group
from smtsynth.model.system import System

Groups = Sequence[Group] | npt.NDArray[np.int64]
# One share for all groups, or one per group type (see CostModel.price); bytes per device at input.
Shares = Fraction | Mapping[int, Fraction]
Direction = Literal["up", "down"]


@dataclass(frozen=True, slots=True, eq=False)
class GroupLoad:
    """One collective on explicit groups of devices.

    groups: device tuples, or device ids of shape (groups, m). roots: one device per group, or empty (the first
    of each group); only Reduce and Broadcast read them. payloads: bytes per device that a group holds at input,
    one for all groups or one per group.
    """

    collective: Collective
    groups: Groups
    roots: tuple[int, ...] = ()
    payloads: Fraction | Sequence[Fraction] = Fraction(0)


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What a step's transfer waits for: one direction of the uplink of unit `unit` (numbered among all units of
    its level) at level number `level`, or, where `device` is not None, what that device can drive of it. On a
    topology of links it is `link`, in words, and the others are None."""

    level: int | None
    unit: int | None
    direction: Direction | None
    device: int | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class StepCost:
    """A step's cost in whole nanoseconds, rounded up, and its exact parts in seconds.

    Of several equal bottlenecks the outermost level is named, there the uplink before a device, up before down,
    then the least unit or device. It is None where nothing is transferred.
    """

    nanoseconds: int
    latency: Fraction
    transfer: Fraction
    bottleneck: Bottleneck | None


FREE = StepCost(0, Fraction(0), Fraction(0), None)  # a step without any group of two devices


@runtime_checkable
class CostModel(Protocol):
    """A cost model. Every method is a pure function of its arguments.

    A *group type* of an instruction is the bitmask of the factors (bit f = factor f, 0 = outermost) outside the
    joined ones in which the group's devices have a non-zero digit; all groups of one type, in all replicas, hold
    the same share. See smtsynth.cost.shares.group_types.
    """

    @property
    def name(self) -> str:
        """The name that `cost_model` shows."""
        ...

    def step(self, system: System, entries: Sequence[GroupLoad]) -> StepCost:
        """The cost of one step of explicit groups that run at once."""
        ...

    def explain(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> StepCost:
        """The cost of `instruction` on all replicas' groups at once: what `step` says of those groups."""
        ...

    def price(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> int:
        """`explain(...).nanoseconds`, quickly. It must not fall when a share grows: the encodings rest on that."""
        ...

    def overlapped(self, system: System, steps: Sequence[Sequence[GroupLoad]]) -> int | None:
        """Nanoseconds that the steps take together where they overlap perfectly; None where the model can't say."""
        ...

    def key(self, lowering: Lowering) -> Hashable:
        """What the prices on a lowering depend on: lowerings of one problem with equal keys cost the same."""
        ...

    def any_schedule(
        self,
        lowering: Lowering,
        payload: Fraction,
        collective: Collective = Collective.ALL_REDUCE,
        split: Sequence[int] | None = None,
    ) -> int | None:
        """Nanoseconds that no schedule at all of the AllReduce takes less than; None where the model knows no bound."""
        ...


def row_bound(model: CostModel, rows: Rows, problem: Problem, row: Row) -> int:
    """Nanoseconds that no schedule at all takes less than on any placement with this row; 0 where none is known."""
    stand_in, placement = rows.problem(problem, row)
    plain, reduction = lower(problem.system, placement, stand_in.reduced), problem.reduction
    return model.any_schedule(plain, reduction.payload, reduction.collective, stand_in.split) or 0
