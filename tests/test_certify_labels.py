"""Labels: right ones prove the optimum, and no labels prove more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from time import perf_counter

import pytest
from certify_support import OPTIMUM, two_factor_prices
from conftest import A100, THREE, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth import Level, System, lower
from smtsynth.certify.labels import (
    LabelError,
    Labels,
    Place,
    Prefixes,
    Transitions,
    check_labels,
    label_at,
    labels_text,
    make_labels,
    read_labels,
)
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.errors import InputError, LimitReached
from smtsynth.meaning.classes import ClassState, shares, step
from smtsynth.meaning.goals import Aim, target, target_of
from smtsynth.model.program import Collective, Instruction, Program, instruction_set
from smtsynth.search.enumerate import StateGraph, enumerate_programs
from smtsynth.search.graph import cheapest_path, class_graph

MIB = 2**20


def prices_of(sizes: Sequence[int], payload: int = MIB) -> Prices:
    """One reduction over a level per factor, inner levels faster."""
    levels = [Level(f"l{n}", size, f"{8 * 7**n} GB/s", f"{20 // (n + 1)} us") for n, size in enumerate(sizes)]
    given = problem(System(levels), (math.prod(sizes),), (0,), payload)
    return Prices(AlphaBeta(), lower(given, [list(sizes)]), given.reduction.payload)


def transitions_of(prices: Prices, name: str = "full", blocked: Iterable[Program] = ()) -> Transitions:
    depth = prices.lowering.depth
    return Transitions.of(prices, instruction_set(depth, name), target_of(prices.lowering).aim, blocked)


@cache
def worked() -> tuple[Transitions, Labels]:
    """The model's worked example of two factors and five steps."""
    transitions = transitions_of(two_factor_prices())
    return transitions, make_labels(transitions, 5, OPTIMUM)


def programs(transitions: Transitions, steps: int, blocked: Sequence[Program] = ()) -> list[tuple[int, Program]]:
    """Every program of at most `steps` steps that the class meaning accepts, with its cost, one by one."""
    found: list[tuple[int, Program]] = []
    aim, choices = transitions.aim, transitions.choices
    stack = [(aim.start, 0, ())]
    while stack:
        states, cost, path = stack.pop()
        if any(path[: len(prefix)] == prefix for prefix in blocked):
            continue
        if aim.reached(states):
            found.append((cost, path))
        elif len(path) < steps:
            for one, groups in choices:
                after = step(states, one.collective, groups)
                if after is not None:
                    price = transitions.prices.masks(one, shares(states, groups))
                    stack.append((after, cost + price, (*path, one)))
    return found


@pytest.mark.parametrize("steps", [5, None])
def test_worked_example(steps: int | None) -> None:
    transitions = transitions_of(two_factor_prices())
    labels = make_labels(transitions, steps, OPTIMUM)
    assert label_at(transitions, labels, transitions.start, steps) == OPTIMUM
    checked = check_labels(transitions, labels, steps, OPTIMUM)
    assert checked.places == len(labels) > 10 and checked.steps > checked.places
    check_labels(transitions, labels, steps, OPTIMUM - 1)
    with pytest.raises(LabelError, match=f"prove {OPTIMUM} ns, not {OPTIMUM + 1}"):
        check_labels(transitions, labels, steps, OPTIMUM + 1)
    with pytest.raises(LabelError, match=f"costs {OPTIMUM} ns, less than {OPTIMUM + 1}"):
        make_labels(transitions, steps, OPTIMUM + 1)


@pytest.mark.parametrize("name", ["p2", "full"])
@pytest.mark.parametrize(("sizes", "steps"), [((2,), 3), ((4, 2), 5), ((2, 3), 4), ((2, 2, 2), 5), ((3, 2, 2), 4)])
@pytest.mark.parametrize("payload", [1024, 64 * MIB])
def test_they_prove_what_enumeration_finds(sizes: tuple[int, ...], steps: int, payload: int, name: str) -> None:
    prices = prices_of(sizes, payload)
    transitions = transitions_of(prices, name)
    best = enumerate_programs(StateGraph(target_of(prices.lowering), name), prices, steps).cost
    path = cheapest_path(class_graph(transitions.aim, name), prices, steps)
    assert best is not None and path is not None and path[0] == best
    labels = make_labels(transitions, steps, best)
    check_labels(transitions, labels, steps, best)
    assert label_at(transitions, labels, transitions.start, steps) == best
    for place, values in labels.items():
        assert list(values) == sorted(values, reverse=True) and len(values) <= steps and place.node == 0
    with pytest.raises(LabelError):
        make_labels(transitions, steps, best + 1)


def test_three_factors_whatever_the_number_of_steps() -> None:
    given = problem(THREE, (64,), (0,), MIB)
    transitions = transitions_of(Prices(AlphaBeta(), lower(given, [[2, 4, 8]]), given.reduction.payload))
    for steps in (7, 30, None):
        check_labels(transitions, make_labels(transitions, steps, 109323), steps, 109323)
        with pytest.raises(LabelError, match="109323"):
            make_labels(transitions, steps, 109324)


@pytest.mark.parametrize("steps", [5, None])
def test_a_label_raised_by_one_is_found(steps: int | None) -> None:
    transitions = transitions_of(two_factor_prices())
    labels = make_labels(transitions, steps, OPTIMUM)
    raised = 0
    for place, values in labels.items():
        for number, value in enumerate(values):
            if value < OPTIMUM or place == transitions.start and number == 4:  # others: cut off at the bound
                more = {**labels, place: (*values[:number], value + 1, *values[number + 1 :])}
                with pytest.raises(LabelError, match="but .* costs"):
                    check_labels(transitions, more, steps, OPTIMUM)
                raised += 1
    assert raised >= 14


@pytest.mark.parametrize("steps", [5, None])
def test_a_missing_label_on_the_way_is_found(steps: int | None) -> None:
    transitions = transitions_of(two_factor_prices())
    labels = make_labels(transitions, steps, OPTIMUM)
    best = cheapest_path(class_graph(transitions.aim, "full"), transitions.prices, 5)
    assert best is not None and len(best[1]) == 3
    place = transitions.start
    for instruction in best[1]:
        with pytest.raises(LabelError):
            check_labels(transitions, {one: labels[one] for one in labels if one != place}, steps, OPTIMUM)
        place = next(one.target for one in transitions.steps(place) if one.instruction == instruction)
    assert transitions.aim.reached(place.states)
    with pytest.raises(LabelError, match="prove 0 ns"):
        check_labels(transitions, {}, steps, OPTIMUM)


def test_an_extra_label_is_checked_too() -> None:
    transitions, labels = worked()
    goal = next(
        one.target for one in transitions.steps(transitions.start) if transitions.aim.reached(one.target.states)
    )
    with pytest.raises(LabelError, match="the goal has a label"):
        check_labels(transitions, {**labels, goal: (0,)}, 5, OPTIMUM)
    with pytest.raises(LabelError, match="no prefix number 1"):
        check_labels(transitions, {**labels, Place(transitions.start.states, 1): (0,)}, 5, OPTIMUM)
    with pytest.raises(LabelError, match="expected one for any number"):
        check_labels(transitions, labels, None, OPTIMUM)
    check_labels(transitions, make_labels(transitions, 6, OPTIMUM), 5, OPTIMUM)  # what holds of six steps holds of five
    with pytest.raises(LabelError, match="prove 0 ns"):
        check_labels(transitions, labels, 6, OPTIMUM)
    other = next(place for place in all_places(2) if place not in labels and list(transitions.steps(place)))
    check_labels(transitions, {**labels, other: (1,)}, 5, OPTIMUM)
    with pytest.raises(LabelError):
        check_labels(transitions, {**labels, other: (10**12,) * 5}, 5, OPTIMUM)


def all_places(depth: int) -> Iterable[Place]:
    """Some class states that programs don't reach: all classes alike."""
    for rows, contributors in product(range(1 << depth), repeat=2):
        yield Place((ClassState(True, rows, contributors),) * (1 << depth))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_no_labels_prove_more_than_is_true(data: st.DataObject) -> None:
    """Whatever the labels, if they pass as a proof of a bound then no program is cheaper."""
    transitions, labels = worked()
    steps = data.draw(st.sampled_from([3, 4, 5, None]))
    changed = {place: list(values if steps else values[-1:]) for place, values in labels.items()}
    for place in data.draw(st.lists(st.sampled_from(list(labels)), max_size=6)):
        values = changed.get(place, [])
        if values and data.draw(st.booleans()):
            number = data.draw(st.integers(0, len(values) - 1))
            values[number] += data.draw(st.sampled_from([-1, 1, 10**6, 10**9, math.inf]))
        else:
            changed.pop(place, None)
    bound = data.draw(st.sampled_from([0, OPTIMUM - 1, OPTIMUM, OPTIMUM + 1, 2 * OPTIMUM, None]))
    try:
        check_labels(transitions, changed, steps, bound)
    except LabelError:
        return
    assert bound is not None and bound <= OPTIMUM


def blocked_sets() -> list[tuple[Program, ...]]:
    """Prefixes of the cheapest programs of two factors: the best itself, its first steps, several, nested ones."""
    transitions = transitions_of(two_factor_prices())
    ranked = [program for _, program in sorted(programs(transitions, 5), key=lambda one: (one[0], len(one[1])))]
    best, second = ranked[0], ranked[1]
    return [
        (best,),
        (best[:1],),
        (best[:2], second),
        tuple(ranked[:8]),
        (best, best[:2]),
        (best[:1], ranked[-1]),
        (second[:2], best[:2], ranked[5][:3], ranked[9][:1]),
    ]


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("steps", [3, 5])
def test_blocked_prefixes(number: int, steps: int) -> None:
    blocked = blocked_sets()[number]
    prices = two_factor_prices()
    free, transitions = transitions_of(prices), transitions_of(prices, blocked=blocked)
    left = programs(free, steps, blocked)
    assert len(left) < len(programs(free, steps))
    best = min(cost for cost, _ in left)
    labels = make_labels(transitions, steps, best)
    check_labels(transitions, labels, steps, best)
    assert label_at(transitions, labels, transitions.start, steps) == best
    assert read_labels(labels_text(labels).splitlines(), 2) == labels
    with pytest.raises(LabelError):
        make_labels(transitions, steps, best + 1)
    if best > OPTIMUM:  # without one of the blocked prefixes the labels prove nothing
        for fewer in (blocked[:-1], blocked[1:], ()):
            rest = min(cost for cost, _ in programs(free, steps, fewer))
            if rest < best:
                with pytest.raises(LabelError):
                    check_labels(transitions_of(prices, blocked=fewer), labels, steps, best)
                with pytest.raises(LabelError):
                    plain = {Place(place.states): values for place, values in labels.items() if place.node == 0}
                    plain[Place(transitions.start.states)] = labels[transitions.start]
                    check_labels(transitions_of(prices, blocked=fewer), plain, steps, best)


def test_the_automaton_of_blocked_prefixes() -> None:
    a, b, c = instruction_set(2)[:3]
    prefixes = Prefixes([(a, b, c), (a, c), (b,)])
    assert len(prefixes) == 4 and Prefixes([]).start == 0 and len(Prefixes([])) == 1

    def run(*program: Instruction) -> int | None:
        node: int | None = prefixes.start
        for instruction in program:
            assert node is not None
            node = prefixes.after(node, instruction)
        return node

    assert run(b) is None and run(a, c) is None and run(a, b, c) is None
    assert run(c) == run(a, a) == run(a, b, b) == run(c, a, c) == run(c, b) == 0
    assert len({run(), run(a), run(a, b), 0}) == 4


AIMS = [
    (Collective.ALL_REDUCE, (True, False)),
    (Collective.ALL_REDUCE, (False, True)),
    (Collective.REDUCE_SCATTER, (True, True)),
    (Collective.REDUCE, (True, True)),
    (Collective.ALL_GATHER, (True, True)),
    (Collective.BROADCAST, (True, True)),
]


@pytest.mark.parametrize(("collective", "reduced"), AIMS)
def test_other_goals(collective: Collective, reduced: tuple[bool, ...]) -> None:
    given = problem(A100, (64,), (0,), MIB)
    prices = Prices(AlphaBeta(), lower(given, [[4, 16]]), given.reduction.payload, collective)
    aim: Aim = target((4, 16), collective, reduced).aim
    transitions = Transitions.of(prices, instruction_set(2), aim)
    best = min(cost for cost, _ in programs(transitions, 4))
    for steps in (4, None):
        labels = make_labels(transitions, steps, best)
        check_labels(transitions, labels, steps, best)
        with pytest.raises(LabelError):
            check_labels(transitions, labels, steps, best + 1)


def test_that_there_is_no_program() -> None:
    prices = two_factor_prices()
    inside = tuple(one for one in instruction_set(2) if one.span(2).start == 1)
    aim = target_of(prices.lowering).aim
    transitions = Transitions.of(prices, inside, aim)
    for steps in (5, None):
        labels = make_labels(transitions, steps, None)
        check_labels(transitions, labels, steps, None)
        check_labels(transitions, labels, steps, 10**15)
        text = labels_text(labels)
        assert " inf" in text and read_labels(text.splitlines(), 2) == labels
        with pytest.raises(LabelError, match="costs"):
            check_labels(transitions_of(prices), labels, steps, None)
    with pytest.raises(LabelError, match="a program costs 417776266 ns"):
        make_labels(transitions_of(prices), 5, None)
    with pytest.raises(LabelError, match="not that there is no program"):
        check_labels(*worked(), 5, None)
    assert make_labels(transitions, 5, 0) is not None
    check_labels(transitions, {}, 5, 0)


def test_other_prices_refute_them() -> None:
    _, labels = worked()
    for payload in (2**31 - 2**20, 2**30):
        with pytest.raises(LabelError, match="but .* costs"):
            check_labels(transitions_of(two_factor_prices(payload)), labels, 5, OPTIMUM)
    check_labels(transitions_of(two_factor_prices(), "p2"), labels, 5, OPTIMUM)  # a smaller set can only cost more
    p2 = transitions_of(two_factor_prices(), "p2")
    with pytest.raises(LabelError):
        check_labels(transitions_of(two_factor_prices()), make_labels(p2, 1, 528994179), 5, 528994179)


def test_text_and_back() -> None:
    _, labels = worked()
    text = labels_text(labels)
    assert text.startswith("labels 1\n3/0,3/0,3/0,3/0 0 ") and text.endswith("\n")
    assert read_labels(text.splitlines(keepends=True), 2) == labels
    assert any("-" in line for line in text.splitlines()[1:])


GOOD = "3/0,3/0,3/0,- 0 5 4"


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        (["labels 2", GOOD], "line 1"),
        ([GOOD], "line 1"),
        (["labels 1", "3/0,3/0,3/0 0 5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,-,- 0 5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,4/0 0 5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,0/4 0 5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,3 0 5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,3/0/0 0 5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,-1/0 0 5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,- 0"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,-"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,- -1 5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,- 0 -5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,- 0 5.5"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,- 0 nan"], "line 2"),
        (["labels 1", "3/0,3/0,3/0,- 0 1_0"], "line 2"),
        (["labels 1", ""], "line 2"),
        (["labels 1", GOOD, GOOD], "line 3"),
    ],
)
def test_wrong_text_is_refused(lines: list[str], where: str) -> None:
    assert len(read_labels(["labels 1", GOOD], 2)) == 1
    with pytest.raises(LabelError, match=where):
        read_labels(lines, 2)


def test_limits() -> None:
    transitions = transitions_of(two_factor_prices())
    with pytest.raises(LimitReached, match="time limit"):
        make_labels(transitions, 5, OPTIMUM, deadline=perf_counter() - 1)
    given = problem(System([Level("l", 8, "8 GB/s", "1 us")]), (2, 4), (0,), MIB)
    partly = Prices(AlphaBeta(), lower(given, [[2], [4]], "system"), given.reduction.payload)
    with pytest.raises(InputError, match="in part only"):
        transitions_of(partly)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smtsynth.certify.labels.EVERY", 5)
    said: list[str] = []
    make_labels(transitions_of(two_factor_prices()), 5, OPTIMUM, progress=said.append)
    assert said[0] == "5 class states reached" and len(said) >= 3
