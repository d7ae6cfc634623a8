"""Placements as constraints (model, section 2): row and column products over bounded integers.

Products become sums of prime exponents, one independent table per prime; exponents are written in unary (a literal
for "at least n"), so that everything is linear and Boolean.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from smtsynth.encode.clauses import Clauses, Literal
from smtsynth.encode.counting import exactly, ordered, total
from smtsynth.model.placement import Axis, Matrix, Placement, prime_exponents
from smtsynth.model.system import System


@dataclass(frozen=True)
class MatrixVariables:
    """The unknown parallelism matrix of `axes` on `system`."""

    clauses: Clauses
    axes: tuple[Axis, ...]
    system: System

    @cached_property
    def primes(self) -> tuple[int, ...]:
        """The primes that entries are made of."""
        return tuple(sorted(prime_exponents(self.system.devices)))

    def exponent(self, row: int, level: int, prime: int) -> list[Literal]:
        """Unary exponent of `prime` in the entry: literal i says "at least i + 1"."""
        most = min(self._row(row, prime), self._column(level, prime))
        return [self.clauses.var("exponent", row, level, prime, number) for number in range(1, most + 1)]

    def _row(self, row: int, prime: int) -> int:
        return prime_exponents(self.axes[row].size).get(prime, 0)

    def _column(self, level: int, prime: int) -> int:
        return prime_exponents(self.system.sizes[level]).get(prime, 0)

    @property
    def literals(self) -> list[Literal]:
        """All literals of the matrix, for projection."""
        return [
            literal
            for row in range(len(self.axes))
            for level in range(len(self.system.levels))
            for prime in self.primes
            for literal in self.exponent(row, level, prime)
        ]

    def define(self) -> None:
        """Row products are the axis sizes, column products the level sizes."""
        family, rows, levels = self.clauses.family, range(len(self.axes)), range(len(self.system.levels))
        for prime in self.primes:
            with family("unary", "At least n + 1 means at least n."):
                for row in rows:
                    for level in levels:
                        ordered(self.clauses, self.exponent(row, level, prime))
            with family("row-products", "The entries of a row multiply to the axis size, prime by prime."):
                for row in rows:
                    parts = [self.exponent(row, level, prime) for level in levels]
                    exactly(self.clauses, total(self.clauses, parts), self._row(row, prime))
            with family("column-products", "The entries of a column multiply to the level size, prime by prime."):
                for level in levels:
                    parts = [self.exponent(row, level, prime) for row in rows]
                    exactly(self.clauses, total(self.clauses, parts), self._column(level, prime))

    def equals(self, rows: Sequence[int], level: int, product: int) -> list[Literal]:
        """Literals that together say: the entries of `rows` at `level` multiply to `product`."""
        result = []
        for prime in dict.fromkeys((*self.primes, *prime_exponents(product))):
            wanted = prime_exponents(product).get(prime, 0)
            entries = [self.exponent(row, level, prime) for row in rows] if prime in self.primes else []
            number = total(self.clauses, entries)
            if wanted > len(number):
                never = self.clauses.var("never")
                self.clauses.add(-never)
                return [never]
            result += number[wanted - 1 : wanted] if wanted else []
            result += [-literal for literal in number[wanted : wanted + 1]]
        return result

    def block(self, placement: Placement) -> None:
        """Not this placement."""
        literals: list[Literal] = []
        for row in range(len(self.axes)):
            for level in range(len(self.system.levels)):
                literals += self.equals([row], level, placement.matrix[row][level])
        self.clauses.add(*(-literal for literal in literals))

    def decode(self, true: Collection[Literal]) -> Matrix:
        """The matrix of a model, given its true variables."""
        return tuple(
            tuple(
                math.prod(
                    prime ** sum(literal in true for literal in self.exponent(row, level, prime))
                    for prime in self.primes
                )
                for level in range(len(self.system.levels))
            )
            for row in range(len(self.axes))
        )


def encode(axes: Sequence[Axis], system: System, clauses: Clauses | None = None) -> MatrixVariables:
    """Constraints whose models are exactly the placements of `axes` on `system`."""
    matrix = MatrixVariables(clauses if clauses is not None else Clauses(), tuple(axes), system)
    matrix.define()
    return matrix
