"""Solve: the cheapest program for a placement, or over all, with the solver's refutation of anything less."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.interface import CostModel
from smtsynth.cost.prices import Parts, Prices
from smtsynth.encode import concrete, reduced
from smtsynth.encode.choice import Choice
from smtsynth.encode.clauses import Clauses
from smtsynth.errors import InputError, InternalError, LimitReached
from smtsynth.meaning import classes
from smtsynth.model.lowering import Lowering, lower
from smtsynth.model.placement import Placement, count_placements, placements
from smtsynth.model.problem import Limits, Problem
from smtsynth.model.program import Collective, Form, Instruction, Program, default_steps, instruction_set
from smtsynth.search.graph import MAX_DEPTH, cheapest_path, class_graph
from smtsynth.search.incumbent import schemes
from smtsynth.search.loop import Found, Resources, Status, search
from smtsynth.search.replay import Replay, replay
from smtsynth.search.solution import Solution
from smtsynth.solvers.sat import check_solver

ENCODINGS = ("reduced", "concrete")
MAX_PLACEMENTS = 100_000


@dataclass(frozen=True)
class Options:
    """How to solve: instruction set, step limit (None: the model's), hierarchy, cost model, encoding, solver, bounds.

    With `bounds` the graph of class states gives the first program and a lower bound; without, the loop starts
    from the schemes people use and gets no bound from outside. The proof is the same.
    """

    instruction_set: str = "full"
    steps: int | None = None
    hierarchy: str = "reduction"
    cost_model: CostModel = AlphaBeta()
    encoding: str = "reduced"
    solver: str = "z3"
    bounds: bool = True
    jobs: int = 1

    def __post_init__(self) -> None:
        instruction_set(1, self.instruction_set)
        Limits(steps=self.steps)
        check_solver(self.solver)
        if self.encoding not in ENCODINGS:
            raise InputError(f"encoding {self.encoding!r} is unknown", expected=" or ".join(ENCODINGS))
        if isinstance(self.jobs, bool) or not isinstance(self.jobs, int) or self.jobs < 1:
            raise InputError(f"is {self.jobs!r}", where="jobs", expected="a whole number of at least 1")


@dataclass(frozen=True)
class PlacementTask:
    """The synthesis task of one lowering, for the loop."""

    prices: Prices
    instructions: tuple[Instruction, ...]
    steps: int
    encoding: str

    @property
    def lowering(self) -> Lowering:
        """The synthesis hierarchy."""
        return self.prices.lowering

    def encode(
        self,
        bound: int | None,
        mixed: Iterable[Any] = (),
        blocked: Iterable[Program] = (),
        clauses: Clauses | None = None,
    ) -> Choice:
        """Constraints on programs that cost less than `bound` ns."""
        encode = concrete.encode if self.encoding == "concrete" else reduced.encode
        return encode(self.prices, self.instructions, self.steps, bound, mixed, blocked, clauses)

    def tidy(self, program: Program) -> Program:
        """Without broadcasts that change nothing, which the reduced encoding admits."""
        states, kept = classes.initial(self.lowering.depth), []
        for instruction in program:
            groups = classes.shape(instruction, self.lowering.depth)
            after = classes.step(states, instruction.collective, groups)
            if after is None and instruction.collective is Collective.BROADCAST and self.encoding == "reduced":
                continue
            kept.append(instruction)
            states = after if after is not None else states
        return tuple(kept)

    def cost(self, program: Program) -> int:
        """The exact cost in nanoseconds."""
        return self.prices.program(program)

    def mixed(self, program: Program) -> list[tuple[Instruction, Parts | tuple[int, ...]]]:
        """Exact price rows for steps whose groups hold different parts."""
        if self.encoding == "concrete":
            steps = zip(program, self.prices.steps(program), strict=True)
            return [(instruction, parts) for instruction, (parts, _) in steps if len(set(parts)) > 1]
        rows: list[tuple[Instruction, Parts | tuple[int, ...]]] = []
        states: classes.States | None = classes.initial(self.lowering.depth)
        for instruction in program:
            groups = classes.shape(instruction, self.lowering.depth)
            assert states is not None
            masks = classes.shares(states, groups)
            if len(set(masks)) > 1:
                rows.append((instruction, masks))
            states = classes.step(states, instruction.collective, groups)
        return rows

    def replay(self, program: Program) -> Replay:
        """Whether the program reaches the goal by the rules and the buffers."""
        return replay(self.lowering, program)


def solve_lowering(lowering: Lowering, problem: Problem, options: Options, resources: Resources) -> Solution:
    """The best program on one lowering (see solve)."""
    start = perf_counter()
    steps = options.steps or problem.limits.steps or default_steps(lowering.depth)
    plain = lower(problem.system, lowering.placement, lowering.reduced_rows)
    any_schedule = options.cost_model.any_schedule(plain, problem.reduction.payload)
    found, bound = _find(lowering, plain, problem, options, resources, steps)
    if found.status in (Status.FEASIBLE, Status.UNKNOWN):
        bound = max(any_schedule or 0, bound or 0)
    if found.cost is not None and found.cost < max(any_schedule or 0, bound or 0):
        raise InternalError(f"a program of {found.cost} ns beats the lower bounds {any_schedule} and {bound} ns")
    return Solution(
        status=found.status,
        lowering=lowering,
        program=found.program,
        cost=found.cost,
        lower_bound=bound,
        allreduce=plain_cost(plain, problem, options.cost_model),
        any_schedule_bound=any_schedule,
        steps_limit=steps,
        instruction_set=options.instruction_set,
        cost_model=options.cost_model.name,
        solver=options.solver,
        encoding=options.encoding,
        layout=found.replay.layout if found.replay else None,
        reason=found.reason,
        blocked=found.blocked,
        loop=found.queries,
        seconds=perf_counter() - start,
    )


IN_PART = "a level of this hierarchy is reduced over in part only, and its groups can't tell the parts apart"


def _find(
    lowering: Lowering, plain: Lowering, problem: Problem, options: Options, resources: Resources, steps: int
) -> tuple[Found, int | None]:
    """What the loop finds, and a lower bound of every program where one is known."""
    if not plain.depth:
        return Found(Status.OPTIMAL, (), 0, Replay(True, layout="identity"), None, (), ()), 0
    if any(factor.reduced is None for factor in lowering.factors):
        return Found(Status.INFEASIBLE, None, None, None, IN_PART, (), ()), None
    prices = Prices(options.cost_model, lowering, problem.reduction.payload)
    instructions = instruction_set(lowering.depth, options.instruction_set)
    task = PlacementTask(prices, instructions, steps, options.encoding)
    first, bound = _first(task, options, resources)
    found = search(task, first, resources)
    if found.cost is not None and found.cost < (bound or 0):
        raise InternalError(f"a program of {found.cost} ns beats the lower bound {bound} ns of the graph of classes")
    ends = {Status.OPTIMAL: found.cost, Status.INFEASIBLE: None}
    return found, ends.get(found.status, bound)


def plain_cost(plain: Lowering, problem: Problem, model: CostModel) -> int:
    """What one AllReduce over every replica costs, in nanoseconds; 0 where nothing is reduced."""
    if not plain.depth:
        return 0
    whole = Instruction(Collective.ALL_REDUCE, 0, Form.INSIDE_GROUP)
    return model.price(plain, whole, problem.reduction.payload)


def _first(task: PlacementTask, options: Options, resources: Resources) -> tuple[list[Program], int | None]:
    """Programs to start from, and a lower bound of every program where the graph of classes gives one."""
    depth, steps = task.lowering.depth, task.steps
    flags = [bool(factor.reduced) for factor in task.lowering.factors]
    first = [program for program in schemes(depth, flags, task.instructions) if len(program) <= steps]
    if options.bounds and depth <= MAX_DEPTH and options.encoding == "reduced":
        mask = sum(flag << number for number, flag in enumerate(flags))
        try:
            graph = class_graph(depth, options.instruction_set, mask)
            best = cheapest_path(graph, task.prices, steps, resources.deadline)
        except LimitReached:
            return first, None
        if best is not None:
            return [best[1], *first], best[0]
    return first, None


def solve(
    problem: Problem,
    placement: Placement | None = None,
    options: Options | None = None,
    resources: Resources | None = None,
) -> Solution:
    """The cheapest program for `placement`, or for the best of all placements (None), with its proof.

    Raises InputError where problem and options don't fit, LimitReached where there are too many placements. An
    interrupt (Ctrl-C) ends the search with the best so far, status `feasible`. Source: the model, section 7.
    """
    options, resources, start = options or Options(), resources or Resources(), perf_counter()
    if problem.reduction.collective is not Collective.ALL_REDUCE:
        raise InputError(f"solve does not take {problem.reduction.collective} yet", expected="AllReduce")
    if placement is not None:
        return solve_lowering(_lowering(problem, placement, options), problem, options, resources)
    count = count_placements(problem.axes, problem.system)
    if count > MAX_PLACEMENTS:
        raise LimitReached(f"there are {count} placements, and solve takes at most {MAX_PLACEMENTS}: give one")
    lowerings = [_lowering(problem, one, options) for one in placements(problem.system, problem.axes)]
    return _best(_solve_all(lowerings, problem, options, resources), perf_counter() - start)


def _lowering(problem: Problem, placement: Placement, options: Options) -> Lowering:
    return lower(problem.system, placement, problem.reduced, options.hierarchy)


def _solve_all(
    lowerings: Sequence[Lowering], problem: Problem, options: Options, resources: Resources
) -> tuple[Solution, ...]:
    """Solve each; placements with the same factors at the same levels have the same answer and are solved once."""
    keys = [tuple((factor.level, factor.size, factor.reduced) for factor in one.factors) for one in lowerings]
    distinct = dict(zip(reversed(keys), reversed(lowerings), strict=True))
    work = list(reversed(distinct.items()))
    done: dict[tuple[tuple[int, int, bool | None], ...], Solution] = {}

    def one(number: int) -> Solution:
        resources.progress(f"placement {work[number][1].placement} ({number + 1} of {len(work)} distinct)")
        return solve_lowering(work[number][1], problem, options, resources)

    if options.jobs == 1:
        for number, (key, _) in enumerate(work):
            done[key] = one(number)
    else:
        with ThreadPoolExecutor(options.jobs) as pool:
            futures = [pool.submit(one, number) for number in range(len(work))]
            try:
                wait(futures)
            except KeyboardInterrupt:  # only the main thread sees it
                resources.interrupted.set()
            for (key, _), future in zip(work, futures, strict=True):
                done[key] = future.result()
    return tuple(replace(done[key], lowering=lowering) for key, lowering in zip(keys, lowerings, strict=True))


def _best(solutions: tuple[Solution, ...], seconds: float) -> Solution:
    """The answer over all placements: the cheapest, optimal if it costs no more than the least lower bound."""
    solved = [one for one in solutions if one.cost is not None]
    feasible = [one for one in solutions if one.status is not Status.INFEASIBLE]
    if not solved:
        status = Status.UNKNOWN if feasible else Status.INFEASIBLE
        return replace((feasible or solutions)[0], status=status, seconds=seconds, placements=solutions)
    best = min(solved, key=lambda one: (one.cost, len(one.program or ())))
    bound = min(one.lower_bound or 0 for one in feasible)
    proved = best.status is Status.OPTIMAL and best.cost is not None and best.cost <= bound
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    reason = next((one.reason for one in feasible if one.status is not Status.OPTIMAL), None)
    return replace(
        best, status=status, lower_bound=bound, reason=None if proved else reason, seconds=seconds, placements=solutions
    )
