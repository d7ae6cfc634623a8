"""The graph of class states, and the cheapest path through it: a warm start and a cross-check for the loop.

The graph depends on the aim (with the number of factors) and the instruction set alone. Its cheapest path costs no
more than any program the rules accept, so it is a lower bound; no answer is called optimal because of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter

from smtsynth.cost.prices import Prices
from smtsynth.errors import LimitReached
from smtsynth.meaning.classes import shape, shares, step
from smtsynth.meaning.goals import Aim
from smtsynth.model.program import Instruction, Program, instruction_set

MAX_DEPTH = 4  # 4236 states with 4 factors; some ten times more with each further one


@dataclass(frozen=True, slots=True)
class Edge:
    """An instruction that leads to state number `target`, with the rows masks of its groups (one per kind)."""

    instruction: Instruction
    masks: tuple[int, ...]
    target: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges by state number; 0 is the start, `goals` are those that the reduction must reach."""

    edges: tuple[tuple[Edge, ...], ...]
    goals: frozenset[int]


@lru_cache(maxsize=32)
def class_graph(aim: Aim, instructions: str) -> Graph:
    """All class states that programs of the set `instructions` can reach. LimitReached above MAX_DEPTH factors."""
    depth = aim.depth
    if depth > MAX_DEPTH:
        raise LimitReached(f"the graph of class states is built for at most {MAX_DEPTH} factors, not {depth}")
    choices = [(one, shape(one, depth)) for one in instruction_set(depth, instructions)]
    numbers, edges, goals = {aim.start: 0}, [], set()
    states = list(numbers)
    for number, state in enumerate(states):
        out = []
        if aim.reached(state):
            goals.add(number)
        for instruction, groups in choices if number not in goals else ():
            after = step(state, instruction.collective, groups)
            if after is not None:
                if after not in numbers:
                    numbers[after] = len(states)
                    states.append(after)
                out.append(Edge(instruction, shares(state, groups), numbers[after]))
        edges.append(tuple(out))
    return _live(edges, goals)


def _live(edges: list[tuple[Edge, ...]], goals: set[int]) -> Graph:
    """The graph without states from which no goal can be reached."""
    sources: dict[int, list[int]] = {}
    for number, out in enumerate(edges):
        for edge in out:
            sources.setdefault(edge.target, []).append(number)
    live, todo = set(goals), list(goals)
    while todo:
        for number in sources.get(todo.pop(), ()):
            if number not in live:
                live.add(number)
                todo.append(number)
    kept = [tuple(edge for edge in out if edge.target in live) for out in edges]
    return Graph(tuple(kept), frozenset(goals))


def cheapest_path(
    graph: Graph, prices: Prices, steps: int, deadline: float | None = None
) -> tuple[int, Program] | None:
    """The cheapest way to the goal in at most `steps` steps, the shortest among equals; None where there is none.

    Raises LimitReached past `deadline` (of perf_counter).
    """
    best: tuple[int, Program] | None = None
    layer: dict[int, tuple[int, Program]] = {0: (0, ())}
    priced: dict[int, list[tuple[int, Edge]]] = {}
    for _ in range(steps):
        after: dict[int, tuple[int, Program]] = {}
        for state, (cost, path) in layer.items():
            if deadline is not None and perf_counter() > deadline:
                raise LimitReached("the time limit was reached")
            if state not in priced:
                priced[state] = [(prices.masks(edge.instruction, edge.masks), edge) for edge in graph.edges[state]]
            for price, edge in priced[state]:
                total = cost + price
                if edge.target in graph.goals:
                    if best is None or total < best[0]:
                        best = (total, (*path, edge.instruction))
                elif (best is None or total < best[0]) and (edge.target not in after or total < after[edge.target][0]):
                    after[edge.target] = (total, (*path, edge.instruction))
        layer = after
    return best
