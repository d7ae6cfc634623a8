"""The buffers meaning (smtsynth/meaning/buffers.py) against a plain interpreter and the rules."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache

import pytest
from buffers_support import AG, AR, BROADCAST, REDUCE, RS, Unequal, plain_flaws, plain_run
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.meaning import rules
from smtsynth.meaning.buffers import Verdict, holdings, run, trace
from smtsynth.model.lowering import span_groups
from smtsynth.model.program import Collective, Program, instruction_set
from smtsynth.model.schedule import Entry, Goal, Schedule, check_schedule


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Random schedules on up to 6 devices, often sensible enough to get far."""
    devices = draw(st.integers(2, 6))
    seed = draw(st.integers(0, 2**20))
    rng = random.Random(seed)

    def partition(together: bool) -> tuple[tuple[int, ...], ...]:
        order = list(range(devices))
        if rng.random() < 0.5:
            rng.shuffle(order)
        sizes = [s for s in range(1, devices + 1) if devices % s == 0]
        if together or rng.random() < 0.7:
            m = rng.choice(sizes[1:])
            groups = [tuple(order[i : i + m]) for i in range(0, devices, m)]
            if rng.random() < 0.4:
                groups = [tuple(order[i::m]) for i in range(m)] if devices % m == 0 else groups
        else:
            cut = sorted(rng.sample(range(1, devices + 1), rng.randint(1, min(3, devices))))
            groups = [tuple(order[a:b]) for a, b in zip([0, *cut], [*cut, devices], strict=True) if b > a]
        return tuple(groups if together or rng.random() < 0.8 else rng.sample(groups, rng.randint(1, len(groups))))

    def entry(collective: Collective, groups: tuple[tuple[int, ...], ...]) -> Entry:
        rooted = collective in (REDUCE, BROADCAST) and rng.random() < 0.4
        return Entry(collective, groups, tuple(rng.choice(group) for group in groups) if rooted else ())

    steps = []
    for _ in range(rng.randint(0, 5)):
        groups, kinds = partition(False), [AR, AR, RS, RS, AG, AG, REDUCE, BROADCAST]
        if rng.random() < 0.2 and len(groups) > 1:
            steps.append((entry(rng.choice(kinds), groups[:1]), entry(rng.choice(kinds), groups[1:])))
        else:
            steps.append((entry(rng.choice(kinds), groups),))
        if rng.random() < 0.3 and steps[-1][0].collective is RS:
            steps.append((entry(AG, steps[-1][0].groups),))
    collective = rng.choice([AR, AR, AR, RS, AG, REDUCE, BROADCAST])
    groups = partition(True) if rng.random() < 0.6 else ()
    rooted = collective in (REDUCE, BROADCAST) and groups and rng.random() < 0.5
    return check_schedule(
        Schedule(devices, tuple(steps), Goal(collective, groups, tuple(g[-1] for g in groups) if rooted else ()))
    )


@settings(max_examples=600, deadline=None, derandomize=True)
@given(schedules())
def test_it_agrees_with_the_plain_interpreter(plan: Schedule) -> None:
    verdict = run(plan)
    try:
        k, states = plain_run(plan)
    except Unequal as unequal:
        assert (verdict.verdict, verdict.step) == ("refuted", unequal.args[0])
        assert len(list(trace(plan))) == unequal.args[0]
        return
    for snapshot, state in zip(trace(plan), states, strict=True):
        assert snapshot.pieces == k
        for device in range(plan.devices):
            assert snapshot.buffer(device) == state[device]
    held = holdings(plan)
    assert held.pieces == k
    for number, step in enumerate(plan.steps):
        for entry, counts in zip(step, held.steps[number], strict=True):
            assert counts == tuple(tuple(len(states[number][device]) for device in group) for group in entry.groups)
    flaws = plain_flaws(plan, k, states[-1])
    if flaws:
        assert (verdict.verdict, verdict.device, verdict.chunk) == ("refuted", *flaws[0])
        assert verdict.layout is None and (verdict.step is None) == (verdict.collective is None)
        assert verdict.step is None or verdict.collective in [e.collective for e in plan.steps[verdict.step - 1]]
        check_contributors(plan, verdict, states[-1])
        return
    check_layout(plan, verdict, k, states[-1])


def check_contributors(plan: Schedule, verdict: Verdict, end: list[list]) -> None:
    """What the verdict says of the first flaw's contributors, where the chunk is there once."""
    assert verdict.device is not None
    if verdict.chunk is None:
        assert None in end[verdict.device] and verdict.step is not None
        return
    there = [piece[1] for piece in end[verdict.device] if piece is not None and piece[0] == verdict.chunk]
    group, number = next((g, i) for i, g in enumerate(plan.goal_groups) if verdict.device in g)
    if plan.goal.collective in (AR, REDUCE) and len(there) < 2:
        counts = there[0] if there else Counter()
        assert verdict.missing == tuple(sorted(device for device in group if device not in counts))
        assert verdict.duplicated == tuple(sorted(device for device in counts if counts[device] > 1))
        assert verdict.foreign == tuple(sorted(set(counts) - set(group)))
    if plan.goal.collective is BROADCAST and len(there) == 1:
        root = plan.goal.roots[number] if plan.goal.roots else group[0]
        assert verdict.missing == (() if root in there[0] else (root,))


def check_layout(plan: Schedule, verdict: Verdict, k: int, end: list[list]) -> None:
    """Pieces are right; the verdict must say how they are laid out."""
    orders = []
    for number, group in enumerate(plan.goal_groups):
        root = plan.goal.roots[number] if plan.goal.roots else group[0]
        rows = [[chunk for chunk, _ in end[d]] for d in group if plan.goal.collective is not REDUCE or d == root]
        orders += [sum(rows, [])] if plan.goal.collective is RS else rows
    strict = run(plan, "identity")
    if all(order == list(range(k)) for order in orders):
        assert verdict == strict and (verdict.verdict, verdict.layout) == ("proved", "identity")
        return
    assert strict.verdict == "refuted" and strict.device is not None and not strict.missing and not strict.duplicated
    if all(order == orders[0] for order in orders):
        assert (verdict.verdict, verdict.layout) == ("proved", tuple(orders[0]))
    else:
        assert verdict.verdict == "refuted" and "where device" in verdict.reason


# --- Programs that the rules accept


def lowered(program: Program, sizes: tuple[int, ...]) -> Schedule:
    steps = tuple((Entry(i.collective, tuple(map(tuple, span_groups(sizes, i).tolist()))),) for i in program)
    return Schedule(math.prod(sizes), steps)


@cache
def accepted(sizes: tuple[int, ...], limit: int) -> list[Program]:
    """All programs that the rules accept, by a walk back over the graph of states."""
    ways: dict[tuple[rules.State, int], list[Program]] = {}
    goal, instructions = rules.complete(sizes), instruction_set(len(sizes))

    def from_(state: rules.State, left: int) -> list[Program]:
        if state == goal:
            return [()]
        if (state, left) not in ways:
            found = []
            for instruction in instructions if left else ():
                after = rules.step(state, sizes, instruction)
                if not isinstance(after, rules.Failure):
                    found += [(instruction, *rest) for rest in from_(after, left - 1)]
            ways[state, left] = found
        return ways[state, left]

    return from_(rules.initial(math.prod(sizes)), limit)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2)])
def test_all_two_factor_programs_are_proved(sizes: tuple[int, ...]) -> None:
    programs = accepted(sizes, 5)
    verdicts = [run(lowered(program, sizes)) for program in programs]
    assert len(programs) == 93 and {verdict.verdict for verdict in verdicts} == {"proved"}
    assert 0 < sum(verdict.layout != "identity" for verdict in verdicts) < 30


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 2)])
def test_a_sample_of_three_factor_programs_is_proved(sizes: tuple[int, ...]) -> None:
    programs = accepted(sizes, 7)
    assert len(programs) == {(2, 2, 2): 8749, (3, 2, 2): 8747}[sizes]
    for program in random.Random(7).sample(programs, 200):
        assert run(lowered(program, sizes)).verdict == "proved"


@pytest.mark.full
@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3, 2), (3, 2, 2), (2, 2, 3)])
def test_all_three_factor_programs_are_proved(sizes: tuple[int, ...]) -> None:
    for program in accepted(sizes, 7):
        assert run(lowered(program, sizes)).verdict == "proved"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_mutants_of_right_programs_are_judged_like_the_plain_interpreter(data: st.DataObject) -> None:
    sizes = data.draw(st.sampled_from([(2, 2), (3, 2), (2, 2, 2)]))
    program = list(data.draw(st.sampled_from(accepted(sizes, 4))))
    place = data.draw(st.integers(0, len(program) - 1))
    other = data.draw(st.sampled_from([None, *instruction_set(len(sizes))]))
    program[place : place + 1] = [other] if other else []
    plan = lowered(tuple(program), sizes)
    try:
        k, states = plain_run(plan)
    except Unequal as unequal:
        assert run(plan).step == unequal.args[0]
        return
    flaws, verdict = plain_flaws(plan, k, states[-1]), run(plan)
    if flaws:
        assert (verdict.verdict, verdict.device, verdict.chunk) == ("refuted", *flaws[0])
    else:
        check_layout(plan, verdict, k, states[-1])
