"""Tables of rows: what one reduction of a workload, or its given traffic, costs on each of its rows.

A row is all that a cost depends on in a placement (smtsynth.model.rows), so one table serves all placements. A row's
bounds get sharper in stages, and only where the search asks: first from below by what any schedule must move, then
by the graph of classes, whose cheapest path is a lower bound and, once replayed, a program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property

from smtsynth.cost.interface import row_bound
from smtsynth.cost.wired_traffic import row_traffic
from smtsynth.errors import InternalError
from smtsynth.model.lowering import lower, lowering_of
from smtsynth.model.placement import Placement
from smtsynth.model.problem import Problem
from smtsynth.model.program import Program
from smtsynth.model.rows import Row, Rows
from smtsynth.model.system import System
from smtsynth.model.workload import Traffic
from smtsynth.search.loop import Resources, first_that_replays
from smtsynth.search.solve import Options, first_programs, plain_cost, task_of


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
class Table(ABC):
    """What is known of rows so far."""

    known: dict[Row, Bounds] = field(default_factory=dict, kw_only=True)

    @property
    @abstractmethod
    def rows(self) -> Rows:
        """The rows."""

    @abstractmethod
    def bounds(self, row: Row) -> Bounds:
        """What is known of a row."""

    @abstractmethod
    def evaluate(self, row: Row, resources: Resources) -> Bounds:
        """Sharpen a row. Raises LimitReached at the deadline."""

    @abstractmethod
    def plain(self, row: Row) -> int:
        """Nanoseconds by plain collectives."""

    @property
    def looked_at(self) -> dict[Row, int]:
        """The rows that were evaluated, with what no program costs less than on them."""
        return {row: bounds.low for row, bounds in self.known.items() if bounds.high is not None}


@dataclass
class FlowTable(Table):
    """The rows of given traffic: on the model's trees exact at once, elsewhere 0 from below until looked at."""

    flow: Traffic
    along: Rows

    @property
    def rows(self) -> Rows:
        """See Table."""
        return self.along

    def bounds(self, row: Row) -> Bounds:
        """See Table."""
        if row not in self.known:
            cost = self.cost(row) if self.rows.system.plain else None
            self.known[row] = Bounds(cost or 0, cost)
        return self.known[row]

    def evaluate(self, row: Row, resources: Resources) -> Bounds:
        """See Table."""
        if self.bounds(row).high is None:
            cost = self.cost(row)
            self.known[row] = Bounds(cost, cost)
        return self.known[row]

    def plain(self, row: Row) -> int:
        """See Table: traffic is what it is."""
        return self.cost(row)

    def cost(self, row: Row) -> int:
        """Nanoseconds on a row."""
        return row_traffic(self.rows, row, self.flow)


@dataclass
class RowTable(Table):
    """The rows of one reduction, with what is known of each so far."""

    problem: Problem
    options: Options

    @property
    def system(self) -> System:
        """The system."""
        return self.problem.system

    @cached_property
    def rows(self) -> Rows:
        """See Table."""
        return Rows.of_problem(self.problem)

    def bounds(self, row: Row) -> Bounds:
        """What is known of a row; at first what any schedule must move."""
        if row not in self.known:
            self.known[row] = Bounds(row_bound(self.options.cost_model, self.rows, self.problem, row))
        return self.known[row]

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
                options = replace(self.options, bounds=True)  # a row needs its lower bound
                first, below = first_programs(task, options, resources)
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
        """A problem of a few axes that gives this row."""
        return self.rows.problem(self.problem, row)
