"""Words of cuts (smtsynth/meaning/words.py): exact counts, and never more than the rules accept, for any sizes."""

from __future__ import annotations

import math
import random
from collections import deque
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.errors import InputError
from smtsynth.meaning import rules, words
from smtsynth.meaning.classes import shape
from smtsynth.meaning.words import Kind, run_words
from smtsynth.model.program import Collective, Form, Instruction, instruction_set, parse_program

AR, RS, AG = Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER
REDUCE, BROADCAST = Collective.REDUCE, Collective.BROADCAST

Case = tuple[tuple[int, ...], tuple[bool, ...], tuple[Instruction, ...]]
TRIPLES = list(product(range(2, 5), repeat=3))


def inside(collective: Collective, e: int) -> Instruction:
    return Instruction(collective, e, Form.INSIDE_GROUP)


def parallel(collective: Collective, e: int, a: int) -> Instruction:
    return Instruction(collective, e, Form.PARALLEL, a)


def master(collective: Collective, e: int, a: int) -> Instruction:
    return Instruction(collective, e, Form.MASTER, a)


# Right on 2*2*2 and wrong on 3*2*2: after it the parts of the scatter over the outermost factor don't line up.
TRAP = (
    parallel(RS, 3, 2),
    parallel(RS, 2, 1),
    parallel(AG, 3, 2),
    master(AG, 2, 1),
    parallel(RS, 1, 0),
    parallel(BROADCAST, 3, 1),
    parallel(AG, 1, 0),
)


def by_length(depth: int, name: str, limit: int) -> list[int]:
    """How many programs of each length words proves, by a walk that merges equal states."""
    steps = [(i.collective, shape(i, depth)) for i in instruction_set(depth, name)]
    goal, layer, found = words.complete(depth), {words.initial(depth): 1}, []
    for _ in range(limit):
        after: dict[words.State, int] = {}
        for state, count in layer.items():
            for collective, groups in steps:
                new = words.step(state, collective, groups)
                if not isinstance(new, str):
                    after[new] = after.get(new, 0) + count
        found.append(after.pop(goal, 0))
        layer = after
    return found


@pytest.mark.parametrize(
    ("depth", "name", "expected"),
    [
        (1, "p2", [1, 2, 0, 0, 0]),
        (1, "full", [1, 2, 0, 0, 0]),
        (2, "p2", [1, 4, 20, 22, 0]),
        (2, "full", [1, 4, 24, 42, 22]),
        (3, "p2", [1, 6, 50, 205, 563, 537, 0]),
        (3, "full", [1, 6, 59, 319, 1250, 2941, 4171]),
    ],
)
def test_it_proves_as_many_programs_as_are_right_for_all_sizes(depth: int, name: str, expected: list[int]) -> None:
    """The model's table; and 8747 `full` programs of three factors within 7 steps, all that hold on 3*2*2."""
    assert by_length(depth, name, len(expected)) == expected


def joint_walk(depth: int, sizes: list[tuple[int, ...]]) -> tuple[int, int]:
    """Walk all programs that words accepts, together with the rules over each of `sizes`: (states, steps) seen.

    A state of words is met with one state of the rules per sizes only, so this covers programs of every length.
    """
    instructions = [(i, shape(i, depth)) for i in instruction_set(depth)]
    everything = (True,) * depth
    kinds = {kind: words.complete(depth, kind) for kind in product((False, True), repeat=depth)}
    goals = {kind: [rules.complete(each, kind) for each in sizes] for kind in kinds}
    met = {words.initial(depth): [rules.initial(math.prod(each)) for each in sizes]}
    queue, steps = deque(met), 0
    while queue:
        state = queue.popleft()
        concrete = met[state]
        for kind, goal in kinds.items():
            assert [a == b for a, b in zip(concrete, goals[kind], strict=True)] == [state == goal] * len(sizes)
        if state == kinds[everything]:
            continue
        for instruction, groups in instructions:
            after = words.step(state, instruction.collective, groups)
            if isinstance(after, str):
                continue
            steps += 1
            results = []
            for now, each in zip(concrete, sizes, strict=True):
                result = rules.step(now, each, instruction)
                assert not isinstance(result, rules.Failure), (state, instruction, each, result)
                results.append(result)
            if after not in met:
                met[after] = results
                queue.append(after)
            assert met[after] == results, (state, instruction)
    return len(met), steps


@pytest.mark.parametrize(("depth", "top"), [(1, 6), (2, 5)])
def test_rules_accept_whatever_words_accepts_of_small_depth(depth: int, top: int) -> None:
    states, steps = joint_walk(depth, list(product(range(2, top), repeat=depth)))
    assert states == {1: 4, 2: 36}[depth] and steps > states


@pytest.mark.parametrize("triples", [8, pytest.param(len(TRIPLES), marks=pytest.mark.full)])
def test_rules_accept_whatever_words_accepts_of_three_factors(triples: int) -> None:
    """Every three-factor program of any length, on triples of sizes 2 to 4: a seeded sample of them, or all."""
    states, steps = joint_walk(3, random.Random(3).sample(TRIPLES, triples))
    assert states == 577 and steps == 1519


@pytest.mark.full
@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 2, 2, 2), (2, 3, 2, 2), (2, 2, 3, 2), (2, 2, 2, 3)])
def test_rules_accept_whatever_words_accepts_of_four_factors(sizes: tuple[int, ...]) -> None:
    assert joint_walk(4, [sizes])[0] > 10_000


def test_it_refuses_what_holds_on_some_sizes_only() -> None:
    assert rules.replay(TRAP, (2, 2, 2)) is None
    assert rules.replay(TRAP, (3, 2, 2)) is not None
    result = run_words(3, TRAP)
    assert not result.proved and result.step == 6 and result.reason.startswith("step 6: Broadcast: ")


@st.composite
def walks(draw: st.DrawFn) -> Case:
    """Sizes, reduced factors, and a program of which words accepts every step (a few random ones may end it)."""
    depth = draw(st.integers(1, 4))
    sizes = draw(st.tuples(*[st.integers(2, 4 if depth < 4 else 3)] * depth))
    reduced = draw(st.one_of(st.just((True,) * depth), st.tuples(*[st.booleans()] * depth)))
    state, program = words.initial(depth), []
    for _ in range(draw(st.integers(0, 9))):
        choices = [i for i in instruction_set(depth) if not isinstance(after(state, i, depth), str)]
        if not choices:
            break
        choice = draw(st.sampled_from(choices))
        program.append(choice)
        state = after(state, choice, depth)
    program += draw(st.lists(st.sampled_from(instruction_set(depth)), max_size=1))
    return sizes, reduced, tuple(program)


def after(state: words.State, instruction: Instruction, depth: int) -> words.State | str:
    return words.step(state, instruction.collective, shape(instruction, depth))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(walks())
def test_each_step_agrees_with_the_rules(case: Case) -> None:
    sizes, reduced, program = case
    depth = len(sizes)
    state, concrete = words.initial(depth), rules.initial(math.prod(sizes))
    for instruction in program:
        new = after(state, instruction, depth)
        if isinstance(new, str):
            break
        result = rules.step(concrete, sizes, instruction)
        assert not isinstance(result, rules.Failure)
        state, concrete = new, result
    assert (state == words.complete(depth, reduced)) == (concrete == rules.complete(sizes, reduced))
    verdict, replayed = run_words(depth, program, reduced), rules.replay(program, sizes, reduced)
    assert not (verdict.proved and replayed is not None)
    if verdict.step is not None and "holds already" in verdict.reason:
        assert replayed is not None and replayed.step == verdict.step


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_random_programs_are_never_accepted_against_the_rules(data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, 4))
    sizes = data.draw(st.tuples(*[st.integers(2, 3)] * depth))
    program = tuple(data.draw(st.lists(st.sampled_from(instruction_set(depth)), max_size=5)))
    assert not run_words(depth, program).proved or rules.replay(program, sizes) is None


def concrete_rows(rows: words.Rows, sizes: tuple[int, ...], digits: tuple[int, ...]) -> list[int]:
    """The chunks that a stack of words means for the device with these digits, ascending, digit by digit.

    A word's positions are read from the list of what the words before it leave, except for open factors, along
    which everything is held whatever the later words say.
    """

    def size(mask: int) -> int:
        return math.prod(n for factor, n in enumerate(sizes) if mask >> factor & 1)

    def wanted(position: int, level: int) -> bool:
        if level == len(rows):
            return True
        inner = 0
        radix = [size(slot.factors) for slot in rows[level]]
        for place, slot in enumerate(rows[level]):
            digit = position // math.prod(radix[place + 1 :]) % radix[place]
            if slot.kind is Kind.CUT and digit != digits[slot.factors.bit_length() - 1]:
                return False
            if slot.kind is Kind.FREE:
                inner = inner * radix[place] + digit
        return wanted(inner, level + 1)

    return [chunk for chunk in range(math.prod(sizes)) if wanted(chunk, 0)]


@pytest.mark.parametrize("sizes", [(2,), (2, 3), (3, 2), (2, 2, 2), (2, 3, 2), (3, 2, 2), (2, 2, 3), (2, 3, 5)])
def test_scatters_and_gathers_mean_what_they_say(sizes: tuple[int, ...]) -> None:
    """All stacks that any scatters and gathers lead to, against lists of chunks: parts are consecutive, gathered rows
    are disjoint and the result their union, a stack means the same rows whichever way it was reached."""
    depth, devices = len(sizes), list(product(*map(range, sizes)))
    start: words.Rows = ((words.Slot(Kind.FREE, 2**depth - 1),),)
    met = {start: {digits: concrete_rows(start, sizes, digits) for digits in devices}}
    queue, refused, opened = [start], 0, 0
    while queue:
        rows = queue.pop()
        opened += any(slot.kind is Kind.OPEN for word in rows for slot in word)
        for joined in range(1, 2**depth):
            cut, held = words.cuts(rows), met[rows]
            factors = [factor for factor in range(depth) if joined >> factor & 1]
            new: words.Rows | None
            if not joined & cut:
                new = words.scatter(rows, joined)
                result = {digits: consecutive_part(held[digits], sizes, digits, factors) for digits in devices}
            elif not joined & ~cut:
                new = words.gather(rows, joined)
                result = {digits: union(held, sizes, digits, factors) for digits in devices}
                assert words.within(rows, new) and not words.within(new, rows)
            else:
                continue
            if new is None:
                refused += 1
                continue
            assert result == {digits: concrete_rows(new, sizes, digits) for digits in devices}, (rows, joined, new)
            if new not in met:
                met[new] = result
                queue.append(new)
    assert (refused > 0) == (opened > 0) == (depth > 2)


def consecutive_part(held: list[int], sizes: tuple[int, ...], digits: tuple[int, ...], factors: list[int]) -> list[int]:
    part, parts = 0, 1
    for factor in factors:
        part, parts = part * sizes[factor] + digits[factor], parts * sizes[factor]
    share, rest = divmod(len(held), parts)
    assert rest == 0
    return held[part * share : (part + 1) * share]


def union(
    held: dict[tuple[int, ...], list[int]], sizes: tuple[int, ...], digits: tuple[int, ...], factors: list[int]
) -> list[int]:
    members = product(*[range(n) if factor in factors else [digits[factor]] for factor, n in enumerate(sizes)])
    found = [chunk for member in members for chunk in held[member]]
    assert len(found) == len(set(found))
    return sorted(found)


def test_needs_that_no_program_reaches_are_checked_too() -> None:
    """Rows that are cut are always summed over the cut factors; a gather or broadcast checks it all the same."""
    free, cut = words.Slot(Kind.FREE, 3), (words.Slot(Kind.CUT, 1), words.Slot(Kind.FREE, 2))
    assert isinstance(words.on_group(AG, 1, [words.Held((cut,), 0)] * 2), str)
    assert not isinstance(words.on_group(AG, 1, [words.Held((cut,), 1)] * 2), str)
    root, more = words.Held(((free,),), 1), words.Held((cut,), 3)
    assert isinstance(words.on_group(BROADCAST, 1, [root, more]), str)
    assert not isinstance(words.on_group(BROADCAST, 1, [more._replace(rows=((free,),)), more]), str)


def test_rows_cut_again_can_be_gathered_in_any_order() -> None:
    """The parts of the second scatter aren't boxes; the gathers undo them all the same."""
    program = parse_program(
        "ReduceScatter(a, InsideGroup); AllGather(b, Parallel(a)); ReduceScatter(a, Parallel(root));"
        "AllGather(b, InsideGroup); AllGather(a, Parallel(root))",
        ("root", "a", "b", "c"),
    )
    assert run_words(3, program).proved
    assert all(rules.replay(program, sizes) is None for sizes in TRIPLES)


def test_the_goal_must_come_with_the_last_step() -> None:
    good = (inside(RS, 1), parallel(AR, 1, 0), inside(AG, 1))
    assert run_words(2, good).proved
    early = run_words(2, (*good, inside(AR, 0)))
    assert not early.proved and early.step == 4 and "already" in early.reason
    short = run_words(2, good[:2])
    assert not short.proved and short.step is None and "not reached" in short.reason
    assert run_words(0, ()).proved
    assert not run_words(1, ()).proved


def test_only_the_reduced_factors_are_summed_over() -> None:
    outer, both = (parallel(AR, 1, 0),), (inside(AR, 0),)
    assert run_words(2, outer, (True, False)).proved
    assert not run_words(2, outer, (False, True)).proved
    assert not run_words(2, both, (True, False)).proved
    assert run_words(2, (), (False, False)).proved
    assert run_words(2, outer, (False, False)).step == 1
    with pytest.raises(InputError, match="one per factor"):
        run_words(2, outer, (True,))


@pytest.mark.parametrize(
    ("program", "step", "words_"),
    [
        ((inside(AR, 0), inside(AR, 0)), 2, "already"),
        ((inside(AR, 1), inside(AR, 1)), 2, "twice"),
        ((inside(RS, 1), inside(AR, 1)), 2, "different rows"),
        ((inside(AG, 1),), 1, "the same rows"),
        ((inside(REDUCE, 1), parallel(AR, 1, 0)), 2, "holds nothing"),
        ((inside(REDUCE, 1), inside(AG, 1)), 2, "holds nothing"),
        ((inside(BROADCAST, 1),), 1, "lacks the others' contributions"),
        ((inside(AR, 1), inside(BROADCAST, 1)), 2, "all members"),
        ((inside(RS, 1), inside(BROADCAST, 1)), 2, "rows of its own"),
        ((master(AR, 1, 0), inside(AR, 1)), 2, "different ways"),
    ],
)
def test_refusals_name_the_step_and_the_reason(program: tuple[Instruction, ...], step: int, words_: str) -> None:
    result = run_words(2, program)
    assert not result.proved and result.step == step and words_ in result.reason
    assert rules.replay(program, (3, 2)) is not None


def test_instructions_beyond_the_depth_are_bad_input() -> None:
    for bad in (inside(AR, 2), parallel(AR, 3, 0), inside(AR, -1)):
        with pytest.raises(InputError, match="step 1"):
            run_words(2, (bad,))


def test_many_factors_of_any_size() -> None:
    """Scatter outwards, gather inwards, over six factors: 2^6 classes whatever the sizes."""
    depth = 6
    program = [parallel(RS, e, e - 1) for e in range(depth, 0, -1)]
    program += [parallel(AG, e, e - 1) for e in range(1, depth + 1)]
    assert run_words(depth, program).proved
    assert rules.replay(tuple(program), (2,) * depth) is None
    assert not run_words(depth, program[:-1]).proved
