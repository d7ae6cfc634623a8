"""Placements (model, section 2): counted, enumerated, checked, and laid over devices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smtsynth.errors import InputError
from smtsynth.model.lowering import lower
from smtsynth.model.placement import (
    Axis,
    Matrix,
    check_placement,
    count_placements,
    placements,
    show_matrix,
)
from smtsynth.model.system import Level, System


def system_of(*sizes: int) -> System:
    return System([Level(f"level{number}", size, 1) for number, size in enumerate(sizes)])


def axes_of(*sizes: int) -> list[Axis]:
    return [Axis(f"axis{number}", size) for number, size in enumerate(sizes)]


@st.composite
def problems(draw: st.DrawFn, most: int = 96) -> tuple[System, list[Axis]]:
    """Random level sizes, regrouped factor by factor into axes so that the products match."""
    levels = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12]), min_size=1, max_size=4))
    assume(math.prod(levels) <= most)
    count = draw(st.integers(1, 4))
    axes = [1] * count
    for level in levels:
        while level > 1:
            prime = next(p for p in range(2, level + 1) if level % p == 0)
            axes[draw(st.integers(0, count - 1))] *= prime
            level //= prime
    return system_of(*levels), axes_of(*axes)


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def rows_of(size: int, columns: int) -> Iterator[tuple[int, ...]]:
    """Every ordered factorisation of `size` into `columns` factors."""
    if columns == 0:
        if size == 1:
            yield ()
        return
    for first in divisors(size):
        for rest in rows_of(size // first, columns - 1):
            yield (first, *rest)


def brute_count(axes: list[int], levels: list[int]) -> int:
    """Row by row over what is left of every level, without splitting into primes."""
    states = Counter({tuple(levels): 1})
    for axis in axes:
        after: Counter[tuple[int, ...]] = Counter()
        for left, ways in states.items():
            for row in rows_of(axis, len(levels)):
                if all(rest % entry == 0 for rest, entry in zip(left, row, strict=True)):
                    after[tuple(rest // entry for rest, entry in zip(left, row, strict=True))] += ways
        states = after
    return states[tuple(1 for _ in levels)]


@pytest.mark.parametrize(
    ("axes", "levels", "count"),
    [
        ((4, 16), (4, 16), 3),
        ((8, 2, 4), (4, 16), 5),
        ((16, 2, 2), (4, 16), 4),
        ((64,), (4, 16), 1),
        ((1, 1), (1,), 1),
        ((3, 4), (4, 3), 1),
    ],
)
def test_counts_of_the_model(axes: tuple[int, ...], levels: tuple[int, ...], count: int) -> None:
    assert count_placements(axes_of(*axes), system_of(*levels)) == count
    assert len(placements(system_of(*levels), axes_of(*axes))) == count


@settings(max_examples=60, deadline=None)
@given(problems())
def test_enumeration_matches_the_count_and_the_rules(problem: tuple[System, list[Axis]]) -> None:
    system, axes = problem
    found = placements(system, axes)
    assert len(found) == count_placements(axes, system) >= 1
    assert len({placement.matrix for placement in found}) == len(found)
    assert [placement.matrix for placement in found] == sorted(placement.matrix for placement in found)
    for placement in found:
        assert check_placement(placement.matrix, axes, system) == placement


def all_matrices(rows: int, columns: int, most: int) -> Iterator[Matrix]:
    for entries in product(range(1, most + 1), repeat=rows * columns):
        yield tuple(entries[row * columns : (row + 1) * columns] for row in range(rows))


@pytest.mark.parametrize(
    ("axes", "levels"),
    [((4, 2), (2, 4)), ((6, 2), (4, 3)), ((2, 3), (6,)), ((4, 4), (2, 4, 2)), ((2, 2, 3), (4, 3)), ((5, 1), (1, 5))],
)
def test_enumeration_is_all_of_the_integer_matrices(axes: tuple[int, ...], levels: tuple[int, ...]) -> None:
    fitting = {
        matrix
        for matrix in all_matrices(len(axes), len(levels), max(axes))
        if all(math.prod(row) == axis for row, axis in zip(matrix, axes, strict=True))
        and all(math.prod(column) == level for column, level in zip(zip(*matrix, strict=True), levels, strict=True))
    }
    found = placements(system_of(*levels), axes_of(*axes))
    assert {placement.matrix for placement in found} == fitting
    assert len(found) == len(fitting)


@settings(max_examples=40, deadline=None)
@given(problems(most=2000))
def test_count_by_an_independent_recursion(problem: tuple[System, list[Axis]]) -> None:
    system, axes = problem
    assert count_placements(axes, system) == brute_count([axis.size for axis in axes], list(system.sizes))


def test_a_count_too_large_to_list() -> None:
    """4 axes of 8 on 4 levels of 8: contingency tables with margins 3, counted here by direct recursion."""
    assert count_placements(axes_of(8, 8, 8, 8), system_of(8, 8, 8, 8)) == brute_count([8] * 4, [8] * 4) == 2008
    assert count_placements(axes_of(*[64] * 4), system_of(*[64] * 4)) == brute_count([64] * 4, [64] * 4)


def test_the_worked_example_of_section_2() -> None:
    system = System([Level(name, size, 1) for name, size in (("rack", 1), ("server", 2), ("cpu", 2), ("gpu", 4))])
    axes = axes_of(4, 4)
    placement = check_placement([[1, 1, 2, 2], [1, 2, 1, 2]], axes, system)
    # Reducing over both axes lists the devices level by level; the rows alone give an axis coordinate each.
    rows = lower(system, placement, [0, 1], "rows").devices.reshape(4, 4)
    assert [rows[0, 0], rows[0, 1], rows[1, 0], rows[1, 1]] == [0, 1, 2, 3]
    over_second = lower(system, placement, [1]).devices
    assert [list(replica) for replica in over_second[:2]] == [[0, 1, 8, 9], [2, 3, 10, 11]]


@settings(max_examples=60, deadline=None)
@given(problems(), st.data())
def test_devices_by_the_definition_of_section_2(problem: tuple[System, list[Axis]], data: st.DataObject) -> None:
    """Every device's axis coordinates, digit by digit, against the array that the `rows` lowering makes."""
    system, axes = problem
    matrix = data.draw(st.sampled_from(placements(system, axes))).matrix
    placement = check_placement(matrix, axes, system)
    table = lower(system, placement, range(len(axes)), "rows").devices.reshape([axis.size for axis in axes])
    for device in range(system.devices):
        coordinates = [0] * len(axes)
        for level, place in enumerate(system.coordinates(device)):
            for row in reversed(range(len(axes))):
                place, digit = divmod(place, matrix[row][level])
                inner = math.prod(matrix[row][level + 1 :])
                coordinates[row] += digit * inner
        assert table[tuple(coordinates)] == device


def test_a_row_or_column_with_a_wrong_product_is_named() -> None:
    system, axes = system_of(4, 16), [Axis("data", 4), Axis("shard", 16)]
    with pytest.raises(InputError, match="row of axis 'data' multiplies to 8; expected its size 4"):
        check_placement([[2, 4], [2, 8]], axes, system)
    with pytest.raises(InputError, match="column of level 'level0' multiplies to 2; expected 4"):
        check_placement([[2, 2], [1, 16]], axes, system)


@pytest.mark.parametrize(
    ("matrix", "named"),
    [
        ([[1, 4]], "number of rows"),
        ([[1, 4], [4]], "row of the placement"),
        ([[1, 4], 4], "row of the placement"),
        ("[[1,4],[4,4]]", "number of rows"),
        ([[1, 4], [4, 0]], "entry"),
        ([[1, 4], [4, -4]], "entry"),
        ([[1, 4], [4, 4.0]], "entry"),
        ([[True, 4], [4, 4]], "entry"),
        ([[1, None], [4, 4]], "entry"),
    ],
)
def test_what_is_no_matrix_is_refused(matrix: object, named: str) -> None:
    with pytest.raises(InputError, match=named) as caught:
        check_placement(matrix, axes_of(4, 16), system_of(4, 16))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_axes_must_fit_the_system() -> None:
    with pytest.raises(InputError, match=r"4 \* 8 = 32 do not match level sizes 4 \* 16 = 64"):
        placements(system_of(4, 16), axes_of(4, 8))
    with pytest.raises(InputError, match="two axes are named 'a'"):
        count_placements([Axis("a", 4), Axis("a", 16)], system_of(4, 16))
    with pytest.raises(InputError, match="no axes"):
        count_placements([], system_of(4))
    for name in ("root", "", "a b", "4", "a" * 65, 4):
        with pytest.raises(InputError, match="axis name"):
            Axis(name, 2)  # type: ignore[arg-type]
    for size in (0, -1, True, 2.0, "2", 2**41):
        with pytest.raises(InputError, match="size of axis 'a'"):
            Axis("a", size)  # type: ignore[arg-type]


def test_matrices_are_shown_as_they_are_typed() -> None:
    assert show_matrix(((1, 4), (4, 4))) == "[[1,4],[4,4]]"
    assert str(placements(system_of(4, 16), axes_of(4, 16))[0]) == "[[1,4],[4,4]]"
