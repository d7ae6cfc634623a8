"""A whole training step: one placement for all its reductions, with the programs, at the least total time.

The solver chooses the matrix against tables of row costs (smtsynth.search.rows), which hold proved lower bounds and,
where it has looked, optima; every model's rows are looked at, until no matrix is cheaper than the best one known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from smtsynth.cost.traffic import traffic_cost
from smtsynth.encode.clauses import Clauses
from smtsynth.encode.costs import Costs
from smtsynth.encode.placement import MatrixVariables
from smtsynth.encode.placement import encode as encode_placement
from smtsynth.errors import InputError, InternalError, LimitReached
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import Matrix, Placement
from smtsynth.model.workload import Constraint, NamedReduction, Traffic, Workload
from smtsynth.search.defaults import default_matrices
from smtsynth.search.loop import Query, Resources, Status
from smtsynth.search.rows import Row, RowTable, vectors
from smtsynth.search.solution import Solution
from smtsynth.search.solve import Options, solve_lowering
from smtsynth.solvers.outcome import Answer, Outcome
from smtsynth.solvers.sat import solve_dimacs


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
    conflict: constraints that can't all hold, where the status is infeasible; rows: how many rows of the tables were
    looked at, of how many.
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
    rows: tuple[int, int]
    loop: tuple[Query, ...]
    seconds: float


@dataclass
class Tables:
    """The row tables of a workload's reductions, and the costs of its given traffic, by the axis' row."""

    workload: Workload
    options: Options
    tables: tuple[RowTable, ...] = field(init=False)
    flows: tuple[dict[tuple[int, ...], int], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.tables = tuple(RowTable(self.workload.problem(one), self.options) for one in self.workload.reductions)
        sizes = self.workload.system.sizes
        self.flows = tuple(
            {
                row: traffic_cost(self.workload.system, row, one.pattern, one.payload).nanoseconds
                for row in vectors(self.workload.axes[self.workload.row(one.axis)].size, sizes)
            }
            for one in self.workload.traffic
        )

    def flow(self, number: int, matrix: Matrix) -> int:
        """What traffic number `number` costs once on a matrix."""
        return self.flows[number][tuple(matrix[self.workload.row(self.workload.traffic[number].axis)])]

    def total(self, matrix: Matrix, price: Callable[[RowTable, Row], int]) -> int:
        """The step's cost on a matrix, with rows priced by `price`."""
        pairs = zip(self.workload.reductions, self.tables, strict=True)
        reductions = sum(one.count * price(table, table.of(matrix)) for one, table in pairs)
        return reductions + sum(one.count * self.flow(n, matrix) for n, one in enumerate(self.workload.traffic))

    def look(self, matrix: Matrix, resources: Resources) -> int:
        """Evaluate the rows of a matrix; its cost by the programs found. Raises LimitReached at the deadline."""
        for table in self.tables:
            table.evaluate(table.of(matrix), resources)
        return self.total(matrix, achieved)

    def exact(self) -> bool:
        """Whether every row that was looked at has its optimum."""
        return all(bounds.exact for table in self.tables for bounds in table.known.values() if bounds.high is not None)

    def looked_at(self) -> tuple[int, int]:
        """How many rows were evaluated, of how many."""
        done = sum(bounds.high is not None for table in self.tables for bounds in table.known.values())
        return done, sum(len(table.rows()) for table in self.tables)

    def encode(
        self, bound: int | None, price: Callable[[RowTable, Row], int], without: Iterable[Matrix]
    ) -> MatrixVariables:
        """Matrices that obey the constraints, cost less than `bound` by `price`, and are none of `without`."""
        matrix = encode_matrix(self.workload, self.workload.constraints)
        for other in without:
            matrix.block(Placement(self.workload.axes, other))
        if bound is not None:
            costs = Costs(matrix.clauses, len(self.tables) + len(self.flows), bound)
            for number, (one, table) in enumerate(zip(self.workload.reductions, self.tables, strict=True), 1):
                for row in table.rows():
                    costs.charge(number, _is(matrix, table, row), one.count * price(table, row))
            for number, (flow, known) in enumerate(
                zip(self.workload.traffic, self.flows, strict=True), len(self.tables) + 1
            ):
                axis = self.workload.row(flow.axis)
                for entries, cost in known.items():
                    literals = [x for level, n in enumerate(entries) for x in matrix.equals([axis], level, n)]
                    costs.charge(number, literals, flow.count * cost)
            costs.define()
        return matrix


def achieved(table: RowTable, row: Row) -> int:
    """The cost of the best program known for a row, which was evaluated."""
    high = table.bounds(row).high
    if high is None:
        raise InternalError(f"no program is known for row {row.factors}")
    return high


def expected(table: RowTable, row: Row) -> int:
    """What a row is expected to cost: its program's cost once looked at, else its lower bound."""
    bounds = table.bounds(row)
    return bounds.low if bounds.high is None else bounds.high


def lowest(table: RowTable, row: Row) -> int:
    """What no program of a row costs less than."""
    return table.bounds(row).low


def plain(table: RowTable, row: Row) -> int:
    """What plain collectives cost on a row."""
    return table.plain(row)


def _is(matrix: MatrixVariables, table: RowTable, row: Row) -> list[int]:
    """Literals that together say that the matrix gives the reduction this row."""
    problem, literals = table.problem, []
    for level, product in enumerate(row.factors):
        literals += matrix.equals(problem.reduced, level, product)
    for level, product in enumerate(row.split):
        literals += matrix.equals(problem.split, level, product)
    return literals


def encode_matrix(workload: Workload, constraints: Iterable[Constraint]) -> MatrixVariables:
    """The matrices of a workload that obey these constraints."""
    clauses = Clauses()
    matrix = encode_placement(workload.axes, workload.system, clauses)
    names = [level.name for level in workload.system.levels]
    for constraint in constraints:
        axis = workload.row(constraint.axis)
        if constraint.inside is not None:
            for level in range(names.index(constraint.inside) + 1):
                for literal in matrix.equals([axis], level, 1):
                    clauses.add(literal)
        elif constraint.unsplit:
            spread = [clauses.var("spread", axis, level) for level in range(len(names))]
            for level, name in enumerate(spread):
                for prime in matrix.primes:
                    clauses.imply(matrix.exponent(axis, level, prime)[:1] or [-name, name], name)
            clauses.at_most_one(spread)
        else:
            for literal in matrix.equals([axis], names.index(constraint.level or ""), constraint.factor or 1):
                clauses.add(literal)
    return matrix


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
    price: Callable[[RowTable, Row], int] = expected,
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
    """The largest bound the solver refutes by the rows' lower bounds alone, by bisection down from `cost`."""
    queries: list[Query] = []
    refuted, possible = 0, cost + 1
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
    if not workload.system.switched:  # rows stand for all placements with the same factors
        raise InputError("a workload's system has other wiring", where="system", expected="levels of kind switch")
    core = conflict(workload, resources)
    nothing = WorkloadSolution(
        Status.INFEASIBLE, workload, None, None, None, (), (), None, None, core or (), (0, 0), (), 0.0
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
    answers = solve_on(workload, best.matrix, options, resources)
    found = sum(one.total or 0 for one in answers)
    flows = tuple((one, tables.flow(number, best.matrix)) for number, one in enumerate(workload.traffic))
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
        reason=best.reason if cost > bound else None,
        conflict=(),
        rows=tables.looked_at(),
        loop=tuple(queries),
        seconds=perf_counter() - start,
    )


def _part(resources: Resources, share: float) -> Resources:
    """The same resources with a deadline after `share` of the time that is left, so that later work has some too."""
    left = resources.left()
    return resources if left is None else replace(resources, deadline=perf_counter() + share * left)


def solve_on(workload: Workload, matrix: Matrix, options: Options, resources: Resources) -> tuple[ReductionAnswer, ...]:
    """Every reduction of the workload solved on one placement, each with its own refutation."""
    answers = []
    for one in workload.reductions:
        problem = workload.problem(one)
        lowering = lowering_of(problem, Placement(workload.axes, matrix))
        answers.append(ReductionAnswer(one, solve_lowering(lowering, problem, options, resources)))
    return tuple(answers)
