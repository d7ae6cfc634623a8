"""What cost models have in common that price steps and nothing more: no overlap, no bound of every schedule."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction

from smtsynth.cost.interface import GroupLoad
from smtsynth.cost.wired import wired_key
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective
from smtsynth.model.system import System


class StepPrices:
    """The methods of CostModel besides `name`, `step`, `explain` and `price`."""

    __slots__ = ()

    def overlapped(self, system: System, steps: Sequence[Sequence[GroupLoad]]) -> int | None:
        """None: the model doesn't tell which links a step keeps busy."""
        return None

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
        """None: the bound's argument is about the default model's limits."""
        return None
