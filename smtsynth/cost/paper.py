"""The paper's own simulator (P2, section 6): bandwidth only, every collective on a closed ring, steps one by one.

Its figures are reproduced on the systems of examples/p2, in the hierarchy `reduction-row-major`, which lowers a
several-axis reduction as its tables do. Latency, overhead, copies and what one device or group can drive are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from smtsynth.cost.interface import GroupLoad, Shares, StepCost
from smtsynth.cost.plain import StepPrices
from smtsynth.cost.wired import wired_explain, wired_price, wired_step
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Instruction
from smtsynth.model.system import Level, System
from smtsynth.model.topology import LinkKind, Topology


@lru_cache(maxsize=64)
def bandwidth_only(system: System) -> System:
    """The system with nothing but its wiring and bandwidths."""
    levels = [
        Level(level.name, level.size, level.bandwidth, kind=level.kind, dims=level.dims, duplex=level.duplex)
        for level in system.levels
    ]
    links = system.topology
    if links is not None:
        kinds = [LinkKind(kind.name, kind.bandwidth, 0, kind.duplex) for kind in links.kinds]
        links = Topology(kinds, links.links, links.forwards)
    return System(levels, topology=links)


@dataclass(frozen=True, slots=True)
class Paper(StepPrices):
    """The paper's cost model; see the module."""

    name: str = "paper"

    def step(self, system: System, entries: Sequence[GroupLoad]) -> StepCost:
        """See CostModel."""
        return wired_step(bandwidth_only(system), entries, closed=True)

    def explain(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> StepCost:
        """See CostModel."""
        return wired_explain(_bare(lowering), instruction, shares, closed=True)

    def price(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> int:
        """See CostModel."""
        return wired_price(_bare(lowering), instruction, shares, closed=True)


def _bare(lowering: Lowering) -> Lowering:
    return replace(lowering, system=bandwidth_only(lowering.system))
