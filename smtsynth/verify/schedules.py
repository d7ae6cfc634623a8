"""Schedules by two paths (model, section 5): the interpreter of buffers, and the same question put to SMT solvers.

The two share the schedule and nothing else; where they disagree, one of them is a bug of ours and no answer is given.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from smtsynth.encode.smtlib_schedule import schedule_obligation
from smtsynth.errors import InternalError, LimitReached
from smtsynth.meaning.buffers import Verdict, run
from smtsynth.model.schedule import Schedule
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import SMT_SOLVERS, run_smtlib

MAX_SOLVER_DEVICES = 16
SECONDS = 60.0  # that a solver gets; it takes a tenth of one

Layout = Literal["any", "identity"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a solver said of a question: `expected` is the answer that agrees with the interpreter."""

    solver: str
    question: str
    answer: Answer
    expected: Answer
    seconds: float
    reason: str | None = None


def installed_solvers() -> tuple[str, ...]:
    """The SMT solvers that can be asked."""
    return tuple(name for name in SMT_SOLVERS if name == "z3" or importlib.util.find_spec(name) is not None)


def obligation(schedule: Schedule, layout: Layout = "any") -> str | None:
    """The SMT-LIB question whose answer is `unsat` if the schedule is right; None where it is too large for solvers."""
    if schedule.devices > MAX_SOLVER_DEVICES:
        return None
    try:
        return schedule_obligation(schedule, layout)
    except LimitReached:
        return None


def ask(question: str, text: str, holds: bool, solvers: Sequence[str]) -> tuple[Asked, ...]:
    """Put a question to solvers, whose answer is to be `unsat` where what is claimed holds, else `sat`.

    Raises InternalError where a solver says the contrary. An `unknown` is passed on, with its reason.
    """
    expected, found = Answer.UNSAT if holds else Answer.SAT, []
    for solver in solvers:
        said = run_smtlib(text, solver, SECONDS)
        asked = Asked(solver, question, said.answers[0], expected, said.seconds, said.reason)
        if asked.answer not in (expected, Answer.UNKNOWN):
            raise InternalError(
                f"{solver} says {asked.answer} where the interpreter's verdict makes it {expected} ({question})"
            )
        found.append(asked)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Checked:
    """The interpreter's verdict, and what the solvers that were asked say of it: the same, or unknown."""

    verdict: Verdict
    asked: tuple[Asked, ...] = ()


def verify_schedule(
    schedule: Schedule, layout: Layout = "any", solvers: Sequence[str] = (), question: str = "schedule"
) -> Checked:
    """The verdict on a schedule that has passed check_schedule, checked by `solvers` up to 16 devices.

    Raises InternalError where a solver and the interpreter disagree.
    """
    verdict = run(schedule, layout)
    text = obligation(schedule, layout) if solvers and verdict.verdict != "unknown" else None
    if text is None:
        return Checked(verdict)
    return Checked(verdict, ask(question, text, verdict.verdict == "proved", solvers))
