"""What the certificate of a training step is about: a workload, the rows of its reductions, and the question over them.

A row stands for all placements on which a reduction costs the same (smtsynth.model.rows). Its lower bound is what any
schedule must move, or a case of its own, with labels or a proof, on a stand-in placement. With these prices the
solver's question is one over placements alone: none that obeys the constraints costs less than the bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from smtsynth.certify.manifest import Entry
from smtsynth.certify.scope import Case, Scope
from smtsynth.cost.interface import CostModel, row_bound
from smtsynth.cost.models import cost_model_of
from smtsynth.cost.wired_traffic import row_traffic
from smtsynth.encode.clauses import Clauses
from smtsynth.encode.workload import encode, encode_matrix
from smtsynth.model.placement import Placement
from smtsynth.model.problem import Problem
from smtsynth.model.rows import Row, Rows
from smtsynth.model.workload import NamedReduction, Traffic, Workload

HIERARCHY = "reduction"


@dataclass(frozen=True)
class StepScope:
    """A workload, its instruction set, and nanoseconds a step that nothing beats (None: no placement obeys)."""

    workload: Workload
    instruction_set: str
    bound: int | None

    @cached_property
    def model(self) -> CostModel:
        """The cost model, made from the workload's choice."""
        return cost_model_of(self.workload.cost_model)

    @cached_property
    def reductions(self) -> tuple[ReductionRows, ...]:
        """The rows of every reduction."""
        return tuple(ReductionRows(self, one) for one in self.workload.reductions)

    @cached_property
    def flows(self) -> tuple[FlowRows, ...]:
        """The rows of all given traffic."""
        return tuple(FlowRows(self.workload, one) for one in self.workload.traffic)

    def question(self, proved: Sequence[RowEntry], looked: Sequence[Sequence[Row]]) -> Clauses:
        """The placements that obey the constraints and take less than the bound, by the rows' lower bounds.

        proved: the rows whose bound is evidence of its own; looked: per given traffic the rows that are priced.
        """
        if self.bound is None:
            return encode_matrix(self.workload, self.workload.constraints).clauses
        charges = []
        for table in self.reductions:
            known = {one.row: one.low for one in proved if one.table is table}
            prices = {row: known.get(row, table.least[row]) for row in table.every}
            charges.append((table.rows, {row: table.named.count * price for row, price in prices.items()}))
        for flow, rows in zip(self.flows, looked, strict=True):
            costs = flow.costs(rows)
            charges.append((flow.rows, {row: flow.flow.count * cost for row, cost in costs.items()}))
        return encode(self.workload, self.bound, charges).clauses


@dataclass(frozen=True, eq=False)
class ReductionRows:
    """The rows of one reduction."""

    scope: StepScope
    named: NamedReduction

    @cached_property
    def problem(self) -> Problem:
        """The reduction as a problem of its own."""
        return self.scope.workload.problem(self.named)

    @cached_property
    def rows(self) -> Rows:
        """Its kind of rows."""
        return Rows.of_problem(self.problem)

    @cached_property
    def every(self) -> list[Row]:
        """All of them, sorted."""
        return sorted(self.rows.every)

    @cached_property
    def least(self) -> Mapping[Row, int]:
        """Nanoseconds that no schedule at all takes less than, by row."""
        return {row: row_bound(self.scope.model, self.rows, self.problem, row) for row in self.every}

    def case(self, row: Row, low: int) -> Case:
        """The case that no program costs less than `low` on this row."""
        problem, placement = self.rows.problem(self.problem, row)
        (case,) = Scope(problem, self.scope.instruction_set, HIERARCHY, placement, low).cases
        return case

    def placed(self, placement: Placement) -> Scope:
        """The scope of the reduction on a placement, for its witness."""
        return Scope(self.problem, self.scope.instruction_set, HIERARCHY, placement, None)


@dataclass(frozen=True, eq=False)
class FlowRows:
    """The rows of given traffic."""

    workload: Workload
    flow: Traffic

    @cached_property
    def rows(self) -> Rows:
        """Its kind of rows."""
        return Rows(self.workload.system, self.workload.axes, (self.workload.row(self.flow.axis),))

    @cached_property
    def every(self) -> list[Row]:
        """All of them, sorted."""
        return sorted(self.rows.every)

    def costs(self, looked: Sequence[Row]) -> dict[Row, int]:
        """Nanoseconds by row: exact on the model's trees, elsewhere of the rows `looked` and 0 for the others."""
        exact = self.every if self.workload.system.plain else looked
        return {row: row_traffic(self.rows, row, self.flow) if row in exact else 0 for row in self.every}


@dataclass(frozen=True, slots=True)
class RowEntry:
    """A row, nanoseconds that no program costs less than on it, and the evidence for that."""

    table: ReductionRows
    row: Row
    low: int
    entry: Entry
