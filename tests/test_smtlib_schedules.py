"""Schedules as SMT-LIB questions, against the buffers interpreter."""

from __future__ import annotations

import math
import random
from functools import cache

import pytest

from smtsynth.encode.smtlib import conjuncts, encoding_text
from smtsynth.encode.smtlib_schedule import schedule_obligation
from smtsynth.errors import LimitReached
from smtsynth.meaning import rules
from smtsynth.meaning.buffers import run
from smtsynth.model.program import Collective, Program, instruction_set
from smtsynth.model.schedule import Entry, Goal, Group, Schedule, check_schedule
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import SMT_SOLVERS, run_smtlib

AR, RS, AG = Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER
REDUCE, BROADCAST = Collective.REDUCE, Collective.BROADCAST
IN, ACROSS, ALL = ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 1, 2, 3),)
Part = tuple[Collective, tuple[Group, ...]]
LAYOUTS = ("any", "identity")


def schedule(devices: int, *steps: Part, goal: Goal | None = None) -> Schedule:
    """One entry a step."""
    return check_schedule(Schedule(devices, tuple((Entry(*step),) for step in steps), goal or Goal()))


BY_HAND = [
    schedule(4, (RS, IN), (AR, ACROSS), (AG, IN)),
    schedule(4, (RS, IN), (RS, ACROSS), (AG, IN), (AG, ACROSS)),  # right, in another order of chunks
    schedule(4, (AR, IN), (AR, ACROSS), (AR, IN)),  # twice
    schedule(4, (RS, IN), (AR, ((0, 3), (1, 2))), (AG, ((0, 1), (3, 2)))),  # different chunks added
    schedule(4, (RS, ((0, 1), (3, 2))), (AG, IN)),
    schedule(4, (RS, ((0, 1), (3, 2))), (AG, ((0, 1), (3, 2)))),
    schedule(4, (AR, ALL), (RS, ((0, 1), (3, 2))), (AG, IN)),  # another order at some devices
    schedule(4, (RS, ((0, 1),)), (AR, ALL)),  # unequal lengths
    schedule(4, (AR, ALL), (RS, ((0, 1),)), (BROADCAST, ((2, 0, 1),))),
    schedule(4, (REDUCE, ALL), (BROADCAST, ALL)),
    schedule(4, (REDUCE, ALL), (AR, ((1, 0),))),  # undefined added, on either side
    schedule(4, (REDUCE, ALL), (AR, ((0, 1),))),
    schedule(4, (REDUCE, ALL), (AR, ((0, 1),)), (BROADCAST, ALL)),
    schedule(4, (REDUCE, ALL), goal=Goal(REDUCE)),
    schedule(4, (REDUCE, ((2, 0, 1, 3),)), goal=Goal(REDUCE, ALL, (2,))),
    schedule(4, (REDUCE, ((2, 0, 1, 3),)), goal=Goal(REDUCE)),
    schedule(4, (BROADCAST, ALL), goal=Goal(BROADCAST)),
    schedule(4, (BROADCAST, ((3, 0, 1, 2),)), goal=Goal(BROADCAST, ALL, (3,))),
    schedule(4, (BROADCAST, IN), goal=Goal(BROADCAST)),
    schedule(4, (RS, ALL), goal=Goal(RS)),
    schedule(4, (RS, IN), (RS, ACROSS), goal=Goal(RS)),  # parts at other devices than asked
    schedule(4, (RS, ACROSS), (RS, IN), goal=Goal(RS)),
    schedule(4, (RS, IN), goal=Goal(RS, IN)),
    schedule(4, (RS, IN), goal=Goal(RS)),
    schedule(4, (AG, ALL), goal=Goal(AG)),
    schedule(4, (AG, IN), (AG, ACROSS), goal=Goal(AG)),
    schedule(4, (AG, ACROSS), (AG, IN), goal=Goal(AG)),
    schedule(4, (AG, ((1, 0), (3, 2))), (AG, ACROSS), goal=Goal(AG)),
    schedule(4, (AG, ((0, 1),)), goal=Goal(AG, ((0, 1),))),
    schedule(4, (AG, ((0, 1), (2, 3))), goal=Goal(AG, ((0, 1),))),
    schedule(4, (AG, ((0, 1),)), (BROADCAST, ((0, 2), (1, 3))), goal=Goal(AG, ((0, 1),))),
    schedule(4, (AR, IN), goal=Goal(AR, IN)),
    schedule(4, (AR, ALL), goal=Goal(AR, IN)),  # contributors of another group
    schedule(4, (AR, ((0, 1),)), goal=Goal(AR, ((0, 1),))),
    schedule(3, (RS, ((0, 1, 2),)), (AG, ((0, 1, 2),))),
    schedule(3, (RS, ((0, 1, 2),)), (AG, ((0, 2, 1),))),
    schedule(3, (RS, ((0, 1),)), (AG, ((0, 1),)), (AR, ((0, 1, 2),))),
    schedule(6, (AG, ((0, 1, 2), (3, 4, 5))), goal=Goal(AG, ((0, 1, 2), (3, 4, 5)))),
    schedule(2, (RS, ((0, 1),)), (AR, ((0, 1),))),
    schedule(2, (RS, ((0, 1),)), (BROADCAST, ((0, 1),)), (AG, ((0, 1),))),  # a chunk twice
    schedule(2, (REDUCE, ((0, 1),)), (AR, ((1, 0),))),
    schedule(2, (REDUCE, ((0, 1),)), (AR, ((0, 1),))),
    schedule(2),
    schedule(1),
]


@cache
def programs(sizes: tuple[int, ...], most: int) -> tuple[Program, ...]:
    """All programs of at most `most` steps, by the rules."""
    found: list[Program] = []
    goal = rules.complete(sizes)
    todo: list[tuple[Program, rules.State]] = [((), rules.initial(math.prod(sizes)))]
    while todo:
        program, state = todo.pop()
        if state == goal:
            found.append(program)
        elif len(program) < most:
            for instruction in instruction_set(len(sizes)):
                after = rules.step(state, sizes, instruction)
                if not isinstance(after, rules.Failure):
                    todo.append(((*program, instruction), after))
    return tuple(found)


def mutant(right: Schedule, generator: random.Random) -> Schedule:
    """The schedule with one thing changed."""
    steps = [step[0] for step in right.steps]
    number = generator.randrange(len(steps))
    entry = steps[number]
    kind = generator.choice(("drop", "repeat", "collective", "swap", "group"))
    if kind == "drop":
        del steps[number]
    elif kind == "repeat":
        steps.insert(number, entry)
    elif kind == "collective":
        steps[number] = Entry(generator.choice(list(Collective)), entry.groups)
    elif kind == "group":
        steps[number] = Entry(entry.collective, entry.groups[1:])
    else:
        one, two = generator.sample(range(right.devices), 2)
        exchange = {one: two, two: one}
        groups = tuple(tuple(exchange.get(d, d) for d in group) for group in entry.groups)
        steps[number] = Entry(entry.collective, groups)
    return check_schedule(Schedule(right.devices, tuple((entry,) for entry in steps)))


@cache
def cases() -> tuple[Schedule, ...]:
    """Schedules by hand, lowered programs, and mutants of these."""
    generator = random.Random(3)
    found = list(BY_HAND)
    for sizes, number in (((2, 2), 14), ((3, 2), 8), ((2, 3), 8)):
        for program in generator.sample(programs(sizes, 4), number):
            steps = [(step.collective, rules.instruction_groups(sizes, step)) for step in program]
            right = schedule(math.prod(sizes), *steps)
            found += [right, mutant(right, generator)]
    return tuple(found)


def answers(texts: list[str], solver: str) -> list[Answer]:
    """The scripts' answers, put as one script."""
    head = texts[0][: texts[0].index("(set-logic QF_BV)\n") + len("(set-logic QF_BV)\n")]
    bodies = [f"(push 1)\n{text.removeprefix(head)}(pop 1)\n" for text in texts]
    return list(run_smtlib(head + "".join(bodies), solver, 300).answers)


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_verdicts_are_those_of_the_buffers(layout: str, solver: str) -> None:
    expected = [run(one, layout).verdict for one in cases()]  # type: ignore[arg-type]
    assert expected.count("proved") >= 30 and expected.count("refuted") >= 30
    found = answers([schedule_obligation(one, layout) for one in cases()], solver)
    verdict = {Answer.UNSAT: "proved", Answer.SAT: "refuted", Answer.UNKNOWN: "unknown"}
    wrong = [one for one, e, f in zip(cases(), expected, found, strict=True) if verdict[f] != e]
    assert wrong == []


FILES = ("schedule.smt2", "schedule-length.smt2", "schedule-run.smt2")


@cache
def by_hand(layout: str, without: frozenset[str] = frozenset()) -> list[Answer]:
    """What z3 answers for the schedules by hand, with conjuncts dropped."""
    return answers([schedule_obligation(one, layout, without) for one in BY_HAND], "z3")


@pytest.mark.parametrize("name", [name for file in FILES for name in conjuncts(encoding_text(file))])
def test_dropping_a_conjunct_is_noticed(name: str) -> None:
    assert any(by_hand(layout, frozenset([name])) != by_hand(layout) for layout in LAYOUTS)


@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_sixteen_devices(solver: str) -> None:
    inside = tuple(tuple(range(4 * node, 4 * node + 4)) for node in range(4))
    across = tuple(tuple(range(gpu, 16, 4)) for gpu in range(4))
    right = schedule(16, (RS, inside), (RS, across), (AG, across), (AG, inside))
    wrong = schedule(16, (RS, inside), (RS, across), (AG, across[:3]), (AG, inside))
    permuted = schedule(16, (RS, inside), (RS, across), (AG, inside), (AG, across))
    texts = [schedule_obligation(one, "identity") for one in (right, wrong, permuted)]
    assert [run_smtlib(text, solver, 120).answers for text in texts] == [(Answer.UNSAT,), (Answer.SAT,), (Answer.SAT,)]


def test_a_step_of_several_collectives() -> None:
    mixed = Schedule(4, ((Entry(AR, ((0, 1),)), Entry(REDUCE, ((3, 2),), (2,))), (Entry(AR, ((0, 2),)),)))
    full = Schedule(4, (*mixed.steps, (Entry(BROADCAST, ((0, 1, 2, 3),), (2,)),)))
    assert run(full).verdict == "proved" and run(mixed).verdict == "refuted"
    assert answers([schedule_obligation(full), schedule_obligation(mixed)], "z3") == [Answer.UNSAT, Answer.SAT]


def test_what_is_too_large_is_said() -> None:
    with pytest.raises(LimitReached, match="at most 32 devices"):
        schedule_obligation(schedule(64, (AR, (tuple(range(64)),))))
