"""Replay before a program is shown (model, section 7): by the rules and the buffers, or symbolically when large."""

from __future__ import annotations

from dataclasses import dataclass

from smtsynth.errors import InternalError
from smtsynth.meaning import buffers, rules
from smtsynth.meaning.goals import Target, run_rules, target_of
from smtsynth.meaning.words import run_words
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Program
from smtsynth.model.schedule import Entry, Goal, Schedule

MAX_CONCRETE = 1024  # devices per replica; above, the size-free meaning replays

Layout = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """Whether the program reached the goal; if not, the length of its shortest failing prefix and why.

    unfinished: every step ran, but the goal was not reached, so that a longer program may be right.
    """

    ok: bool
    prefix: int = 0
    reason: str = ""
    layout: Layout | None = None
    unfinished: bool = False


def replay(lowering: Lowering, program: Program, target: Target | None = None) -> Replay:
    """Run the program to its target (default: the AllReduce of the lowering) by the rules and the buffers.

    Above MAX_CONCRETE devices by words of cuts. Raises InternalError where the rules accept what the buffers refute.
    """
    target = target or target_of(lowering)
    if lowering.size > MAX_CONCRETE:
        words = run_words(lowering.depth, program, aim=target.aim)
        return Replay(True) if words.proved else _failed(program, words.step, words.reason)
    failure = run_rules(program, target)
    if failure is not None:
        return _failed(program, failure.step, str(failure))
    schedule = one_replica(program, target)
    if target.collective is Collective.REDUCE_SCATTER:
        *_, end = buffers.trace(schedule)
        wrong = buffers.incomplete(schedule, end)
        if wrong is not None:
            raise InternalError(f"the rules accept a program that the buffers refute: device {wrong} holds part sums")
        return Replay(True)
    verdict = buffers.run(schedule)
    if verdict.verdict == "refuted":
        raise InternalError(f"the rules accept a program that the buffers refute: {verdict.reason}")
    return Replay(True, layout=verdict.layout)


def _failed(program: Program, step: int | None, reason: str) -> Replay:
    return Replay(False, step or len(program), reason, unfinished=step is None)


def one_replica(program: Program, target: Target) -> Schedule:
    """The program as a schedule of synthesis devices 0..k-1, with the target as its goal."""
    steps = tuple((Entry(one.collective, rules.instruction_groups(target.sizes, one)),) for one in program)
    groups = dict.fromkeys(tuple(device for part in parts for device in part) for parts in target.parts)
    scatters = target.collective is Collective.REDUCE_SCATTER  # which part goes where is the assignment's, not order's
    collective = Collective.ALL_REDUCE if scatters else target.collective
    return Schedule(target.size, steps, Goal(collective, groups=tuple(tuple(sorted(group)) for group in groups)))
