"""The paper's own method: syntax-guided enumeration of programs, checked step by step by the rules (paper, section 5).

Without merging, every program is walked on its own, as the paper does. With merging, equal states are kept once, so
that counts and cheapest costs come from a graph of states; the programs are the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from time import perf_counter

from smtsynth.cost.prices import Parts, Prices
from smtsynth.cost.shares import group_types
from smtsynth.errors import LimitReached
from smtsynth.meaning import rules
from smtsynth.meaning.goals import Target
from smtsynth.meaning.rules import Failure, State
from smtsynth.model.program import Instruction, Program, instruction_set

MAX_DEVICES = 1024  # devices per replica; states of larger ones take too long to step

Edge = tuple[Instruction, Parts, State]


@dataclass(frozen=True, slots=True)
class Enumeration:
    """Programs found by length (first entry: one step), the cheapest of them and its cost in nanoseconds.

    `finished` is false where the time limit ended the search; `reason` says so.
    """

    by_length: tuple[int, ...]
    cost: int | None
    program: Program | None
    finished: bool
    reason: str | None
    seconds: float

    @property
    def count(self) -> int:
        """How many programs there are within the step limit."""
        return sum(self.by_length) + (self.program == ())  # where nothing is reduced, the empty program


@dataclass
class StateGraph:
    """States of one replica that programs reach, found as they are asked for and then kept.

    target: what is to be reached; instructions: the set's name; deadline: of perf_counter. Raises LimitReached where
    a replica has more than MAX_DEVICES devices.
    """

    target: Target
    instructions: str = "full"
    deadline: float | None = None
    known: dict[State, list[Edge]] = field(default_factory=dict)
    goals: dict[State, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.target.size > MAX_DEVICES:
            raise LimitReached(
                f"enumeration steps states of at most {MAX_DEVICES} devices per replica, not {self.target.size}"
            )

    def reached(self, state: State) -> bool:
        """Whether the state is what is to be reached."""
        if state not in self.goals:
            self.goals[state] = self.target.reached(state)
        return self.goals[state]

    def edges(self, state: State) -> list[Edge]:
        """What each instruction makes of `state`: (instruction, parts its groups hold, next state), goal included."""
        found = self.known.get(state)
        if found is None:
            found = self.known[state] = list(self.expand(state))
        return found

    def expand(self, state: State) -> Iterator[Edge]:
        """The edges of `state`, computed anew. Raises LimitReached past the deadline."""
        if self.reached(state):
            return
        for instruction in instruction_set(self.target.depth, self.instructions):
            if self.deadline is not None and perf_counter() > self.deadline:
                raise LimitReached("the time limit was reached")
            after = rules.step(state, self.target.sizes, instruction)
            if not isinstance(after, Failure):
                yield instruction, self._parts(state, instruction), after

    def _parts(self, state: State, instruction: Instruction) -> Parts:
        """The part of the payload that the groups of each type hold, by the rows of their first device."""
        sizes, size = self.target.sizes, len(state)
        depth = len(sizes)
        parts = []
        for kind in group_types(depth, instruction.span(depth)):
            device = 0
            for factor, n in enumerate(sizes):
                device = device * n + (kind >> factor & 1)
            held = rules.rows_of(state[device]).bit_count()
            parts.append(Fraction(held, size))
        return tuple(parts)


def enumerate_programs(
    graph: StateGraph,
    prices: Prices,
    steps: int,
    merge: bool = True,
    progress: Callable[[str], None] = lambda line: None,
) -> Enumeration:
    """All programs of at most `steps` steps: how many of each length, and the cheapest (the shortest of equals)."""
    start = perf_counter()
    walk = _merged if merge else _one_by_one
    counts = [0] * steps
    best: list[tuple[int, Program]] = []
    reason = None
    try:
        if not graph.reached(graph.target.start):
            for length, count, cost, program in walk(graph, prices, steps, progress):
                counts[length - 1] += count
                if not best or (cost, length) < (best[0][0], len(best[0][1])):
                    best = [(cost, program)]
        else:
            best = [(0, ())]
    except LimitReached as limit:
        reason = str(limit)
    least, cheapest = best[0] if best else (None, None)
    return Enumeration(tuple(counts), least, cheapest, reason is None, reason, perf_counter() - start)


Batch = tuple[int, int, int, Program]  # length, how many programs, the least cost, a program of that cost


def _merged(graph: StateGraph, prices: Prices, steps: int, progress: Callable[[str], None]) -> Iterator[Batch]:
    layer: dict[State, tuple[int, int, Program]] = {graph.target.start: (1, 0, ())}
    for length in range(1, steps + 1):
        after: dict[State, tuple[int, int, Program]] = {}
        for state, (count, cost, program) in layer.items():
            for instruction, parts, target in graph.edges(state):
                total, longer = cost + prices.price(instruction, parts), (*program, instruction)
                if graph.reached(target):
                    yield length, count, total, longer
                else:
                    old = after.get(target)
                    if old is None:
                        after[target] = (count, total, longer)
                    else:
                        cheaper = (total, longer) if total < old[1] else old[1:]
                        after[target] = (old[0] + count, *cheaper)
        progress(f"enumerated programs of {length} steps: {len(after)} states to go on from")
        layer = after


def _one_by_one(graph: StateGraph, prices: Prices, steps: int, progress: Callable[[str], None]) -> Iterator[Batch]:
    walked = 0
    stack: list[tuple[State, int, Program]] = [(graph.target.start, 0, ())]
    while stack:
        state, cost, program = stack.pop()
        for instruction, parts, target in graph.expand(state):
            walked += 1
            if walked % 100_000 == 0:
                progress(f"enumerated {walked} prefixes")
            total, longer = cost + prices.price(instruction, parts), (*program, instruction)
            if graph.reached(target):
                yield len(longer), 1, total, longer
            elif len(longer) < steps:
                stack.append((target, total, longer))


def cheapest_programs(graph: StateGraph, prices: Prices, steps: int) -> Iterator[tuple[int, Program]]:
    """All programs of at most `steps` steps as (nanoseconds, program), cheapest first, then the shorter."""
    least = _least_left(graph, prices, steps)
    start = least.get((graph.target.start, steps))
    heap: list[tuple[int, int, int, State, int, Program]] = []
    if start is not None:
        heap.append((start, 0, 0, graph.target.start, 0, ()))
    pushed = 0
    while heap:
        _, length, _, state, cost, program = heapq.heappop(heap)
        if graph.reached(state):
            yield cost, program
            continue
        for instruction, parts, target in graph.edges(state):
            rest = least.get((target, steps - length - 1))
            if rest is not None:
                pushed += 1
                total = cost + prices.price(instruction, parts)
                heapq.heappush(heap, (total + rest, length + 1, pushed, target, total, (*program, instruction)))


def _least_left(graph: StateGraph, prices: Prices, steps: int) -> dict[tuple[State, int], int]:
    """The least cost still to pay from (state, steps left), where the goal can be reached."""
    layers: list[set[State]] = [{graph.target.start}]
    for _ in range(steps):
        layers.append({target for state in layers[-1] for _, _, target in graph.edges(state)})
    least: dict[tuple[State, int], int] = {}
    for left in range(steps + 1):
        for state in layers[steps - left]:
            if graph.reached(state):
                least[state, left] = 0
            elif left:
                costs = [
                    prices.price(instruction, parts) + least[target, left - 1]
                    for instruction, parts, target in graph.edges(state)
                    if (target, left - 1) in least
                ]
                if costs:
                    least[state, left] = min(costs)
    return least
