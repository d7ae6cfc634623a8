"""Verification where a placement is given (model, sections 3 and 5): goals per axis, programs as they are lowered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from smtsynth.errors import InputError
from smtsynth.meaning import rules
from smtsynth.meaning.buffers import Verdict
from smtsynth.meaning.goals import Target, run_rules, target_of
from smtsynth.model.lowering import ROW_MAJOR, Lowering, lower
from smtsynth.model.placement import Placement
from smtsynth.model.problem import Problem, Reduction
from smtsynth.model.program import Collective, Program
from smtsynth.model.schedule import Goal, Schedule
from smtsynth.model.system import System
from smtsynth.verify.assigned import BY_RULES, Judged, judge_assigned
from smtsynth.verify.schedules import Layout
from smtsynth.verify.symbolic import Proof, prove

PARTS = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


def goal_on(problem: Problem, placement: Placement) -> Goal:
    """What the problem's reduction must reach on the placement's devices: a group per replica, in synthesis order."""
    return _goal(problem.system, placement, problem.reduced, problem.reduction.collective, problem.split)


def goal_per_axis(system: System, placement: Placement, kinds: Mapping[str, Collective]) -> Goal:
    """The goal of a collective per axis: AllReduce over some and ReduceScatter over others (or one kind for all).

    Contributors must be complete over all these axes, and chunks end split over the scattered ones alone. Raises
    InputError for an axis that the placement hasn't, and for another mix.
    """
    names = [axis.name for axis in placement.axes]
    for axis in kinds:
        if axis not in names:
            raise InputError(f"there is no axis {axis!r}", expected=", ".join(names))
    try:
        reduction = Reduction(list(kinds), 1, kinds)
    except InputError as error:
        raise InputError(error.what, expected=error.expected) from None
    rows, split = ([names.index(axis) for axis in some] for some in (reduction.over, reduction.split))
    return _goal(system, placement, rows, reduction.collective, split)


def _goal(
    system: System, placement: Placement, rows: Sequence[int], collective: Collective, split: Sequence[int]
) -> Goal:
    groups = lower(system, placement, rows).replica_groups
    if collective is Collective.REDUCE_SCATTER and set(split) != set(rows):
        return Goal(collective, groups, split=lower(system, placement, split).replica_groups)
    return Goal(collective, groups)


def lowered(problem: Problem, lowering: Lowering, program: Program) -> Schedule:
    """The program on the placement's devices, with the problem's goal."""
    return replace(lowering.schedule(program), goal=goal_on(problem, lowering.placement))


def verify_lowered(problem: Problem, lowering: Lowering, program: Program, layout: Layout = "any") -> Verdict:
    """The verdict on a program on a placement: by the buffers, and where these leave it open by other means.

    Where chunks may end split, any assignment of chunks to parts is right by the rules; `layout` then lists the
    chunks part by part, for the first replica. What is too large for the buffers is proved for all sizes, or unknown.
    """
    return judge_lowered(problem, lowering, program, layout).verdict


def judge_lowered(problem: Problem, lowering: Lowering, program: Program, layout: Layout = "any") -> Judged:
    """As verify_lowered, with the schedule that has this verdict by the buffers alone, if there is one (see Judged)."""
    judged = judge_assigned(lowered(problem, lowering, program), layout)
    if judged.verdict.verdict == "proved":
        return judged
    reduction, refuted = problem.reduction, judged.verdict.verdict == "refuted"
    if refuted and (layout == "identity" or reduction.collective is not Collective.REDUCE_SCATTER):
        return judged
    target = target_of(lowering, reduction.collective, problem.split)
    if refuted:
        verdict = _split(program, target)
        return judged if verdict is None else Judged(verdict, None)
    # Parts are of the goal's groups, whose devices a hierarchy may have in another order, or only some of in a factor.
    ordered = reduction.collective not in PARTS or (lowering.hierarchy != ROW_MAJOR and not reduction.mixed)
    proof = prove(lowering.depth, program, target.aim) if all(target.reduced) else None
    if isinstance(proof, Proof):
        order = proof.layout if ordered else None
        if layout in ("any", order):
            return Judged(Verdict("proved", "right for factors of any sizes, by words of cuts", layout=order), None)
    return judged


def _split(program: Program, target: Target) -> Verdict | None:
    """The verdict where the rules say that every chunk is complete at some device of its own."""
    state = rules.run(program, target.sizes, target.start, target.reached)
    if isinstance(state, rules.Failure) or run_rules(program, target) is not None:
        return None
    found = target.assignment(state)
    assert found is not None
    order = tuple(sorted(range(target.size), key=lambda chunk: (found[0][chunk], chunk)))
    return Verdict("proved", BY_RULES, layout=order)


def describe_device(device: int, system: System, placement: Placement | None) -> str:
    """Where a device is: 'node 2, gpu 5; data 1, shard 5', the latter where a placement is given."""
    text = system.describe(device)
    if placement is None:
        return text
    places = [0] * len(placement.axes)
    for level, digit in enumerate(system.coordinates(device)):
        digits = []
        for row in reversed(placement.matrix):
            digit, own = divmod(digit, row[level])
            digits.append(own)
        for number, (own, row) in enumerate(zip(reversed(digits), placement.matrix, strict=True)):
            places[number] = places[number] * row[level] + own
    axes = (f"{axis.name} {place}" for axis, place in zip(placement.axes, places, strict=True))
    return f"{text}; {', '.join(axes)}"
