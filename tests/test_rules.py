"""The rules of section 5 against a literal dense reading of its table, and the table of program counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.meaning import rules
from smtsynth.meaning.goals import target
from smtsynth.model.program import Collective, Instruction, instruction_set, parse_program
from smtsynth.search.enumerate import StateGraph

NAMES = ("root", "node", "gpu")


def counts(sizes: tuple[int, ...], instructions: str, steps: int) -> list[int]:
    """Programs by length, by merging equal states."""
    graph = StateGraph(target(sizes), instructions)
    layer, found = {graph.target.start: 1}, []
    for _ in range(steps):
        after: dict[rules.State, int] = {}
        for state, number in layer.items():
            for _, _, new in graph.edges(state):
                after[new] = after.get(new, 0) + number
        found.append(after.pop(graph.target.final, 0))
        layer = after
    return found


@pytest.mark.parametrize("sizes", [(2,), (3,), (16,)])
@pytest.mark.parametrize("instructions", ["p2", "full"])
def test_one_factor(sizes: tuple[int, ...], instructions: str) -> None:
    assert counts(sizes, instructions, 5) == [1, 2, 0, 0, 0]


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2), (4, 16)])
def test_two_factors(sizes: tuple[int, ...]) -> None:
    assert counts(sizes, "p2", 5) == [1, 4, 20, 22, 0]
    assert counts(sizes, "full", 5) == [1, 4, 24, 42, 22]


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3, 2), (3, 2, 2), (2, 2, 3)])
def test_three_factors(sizes: tuple[int, ...]) -> None:
    assert counts(sizes, "p2", 7) == [1, 6, 50, 205, 563, 537, 0]
    full = counts(sizes, "full", 7)
    assert full[:5] == [1, 6, 59, 319, 1250]
    assert sum(full) == {(2, 2, 2): 8749, (2, 3, 2): 8749, (3, 2, 2): 8747, (2, 2, 3): 8747}[sizes]


# --- the dense reading ---


def dense(state: rules.State) -> np.ndarray:
    """Boolean array (device, chunk, contributor)."""
    size = len(state)
    result = np.zeros((size, size, size), dtype=bool)
    for device, parts in enumerate(state):
        for rows, contributors in parts:
            result[np.ix_([device], rules.members(rows), rules.members(contributors))] = True
    return result


def dense_group(collective: Collective, states: list[np.ndarray]) -> list[np.ndarray] | None:
    """The model's table, word for word, on chunk x contributor matrices."""
    rows = [set(np.flatnonzero(state.any(axis=1))) for state in states]
    total = np.logical_or.reduce(states)
    if collective is Collective.BROADCAST:
        root = states[0]
        covered = all(not (state & ~root).any() for state in states)
        return [root] * len(states) if rows[0] and covered and any((state != root).any() for state in states) else None
    if collective is Collective.ALL_GATHER:
        apart = sum(map(len, rows)) == len(set().union(*rows))
        return [total] * len(states) if all(rows) and len({len(r) for r in rows}) == 1 and apart else None
    if not rows[0] or any(r != rows[0] for r in rows) or (np.add.reduce([s.astype(int) for s in states]) > 1).any():
        return None
    if collective is Collective.ALL_REDUCE:
        return [total] * len(states)
    if collective is Collective.REDUCE:
        return [total] + [np.zeros_like(total)] * (len(states) - 1)
    if len(rows[0]) % len(states):
        return None
    parts = np.array_split(sorted(rows[0]), len(states))
    result = []
    for part in parts:
        piece = np.zeros_like(total)
        piece[part] = total[part]
        result.append(piece)
    return result


def random_state(draw: st.DrawFn, size: int) -> rules.State:
    """A state with few different rows, so that needs hold now and then."""
    masks = st.integers(1, (1 << size) - 1)
    device = st.lists(st.tuples(masks, masks), max_size=2)
    state = []
    for _ in range(size):
        free, parts = (1 << size) - 1, []
        for rows, contributors in draw(device):
            if rows & free:
                parts.append((rows & free, contributors))
                free &= ~rows
        state.append(rules.blocks(parts))
    return tuple(state)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_every_collective_is_the_tables(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 4))
    state = random_state(data.draw, size)
    group = tuple(data.draw(st.permutations(range(size)))[: data.draw(st.integers(2, size))])
    for collective in Collective:
        expected = dense_group(collective, [dense(state)[device] for device in group])
        after = rules.apply(state, collective, [group])
        if expected is None:
            assert isinstance(after, rules.Failure)
        else:
            assert not isinstance(after, rules.Failure)
            wanted = dense(state)
            for device, matrix in zip(group, expected, strict=True):
                wanted[device] = matrix
            assert (dense(after) == wanted).all()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_programs_are_the_tables(data: st.DataObject) -> None:
    sizes = data.draw(st.sampled_from([(2, 2), (2, 3), (3, 2), (2, 2, 2)]))
    state = rules.initial(math.prod(sizes))
    matrix = dense(state)
    for _ in range(6):
        instruction = data.draw(st.sampled_from(instruction_set(len(sizes))))
        after = rules.step(state, sizes, instruction)
        wanted = matrix.copy()
        possible = True
        for group in rules.instruction_groups(sizes, instruction):
            result = dense_group(instruction.collective, [matrix[device] for device in group])
            possible = possible and result is not None
            for device, piece in zip(group, result or [], strict=False):
                wanted[device] = piece
        assert possible == (not isinstance(after, rules.Failure))
        if not isinstance(after, rules.Failure):
            state, matrix = after, wanted
            assert (dense(state) == matrix).all()


def first_failure(text: str, sizes: tuple[int, ...] = (2, 2)) -> str:
    return str(rules.replay(parse_program(text, NAMES), sizes))


def test_failures_name_need_group_devices_and_chunk() -> None:
    twice = "AllReduce(node, InsideGroup); AllReduce(root, InsideGroup)"
    assert first_failure(twice) == (
        "step 2: AllReduce on group [0, 1, 2, 3]: the contribution of device 0 would be counted twice "
        "(devices [0, 1], chunk 0)"
    )
    rows = "ReduceScatter(node, InsideGroup); AllReduce(node, InsideGroup)"
    assert "group [0, 1]: hold different chunks (devices [0, 1], chunk 0)" in first_failure(rows)
    empty = "Reduce(node, InsideGroup); AllReduce(node, Parallel(root))"
    assert "group [1, 3]: holds nothing to reduce (device [1])" in first_failure(empty)
    gather = "AllGather(node, InsideGroup)"
    assert "group [0, 1]: hold the same chunk (devices [0, 1], chunk 0)" in first_failure(gather)
    broadcast = "Broadcast(node, InsideGroup)"
    assert "has what the root lacks (devices [1, 0], chunk 0)" in first_failure(broadcast)
    assert "goal is not reached (device [0], chunk 0)" in first_failure("AllReduce(node, InsideGroup)")
    late = "AllReduce(root, InsideGroup); AllReduce(root, InsideGroup)"
    assert "step 2" in first_failure(late) and "the goal holds already" in first_failure(late)
    assert rules.replay(parse_program("AllReduce(root, InsideGroup)", NAMES), (2, 2)) is None


def test_scatter_needs_a_divisor() -> None:
    state = tuple(((0b111, 1 << device),) for device in range(4))
    failure = rules.apply(state, Collective.REDUCE_SCATTER, [(0, 1)])
    assert isinstance(failure, rules.Failure) and "3 chunks do not divide into 2 parts" in str(failure)


def test_reduced_factors_only() -> None:
    goal = rules.complete((2, 2), (False, True))
    assert goal == (((15, 0b0011),), ((15, 0b0011),), ((15, 0b1100),), ((15, 0b1100),))
    inside: Instruction = parse_program("AllReduce(node, InsideGroup)", NAMES)[0]
    assert rules.replay((inside,), (2, 2), (False, True)) is None
    assert rules.replay((inside,), (2, 2), (True, False)) is not None
