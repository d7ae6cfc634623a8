"""Replay before a program is shown (model, section 7): by the rules and the buffers, or symbolically when large."""

from __future__ import annotations

from dataclasses import dataclass

from smtsynth.errors import InternalError
from smtsynth.meaning import buffers, rules
from smtsynth.meaning.words import run_words
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Program
from smtsynth.model.schedule import Entry, Goal, Schedule

MAX_CONCRETE = 1024  # devices per replica; above, the size-free meaning replays

Layout = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """Whether the program reached the goal; if not, the length of its shortest failing prefix and why."""

    ok: bool
    prefix: int = 0
    reason: str = ""
    layout: Layout | None = None


def replay(lowering: Lowering, program: Program) -> Replay:
    """Run the program by the rules and the buffers (above MAX_CONCRETE devices by words of cuts).

    Raises InternalError where the rules accept what the buffers refute.
    """
    reduced = [bool(factor.reduced) for factor in lowering.factors]
    if lowering.size > MAX_CONCRETE:
        words = run_words(lowering.depth, program, reduced)
        return Replay(True) if words.proved else Replay(False, words.step or len(program), words.reason)
    failure = rules.replay(program, lowering.sizes, reduced)
    if failure is not None:
        return Replay(False, failure.step or len(program), str(failure))
    verdict = buffers.run(one_replica(lowering, program))
    if verdict.verdict == "refuted":
        raise InternalError(f"the rules accept a program that the buffers refute: {verdict.reason}")
    return Replay(True, layout=verdict.layout)


def one_replica(lowering: Lowering, program: Program) -> Schedule:
    """The program as a schedule of synthesis devices 0..k-1, with the goal of the reduced factors."""
    steps = tuple((Entry(one.collective, rules.instruction_groups(lowering.sizes, one)),) for one in program)
    goal = rules.complete(lowering.sizes, [bool(factor.reduced) for factor in lowering.factors])
    groups = dict.fromkeys(tuple(rules.members(state[0][1])) for state in goal)
    return Schedule(lowering.size, steps, Goal(groups=tuple(groups)))
