"""Small numbers in unary: a list of literals, of which the i-th says "at least i + 1"."""

from __future__ import annotations

from collections.abc import Sequence

from smtsynth.encode.clauses import Clauses, Literal


def ordered(clauses: Clauses, unary: Sequence[Literal]) -> None:
    """A unary number: each literal implies the one before it."""
    for less, more in zip(unary, unary[1:], strict=False):
        clauses.imply([more], less)


def total(clauses: Clauses, parts: Sequence[Sequence[Literal]]) -> list[Literal]:
    """The unary sum of unary numbers, both directions; sums of the same parts share their variables."""
    result: list[Literal] = []
    for part in parts:
        if not result or not part:
            result = result or list(part)
            continue
        one, two = result, list(part)
        result = [clauses.var("total", tuple(one), tuple(two), n) for n in range(1, len(one) + len(two) + 1)]
        if not clauses.first("total", tuple(one), tuple(two)):
            continue
        for i in range(len(one) + 1):
            for j in range(len(two) + 1):
                if i + j:
                    clauses.imply([*one[i - 1 : i] * (i > 0), *two[j - 1 : j] * (j > 0)], result[i + j - 1])
                if i + j < len(result):
                    clauses.add(*one[i : i + 1], *two[j : j + 1], -result[i + j])
        ordered(clauses, result)
    return result


def exactly(clauses: Clauses, unary: Sequence[Literal], number: int) -> None:
    """The unary number is `number`."""
    if number > len(unary):
        clauses.add()
        return
    if number:
        clauses.add(unary[number - 1])
    if number < len(unary):
        clauses.add(-unary[number])
