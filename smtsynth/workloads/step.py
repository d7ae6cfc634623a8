"""A training step as reductions and given traffic, each with the formulas of its bytes and count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smtsynth.model.choice import CostChoice
from smtsynth.model.placement import Axis
from smtsynth.model.problem import Limits, Reduction
from smtsynth.model.program import Collective
from smtsynth.model.system import System
from smtsynth.model.workload import Constraint, NamedReduction, Pattern, Traffic, Workload

Factors = Sequence[tuple[int, str]]
"""A product, each factor with what it counts."""


@dataclass(frozen=True, slots=True)
class Part:
    """One reduction or given traffic of a step, and the formulas of its bytes and count in words and numbers."""

    entry: NamedReduction | Traffic
    note: str


@dataclass(frozen=True, slots=True)
class Step:
    """What a training step communicates."""

    parts: tuple[Part, ...]

    @property
    def reductions(self) -> tuple[NamedReduction, ...]:
        """Its reductions."""
        return tuple(part.entry for part in self.parts if isinstance(part.entry, NamedReduction))

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """Its given traffic."""
        return tuple(part.entry for part in self.parts if isinstance(part.entry, Traffic))

    @property
    def notes(self) -> dict[str, str]:
        """The formula of each, by name."""
        return {part.entry.name: part.note for part in self.parts}

    def workload(
        self,
        system: System,
        axes: Mapping[str, int] | Sequence[Axis],
        constraints: Sequence[Constraint] = (),
        limits: Limits | None = None,
        cost_model: CostChoice | None = None,
    ) -> Workload:
        """The step on a system. Raises InputError where the axes don't fit it, or nothing is communicated."""
        return Workload(system, axes, self.reductions, self.traffic, constraints, limits, cost_model)


def value(factors: Factors) -> int:
    """The product."""
    return math.prod(number for number, _ in factors)


def note(source: str, payload: Factors, count: Factors) -> str:
    """Both formulas in words: where they are from, bytes, count."""
    texts = [" · ".join(f"{number} {word}" for number, word in factors) for factors in (payload, count)]
    often = f"{value(count)} times = {texts[1]}" if value(count) > 1 else "once a step"
    return f"{source}: {value(payload)} B = {texts[0]}; {often}"


def reduction(
    name: str,
    collective: Collective | dict[str, Collective],
    over: Sequence[str],
    payload: Factors,
    count: Factors,
    source: str,
) -> Part:
    """A reduction as a part of a step."""
    entry = NamedReduction(name, Reduction(over, value(payload), collective), value(count))
    return Part(entry, note(source, payload, count))


def traffic(name: str, axis: str, pattern: Pattern, payload: Factors, count: Factors, source: str) -> Part:
    """Given traffic as a part of a step."""
    return Part(Traffic(name, axis, pattern, value(payload), value(count)), note(source, payload, count))
