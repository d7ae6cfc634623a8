"""The SMT-LIB step relations against the interpreters, and 'a concrete step implies the class step'."""

from __future__ import annotations

import math
import random
from functools import cache
from itertools import product

import pytest
from smtlib_support import (
    Case,
    class_cases,
    class_steps_agree,
    class_text,
    disturbed,
    random_state,
    reachable,
    reachable_classes,
    state_text,
    step_cases,
    steps_agree,
)

from smtsynth.encode.smtlib import (
    conjuncts,
    define_class_steps,
    define_described,
    define_obligations,
    define_steps,
    encoding_text,
    step_name,
)
from smtsynth.encode.smtlib_questions import HEAD, obligations_question
from smtsynth.errors import LimitReached
from smtsynth.meaning import classes, rules
from smtsynth.model.program import instruction_set
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import SMT_SOLVERS, run_smtlib

SIZES = [(2,), (3,), (4,), (2, 2), (2, 3), (3, 2)]
TWO = [(2, 2), (2, 3), (3, 2)]
RULES_FILES = ("states.smt2", "collectives.smt2", "step.smt2")
CLASS_FILES = ("class-collectives.smt2", "class-step.smt2")
LINK_FILES = ("described.smt2", "obligation.smt2")
Triple = tuple[rules.State, classes.States, bool]


@cache
def rules_cases(sizes: tuple[int, ...]) -> tuple[Case, ...]:
    """All instructions on all reachable states and on 60 random ones; up to 600 of them."""
    generator = random.Random(1)
    states = reachable(sizes) + [random_state(sizes, generator) for _ in range(60)]
    cases = step_cases(sizes, states)
    return tuple(cases if len(cases) <= 600 else generator.sample(cases, 600))


@cache
def cases_of_classes(depth: int) -> tuple[Case, ...]:
    """All instructions on reachable class states, the same disturbed, and uniform ones; up to 1500 of them."""
    generator = random.Random(2)
    known = reachable_classes(depth)
    states = known + [disturbed(generator.choice(known), depth, generator) for _ in range(60)]
    states += [
        (classes.ClassState(True, rows, contributors),) * (1 << depth)
        for rows in range(1 << depth)
        for contributors in range(1 << depth)
    ]
    cases = class_cases(depth, states)
    return tuple(cases if len(cases) <= 1500 else generator.sample(cases, 1500))


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize("sizes", SIZES)
def test_step_relation_is_the_interpreter(sizes: tuple[int, ...], solver: str) -> None:
    cases = rules_cases(sizes)
    able = sum(after is not None for _, _, after in cases)
    assert able >= 15 and len(cases) - able >= 100
    assert steps_agree(sizes, cases, solver)


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_class_step_relation_is_the_class_meaning(depth: int, solver: str) -> None:
    cases = cases_of_classes(depth)
    able = sum(after is not None for _, _, after in cases)
    assert able >= 10 and len(cases) - able >= 100
    assert class_steps_agree(depth, cases, solver)


SLOW = [((2, 3), "cvc5"), ((3, 2), "cvc5")]


@pytest.mark.parametrize(
    ("sizes", "solver"),
    [
        pytest.param(*one, marks=[pytest.mark.full] if one in SLOW else [])
        for one in product([(2,), (3,), *TWO], SMT_SOLVERS)
    ],
)
def test_concrete_step_implies_class_step(sizes: tuple[int, ...], solver: str) -> None:
    instructions = instruction_set(len(sizes))
    result = run_smtlib(obligations_question(sizes, instructions), solver, 300)
    failing = [step_name(i, len(sizes)) for i, a in zip(instructions, result.answers, strict=True) if a != Answer.UNSAT]
    assert failing == []


def test_obligations_stop_at_two_factors() -> None:
    with pytest.raises(LimitReached):
        define_obligations((2, 2, 2), instruction_set(3))


def matrix(one: classes.ClassState, device: int, sizes: tuple[int, ...], turned: bool) -> rules.DeviceState:
    """What a device holds that a class state describes: boxes in the digits of chunks and contributors."""

    def digits(number: int, order: list[int]) -> list[int]:
        result = [0] * len(sizes)
        for factor in reversed(order):
            number, result[factor] = divmod(number, sizes[factor])
        return result

    straight = list(range(len(sizes)))
    own = digits(device, straight)

    def box(free: int, order: list[int]) -> int:
        return sum(
            1 << number
            for number in range(math.prod(sizes))
            if all(free >> f & 1 or digits(number, order)[f] == own[f] for f in straight)
        )

    if not one.held:
        return ()
    return ((box(one.rows, straight[::-1] if turned else straight), box(one.contributors, straight)),)


def described(state: rules.State, states: classes.States, sizes: tuple[int, ...], turned: bool) -> bool:
    """Whether the class states describe the state, in straight or turned numbering of the chunks."""
    for device, held in enumerate(state):
        mask, rest = 0, device
        for factor in reversed(range(len(sizes))):
            rest, digit = divmod(rest, sizes[factor])
            mask |= (digit > 0) << factor
        if held != matrix(states[mask], device, sizes, turned):
            return False
    return True


@cache
def live(sizes: tuple[int, ...]) -> frozenset[rules.State]:
    """The reachable states from which the goal can be reached."""
    before: dict[rules.State, list[rules.State]] = {}
    for state in reachable(sizes):
        for instruction in instruction_set(len(sizes)):
            after = rules.step(state, sizes, instruction)
            if not isinstance(after, rules.Failure):
                before.setdefault(after, []).append(state)
    found = {rules.complete(sizes)}
    todo = list(found)
    while todo:
        for state in before.get(todo.pop(), []):
            if state not in found:
                found.add(state)
                todo.append(state)
    return frozenset(found)


@cache
def triples(sizes: tuple[int, ...]) -> tuple[Triple, ...]:
    """Live states with the class states that the same program reaches and a numbering of chunks that describes them.

    The numbering stays as it is along a program, except where it plays no part. Each live step must leave one.
    """
    depth = len(sizes)
    every = (1 << depth) - 1
    start = (rules.initial(math.prod(sizes)), classes.initial(depth), frozenset((False, True)))
    seen = {start: None}
    todo = list(seen)
    while todo:
        state, states, ways = todo.pop()
        if all(one.rows == every or not one.held for one in states):
            ways = frozenset((False, True))
        for instruction in instruction_set(depth):
            after = rules.step(state, sizes, instruction)
            if isinstance(after, rules.Failure) or after not in live(sizes):
                continue
            then = classes.step(states, instruction.collective, classes.shape(instruction, depth))
            assert then is not None, (instruction, state)
            found = frozenset(way for way in ways if described(after, then, sizes, way))
            assert found, f"{step_name(instruction, depth)} leads to a live state that no classes describe"
            if (after, then, found) not in seen:
                seen[after, then, found] = None
                todo.append((after, then, found))
    return tuple(dict.fromkeys((state, states, way) for state, states, ways in seen for way in sorted(ways)))


@pytest.mark.parametrize("sizes", TWO)
def test_every_live_state_is_described_by_its_classes(sizes: tuple[int, ...]) -> None:
    """What the obligation leaves out: a state that no classes describe is a dead end."""
    assert {state for state, _, _ in triples(sizes)} == live(sizes)
    assert rules.complete(sizes) in live(sizes)
    kinds = [classes.EMPTY] + [classes.ClassState(True, r, c) for r in range(4) for c in range(4)]
    devices = [0, 1, sizes[1], sizes[1] + 1]  # one of each class
    for state in reachable(sizes):
        for turned in (False, True):
            guess = {}
            for mask, device in zip((0, 2, 1, 3), devices, strict=True):
                fits = [one for one in kinds if matrix(one, device, sizes, turned) == state[device]]
                guess[mask] = fits[0] if fits else classes.EMPTY
            if described(state, tuple(guess[mask] for mask in range(4)), sizes, turned):
                break
        else:
            assert state not in live(sizes)


def covers(sizes: tuple[int, ...], solver: str, without: set[str] | None = None) -> bool:
    """Whether `described` of described.smt2 holds for all live states, and for none with a class state changed."""
    instructions = instruction_set(len(sizes))
    text = HEAD + define_steps(sizes, instructions[:1]) + define_class_steps(len(sizes), instructions[:1])
    text += define_described(sizes, without or ())
    for state, states, turned in triples(sizes):
        for one in (states, (states[0]._replace(held=not states[0].held), *states[1:])):
            call = f"(described {state_text(state)} {class_text(one, len(sizes))} {str(turned).lower()})"
            text += f"(assert {call})\n" if one is states else f"(assert (not {call}))\n"
    return run_smtlib(text + "(check-sat)\n", solver, 120).answers == (Answer.SAT,)


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize("sizes", TWO)
def test_described_holds_for_live_states(sizes: tuple[int, ...], solver: str) -> None:
    assert len(triples(sizes)) >= 30
    assert covers(sizes, solver)


def failing(sizes: tuple[int, ...], name: str) -> list[str]:
    """The obligations that fail when the conjunct `name` is dropped."""
    depth, collective = len(sizes), name.removeprefix("class.").split(".")[0]
    instructions = instruction_set(depth)
    own = [i for i in instructions if i.collective == collective] or list(instructions)
    answers = run_smtlib(obligations_question(sizes, own, {name}), "z3", 120).answers
    assert Answer.UNKNOWN not in answers
    return [step_name(i, depth) for i, answer in zip(own, answers, strict=True) if answer == Answer.SAT]


STEP_FILES = RULES_FILES + CLASS_FILES + LINK_FILES
ALL_CONJUNCTS = [(file, name) for file in STEP_FILES for name in conjuncts(encoding_text(file))]


@pytest.mark.parametrize(("file", "name"), ALL_CONJUNCTS)
def test_dropping_a_conjunct_is_noticed(file: str, name: str) -> None:
    """Each conjunct dropped makes an obligation fail; a need of the class step, being on the other side of it, or what
    follows for described states, makes the comparison with the interpreter fail."""
    sizes = (2, 2)
    obligations = failing(sizes, name)
    by_obligation = ".needs" not in name and (file != "class-collectives.smt2" or name.split(".")[-1] in GIVES)
    if by_obligation and name not in ELSEWHERE:
        assert obligations
    if obligations:
        return
    caught = []
    if file in RULES_FILES and not steps_agree(sizes, rules_cases(sizes), "z3", {name}):
        caught.append("the interpreter")
    if file in CLASS_FILES and not class_steps_agree(2, cases_of_classes(2), "z3", {name}):
        caught.append("the class meaning")
    if file == "described.smt2" and not covers(sizes, "z3", {name}):
        caught.append("the live states")
    assert caught


GIVES = {"sum", "part", "empties", "union", "root"}
ELSEWHERE = {
    "ReduceScatter.divides",  # follows for described states: the rows that a group shares are whole multiples
    "described.held",  # without it nothing describes an empty device, so that no step is asked about
}
