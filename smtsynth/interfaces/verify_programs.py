"""What `verify` does with a program over factors of any sizes."""

from __future__ import annotations

import math
from functools import partial

from smtsynth.errors import InputError
from smtsynth.interfaces.answers import Answer, ProgramDetail, Settings
from smtsynth.interfaces.factors import split_of
from smtsynth.meaning.goals import Aim
from smtsynth.model.program import Collective, Program, show_program
from smtsynth.verify.programs import (
    ProgramVerdict,
    Sizes,
    aim_over,
    judge_over,
    show_sizes,
    sizes_tried,
    verify_program,
)
from smtsynth.verify.schedules import MAX_SOLVER_DEVICES, Asked, Layout, obligation, verify_schedule

NO_QUESTION = "some device's chunks don't lie side by side, and there is a question only for parts that do"


def verify_any_sizes(program: Program, names: tuple[str, ...], settings: Settings) -> Answer:
    """The answer on a program over factors of any sizes. Raises InputError for a goal that there isn't over these."""
    depth = len(names) - 1
    collective, split = _goal(names, settings)
    aim = aim_over(depth, collective, split)
    verdict = verify_program(depth, program, settings.layout, settings.progress, collective, split)
    asked, unasked = _ask_small(program, aim, verdict, settings) if settings.solvers else ((), None)
    data = {
        "verdict": verdict.verdict,
        "reason": None if verdict.verdict == "proved" else verdict.reason,
        "step": verdict.step,
        "device": verdict.device,
        "chunk": verdict.chunk,
        "missing": list(verdict.missing) if verdict.verdict == "refuted" else None,
        "duplicated": list(verdict.duplicated) if verdict.verdict == "refuted" else None,
        "layout": verdict.layout,
        "sizes": {"proved": None, "refuted": list(verdict.fails), "unknown": list(verdict.holds)}[verdict.verdict],
    }
    return Answer(
        verdict.verdict,
        data,
        show_program(program, names),
        asked,
        partial(_program_questions, program, aim, settings.layout),
        ProgramDetail(program, names, verdict, aim, settings.layout),
        unasked,
    )


def _goal(names: tuple[str, ...], settings: Settings) -> tuple[Collective, tuple[int, ...]]:
    """The collective and the factors it ends split over, as the options have them."""
    split = () if settings.split is None else split_of(settings.split, names)
    word = settings.collective
    if word is None:
        word = Collective.REDUCE_SCATTER if split else Collective.ALL_REDUCE
    if word not in list(Collective):
        raise InputError(f"{word[:40]!r} is unknown", where="--collective", expected=", ".join(Collective))
    if split and word != Collective.REDUCE_SCATTER:
        raise InputError(f"doesn't go with {word}", where="--split", expected="--collective ReduceScatter, or none")
    return Collective(word), split


def _small_sizes(depth: int) -> list[Sizes]:
    """The factor sizes of 2 to 4 that solvers can be asked about."""
    return [sizes for same in sizes_tried(depth) for sizes in same if math.prod(sizes) <= MAX_SOLVER_DEVICES]


def _ask_small(
    program: Program, aim: Aim, verdict: ProgramVerdict, settings: Settings
) -> tuple[tuple[Asked, ...], str | None]:
    """What solvers say of the program on the smallest sizes that fail by the buffers, or on the smallest there are;
    and why they aren't asked, where it isn't for size."""
    fails = () if verdict.by_rules else verdict.fails
    asked: tuple[Asked, ...] = ()
    for sizes in fails[:1] or _small_sizes(aim.depth)[:1]:
        if math.prod(sizes) > MAX_SOLVER_DEVICES:
            continue
        schedule = judge_over(sizes, program, aim, settings.layout).schedule
        if schedule is None:
            return (), NO_QUESTION
        asked += verify_schedule(schedule, settings.layout, settings.solvers, show_sizes([sizes])).asked
    return asked, None


def _program_questions(program: Program, aim: Aim, layout: Layout) -> dict[str, str]:
    """The program's question on each size of at most 16 devices, as far as there is one."""
    found = {}
    for sizes in _small_sizes(aim.depth):
        schedule = judge_over(sizes, program, aim, layout).schedule
        text = None if schedule is None else obligation(schedule, layout)
        if text is not None:
            found[f"program-{'x'.join(map(str, sizes))}.smt2"] = text
    return found
