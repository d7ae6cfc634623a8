"""The class meaning keeps every program of the rules, and its counts are as measured."""

from __future__ import annotations

import math
from functools import cache

import pytest

from smtsynth.meaning import classes, rules
from smtsynth.model.program import Instruction, instruction_set


def class_counts(depth: int, instructions: str, steps: int) -> tuple[list[int], int]:
    """Programs by length over class states, and how many states there are."""
    goal, known = classes.complete(depth), {}
    choices = [(one, classes.shape(one, depth)) for one in instruction_set(depth, instructions)]
    layer, found = {classes.initial(depth): 1}, []
    for _ in range(steps):
        after: dict[classes.States, int] = {}
        for state, number in layer.items():
            if state not in known:
                results = [classes.step(state, one.collective, groups) for one, groups in choices]
                known[state] = [result for result in results if result is not None]
            for target in known[state]:
                after[target] = after.get(target, 0) + number
        found.append(after.pop(goal, 0))
        layer = after
    return found, len(known)


def test_counts() -> None:
    assert class_counts(1, "full", 5)[0] == [1, 2, 0, 0, 0]
    assert class_counts(2, "p2", 5)[0] == [1, 4, 20, 22, 0]
    assert class_counts(2, "full", 9) == ([1, 4, 24, 42, 22, 0, 0, 0, 0], 30)
    assert class_counts(3, "p2", 7)[0] == [1, 6, 50, 205, 563, 537, 0]
    full, states = class_counts(3, "full", 7)
    assert full[:5] == [1, 6, 59, 319, 1250] and sum(full) == 8803 and states == 330


@pytest.mark.full
def test_counts_of_four_factors() -> None:
    assert sum(class_counts(4, "p2", 9)[0]) == 65024
    assert class_counts(4, "full", 9)[1] == 4236


def kept(sizes: tuple[int, ...], steps: int, reduced: tuple[bool, ...] | None = None) -> tuple[int, int]:
    """Programs of at most `steps` that the rules accept, and how many of them the classes accept too."""
    depth = len(sizes)
    choices = [(one, classes.shape(one, depth)) for one in instruction_set(depth)]
    flags = reduced or (True,) * depth
    goal = rules.complete(sizes, flags)
    class_goal = classes.complete(depth, sum(flag << factor for factor, flag in enumerate(flags)))

    @cache
    def after(state: rules.State) -> list[tuple[Instruction, classes.Shape, rules.State]]:
        results = [(one, groups, rules.step(state, sizes, one)) for one, groups in choices]
        return [(one, groups, new) for one, groups, new in results if not isinstance(new, rules.Failure)]

    @cache
    def concrete(state: rules.State, left: int) -> int:
        if state == goal:
            return 1
        return sum(concrete(new, left - 1) for _, _, new in after(state)) if left else 0

    @cache
    def both(state: rules.State, kinds: classes.States, left: int) -> int:
        if state == goal:
            return int(kinds == class_goal)
        total = 0
        for one, groups, new in after(state) if left else []:
            if concrete(new, left - 1):
                then = classes.step(kinds, one.collective, groups)
                total += both(new, then, left - 1) if then is not None else 0
        return total

    start = rules.initial(math.prod(sizes))
    return concrete(start, steps), both(start, classes.initial(depth), steps)


@pytest.mark.parametrize(
    ("sizes", "steps"), [((2, 2), 9), ((2, 3), 9), ((2, 2, 2), 7), ((2, 3, 2), 7), ((3, 2, 2), 7), ((2, 2, 3), 7)]
)
def test_no_program_is_lost(sizes: tuple[int, ...], steps: int) -> None:
    found, still = kept(sizes, steps)
    assert found == still > 0


@pytest.mark.parametrize(
    "reduced", [(True, False, True), (False, True, True), (True, True, False), (False, True, False)]
)
def test_no_program_is_lost_when_some_factors_are_not_reduced(reduced: tuple[bool, ...]) -> None:
    found, still = kept((2, 3, 2), 6, reduced)
    assert found == still > 0


@pytest.mark.full
@pytest.mark.parametrize(("sizes", "steps"), [((2, 2, 2, 2), 6), ((3, 3, 3), 9), ((2, 4, 3), 7)])
def test_no_program_is_lost_on_larger_sizes(sizes: tuple[int, ...], steps: int) -> None:
    found, still = kept(sizes, steps)
    assert found == still > 0
