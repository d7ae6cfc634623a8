"""Programs on a placement as schedules with the goal that they reach, parts assigned as they end (model, section 5)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from smtsynth.export.script import Script, script
from smtsynth.meaning.buffers import run, trace
from smtsynth.model.lowering import Lowering
from smtsynth.model.problem import Problem
from smtsynth.model.program import Collective, Program
from smtsynth.model.schedule import Entry, Group, Schedule
from smtsynth.verify.placed import lowered


def script_of(problem: Problem, lowering: Lowering, program: Program) -> Script:
    """The script of a program on a placement, with the problem's goal.

    A ReduceScatter may end with the parts at any devices of a group: the goal then lists these in the order of parts.
    """
    schedule = lowered(problem, lowering, program)
    if schedule.goal.collective is Collective.REDUCE_SCATTER and run(schedule).verdict == "refuted":
        schedule = _assigned(schedule)
    return script(schedule, program, lowering)


def _assigned(schedule: Schedule) -> Schedule:
    """The schedule with its split groups in the order of the parts that their devices end with, if each has one."""
    *_, last = trace(schedule)
    groups: list[Group] = []
    for group in schedule.split_groups:
        share = last.pieces // len(group)
        owners: dict[int, int] = {}
        for device in group:
            chunks = np.sort(last.state.chunks[last.state.cells(device)])
            if len(chunks) == share and chunks[0] % share == 0 and chunks[-1] - chunks[0] == share - 1:
                owners[int(chunks[0]) // share] = device
        if sorted(owners) != list(range(len(group))):
            return schedule
        groups.append(tuple(owners[part] for part in range(len(group))))
    split = tuple(groups)
    if schedule.goal.split:
        return replace(schedule, goal=replace(schedule.goal, split=split))
    return replace(schedule, goal=replace(schedule.goal, groups=split))


def replica_script(lowering: Lowering, program: Program) -> Script:
    """The script of one replica alone: ranks are the synthesis devices 0 to k - 1, the goal an AllReduce of all."""
    steps = tuple((Entry(step.collective, tuple(map(tuple, lowering.groups(step).tolist()))),) for step in program)
    return script(Schedule(math.prod(lowering.sizes), steps), program, lowering)
