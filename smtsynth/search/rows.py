"""Rows: what one reduction of a workload costs where its axes have given factors at the levels.

On a tree of uplinks a reduction's cost depends on a placement through the product of its axes' factors per level only
(and, for a mix, of the axes that end split). So a table over these rows serves all placements. A row's bounds get
sharper in stages, and only where the search asks: first from below by what any schedule must move, then by the graph
of classes, whose cheapest path is a lower bound and, once replayed, a program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from smtsynth.errors import InternalError
from smtsynth.model.lowering import lower, lowering_of
from smtsynth.model.placement import Axis, Matrix, Placement, prime_exponents
from smtsynth.model.problem import Problem, Reduction
from smtsynth.model.program import Collective, Program
from smtsynth.model.system import System
from smtsynth.search.loop import Resources, first_that_replays
from smtsynth.search.solve import Options, first_programs, plain_cost, task_of


class Row(NamedTuple):
    """Per level: the product of the factors of all reduced axes, and of those that end split (empty if not a mix)."""

    factors: tuple[int, ...]
    split: tuple[int, ...] = ()


def vectors(size: int, limits: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every way to write `size` as a product with one factor per level, each dividing its limit."""
    if not limits:
        if size == 1:
            yield ()
        return
    rest = math.prod(limits[1:])
    for factor in divisors(math.gcd(size, limits[0])):
        if rest % (size // factor) == 0:
            for others in vectors(size // factor, limits[1:]):
                yield (factor, *others)


def divisors(number: int) -> list[int]:
    """The divisors of a number, ascending."""
    found = [1]
    for prime, exponent in prime_exponents(number).items():
        found = [one * prime**power for one in found for power in range(exponent + 1)]
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a row, in nanoseconds: no program costs less than `low`; `program` costs `high`.

    high None: not looked at yet.
    """

    low: int
    high: int | None = None
    program: Program = ()

    @property
    def exact(self) -> bool:
        """Whether the optimum is known."""
        return self.low == self.high


@dataclass
class RowTable:
    """The rows of one reduction, with what is known of each so far."""

    problem: Problem
    options: Options
    known: dict[Row, Bounds] = field(default_factory=dict)

    @property
    def system(self) -> System:
        """The system."""
        return self.problem.system

    def rows(self) -> list[Row]:
        """Every row that some placement could have."""
        reduced = math.prod(self.problem.axes[row].size for row in self.problem.reduced)
        every = vectors(reduced, self.system.sizes)
        if not self.problem.reduction.mixed:
            return [Row(factors) for factors in every]
        split = math.prod(self.problem.axes[row].size for row in self.problem.split)
        return [Row(factors, part) for factors in every for part in vectors(split, factors)]

    def of(self, matrix: Matrix) -> Row:
        """The row that a matrix gives the reduction."""
        levels = range(len(self.system.levels))
        factors = tuple(math.prod(matrix[row][level] for row in self.problem.reduced) for level in levels)
        if not self.problem.reduction.mixed:
            return Row(factors)
        return Row(factors, tuple(math.prod(matrix[row][level] for row in self.problem.split) for level in levels))

    def bounds(self, row: Row) -> Bounds:
        """What is known of a row; at first what any schedule must move."""
        if row not in self.known:
            self.known[row] = Bounds(self._least(row))
        return self.known[row]

    def _least(self, row: Row) -> int:
        problem, placement = self.stand_in(row)
        plain, reduction = lower(self.system, placement, problem.reduced), problem.reduction
        known = self.options.cost_model.any_schedule(plain, reduction.payload, reduction.collective, problem.split)
        return known or 0

    def evaluate(self, row: Row, resources: Resources) -> Bounds:
        """Sharpen the row: the cheapest path over classes from below, the cheapest program that replays from above.

        Raises LimitReached at the deadline.
        """
        found = self.bounds(row)
        if found.high is None:
            problem, placement = self.stand_in(row)
            lowering = lowering_of(problem, placement)
            if lowering.depth:
                task = task_of(lowering, problem, self.options)
                first, below = first_programs(task, self.options, resources)
                best = first_that_replays(task, first)
                if best is None:
                    raise InternalError(f"no scheme reaches the goal on row {row.factors}")
                self.known[row] = Bounds(max(found.low, below or 0), task.cost(best[0]), best[0])
            else:
                self.known[row] = Bounds(0, 0)
        return self.known[row]

    def plain(self, row: Row) -> int:
        """What the reduction costs by plain collectives, in nanoseconds."""
        problem, placement = self.stand_in(row)
        plain = lower(self.system, placement, problem.reduced)
        return plain_cost(plain, problem, self.options.cost_model)

    def stand_in(self, row: Row) -> tuple[Problem, Placement]:
        """A problem of two or three axes that gives this row: the reduction's axes as one (or two), and the rest."""
        rest = tuple(level // factor for level, factor in zip(self.system.sizes, row.factors, strict=True))
        named = {"whole": row.factors}
        reduction = self.problem.reduction
        if row.split:
            whole = tuple(factor // part for factor, part in zip(row.factors, row.split, strict=True))
            named = {"whole": whole, "split": row.split}
            kinds = {"whole": Collective.ALL_REDUCE, "split": Collective.REDUCE_SCATTER}
            reduction = Reduction(list(kinds), reduction.payload, kinds)
        else:
            reduction = Reduction(["whole"], reduction.payload, reduction.collective)
        named["rest"] = rest
        axes = [Axis(name, math.prod(entries)) for name, entries in named.items()]
        problem = Problem(self.system, axes, reduction, self.problem.limits)
        return problem, Placement(tuple(axes), tuple(named.values()))
