"""A whole training step: one placement for all its reductions, with the programs, at the least total time.

The solver chooses the matrix against tables of row costs (smtsynth.search.rows), which hold proved lower bounds and,
where it has looked, optima; every model's rows are looked at, until no matrix is cheaper than the best one known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.encode.placement import MatrixVariables
from smtsynth.encode.workload import encode, encode_matrix
from smtsynth.errors import InputError, InternalError, LimitReached
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import Matrix, Placement
from smtsynth.model.rows import Row, Rows
from smtsynth.model.workload import Constraint, NamedReduction, Traffic, Workload
from smtsynth.search.defaults import default_matrices
from smtsynth.search.loop import Query, Resources, Status
from smtsynth.search.rows import FlowTable, RowTable, Table
from smtsynth.search.solution import Solution
from smtsynth.search.solve import Options, solve_lowering
from smtsynth.solvers.outcome import Answer, Outcome
from smtsynth.solvers.sat import solve_dimacs

Price = Callable[[Table, Row], int]


@dataclass(frozen=True)
class ReductionAnswer:
    """One reduction of the step: its best program on the chosen placement, and how often it happens."""

    named: NamedReduction
    solution: Solution

    @property
    def total(self) -> int | None:
        """Count times cost, in nanoseconds."""
        return None if self.solution.cost is None else self.named.count * self.solution.cost


@dataclass(frozen=True)
class WorkloadSolution:
    """The best placement found for a workload, what it costs (nanoseconds a step), and what is claimed of it.

    traffic: (given traffic, nanoseconds once); plain: the step with plain collectives on the same placement;
    conflict: constraints that can't all hold, where the status is infeasible; tables: what is known of the rows, None
    without an answer.
    """

    status: Status
    workload: Workload
    placement: Placement | None
    cost: int | None
    lower_bound: int | None
    reductions: tuple[ReductionAnswer, ...]
    traffic: tuple[tuple[Traffic, int], ...]
    plain: int | None
    reason: str | None
    conflict: tuple[Constraint, ...]
    tables: Tables | None
    loop: tuple[Query, ...]
    seconds: float


@dataclass
class Tables:
    """The row tables of a workload's reductions, and those of its given traffic."""

    workload: Workload
    options: Options
    tables: tuple[RowTable, ...] = field(init=False)
    flows: tuple[FlowTable, ...] = field(init=False)

    def __post_init__(self) -> None:
        workload = self.workload
        self.tables = tuple(RowTable(workload.problem(one), self.options) for one in workload.reductions)
        self.flows = tuple(
            FlowTable(one, Rows(workload.system, workload.axes, (workload.row(one.axis),))) for one in workload.traffic
        )

    def parts(self) -> Iterator[tuple[int, Table]]:
        """Every table, with how often its reduction or traffic happens in a step."""
        for one, table in zip(self.workload.reductions, self.tables, strict=True):
            yield one.count, table
        for flow, flows in zip(self.workload.traffic, self.flows, strict=True):
            yield flow.count, flows

    def total(self, matrix: Matrix, price: Price) -> int:
        """The step's cost on a matrix, with rows priced by `price`."""
        return sum(count * price(table, table.rows.of(matrix)) for count, table in self.parts())

    def look(self, matrix: Matrix, resources: Resources) -> int:
        """Evaluate the rows of a matrix; its cost by the programs found. Raises LimitReached at the deadline."""
        for _, table in self.parts():
            table.evaluate(table.rows.of(matrix), resources)
        return self.total(matrix, achieved)

    def exact(self) -> bool:
        """Whether every row that was looked at has its optimum."""
        return all(table.known[row].exact for _, table in self.parts() for row in table.looked_at)

    def looked_at(self) -> tuple[int, int]:
        """How many rows of reductions were evaluated, of how many."""
        done = sum(len(table.looked_at) for table in self.tables)
        return done, sum(len(table.rows.every) for table in self.tables)

    def encode(self, bound: int | None, price: Price, without: Iterable[Matrix]) -> MatrixVariables:
        """Matrices that obey the constraints, cost less than `bound` by `price`, and are none of `without`."""
        charges: list[tuple[Rows, dict[Row, int]]] = []
        if bound is not None:
            for count, table in self.parts():
                charges.append((table.rows, {row: count * price(table, row) for row in table.rows.every}))
        return encode(self.workload, bound, charges, without)


def achieved(table: Table, row: Row) -> int:
    """The cost of the best program known for a row, which was evaluated."""
    high = table.bounds(row).high
    if high is None:
        raise InternalError(f"no program is known for row {row.factors}")
    return high


def expected(table: Table, row: Row) -> int:
    """What a row is expected to cost: its program's cost once looked at, else its lower bound."""
    bounds = table.bounds(row)
    return bounds.low if bounds.high is None else bounds.high


def lowest(table: Table, row: Row) -> int:
    """What no program of a row costs less than."""
    return table.bounds(row).low


def plain(table: Table, row: Row) -> int:
    """What plain collectives cost on a row."""
    return table.plain(row)


def conflict(workload: Workload, resources: Resources) -> tuple[Constraint, ...] | None:
    """None if some placement obeys the constraints; else a smallest set of them (none can go) that can't all hold."""

    def possible(constraints: Sequence[Constraint]) -> Answer:
        return _ask(encode_matrix(workload, constraints), resources).answer

    if possible(workload.constraints) is not Answer.UNSAT:
        return None
    core = list(workload.constraints)
    for one in workload.constraints:
        rest = [other for other in core if other is not one]
        if possible(rest) is Answer.UNSAT:
            core = rest
    return tuple(core)


def _ask(matrix: MatrixVariables, resources: Resources) -> Outcome:
    return solve_dimacs(
        matrix.clauses.dimacs(), resources.solver, resources.left(), resources.memory, resources.interrupted
    )


@dataclass(frozen=True, slots=True)
class BestMatrix:
    """The cheapest matrix known (by programs known), what refuted anything cheaper, and what cut the search short."""

    matrix: Matrix | None
    cost: int | None
    refuted: bool
    reason: str | None
    queries: tuple[Query, ...]


def best_matrix(
    tables: Tables,
    first: Iterable[Matrix],
    without: Sequence[Matrix],
    resources: Resources,
    price: Price = expected,
) -> BestMatrix:
    """The cheapest matrix but for those of `without`: the solver proposes, the tables look, until it refutes.

    price: `expected`, or another that needs no look (`plain`).
    """
    best: tuple[int, Matrix] | None = None
    queries: list[Query] = []

    def cost_of(matrix: Matrix) -> int:
        return tables.look(matrix, resources) if price is expected else tables.total(matrix, price)

    try:
        for matrix in first:
            cost = cost_of(matrix)
            best = min(best or (cost, matrix), (cost, matrix))
        while True:
            start, bound = perf_counter(), None if best is None else best[0]
            variables = tables.encode(bound, price, without)
            outcome = _ask(variables, resources)
            queries.append(Query(bound, outcome.answer, perf_counter() - start))
            if outcome.answer is Answer.UNKNOWN:
                return _ended(best, outcome.reason, queries)
            if outcome.answer is Answer.UNSAT:
                return BestMatrix(best and best[1], best and best[0], True, None, tuple(queries))
            matrix = variables.decode(outcome.true)
            cost = cost_of(matrix)
            if best is None or cost < best[0]:
                best = (cost, matrix)
                resources.progress(f"a placement of {cost / 1e6:.6g} ms a step; {tables.looked_at()[0]} rows looked at")
    except LimitReached as limit:
        return _ended(best, str(limit), queries)
    except KeyboardInterrupt:
        resources.interrupted.set()
        return _ended(best, "interrupted", queries)


def _ended(best: tuple[int, Matrix] | None, reason: str | None, queries: Sequence[Query]) -> BestMatrix:
    return BestMatrix(best and best[1], best and best[0], False, reason, tuple(queries))


def lower_bound(tables: Tables, cost: int, resources: Resources) -> tuple[int, list[Query]]:
    """The largest bound the solver refutes by the rows' lower bounds alone, by bisection down from `cost`.

    At least what each reduction and traffic takes by itself on its best row, which takes no solver.
    """
    queries: list[Query] = []
    alone = sum(count * min(lowest(table, row) for row in table.rows.every) for count, table in tables.parts())
    refuted, possible = min(alone, cost), cost + 1
    bound = cost
    while refuted < bound < possible:
        start = perf_counter()
        answer = _ask(tables.encode(bound, lowest, ()), resources).answer
        queries.append(Query(bound, answer, perf_counter() - start))
        if answer is Answer.UNKNOWN:
            break
        refuted, possible = (bound, possible) if answer is Answer.UNSAT else (refuted, bound)
        bound = (refuted + possible) // 2 if possible - refuted > cost // 1000 + 1 else possible
    return refuted, queries


def solve_workload(workload: Workload, options: Options, resources: Resources) -> WorkloadSolution:
    """The placement and programs of the least time a step, with the proof (see WorkloadSolution).

    Hierarchy `reduction`, reduced encoding. An interrupt or the deadline ends it with the best so far.
    """
    start = perf_counter()
    if workload.traffic and not isinstance(options.cost_model, AlphaBeta):
        raise InputError(
            f"{options.cost_model.name} doesn't price given traffic", where="cost_model", expected="alpha-beta"
        )
    core = conflict(workload, resources)
    nothing = WorkloadSolution(
        Status.INFEASIBLE, workload, None, None, None, (), (), None, None, core or (), None, (), 0.0
    )
    if core is not None:
        names = "; ".join(map(str, core))
        why = f"these constraints can't all hold: {names}" if core else "no placement exists"
        return replace(nothing, reason=why, seconds=perf_counter() - start)
    tables = Tables(workload, options)
    first = [matrix for _, matrix in default_matrices(workload) if matrix is not None and not workload.broken(matrix)]
    best = best_matrix(tables, dict.fromkeys(first), (), _part(resources, 0.6))
    if best.matrix is None or best.cost is None:
        return replace(nothing, status=Status.UNKNOWN, reason=best.reason, loop=best.queries)
    bound, queries = best.cost, list(best.queries)
    if not best.refuted or not tables.exact():
        bound, more = lower_bound(tables, best.cost, _part(resources, 0.6))
        queries += more
    answers = solve_on(tables, best.matrix, resources)
    found = sum(one.total or 0 for one in answers)
    flows = tuple((one.flow, achieved(one, one.rows.of(best.matrix))) for one in tables.flows)
    cost = found + sum(one.count * nanoseconds for one, nanoseconds in flows)
    return WorkloadSolution(
        status=Status.OPTIMAL if cost <= bound else Status.FEASIBLE,
        workload=workload,
        placement=Placement(workload.axes, best.matrix),
        cost=cost,
        lower_bound=bound,
        reductions=answers,
        traffic=flows,
        plain=sum(one.named.count * one.solution.allreduce for one in answers)
        + sum(one.count * nanoseconds for one, nanoseconds in flows),
        reason=(best.reason or ("interrupted" if resources.interrupted.is_set() else None)) if cost > bound else None,
        conflict=(),
        tables=tables,
        loop=tuple(queries),
        seconds=perf_counter() - start,
    )


def _part(resources: Resources, share: float) -> Resources:
    """The same resources with a deadline after `share` of the time that is left, so that later work has some too."""
    left = resources.left()
    return resources if left is None else replace(resources, deadline=perf_counter() + share * left)


def solve_on(tables: Tables, matrix: Matrix, resources: Resources) -> tuple[ReductionAnswer, ...]:
    """Every reduction of the workload solved on one placement, from the table's program, with its own refutation."""
    answers, workload = [], tables.workload
    for one, table in zip(workload.reductions, tables.tables, strict=True):
        lowering = lowering_of(table.problem, Placement(workload.axes, matrix))
        known = table.bounds(table.rows.of(matrix)).program
        solution = solve_lowering(lowering, table.problem, tables.options, resources, known)
        answers.append(ReductionAnswer(one, solution))
    return tuple(answers)
