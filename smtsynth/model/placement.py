"""Placements (model, section 2; paper, section 3): parallelism matrices, enumerated and counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from smtsynth.errors import InputError, check_type
from smtsynth.model.system import System, check_name, check_size

Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A parallelism axis: a name and how many ways it splits the work."""

    name: str
    size: int

    def __post_init__(self) -> None:
        check_name(self.name, "axis")
        check_size(self.size, f"size of axis {self.name!r}")


@dataclass(frozen=True, slots=True)
class Placement:
    """A parallelism matrix: a row per axis, a column per level, positive integers."""

    axes: tuple[Axis, ...]
    matrix: Matrix

    def __str__(self) -> str:
        return show_matrix(self.matrix)


def show_matrix(matrix: Matrix) -> str:
    """The matrix as the paper and `--placement` write it: [[1,4],[4,4]]."""
    return "[" + ",".join("[" + ",".join(map(str, row)) + "]" for row in matrix) + "]"


def axes_of(axes: Mapping[str, int] | Sequence[Axis]) -> tuple[Axis, ...]:
    """Axis objects from {name: size}, in its order, or as they are. InputError for anything else."""
    if isinstance(axes, Mapping):
        return tuple(Axis(name, size) for name, size in axes.items())
    check_type(axes, (tuple, list), "axes", "{name: size} or a list of Axis")
    for axis in axes:
        check_type(axis, Axis, "axes", "{name: size} or a list of Axis")
    return tuple(axes)


def only_placement(system: System, axes: Sequence[Axis]) -> Placement:
    """The placement where there is just one; InputError asks for one otherwise."""
    count = count_placements(axes, system)
    if count != 1:
        raise InputError(f"there are {count} placements", where="--placement", expected="one of them")
    return placements(system, axes)[0]


def check_axes(axes: Mapping[str, int] | Sequence[Axis], system: System) -> tuple[Axis, ...]:
    """The axes as a tuple, if they have distinct names and multiply up to the number of devices."""
    check_type(system, System, "system", "a System")
    axes = axes_of(axes)
    if not axes:
        raise InputError("there are no axes", expected="at least one axis")
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two axes are named {name!r}", expected="a name of its own for each axis")
    ours = math.prod(axis.size for axis in axes)
    if ours != system.devices:
        raise InputError(
            f"axis sizes {' * '.join(str(axis.size) for axis in axes)} = {ours} do not match "
            f"level sizes {' * '.join(map(str, system.sizes))} = {system.devices}",
            expected="equal products",
        )
    return axes


def check_placement(matrix: Sequence[Sequence[int]], axes: Sequence[Axis], system: System) -> Placement:
    """`matrix` as a Placement, or InputError naming the row or column whose product is off."""
    shape = f"{len(axes)} rows (axes) of {len(system.levels)} entries (levels)"
    if not isinstance(matrix, (list, tuple)) or len(matrix) != len(axes):
        raise InputError("the placement has the wrong number of rows", expected=shape)
    for row in matrix:
        if not isinstance(row, (list, tuple)) or len(row) != len(system.levels):
            raise InputError("a row of the placement has the wrong length", expected=shape)
        for entry in row:
            check_size(entry, "an entry of the placement")
    for axis, row in zip(axes, matrix, strict=True):
        if math.prod(row) != axis.size:
            raise InputError(
                f"the row of axis {axis.name!r} multiplies to {math.prod(row)}", expected=f"its size {axis.size}"
            )
    for number, level in enumerate(system.levels):
        column = math.prod(row[number] for row in matrix)
        if column != level.size:
            raise InputError(f"the column of level {level.name!r} multiplies to {column}", expected=str(level.size))
    return Placement(tuple(axes), tuple(tuple(row) for row in matrix))


@cache
def prime_exponents(number: int) -> dict[int, int]:
    """Prime factorisation: {prime: exponent}."""
    factors: dict[int, int] = {}
    candidate = 2
    while candidate * candidate <= number:
        while number % candidate == 0:
            factors[candidate] = factors.get(candidate, 0) + 1
            number //= candidate
        candidate += 1
    if number > 1:
        factors[number] = factors.get(number, 0) + 1
    return factors


def _compositions(total: int, caps: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every way to write `total` as a sum of len(caps) parts, part i at most caps[i], in ascending order."""
    if not caps:
        if total == 0:
            yield ()
        return
    room = sum(caps[1:])
    for first in range(max(0, total - room), min(total, caps[0]) + 1):
        for rest in _compositions(total - first, caps[1:]):
            yield (first, *rest)


def _tables(rows: tuple[int, ...], columns: tuple[int, ...]) -> Iterator[Matrix]:
    """Every non-negative integer table with these row and column sums."""
    if not rows:
        if not any(columns):
            yield ()
        return
    for row in _compositions(rows[0], columns):
        left = tuple(c - r for c, r in zip(columns, row, strict=True))
        for rest in _tables(rows[1:], left):
            yield (row, *rest)


@cache
def _table_count(rows: tuple[int, ...], columns: tuple[int, ...]) -> int:
    """How many tables `_tables` yields; column order does not matter, so states are sorted."""
    if not rows:
        return int(not any(columns))
    count = 0
    for row in _compositions(rows[0], columns):
        count += _table_count(rows[1:], tuple(sorted(c - r for c, r in zip(columns, row, strict=True))))
    return count


def _margins(axes: Sequence[Axis], system: System) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Per prime: the exponents that rows and columns must add up to (primes are independent)."""
    return [
        (
            prime,
            tuple(prime_exponents(axis.size).get(prime, 0) for axis in axes),
            tuple(prime_exponents(level.size).get(prime, 0) for level in system.levels),
        )
        for prime in sorted(prime_exponents(system.devices))
    ]


def count_placements(axes: Mapping[str, int] | Sequence[Axis], system: System) -> int:
    """The number of placements, without listing them: a product over primes of contingency-table counts."""
    axes = check_axes(axes, system)
    return math.prod(_table_count(rows, tuple(sorted(columns))) for _, rows, columns in _margins(axes, system))


def placements(system: System, axes: Mapping[str, int] | Sequence[Axis]) -> list[Placement]:
    """Every placement of `axes` on `system`, sorted by matrix, row by row (paper, section 3)."""
    axes = check_axes(axes, system)
    margins = _margins(axes, system)
    matrices = []
    for choice in product(*(list(_tables(rows, columns)) for _, rows, columns in margins)):
        matrices.append(
            tuple(
                tuple(
                    math.prod(margin[0] ** table[r][c] for margin, table in zip(margins, choice, strict=True))
                    for c in range(len(system.levels))
                )
                for r in range(len(axes))
            )
        )
    return [Placement(axes, matrix) for matrix in sorted(matrices)]
