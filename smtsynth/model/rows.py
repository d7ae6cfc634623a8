"""Rows: what the cost of a reduction (or of given traffic) depends on in a placement, and nothing else.

Behind switches it is the product of its axes' factors per level, since all units are alike there. Where a level is
wired otherwise it matters too which neighbours the axes join, that is how the digits lie beside those of the other
axes: there the row holds a product for every run of neighbouring axes of one kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from typing import NamedTuple

from smtsynth.errors import LimitReached
from smtsynth.model.placement import Axis, Matrix, Placement, prime_exponents
from smtsynth.model.problem import Problem, Reduction
from smtsynth.model.program import Collective
from smtsynth.model.system import System

MAX_ROWS = 200_000
WHOLE, SPLIT, REST = "whole", "split", "rest"


class Row(NamedTuple):
    """Per level: the product of the factors of all reduced axes, and of those that end split (empty if not a mix).

    strides: empty where all levels are switches; else per level nothing at a switch, and at another level the product
    of every run (see Rows.runs).
    """

    factors: tuple[int, ...]
    split: tuple[int, ...] = ()
    strides: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Rows:
    """The rows of what runs over the axes `reduced` of `axes`; `split`: in a mix, those of them that end split."""

    system: System
    axes: tuple[Axis, ...]
    reduced: tuple[int, ...]
    split: tuple[int, ...] = ()

    @staticmethod
    def of_problem(problem: Problem) -> Rows:
        """Those of a problem's reduction."""
        split = problem.split if problem.reduction.mixed else ()
        return Rows(problem.system, problem.axes, problem.reduced, split)

    @cached_property
    def wired(self) -> tuple[bool, ...]:
        """Per level, whether its units are not all alike behind a switch."""
        return tuple(self.system.topology is not None or level.kind != "switch" for level in self.system.levels)

    @cached_property
    def runs(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The axes in their order, neighbours of one kind together: (kind, axes)."""
        kinds = [
            SPLIT if number in self.split else WHOLE if number in self.reduced else REST
            for number in range(len(self.axes))
        ]
        found = groupby(range(len(self.axes)), key=kinds.__getitem__)
        return tuple((kind, tuple(numbers)) for kind, numbers in found)

    def of(self, matrix: Matrix) -> Row:
        """The row that a matrix has."""
        levels = range(len(self.system.levels))

        def column(numbers: Sequence[int], level: int) -> int:
            return math.prod(matrix[number][level] for number in numbers)

        strides: tuple[tuple[int, ...], ...] = ()
        if any(self.wired):
            strides = tuple(
                tuple(column(numbers, level) for _, numbers in self.runs) if self.wired[level] else ()
                for level in levels
            )
        split = tuple(column(self.split, level) for level in levels) if self.split else ()
        return Row(tuple(column(self.reduced, level) for level in levels), split, strides)

    @cached_property
    def every(self) -> tuple[Row, ...]:
        """Every row that some placement could have. Raises LimitReached above MAX_ROWS."""
        found: list[Row] = []
        for row in self._every():
            found.append(row)
            if len(found) > MAX_ROWS:
                raise LimitReached(f"there are more than {MAX_ROWS} ways to lay these axes over the levels")
        return tuple(found)

    def _every(self) -> Iterator[Row]:
        sizes = self.system.sizes
        reduced, split = (math.prod(self.axes[n].size for n in numbers) for numbers in (self.reduced, self.split))
        runs = [math.prod(self.axes[number].size for number in numbers) for _, numbers in self.runs]
        columns = [list(vectors(size, runs)) if wired else [()] for size, wired in zip(sizes, self.wired, strict=True)]
        for strides in product(*columns):
            if any(run % math.prod(one[n] for one in strides if one) for n, run in enumerate(runs)):
                continue
            known = [self._kinds(one) if one else None for one in strides]
            for factors in vectors(reduced, sizes, [None if one is None else one[0] for one in known]):
                kept = strides if any(self.wired) else ()
                if not self.split:
                    yield Row(factors, (), kept)
                    continue
                for part in vectors(split, factors, [None if one is None else one[1] for one in known]):
                    yield Row(factors, part, kept)

    def _kinds(self, stride: Sequence[int]) -> tuple[int, int]:
        """Of the products of the runs, that of the reduced axes, and that of those that end split."""
        pairs = list(zip(self.runs, stride, strict=True))
        split = math.prod(one for (kind, _), one in pairs if kind == SPLIT)
        return split * math.prod(one for (kind, _), one in pairs if kind == WHOLE), split

    def stand_in(self, row: Row) -> Placement:
        """A placement with as few axes as this row takes, which costs what every placement with this row does.

        Its axes are named by their kind, WHOLE, SPLIT or REST, and a number.
        """
        kinds = [kind for kind, _ in self.runs] if row.strides else []
        kinds += [kind for kind in (WHOLE, SPLIT, REST) if kind not in kinds and (kind != SPLIT or self.split)]
        split = row.split or (1,) * len(row.factors)
        first = {kind: kinds.index(kind) for kind in kinds}
        entries = [[1] * len(row.factors) for _ in kinds]
        for level, size in enumerate(self.system.sizes):
            if row.strides and row.strides[level]:
                for number, part in enumerate(row.strides[level]):
                    entries[number][level] = part
                continue
            factor, part = row.factors[level], split[level]
            for kind, share in ((WHOLE, factor // part), (SPLIT, part), (REST, size // factor)):
                if kind in first:
                    entries[first[kind]][level] = share
        axes = [Axis(f"{kind}{n}", math.prod(line)) for n, (kind, line) in enumerate(zip(kinds, entries, strict=True))]
        return Placement(tuple(axes), tuple(map(tuple, entries)))

    def problem(self, problem: Problem, row: Row) -> tuple[Problem, Placement]:
        """The problem's reduction over the axes of a stand-in, and that placement."""
        placement, reduction = self.stand_in(row), problem.reduction
        names = [axis.name for axis in placement.axes]
        if self.split:
            kinds = {
                name: Collective.REDUCE_SCATTER if name.startswith(SPLIT) else Collective.ALL_REDUCE
                for name in names
                if not name.startswith(REST)
            }
            reduction = Reduction(list(kinds), reduction.payload, kinds)
        else:
            over = [name for name in names if name.startswith(WHOLE)]
            reduction = Reduction(over, reduction.payload, reduction.collective)
        return Problem(self.system, placement.axes, reduction, problem.limits, problem.cost_model), placement


def vectors(size: int, limits: Sequence[int], known: Sequence[int | None] = ()) -> Iterator[tuple[int, ...]]:
    """Every way to write `size` as a product with one factor for each limit (of a level, of a run), which it divides.

    known: factors that are given already, None for those that aren't; empty: none is.
    """
    if not limits:
        if size == 1:
            yield ()
        return
    rest = math.prod(limits[1:])
    given = known[0] if known else None
    for factor in divisors(math.gcd(size, limits[0])) if given is None else [given]:
        if size % factor == 0 and rest % (size // factor) == 0:
            for others in vectors(size // factor, limits[1:], known[1:]):
                yield (factor, *others)


def divisors(number: int) -> list[int]:
    """The divisors of a number, ascending."""
    found = [1]
    for prime, exponent in prime_exponents(number).items():
        found = [one * prime**power for one in found for power in range(exponent + 1)]
    return sorted(found)
