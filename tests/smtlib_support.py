"""Cases and scripts shared by the tests of the SMT-LIB files."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Sequence

from smtsynth.encode.smtlib import binary, define_class_steps, define_steps, step_name
from smtsynth.encode.smtlib_questions import HEAD
from smtsynth.meaning import classes, rules
from smtsynth.model.program import Instruction, instruction_set
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import run_smtlib

Case = tuple[Instruction, str, str | None]  # an instruction, what is there before, after (None: it cannot run)


def state_text(state: rules.State) -> str:
    """A state as arguments of the SMT-LIB step relation."""
    k = len(state)
    numbers = []
    for device in state:
        number = 0
        for rows, contributors in device:
            for chunk in rules.members(rows):
                number |= contributors << chunk * k
        numbers.append(binary(number, k * k))
    return " ".join(numbers)


def class_text(states: classes.States, depth: int) -> str:
    """Class states as arguments of the SMT-LIB step relation."""
    return " ".join(
        binary(one.held << 2 * depth | one.rows << depth | one.contributors, 2 * depth + 1) for one in states
    )


def reachable(sizes: Sequence[int]) -> list[rules.State]:
    """All states that programs of the full set reach from the start, in a fixed order."""
    sizes = tuple(sizes)
    seen = {rules.initial(math.prod(sizes)): None}
    todo = list(seen)
    while todo:
        state = todo.pop()
        for instruction in instruction_set(len(sizes)):
            after = rules.step(state, sizes, instruction)
            if not isinstance(after, rules.Failure) and after not in seen:
                seen[after] = None
                todo.append(after)
    return list(seen)


def random_state(sizes: Sequence[int], generator: random.Random) -> rules.State:
    """A state on which collectives have a chance: rows alike or cut, contributors apart, and some of it disturbed."""
    k = math.prod(sizes)
    rows = generator.sample(range(k), generator.randint(1, k))
    mode = generator.choice(("alike", "cut", "growing"))
    matrices = []
    for device in range(k):
        mine = rows if mode == "alike" else rows[device :: max(1, k // 2)]
        start = {chunk: 1 << device for chunk in mine}
        if mode == "growing":
            start = {chunk: (1 << k) - 1 >> device for chunk in rows[: max(1, len(rows) - device)]}
        if generator.random() < 0.2:
            chunk = generator.randrange(k)
            start[chunk] = start.get(chunk, 0) ^ 1 << generator.randrange(k)
        if generator.random() < 0.1:
            start = {}
        matrices.append(start)
    return tuple(
        rules.blocks((1 << chunk, contributors) for chunk, contributors in matrix.items() if contributors)
        for matrix in matrices
    )


def step_cases(sizes: Sequence[int], states: Iterable[rules.State]) -> list[Case]:
    """What the interpreter says of every instruction on these states."""
    cases: list[Case] = []
    for state in states:
        for instruction in instruction_set(len(sizes)):
            after = rules.step(state, tuple(sizes), instruction)
            cases.append(
                (instruction, state_text(state), None if isinstance(after, rules.Failure) else state_text(after))
            )
    return cases


def class_cases(depth: int, states: Iterable[classes.States]) -> list[Case]:
    """What smtsynth.meaning.classes says of every instruction on these class states."""
    cases: list[Case] = []
    for state in states:
        for instruction in instruction_set(depth):
            after = classes.step(state, instruction.collective, classes.shape(instruction, depth))
            cases.append((instruction, class_text(state, depth), None if after is None else class_text(after, depth)))
    return cases


def reachable_classes(depth: int) -> list[classes.States]:
    """All class states that programs of the full set reach, in a fixed order."""
    seen = {classes.initial(depth): None}
    todo = list(seen)
    while todo:
        states = todo.pop()
        for instruction in instruction_set(depth):
            after = classes.step(states, instruction.collective, classes.shape(instruction, depth))
            if after is not None and after not in seen:
                seen[after] = None
                todo.append(after)
    return list(seen)


def disturbed(states: classes.States, depth: int, generator: random.Random) -> classes.States:
    """Class states with one class changed."""
    one = generator.randrange(len(states))
    new = classes.ClassState(True, generator.randrange(1 << depth), generator.randrange(1 << depth))
    return (*states[:one], generator.choice((new, classes.EMPTY)), *states[one + 1 :])


def relation_agrees(relation: str, sort: str, depth: int, definitions: str, cases: Sequence[Case], solver: str) -> bool:
    """Whether the step relation leads from each case's before to its after and nowhere else.

    Three questions for all cases together: some after that isn't reached, another that is, any where none should be.
    """
    places = range(cases[0][1].count(" ") + 1)
    after = [f"after{place}" for place in places]
    missed, other, wrong = [], [], []
    for instruction, before, expected in cases:
        name = f"{relation}.{step_name(instruction, depth)}"
        step = f"({name} {before} {' '.join(after)})"
        if expected is None:
            wrong.append(step)
        else:
            missed.append(f"(not ({name} {before} {expected}))")
            same = " ".join(f"(= {one} {two})" for one, two in zip(after, expected.split(), strict=True))
            other.append(f"(and {step} (not (and {same})))")
    text = HEAD + definitions + "".join(f"(declare-const {name} {sort})\n" for name in after)
    for found in (missed, other, wrong):
        text += f"(push 1)\n(assert (or false false {' '.join(found)}))\n(check-sat)\n(pop 1)\n"
    answers = run_smtlib(text, solver, 120).answers
    assert Answer.UNKNOWN not in answers
    return set(answers) == {Answer.UNSAT}


def steps_agree(sizes: Sequence[int], cases: Sequence[Case], solver: str, without: Collection[str] = ()) -> bool:
    """relation_agrees for the rules."""
    definitions = define_steps(sizes, instruction_set(len(sizes)), without)
    return relation_agrees("step", "State", len(sizes), definitions, cases, solver)


def class_steps_agree(depth: int, cases: Sequence[Case], solver: str, without: Collection[str] = ()) -> bool:
    """relation_agrees for the class meaning."""
    definitions = define_class_steps(depth, instruction_set(depth), without)
    return relation_agrees("class.step", "Class", depth, definitions, cases, solver)
