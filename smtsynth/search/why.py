"""Why a workload's placement is the best: runners-up, common defaults, which axis innermost, placement alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from smtsynth.model.placement import Matrix
from smtsynth.model.rows import divisors
from smtsynth.model.workload import Constraint
from smtsynth.search.defaults import default_matrices
from smtsynth.search.loop import Resources
from smtsynth.search.workload import Tables, best_matrix, plain


@dataclass(frozen=True, slots=True)
class Choice:
    """A placement for the tables of `why`: what it is, its matrix (None: no matrix says it), and its step's cost.

    cost: nanoseconds with the best programs; plain: with plain collectives; broken: constraints it does not obey;
    reason: why nothing, or not all, is known of it.
    """

    name: str
    matrix: Matrix | None
    cost: int | None
    plain: int | None
    broken: tuple[Constraint, ...] = ()
    reason: str | None = None


UNEVEN = "no matrix says it (an axis cuts a level unevenly)"


def choice(tables: Tables, name: str, matrix: Matrix | None, resources: Resources, reason: str | None = None) -> Choice:
    """A placement with its costs; `reason`: why there is none, or why a better one may have been missed."""
    if matrix is None:
        return Choice(name, None, None, None, reason=reason)
    broken = tuple(tables.workload.broken(matrix))
    left = resources.left()
    if resources.interrupted.is_set() or (left is not None and left <= 0):
        return Choice(name, matrix, None, tables.total(matrix, plain), broken, reason or "the time limit was reached")
    return Choice(name, matrix, tables.look(matrix, resources), tables.total(matrix, plain), broken, reason)


def runners_up(tables: Tables, winner: Matrix, count: int, resources: Resources) -> list[Choice]:
    """The next best placements after the winner."""
    seen, found = [winner], []
    for number in range(count):
        best = best_matrix(tables, (), seen, resources)
        if best.matrix is None and best.refuted:
            break
        name = f"runner-up {number + 1}"
        found.append(choice(tables, name, best.matrix, resources, best.reason))
        if best.matrix is None:
            break
        seen.append(best.matrix)
    return found


def defaults(tables: Tables, resources: Resources) -> list[Choice]:
    """What common defaults cost."""
    return [
        choice(tables, name, matrix, resources, UNEVEN if matrix is None else None)
        for name, matrix in default_matrices(tables.workload)
    ]


def best_plain(tables: Tables, winner: Matrix, resources: Resources) -> Choice:
    """The best placement if all collectives stay plain: what placement alone brings."""
    best = best_matrix(tables, (winner,), (), resources, plain)
    return choice(tables, "the best placement for plain collectives", best.matrix, resources, best.reason)


def innermost(tables: Tables, winner: Matrix, resources: Resources) -> list[tuple[str, Choice]]:
    """Per axis: the best placement that has as much of that axis in the innermost level as the constraints allow."""
    workload, system = tables.workload, tables.workload.system
    found = []
    for row, axis in enumerate(workload.axes):
        if axis.size == 1:
            continue
        for most in reversed(divisors(math.gcd(axis.size, system.sizes[-1]))):
            pinned = Constraint(axis.name, level=system.levels[-1].name, factor=most)
            asked = replace(workload, constraints=(*workload.constraints, pinned))
            inside = Tables(asked, tables.options)
            inside.tables, inside.flows = tables.tables, tables.flows  # costs don't depend on constraints
            first = [winner] if winner[row][-1] == most else []
            best = best_matrix(inside, first, (), resources)
            if best.matrix is not None or not best.refuted:
                break
        name = f"{axis.name} innermost ({most} at {pinned.level})"
        found.append((axis.name, choice(inside, name, best.matrix, resources, best.reason)))
    return found
