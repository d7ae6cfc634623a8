"""Programs as SMT-LIB questions, against the replay and the clause encodings."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.encode import concrete, reduced
from smtsynth.encode.smtlib import binary, conjuncts, encoding_text
from smtsynth.encode.smtlib_questions import class_program_question, program_question
from smtsynth.errors import LimitReached
from smtsynth.meaning import classes, rules
from smtsynth.meaning.goals import Target, target
from smtsynth.model.lowering import lower
from smtsynth.model.placement import Axis, check_placement
from smtsynth.model.program import Collective, Program, instruction_set
from smtsynth.model.system import Level, System
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.sat import solve_dimacs
from smtsynth.solvers.smt import SMT_SOLVERS, run_smtlib

FULL = instruction_set(2)
ALL = target((2, 2))
IDLE = len(FULL)


def prices(sizes: tuple[int, ...], payload: int = 2**26, reduce: tuple[int, ...] = (0,), split: bool = False) -> Prices:
    """Prices on nodes and GPUs; `split` gives each level an axis of its own."""
    levels = [Level("node", sizes[0], "8 GB/s", "20 us"), Level("gpu", sizes[1], "270 GB/s", "3 us")]
    system = System(levels[: len(sizes)])
    matrix = [[sizes[0], 1], [1, sizes[1]]] if split else [list(sizes)]
    axes = [Axis(f"a{number}", row[0] * row[1]) for number, row in enumerate(matrix)]
    hierarchy = "columns" if split else "reduction"
    return Prices(
        AlphaBeta(), lower(system, check_placement(matrix, axes, system), reduce, hierarchy), Fraction(payload)
    )


def ask(text: str, solver: str) -> Answer:
    (answer,) = run_smtlib(text, solver, 120).answers
    return answer


def accepted(sequence: tuple[int, ...], by_classes: bool) -> bool:
    """Whether these instruction numbers (IDLE: none) are a program and then idle steps."""
    program: Program = tuple(FULL[number] for number in sequence if number < IDLE)
    if list(sequence) != [FULL.index(one) for one in program] + [IDLE] * (len(sequence) - len(program)):
        return False
    if not by_classes:
        return rules.replay(program, (2, 2)) is None
    states = classes.initial(2)
    for instruction in program:
        if states == classes.complete(2):
            return False
        after = classes.step(states, instruction.collective, classes.shape(instruction, 2))
        if after is None:
            return False
        states = after
    return states == classes.complete(2)


def answers_by_sequence(text: str, sequences: list[tuple[int, ...]], solver: str) -> list[bool]:
    """For each sequence of instruction numbers: may the program be that?"""
    body = text.removesuffix("(check-sat)\n")
    width = IDLE.bit_length()
    for sequence in sequences:
        same = " ".join(f"(= instruction.{n} {binary(number, width)})" for n, number in enumerate(sequence, 1))
        body += f"(push 1)\n(assert (and true {same}))\n(check-sat)\n(pop 1)\n"
    answers = run_smtlib(body, solver, 120).answers
    assert Answer.UNKNOWN not in answers
    return [answer == Answer.SAT for answer in answers]


PAIRS = list(product(range(IDLE + 1), repeat=2))
PAUSED = [(first, IDLE, last) for first, last in PAIRS]  # idle in the middle
STRANGE = (31, 0)  # 31 is the number of no instruction


@pytest.mark.parametrize("by_classes", [False, True])
@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_every_program_of_two_steps_is_judged_like_the_replay(solver: str, by_classes: bool) -> None:
    assert sum(accepted(pair, by_classes) for pair in PAIRS) == 5  # the model's counts: 1 of one step, 4 of two
    pairs = PAIRS
    if solver == "cvc5":  # all right ones and a sample
        pairs = [pair for pair in PAIRS if accepted(pair, by_classes)] + random.Random(4).sample(PAIRS, 100)
    expected = [accepted(pair, by_classes) for pair in pairs]
    question = class_program_question if by_classes else program_question
    found = answers_by_sequence(question(ALL, FULL, 2), [*pairs, STRANGE], solver)
    assert found == [*expected, False]


@pytest.mark.parametrize("by_classes", [False, True])
def test_a_program_is_idle_from_the_goal_on_only(by_classes: bool) -> None:
    question = class_program_question if by_classes else program_question
    expected = [accepted(one, by_classes) for one in PAUSED]
    assert sum(expected) == 1
    assert answers_by_sequence(question(ALL, FULL, 3), PAUSED, "z3") == expected


PROGRAM_FILES = ("goal.smt2", "class-goal.smt2", "program.smt2")


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file in PROGRAM_FILES for name in conjuncts(encoding_text(file))]
)
def test_dropping_a_conjunct_of_the_program_is_noticed(file: str, name: str) -> None:
    by_classes = file == "class-goal.smt2"
    question = class_program_question if by_classes else program_question
    if name == "program.price":
        assert ask(program_question(ALL, FULL, 2, 1, prices((2, 2)), without={name}), "z3") == Answer.SAT
        assert ask(program_question(ALL, FULL, 2, 1, prices((2, 2))), "z3") == Answer.UNSAT
        return
    dropped = answers_by_sequence(question(ALL, FULL, 3, without={name}), PAUSED, "z3")
    dropped += answers_by_sequence(question(ALL, FULL, 2, without={name}), [*PAIRS, STRANGE], "z3")
    assert dropped != [accepted(one, by_classes) for one in PAUSED + PAIRS] + [False]


SPLIT = tuple(
    one for one in FULL if one.collective not in (Collective.REDUCE, Collective.BROADCAST) and not one.span(2).master
)
ACROSS = [one for one in FULL if one.span(2) == (0, 1, False)]
SETS = {
    "full": (FULL, 1),
    "only halves": (tuple(one for one in SPLIT if one.span(2) != (0, 2, False)), 2),
    "scatter and gather": (tuple(one for one in FULL if one.collective in ("ReduceScatter", "AllGather")), 2),
    "reduce and broadcast": (
        tuple(one for one in FULL if one.collective in ("Reduce", "Broadcast") and one.span(2) != (0, 2, False)),
        4,
    ),
    "nothing across": (tuple(one for one in FULL if one.span(2) == (1, 2, False)), None),
}


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize("name", SETS)
def test_shortest_program_is_that_of_the_clauses(name: str, solver: str) -> None:
    instructions, shortest = SETS[name]
    known = prices((2, 2))
    for steps in (3,) if shortest is None else (shortest - 1, shortest):
        expected = Answer.SAT if steps == shortest else Answer.UNSAT
        assert solve_dimacs(concrete.encode(known, instructions, steps, None).clauses.dimacs()).answer == expected
        assert ask(program_question(ALL, instructions, steps), solver) == expected
        assert ask(class_program_question(ALL, instructions, steps), solver) == expected


@cache
def cheapest() -> tuple[Prices, int, Program]:
    """The cheapest program of at most three steps on 2 x 2 devices, by trying them all."""
    known = prices((2, 2))
    programs = (program for length in (1, 2, 3) for program in product(FULL, repeat=length))
    right = [program for program in programs if rules.replay(program, (2, 2)) is None]
    assert len(right) == 29  # the model's counts
    return known, *min((known.program(program), program) for program in right)


@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_cheapest_program_is_that_of_the_clauses(solver: str) -> None:
    """At and just above the cheapest cost, and with exact prices and blocked prefixes."""
    known, best, program = cheapest()
    (parts, _), *_ = known.steps(program)
    for bound, mixed, blocked in (
        (best, [], []),
        (best + 1, [], []),
        (best + 1, [(program[0], (*parts, *parts))] if len(parts) == 1 else [(program[0], parts)], []),
        (best + 1, [], [program[:1]]),
        (best + 1, [], [program]),
    ):
        expected = solve_dimacs(concrete.encode(known, FULL, 3, bound, mixed, blocked).clauses.dimacs()).answer
        assert ask(program_question(ALL, FULL, 3, bound, known, mixed, blocked), solver) == expected
    assert ask(program_question(ALL, FULL, 3, best, known), solver) == Answer.UNSAT


@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_a_part_of_the_factors_is_reduced(solver: str) -> None:
    known = prices((2, 2), split=True)
    over = [bool(factor.reduced) for factor in known.lowering.factors]
    assert over == [True, False]
    partly = target((2, 2), reduced=over)
    for instructions in (FULL, tuple(ACROSS), SETS["nothing across"][0]):
        expected = solve_dimacs(concrete.encode(known, instructions, 2, None).clauses.dimacs()).answer
        assert ask(program_question(partly, instructions, 2), solver) == expected
        assert ask(class_program_question(partly, instructions, 2), solver) == expected
    assert ask(program_question(partly, FULL, 2), solver) == Answer.SAT
    assert ask(program_question(partly, SETS["nothing across"][0], 2), solver) == Answer.UNSAT


GOALS = [
    target((2, 2), Collective.REDUCE),
    target((2, 2), Collective.ALL_GATHER),
    target((2, 2), Collective.BROADCAST),
    target((2, 2), Collective.REDUCE_SCATTER),
    target((2, 2), Collective.REDUCE_SCATTER, split=(False, True)),
]


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: f"{goal.collective}-{''.join(map(str, map(int, goal.split)))}")
def test_other_goals_are_reached_like_by_the_clauses(goal: Target, solver: str) -> None:
    """With and without what the shortest programs need."""
    known, verdicts = prices((2, 2)), set()
    for instructions in (FULL, tuple(one for one in FULL if one.span(2) != (0, 2, False))):
        for steps in (1, 2):
            by_classes = solve_dimacs(reduced.encode(known, instructions, steps, None, target=goal).clauses.dimacs())
            assert ask(class_program_question(goal, instructions, steps), solver) == by_classes.answer
            by_rules = solve_dimacs(concrete.encode(known, instructions, steps, None, target=goal).clauses.dimacs())
            if any(goal.split):
                with pytest.raises(LimitReached):
                    program_question(goal, instructions, steps)
            else:
                assert ask(program_question(goal, instructions, steps), solver) == by_rules.answer
            verdicts.add((by_rules.answer, by_classes.answer))
    assert {Answer.SAT, Answer.UNSAT} <= {answer for pair in verdicts for answer in pair}


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize(
    ("sizes", "bounds"), [((4, 16), (None, 417_776_266, 417_776_267)), ((3, 5), (100_000_000, 417_776_266))]
)
def test_class_questions_agree_with_the_reduced_encoding(
    sizes: tuple[int, ...], bounds: tuple[int | None, ...], solver: str
) -> None:
    known = prices(sizes, 2**31)
    inside = [one for one in FULL if one.span(2) == (1, 2, False)]
    mixed = [(ACROSS[0], (1, 3)), (inside[2], (0, 1))]
    scatter = inside[1]
    verdicts = set()
    for bound in bounds:
        for rows, blocked in (([], []), (mixed, [(scatter,)]))[: 1 + (bound is not None)]:
            clauses = reduced.encode(known, FULL, 5, bound, rows, blocked).clauses
            expected = solve_dimacs(clauses.dimacs()).answer
            assert ask(class_program_question(target(sizes), FULL, 5, bound, known, rows, blocked), solver) == expected
            verdicts.add(expected)
    assert verdicts == {Answer.SAT, Answer.UNSAT}
