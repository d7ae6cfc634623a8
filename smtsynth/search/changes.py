"""Where the answer changes as payloads grow: found, not sampled.

A fixed placement with fixed programs costs a + b * factor, but for rounding, when all payloads are multiplied by a
factor; the best of such lines is concave and piecewise straight. Where the lines of two optimal answers cross, either
nothing is cheaper, and there the answer changes, or something is, and both sides are searched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from smtsynth.cost.shares import class_shares
from smtsynth.cost.traffic import traffic_cost
from smtsynth.errors import InputError
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import Matrix
from smtsynth.model.problem import Reduction
from smtsynth.model.program import Collective, Program
from smtsynth.model.workload import Workload
from smtsynth.search.loop import Resources
from smtsynth.search.solve import Options
from smtsynth.search.workload import Tables, best_matrix

FACTORS = (Fraction(1, 1024), Fraction(1024))
MAX_PIECES = 32


@dataclass(frozen=True, slots=True)
class Piece:
    """The answer for payload factors from `start` on; it costs fixed + slope * factor seconds."""

    start: Fraction
    matrix: Matrix
    programs: tuple[Program, ...]
    fixed: Fraction
    slope: Fraction

    def at(self, factor: Fraction) -> Fraction:
        """Its cost at a factor, in seconds, before rounding."""
        return self.fixed + self.slope * factor


def scaled(workload: Workload, factor: Fraction) -> Workload:
    """The workload with all payloads times `factor`."""
    reductions = tuple(replace(one, reduction=_scaled(one.reduction, factor)) for one in workload.reductions)
    traffic = tuple(replace(one, payload=one.payload * factor) for one in workload.traffic)
    return replace(workload, reductions=reductions, traffic=traffic)


def _scaled(reduction: Reduction, factor: Fraction) -> Reduction:
    kinds = {
        axis: Collective.REDUCE_SCATTER if axis in reduction.split else Collective.ALL_REDUCE for axis in reduction.over
    }
    return Reduction(reduction.over, reduction.payload * factor, kinds if reduction.mixed else reduction.collective)


def changes(workload: Workload, options: Options, resources: Resources) -> list[Piece]:
    """The pieces from 1/1024 to 1024 times the payloads, ascending; the first may be the only one.

    Ends early, with what was found, at MAX_PIECES, the deadline or an interrupt; empty where nothing was found.
    Raises InputError where costs aren't straight lines: with another cost model or wiring than the model's trees.
    """
    if options.cost_model.name != "alpha-beta" or not workload.system.plain:
        raise InputError("where the answer changes is found for the alpha-beta model on a tree of plain levels only")
    left, right = (answer(workload, factor, options, resources) for factor in FACTORS)
    if left is None or right is None:
        return [piece for piece in (left,) if piece is not None]
    return _between(workload, left, right, options, resources, MAX_PIECES)


def _between(
    workload: Workload, left: Piece, right: Piece, options: Options, resources: Resources, most: int
) -> list[Piece]:
    """The pieces from `left` up to that of `right`, which starts where its line begins to be the best."""
    if left.slope <= right.slope:
        return [left]
    factor = (right.fixed - left.fixed) / (left.slope - right.slope)
    if not left.start < factor < right.start or most < 2:
        return [left, replace(right, start=min(max(factor, left.start), right.start))]
    middle = answer(workload, factor, options, resources)
    if middle is None:
        return [left, replace(right, start=factor)]
    if middle.at(factor) >= left.at(factor):
        return [left, replace(right, start=factor)]
    lower = _between(workload, left, middle, options, resources, most // 2)
    upper = _between(workload, lower[-1], right, options, resources, most // 2)
    return [*lower[:-1], *upper]


def answer(workload: Workload, factor: Fraction, options: Options, resources: Resources) -> Piece | None:
    """The best placement and programs at a factor, as a line; None where the search did not end."""
    tables = Tables(scaled(workload, factor), options)
    best = best_matrix(tables, (), (), resources)
    if best.matrix is None or not best.refuted:
        return None
    fixed = slope = Fraction(0)
    programs = []
    for one, table in zip(tables.workload.reductions, tables.tables, strict=True):
        row = table.rows.of(best.matrix)
        problem, placement = table.stand_in(row)
        lowering, program = lowering_of(problem, placement), table.bounds(row).program
        shares = class_shares(lowering.sizes, program, one.reduction.collective)
        programs.append(program)
        for instruction, parts in zip(program, shares, strict=True):
            held = {kind: part * one.reduction.payload for kind, part in parts.items()}
            cost = options.cost_model.explain(lowering, instruction, held)
            fixed += one.count * (cost.latency + workload.system.overhead)
            slope += one.count * cost.transfer / factor
    for flow in tables.workload.traffic:
        cost = traffic_cost(workload.system, best.matrix[workload.row(flow.axis)], flow.pattern, flow.payload)
        fixed += flow.count * (cost.latency + (workload.system.overhead if cost.nanoseconds else 0))
        slope += flow.count * cost.transfer / factor
    return Piece(factor, best.matrix, tuple(programs), fixed, slope)
