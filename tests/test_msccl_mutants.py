"""The mutation test: every small change to a right algorithm that matters is refuted, and no other.

Expected verdicts come from elsewhere: for a dropped dependency from networkx (is the order there without it?), for
the others from the executor, which runs random interleavings with numbers. `-m full` takes all mutants of the
seven production files, the default run a seeded sample; `-s` shows the tables.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import networkx as nx
import pytest
from msccl_support import SEVEN, Mutant, data_file, execute, mutants, small_algorithms

from smtsynth.msccl.model import Algorithm, StepId
from smtsynth.msccl.reader import read_msccl
from smtsynth.msccl.verdict import Kind
from smtsynth.msccl.verify import verify_msccl


def plain_order(algo: Algorithm) -> nx.DiGraph:
    """Thread-block order, dependencies and messages as a graph."""
    graph = nx.DiGraph()
    ends: dict[tuple[int, int, int], tuple[list[StepId], list[StepId]]] = {}
    for place, step in algo.steps():
        graph.add_node(place)
        block = algo.gpus[place.gpu].blocks[place.tb]
        if place.step:
            graph.add_edge(place._replace(step=place.step - 1), place)
        if step.depid >= 0:
            graph.add_edge(StepId(place.gpu, step.depid, step.deps), place)
        if step.type in ("s", "rcs", "rrs", "rrcs"):
            ends.setdefault((place.gpu, block.send, block.chan), ([], []))[0].append(place)
        if step.type in ("r", "rcs", "rrc", "rrs", "rrcs"):
            ends.setdefault((block.recv, place.gpu, block.chan), ([], []))[1].append(place)
    for sends, receives in ends.values():
        graph.add_edges_from(zip(sends, receives, strict=True))
    return graph


def expect(original: Algorithm, graph: nx.DiGraph, mutant: Mutant, runs: int) -> str:
    """Assert that the verdict on a mutant is right; the column of the table it counts in."""
    verdict = verify_msccl(mutant.algorithm)
    place = f"{mutant.family} at {mutant.place}: {verdict.reason}"
    outcomes = [outcome for seed in range(runs) for outcome in execute(mutant.algorithm, seed)]
    right = [outcome.right for outcome in outcomes]
    if mutant.family == "dropped dependency":
        step = original.step(mutant.place)
        edge = (StepId(mutant.place.gpu, step.depid, step.deps), mutant.place)
        # The same edge can also be thread-block order; then it stays.
        if edge[0] != mutant.place._replace(step=mutant.place.step - 1):
            graph.remove_edge(*edge)
        implied = nx.has_path(graph, *edge)
        graph.add_edge(*edge)
        assert (verdict.verdict == "proved") == implied, place
    if verdict.verdict == "proved":
        assert all(right), place
        return "proved"
    assert verdict.verdict == "refuted" and verdict.reason, place
    assert verdict.witness or verdict.kind == Kind.WRONG_SUM, place
    assert "\n" not in verdict.reason
    if verdict.kind == Kind.RACE:
        assert len(verdict.witness) == 2
        first, second = verdict.witness
        changed = plain_order(mutant.algorithm)
        if first == second:
            assert original.step(first).cnt > 1
            return "race inside a step"
        assert not nx.has_path(changed, first, second) and not nx.has_path(changed, second, first), place
        return "race, seen in a run" if not all(right) else "race, not seen"
    if verdict.kind == Kind.UNWRITTEN:
        assert all(outcome.undefined_read for outcome in outcomes), place
    else:
        assert not any(right), place
    return str(verdict.kind)


def show(title: str, table: Counter[tuple[str, str]]) -> None:
    """Print a table: a row per family of mutants, a column per outcome."""
    columns = sorted({column for _, column in table})
    print(f"\n{title}: {sum(table.values())} mutants")
    print(" " * 20 + "".join(f"{column:>21}" for column in columns))
    for family in sorted({family for family, _ in table}):
        print(f"{family:<20}" + "".join(f"{table[family, column]:>21}" for column in columns))


def judge(algo: Algorithm, chosen: Sequence[Mutant], runs: int = 2) -> Counter[tuple[str, str]]:
    """Expect every mutant; how many of each family ended how."""
    graph = plain_order(algo)
    return Counter((mutant.family, expect(algo, graph, mutant, runs)) for mutant in chosen)


def all_matter(table: Counter[tuple[str, str]]) -> None:
    """Nothing but a dropped dependency may leave the algorithm right."""
    assert not [family for family, column in table if column == "proved" and family != "dropped dependency"]


@pytest.mark.parametrize("name", small_algorithms())
def test_small_mutants(name: str) -> None:
    """Every offset, on every small algorithm."""
    algo = small_algorithms()[name]
    chosen = list(mutants(algo, every_offset=True))
    if len(chosen) > 150:
        chosen = random.Random(1).sample(chosen, 150)
    table = judge(algo, chosen, runs=6)
    show(name, table)
    assert sum(count for (_, column), count in table.items() if column != "proved") >= len(chosen) * 0.6


@pytest.mark.parametrize("name", SEVEN)
def test_sample_of_production_mutants(name: str) -> None:
    algo = read_msccl(data_file(name))
    every = list(mutants(algo))
    table = judge(algo, random.Random(name).sample(every, min(len(every), 40)))
    show(name, table)
    all_matter(table)


@pytest.mark.full
@pytest.mark.parametrize("name", SEVEN)
def test_all_production_mutants(name: str) -> None:
    algo = read_msccl(data_file(name))
    rng = random.Random(name)
    every = list(mutants(algo))
    # And of each step's other offsets one at random: all of them would be a hundred thousand.
    places = {(mutant.family, mutant.place) for mutant in every}
    other: dict[tuple[str, StepId], Mutant] = {}
    for mutant in mutants(algo, every_offset=True):
        key = (mutant.family, mutant.place)
        if " of " in mutant.family and (key not in other or rng.random() < 0.2):
            other[key] = mutant
    assert set(other) <= places
    table = judge(algo, every + list(other.values()))
    show(name, table)
    all_matter(table)
