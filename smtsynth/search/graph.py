"""The graph of class states, and the cheapest path through it: a warm start and a cross-check for the loop.

The graph depends on the aim (with the number of factors) and the instruction set alone, and is explored only where a
search goes. Its cheapest path costs no more than any program the rules accept, so it is a lower bound; no answer is
called optimal because of it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Event
from time import perf_counter

from smtsynth.cost.prices import Prices
from smtsynth.errors import LimitReached
from smtsynth.meaning.classes import Shape, States, shape, shares, step
from smtsynth.meaning.goals import Aim
from smtsynth.model.program import Instruction, Program, instruction_set

MAX_STATES = 12_000  # 4236 with 4 factors, some ten times more with each further one
MAX_DEPTH = 5  # factors; with more, single states take too long


@dataclass(frozen=True, slots=True)
class Edge:
    """An instruction that leads to state number `target`, with the rows masks of its groups (one per kind)."""

    instruction: Instruction
    masks: tuple[int, ...]
    target: int


@dataclass
class ClassGraph:
    """Class states by number, 0 the start; edges are found when they are asked for, and then kept."""

    aim: Aim
    instructions: str
    states: list[States] = field(init=False)
    numbers: dict[States, int] = field(init=False)
    known: dict[int, tuple[Edge, ...]] = field(init=False, default_factory=dict)
    goals: dict[int, bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.states, self.numbers = [self.aim.start], {self.aim.start: 0}
        self.choices: list[tuple[Instruction, Shape]] = [
            (one, shape(one, self.aim.depth)) for one in instruction_set(self.aim.depth, self.instructions)
        ]

    def reached(self, number: int) -> bool:
        """Whether a state is what is to be reached."""
        if number not in self.goals:
            self.goals[number] = self.aim.reached(self.states[number])
        return self.goals[number]

    def edges(self, number: int) -> tuple[Edge, ...]:
        """What each instruction makes of a state. Raises LimitReached where there are more than MAX_STATES states."""
        found = self.known.get(number)
        if found is None:
            found = self.known[number] = () if self.reached(number) else tuple(self._edges(self.states[number]))
        return found

    def _edges(self, state: States) -> list[Edge]:
        out = []
        for instruction, groups in self.choices:
            after = step(state, instruction.collective, groups)
            if after is not None:
                number = self.numbers.setdefault(after, len(self.states))
                if number == len(self.states):
                    self.states.append(after)
                out.append(Edge(instruction, shares(state, groups), number))
        if len(self.states) > MAX_STATES:
            raise LimitReached(f"the graph of class states has more than {MAX_STATES} states")
        return out


@lru_cache(maxsize=64)
def class_graph(aim: Aim, instructions: str) -> ClassGraph:
    """The graph of an aim; the same one for the same aim, so that it is explored once."""
    return ClassGraph(aim, instructions)


def cheapest_path(
    graph: ClassGraph,
    prices: Prices,
    steps: int,
    below: int | None = None,
    deadline: float | None = None,
    stop: Event | None = None,
) -> tuple[int, Program] | None:
    """The cheapest way to the goal in at most `steps` steps, the shortest of equals, if it costs less than `below`.

    None where there is none. Raises LimitReached past `deadline` (of perf_counter), where `stop` is set, or where the
    graph is too large.
    """
    if graph.aim.depth > MAX_DEPTH:
        raise LimitReached(f"the graph of class states is explored for at most {MAX_DEPTH} factors")
    clock = _Clock(deadline, stop)
    best = _any_length(graph, prices, below, clock)
    if best is None or len(best[1]) <= steps:
        return best
    return _within(graph, prices, steps, below, clock)


@dataclass
class _Clock:
    """Looks at the clock, and whether to stop."""

    deadline: float | None
    stop: Event | None

    def tick(self) -> None:
        if self.stop is not None and self.stop.is_set():
            raise LimitReached("interrupted")
        if self.deadline is not None and perf_counter() > self.deadline:
            raise LimitReached("the time limit was reached")


def _any_length(graph: ClassGraph, prices: Prices, below: int | None, clock: _Clock) -> tuple[int, Program] | None:
    """The cheapest path of any length, the shortest of equals (Dijkstra)."""
    least: dict[int, tuple[int, int]] = {0: (0, 0)}
    heap: list[tuple[int, int, int, Program]] = [(0, 0, 0, ())]
    while heap:
        cost, length, state, path = heapq.heappop(heap)
        if (cost, length) > least[state]:
            continue
        if graph.reached(state):
            return cost, path
        clock.tick()
        for edge in graph.edges(state):
            total = (cost + prices.masks(edge.instruction, edge.masks), length + 1)
            if (below is None or total[0] < below) and (edge.target not in least or total < least[edge.target]):
                least[edge.target] = total
                heapq.heappush(heap, (*total, edge.target, (*path, edge.instruction)))
    return None


def _within(
    graph: ClassGraph, prices: Prices, steps: int, below: int | None, clock: _Clock
) -> tuple[int, Program] | None:
    """The cheapest path of at most `steps` steps, length by length."""
    best: tuple[int, Program] | None = None
    layer: dict[int, tuple[int, Program]] = {0: (0, ())}
    for _ in range(steps):
        after: dict[int, tuple[int, Program]] = {}
        for state, (cost, path) in layer.items():
            clock.tick()
            for edge in graph.edges(state):
                total = cost + prices.masks(edge.instruction, edge.masks)
                if below is not None and total >= below:
                    continue
                if graph.reached(edge.target):
                    if best is None or total < best[0]:
                        best = (total, (*path, edge.instruction))
                elif edge.target not in after or total < after[edge.target][0]:
                    after[edge.target] = (total, (*path, edge.instruction))
        layer = after
    return best
