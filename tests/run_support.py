"""What the tests of exported programs and of runs share: scripts of programs, and a skip where a library is missing."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from functools import cache
from typing import NoReturn

import pytest

from smtsynth import (
    InputError,
    Level,
    Lowering,
    Problem,
    Reduction,
    Schedule,
    System,
    enumerate_programs,
    lower,
    parse_program,
    placements,
)
from smtsynth.execute.launch import check_backend
from smtsynth.execute.run import Ran
from smtsynth.export.goals import script_of
from smtsynth.export.script import Script, script
from smtsynth.model.program import Program
from smtsynth.model.schedule import Entry, Goal

SPLIT = "ReduceScatter(l0, InsideGroup); AllReduce(l0, Parallel(root)); AllGather(l0, InsideGroup)"
SWAPPED = (  # gathers in another order than it scatters
    "ReduceScatter(l0, InsideGroup); ReduceScatter(l0, Parallel(root)); "
    "AllGather(l0, InsideGroup); AllGather(l0, Parallel(root))"
)
LEADERS = "Reduce(l0, InsideGroup); AllReduce(l0, Master(root)); Broadcast(l0, InsideGroup)"


def system(*sizes: int) -> System:
    """Levels l0, l1, … of these sizes."""
    return System([Level(f"l{number}", size, "8 GB/s", "3 us") for number, size in enumerate(sizes)])


def whole(*sizes: int, collective: str = "AllReduce") -> tuple[Problem, Lowering]:
    """One axis over all devices."""
    found = system(*sizes)
    problem = Problem(found, {"data": found.devices}, Reduction(["data"], "1 MiB", collective))
    return problem, lower(problem, placements(found, problem.axes)[0])


def all_programs(problem: Problem, lowering: Lowering, instruction_set: str = "full") -> list[Program]:
    """Every program within the default step limit."""
    return [program for _, program in enumerate_programs(problem, lowering.placement, instruction_set=instruction_set)]


def scripts(sizes: Sequence[int], instruction_set: str = "full", sample: int | None = None) -> list[Script]:
    """Scripts of all programs over factors of these sizes, or of a seeded sample of them."""
    problem, lowering = whole(*sizes)
    programs = all_programs(problem, lowering, instruction_set)
    if sample is not None:
        programs = random.Random(f"{sizes} {instruction_set}").sample(programs, sample)
    return [script_of(problem, lowering, program) for program in programs]


@cache
def hierarchy_scripts() -> dict[str, list[Script]]:
    """By hierarchy, a seeded sample of the programs of two axes on 2 x 4, over one of them and over both."""
    found: dict[str, list[Script]] = {}
    for over in (["data"], ["data", "tensor"]):
        problem = Problem(system(2, 4), {"data": 4, "tensor": 2}, Reduction(over, "1 MiB"))
        for placement in placements(problem.system, problem.axes):
            for name in ("reduction", "reduction-factors", "reduction-row-major", "rows", "columns"):
                lowering = lower(problem, placement, name)
                every = enumerate_programs(problem, placement, hierarchy=name, steps=4)
                for _, program in random.Random(f"{over} {placement} {name}").sample(every, min(2, len(every))):
                    found.setdefault(name, []).append(script_of(problem, lowering, program))
    return found


def one_script(text: str, *sizes: int) -> Script:
    """The script of short text."""
    problem, lowering = whole(*sizes)
    return script_of(problem, lowering, parse_program(text, lowering.names))


def plain(devices: int, *steps: Entry, goal: Goal | None = None) -> Script:
    """The script of a schedule of single entries."""
    return script(Schedule(devices, tuple((entry,) for entry in steps), goal or Goal()))


def need(backend: str) -> None:
    """Skip where what the backend needs isn't installed."""
    try:
        check_backend(backend)
    except InputError as error:
        missing(str(error))


def missing(reason: str) -> NoReturn:
    """Skip: what a test needs isn't installed. Fail where SMTSYNTH_EXTRAS says that all of it is."""
    if os.environ.get("SMTSYNTH_EXTRAS"):
        pytest.fail(reason)
    pytest.skip(reason)


def assert_right(ran: Sequence[Ran]) -> None:
    """Every program ran right, as was proved."""
    wrong = [(one.script.wording, one.outcome, one.reason) for one in ran if one.outcome != "right"]
    assert not wrong, wrong[:3]
    assert all(one.agrees for one in ran)
