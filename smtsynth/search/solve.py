"""Solve: the cheapest program for a placement, or over all, with the solver's refutation of anything less."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter
from typing import Any

from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.interface import CostModel
from smtsynth.cost.prices import Parts, Prices
from smtsynth.encode import concrete, reduced
from smtsynth.encode.choice import Blocked, Choice
from smtsynth.encode.clauses import Clauses
from smtsynth.errors import InputError, InternalError, LimitReached, check_type
from smtsynth.meaning import classes
from smtsynth.meaning.goals import Target, target_of
from smtsynth.model.lowering import Lowering, lower, lowering_of
from smtsynth.model.placement import Placement, count_placements, placements
from smtsynth.model.problem import Limits, Problem
from smtsynth.model.program import Collective, Form, Instruction, Program, instruction_set
from smtsynth.search.graph import cheapest_path, class_graph
from smtsynth.search.incumbent import schemes
from smtsynth.search.loop import Found, Resources, Status, first_that_replays, search
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
        check_type(self.cost_model, CostModel, "cost_model", "a cost model, such as AlphaBeta()")
        check_solver(self.solver)
        if self.encoding not in ENCODINGS:
            raise InputError(f"encoding {self.encoding!r} is unknown", expected=" or ".join(ENCODINGS))
        if isinstance(self.jobs, bool) or not isinstance(self.jobs, int) or self.jobs < 1:
            raise InputError(f"is {self.jobs!r}", where="jobs", expected="a whole number of at least 1")

    def step_limit(self, problem: Problem, depth: int) -> int:
        """The most steps of a program over `depth` factors: these options', else the problem's."""
        return self.steps or problem.step_limit(depth)


@dataclass(frozen=True)
class PlacementTask:
    """The synthesis task of one lowering, for the loop."""

    prices: Prices
    target: Target
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
        blocked: Iterable[Blocked] = (),
        clauses: Clauses | None = None,
    ) -> Choice:
        """Constraints on programs that cost less than `bound` ns."""
        encode = concrete.encode if self.encoding == "concrete" else reduced.encode
        return encode(self.prices, self.instructions, self.steps, bound, mixed, blocked, clauses, self.target)

    def tidy(self, program: Program) -> Program:
        """Without broadcasts that change nothing and steps after the goal, which the encodings admit."""
        depth, aim = self.lowering.depth, self.target.aim
        states, kept = aim.start, []
        for instruction in program:
            if aim.reached(states):
                break
            after = classes.step(states, instruction.collective, classes.shape(instruction, depth))
            if after is not None or instruction.collective is not Collective.BROADCAST:
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
        states: classes.States | None = self.target.aim.start
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
        return replay(self.lowering, program, self.target)


def task_of(lowering: Lowering, problem: Problem, options: Options) -> PlacementTask:
    """The synthesis task of a problem on a lowering."""
    return PlacementTask(
        Prices(options.cost_model, lowering, problem.reduction.payload, problem.reduction.collective),
        target_of(lowering, problem.reduction.collective, problem.split),
        instruction_set(lowering.depth, options.instruction_set),
        options.step_limit(problem, lowering.depth),
        options.encoding,
    )


def solve_lowering(
    lowering: Lowering, problem: Problem, options: Options, resources: Resources, known: Program | None = None
) -> Solution:
    """The best program on one lowering (see solve), starting from a program that is known."""
    start = perf_counter()
    steps = options.step_limit(problem, lowering.depth)
    plain = lower(problem.system, lowering.placement, lowering.reduced_rows)
    reduction = problem.reduction
    any_schedule = options.cost_model.any_schedule(plain, reduction.payload, reduction.collective, problem.split)
    found, bound = _find(lowering, plain, problem, options, resources, known)
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
    lowering: Lowering,
    plain: Lowering,
    problem: Problem,
    options: Options,
    resources: Resources,
    known: Program | None,
) -> tuple[Found, int | None]:
    """What the loop finds, and a lower bound of every program where one is known."""
    if not plain.depth:
        return Found(Status.OPTIMAL, (), 0, Replay(True, layout="identity"), None, (), ()), 0
    if any(factor.reduced is None for factor in lowering.factors):
        return Found(Status.INFEASIBLE, None, None, None, IN_PART, (), ()), None
    task = task_of(lowering, problem, options)
    first, bound = first_programs(task, options, resources)
    found = search(task, first if known is None else [known, *first], resources)
    if found.cost is not None and found.cost < (bound or 0):
        raise InternalError(f"a program of {found.cost} ns beats the lower bound {bound} ns of the graph of classes")
    ends = {Status.OPTIMAL: found.cost, Status.INFEASIBLE: None}
    return found, ends.get(found.status, bound)


def plain_cost(plain: Lowering, problem: Problem, model: CostModel) -> int:
    """What the reduction costs by plain collectives, one over every replica, in nanoseconds; 0 where nothing is to do.

    A mix is a ReduceScatter over the split axes and an AllReduce of the parts over the others.
    """
    reduction = problem.reduction
    if reduction.mixed:
        split, rest = (
            lower(problem.system, plain.placement, rows)
            for rows in (problem.split, tuple(row for row in problem.reduced if row not in problem.split))
        )
        part = reduction.payload / split.size
        return _flat(split, Collective.REDUCE_SCATTER, reduction.payload, model) + _flat(
            rest, Collective.ALL_REDUCE, part, model
        )
    share = reduction.payload / plain.size if reduction.collective is Collective.ALL_GATHER else reduction.payload
    return _flat(plain, reduction.collective, share, model)


def _flat(plain: Lowering, collective: Collective, share: Fraction, model: CostModel) -> int:
    """One collective over every replica whose devices hold `share` bytes."""
    return model.price(plain, Instruction(collective, 0, Form.INSIDE_GROUP), share) if plain.depth else 0


def first_programs(task: PlacementTask, options: Options, resources: Resources) -> tuple[list[Program], int | None]:
    """Programs to start from, the cheapest first that replays among them, and, with bounds, a lower bound of all."""
    listed = (program for program in schemes(task.target.aim, task.instructions) if len(program) <= task.steps)
    known = first_that_replays(task, listed, resources)
    first = [known[0]] if known is not None else []
    if not options.bounds or options.encoding != "reduced" or resources.interrupted.is_set():
        return first, None
    below = task.cost(first[0]) + 1 if first else None  # of equal cost the shorter is better
    try:
        graph = class_graph(task.target.aim, options.instruction_set)
        best = cheapest_path(graph, task.prices, task.steps, below, resources.deadline, resources.interrupted)
    except LimitReached:
        return first, None
    except KeyboardInterrupt:  # the schemes are still worth an answer
        resources.interrupted.set()
        return first, None
    return ([best[1], *first], best[0]) if best is not None else (first, None)


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
    if placement is not None:
        return solve_lowering(lowering_of(problem, placement, options.hierarchy), problem, options, resources)
    count = count_placements(problem.axes, problem.system)
    if count > MAX_PLACEMENTS:
        raise LimitReached(f"there are {count} placements, and solve takes at most {MAX_PLACEMENTS}: give one")
    lowerings = [lowering_of(problem, one, options.hierarchy) for one in placements(problem.system, problem.axes)]
    return _best(_solve_all(lowerings, problem, options, resources), perf_counter() - start)


Key = tuple[Hashable, tuple[int, ...]]


def _key(lowering: Lowering, problem: Problem, model: CostModel) -> Key:
    """What an answer depends on: what prices depend on, and how the axes that end split lie."""
    if not problem.reduction.mixed:
        return model.key(lowering), ()
    matrix = lowering.placement.matrix
    columns = zip(*(matrix[row] for row in problem.split), strict=True)
    return model.key(lowering), tuple(math.prod(column) for column in columns)


def _solve_all(
    lowerings: Sequence[Lowering], problem: Problem, options: Options, resources: Resources
) -> tuple[Solution, ...]:
    """Solve each; placements with the same key have the same answer and are solved once."""
    keys = [_key(one, problem, options.cost_model) for one in lowerings]
    distinct = dict(zip(reversed(keys), reversed(lowerings), strict=True))
    work = list(reversed(distinct.items()))
    done: dict[Key, Solution] = {}

    def one(number: int) -> Solution:
        resources.progress(f"placement {work[number][1].placement} ({number + 1} of {len(work)} distinct)")
        return solve_lowering(work[number][1], problem, options, resources)

    if options.jobs == 1:
        for number, (key, _) in enumerate(work):
            done[key] = one(number)
    else:
        with ThreadPoolExecutor(options.jobs) as pool:
            futures: list[Future[Solution]] = []

            def finish() -> None:
                futures.extend(pool.submit(one, number) for number in range(len(futures), len(work)))
                while wait(futures, timeout=0.1).not_done:  # an endless wait can miss an interrupt
                    pass

            try:
                finish()
            except KeyboardInterrupt:  # only the main thread sees it; what is left ends at once
                resources.interrupted.set()
                finish()
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
    return replace(best, status=status, lower_bound=bound, reason=reason, seconds=seconds, placements=solutions)
