"""Workloads: the reductions of a training step on one system and one set of axes, and what a placement must obey.

The paper asks that the choice of a mapping "take all of them into account" (section 7); a workload is all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from types import NoneType

from smtsynth.errors import InputError, check_type
from smtsynth.model.choice import CostChoice
from smtsynth.model.placement import Axis, Matrix, axes_of, check_axes
from smtsynth.model.problem import Limits, Problem, Reduction
from smtsynth.model.system import System, check_name
from smtsynth.model.units import Number, quantity

MAX_COUNT = 10**9


def check_count(count: object, where: str) -> int:
    """`count` if it is how often something happens in a step: a whole number from 1, else InputError."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_COUNT:
        shown = repr(count)[:30] if not isinstance(count, int) or abs(count) < 10**20 else "far too large"
        raise InputError(f"count is {shown}", where=where, expected=f"a whole number from 1 to {MAX_COUNT}")
    return count


@dataclass(frozen=True, slots=True)
class NamedReduction:
    """A reduction of the step, which happens `count` times."""

    name: str
    reduction: Reduction
    count: int = 1

    def __post_init__(self) -> None:
        check_name(self.name, "reduction")
        check_type(self.reduction, Reduction, f"reduction {self.name!r}", "a Reduction")
        check_count(self.count, f"reduction {self.name!r}")


class Pattern(StrEnum):
    """Given traffic: to the next device along an axis (pipeline stages), or from each to each (experts)."""

    POINT_TO_POINT = "point-to-point"
    ALL_TO_ALL = "all-to-all"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic that is not synthesized, only priced: `payload` bytes that each device sends, `count` times.

    point-to-point: to the next device along `axis`, the last of which sends nothing; all-to-all: an equal part to
    every device along `axis`, itself included (so (m-1)/m of it leaves the device).
    """

    name: str
    axis: str
    pattern: Pattern
    payload: Fraction
    count: int

    def __init__(self, name: str, axis: str, pattern: Pattern | str, payload: Number, count: int = 1) -> None:
        where = f"traffic {name!r}"
        if pattern not in list(Pattern):
            raise InputError(f"pattern {str(pattern)[:40]!r} is unknown", where=where, expected=", ".join(Pattern))
        amount = quantity(payload, "bytes", where=f"{where}: bytes", bare=True)
        if amount == 0:
            raise InputError("is zero", where=f"{where}: bytes", expected="a positive quantity such as '8 MiB'")
        for key, value in (
            ("name", check_name(name, "traffic")),
            ("axis", axis),
            ("pattern", Pattern(pattern)),
            ("payload", amount),
            ("count", check_count(count, where)),
        ):
            object.__setattr__(self, key, value)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a placement must obey, for one axis; exactly one of the three.

    inside: the axis stays inside one unit of this level (its factors there and further out are 1); unsplit: it lies
    in a single level; factor: its factor at `level` is this number.
    """

    axis: str
    inside: str | None = None
    unsplit: bool = False
    level: str | None = None
    factor: int | None = None

    def __post_init__(self) -> None:
        kinds = [self.inside is not None, self.unsplit, self.level is not None or self.factor is not None]
        if sum(kinds) != 1 or (kinds[2] and (self.level is None or self.factor is None)):
            raise InputError(
                f"a constraint on axis {self.axis!r} is unclear", expected="inside, unsplit, or level and factor"
            )

    def __str__(self) -> str:
        if self.inside is not None:
            return f"{self.axis} inside {self.inside}"
        return f"{self.axis} unsplit" if self.unsplit else f"{self.axis} {self.factor} at {self.level}"

    def allows(self, row: Sequence[int], levels: Sequence[str]) -> bool:
        """Whether a row of the matrix obeys."""
        if self.inside is not None:
            return all(entry == 1 for entry in row[: levels.index(self.inside) + 1])
        if self.unsplit:
            return sum(entry > 1 for entry in row) <= 1
        return row[levels.index(self.level or "")] == self.factor


@dataclass(frozen=True, slots=True)
class Workload:
    """Reductions and given traffic of one step, and constraints on the placement that must serve them all."""

    system: System
    axes: tuple[Axis, ...]
    reductions: tuple[NamedReduction, ...]
    traffic: tuple[Traffic, ...]
    constraints: tuple[Constraint, ...]
    limits: Limits
    cost_model: CostChoice

    def __init__(
        self,
        system: System,
        axes: Mapping[str, int] | Sequence[Axis],
        reductions: Sequence[NamedReduction],
        traffic: Sequence[Traffic] = (),
        constraints: Sequence[Constraint] = (),
        limits: Limits | None = None,
        cost_model: CostChoice | None = None,
    ) -> None:
        check_type(system, System, "system", "a System")
        for key, entries, kind in (
            ("reductions", reductions, NamedReduction),
            ("traffic", traffic, Traffic),
            ("constraints", constraints, Constraint),
        ):
            check_type(entries, (list, tuple), key, f"a list of {kind.__name__}")
            for entry in entries:
                check_type(entry, kind, key, f"a list of {kind.__name__}")
        check_type(limits, (Limits, NoneType), "limits", "Limits")
        check_type(cost_model, (CostChoice, NoneType), "cost_model", "a CostChoice")
        if not reductions and not traffic:
            raise InputError("a workload has no reductions", expected="at least one")
        found = check_axes(axes_of(axes), system)
        known, levels = [axis.name for axis in found], [level.name for level in system.levels]
        names = [one.name for one in reductions] + [flow.name for flow in traffic]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two entries are named {name!r}", expected="a name of its own for each")
        for reduction in reductions:
            for axis in reduction.reduction.over:
                _known(axis, known, f"reduction {reduction.name!r}: over")
        for flow in traffic:
            _known(flow.axis, known, f"traffic {flow.name!r}: axis")
        for constraint in constraints:
            _known(constraint.axis, known, "constraints: axis")
            for level in (constraint.inside, constraint.level):
                if level is not None and level not in levels:
                    raise InputError(f"there is no level {level!r}", where="constraints", expected=", ".join(levels))
        for key, value in (
            ("system", system),
            ("axes", found),
            ("reductions", tuple(reductions)),
            ("traffic", tuple(traffic)),
            ("constraints", tuple(constraints)),
            ("limits", limits or Limits()),
            ("cost_model", cost_model or CostChoice()),
        ):
            object.__setattr__(self, key, value)

    def problem(self, reduction: NamedReduction) -> Problem:
        """One of its reductions as a problem of its own."""
        return Problem(self.system, self.axes, reduction.reduction, self.limits, self.cost_model)

    def row(self, axis: str) -> int:
        """The number of the axis, its row in a matrix."""
        return [one.name for one in self.axes].index(axis)

    def broken(self, matrix: Matrix) -> list[Constraint]:
        """The constraints that a matrix does not obey."""
        levels = [level.name for level in self.system.levels]
        return [one for one in self.constraints if not one.allows(matrix[self.row(one.axis)], levels)]


def _known(axis: str, known: Sequence[str], where: str) -> None:
    if axis not in known:
        raise InputError(f"there is no axis {str(axis)[:40]!r}", where=where, expected=", ".join(known))
