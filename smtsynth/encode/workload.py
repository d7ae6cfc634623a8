"""A training step as constraints: a placement that obeys what is asked of it, and its cost by tables of row prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from smtsynth.encode.clauses import Clauses, Literal
from smtsynth.encode.costs import Costs
from smtsynth.encode.placement import MatrixVariables
from smtsynth.encode.placement import encode as encode_placement
from smtsynth.model.placement import Matrix, Placement
from smtsynth.model.rows import Row, Rows
from smtsynth.model.workload import Constraint, Workload

Charges = Sequence[tuple[Rows, Mapping[Row, int]]]
"""Per reduction and given traffic: its rows, and nanoseconds a step of each of them."""


def encode_matrix(workload: Workload, constraints: Iterable[Constraint]) -> MatrixVariables:
    """The matrices of a workload that obey these constraints."""
    clauses = Clauses()
    matrix = encode_placement(workload.axes, workload.system, clauses)
    names = [level.name for level in workload.system.levels]
    with clauses.family("obeyed", "The placement obeys what the workload asks of it."):
        for constraint in constraints:
            axis = workload.row(constraint.axis)
            if constraint.inside is not None:
                for level in range(names.index(constraint.inside) + 1):
                    _all(clauses, matrix.equals([axis], level, 1))
            elif constraint.unsplit:
                spread = [clauses.var("spread", axis, level) for level in range(len(names))]
                for level, name in enumerate(spread):
                    for prime in matrix.primes:
                        clauses.imply(matrix.exponent(axis, level, prime)[:1] or [-name, name], name)
                clauses.at_most_one(spread)
            else:
                _all(clauses, matrix.equals([axis], names.index(constraint.level or ""), constraint.factor or 1))
    return matrix


def _all(clauses: Clauses, literals: Iterable[Literal]) -> None:
    for literal in literals:
        clauses.add(literal)


def encode(workload: Workload, bound: int | None, charges: Charges, without: Iterable[Matrix] = ()) -> MatrixVariables:
    """Matrices that obey the constraints, are none of `without`, and whose rows' charges sum to less than `bound` ns.

    bound None: whatever the cost.
    """
    matrix = encode_matrix(workload, workload.constraints)
    for other in without:
        matrix.block(Placement(workload.axes, other))
    if bound is not None:
        costs = Costs(matrix.clauses, len(charges), bound)
        for number, (rows, prices) in enumerate(charges, 1):
            for row, price in prices.items():
                costs.charge(number, is_row(matrix, rows, row), price)
        costs.define()
    return matrix


def is_row(matrix: MatrixVariables, rows: Rows, row: Row) -> list[Literal]:
    """Literals that together say that the matrix has this row."""
    literals: list[Literal] = []
    for level, factor in enumerate(row.factors):
        if row.strides and row.strides[level]:
            for (_, axes), product in zip(rows.runs, row.strides[level], strict=True):
                literals += matrix.equals(axes, level, product)
        else:
            literals += matrix.equals(rows.reduced, level, factor)
            if row.split:
                literals += matrix.equals(rows.split, level, row.split[level])
    return literals
