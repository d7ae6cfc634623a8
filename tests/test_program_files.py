"""Program and schedule files (model, sections 4, 8 and 9): every way to write one, and what is wrong in others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from files_support import GOOD, NAMES, SCHEDULE, SPLIT, WORDS, put, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.interfaces.programs import (
    MAX_PROGRAM_STEPS,
    RawProgram,
    program_data,
    program_or_schedule_of,
    program_text,
    read_program_or_schedule,
    schedule_data,
    schedule_text,
)
from smtsynth.interfaces.yamltext import parse_data
from smtsynth.model.program import Collective, Program, instruction_set, show_program
from smtsynth.model.schedule import Entry, Goal, Schedule, check_schedule


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    devices = draw(st.integers(1, 12))

    def groups(pool: list[int]) -> tuple[tuple[int, ...], ...]:
        cuts = sorted(draw(st.sets(st.integers(0, len(pool)), min_size=1, max_size=4)) | {0})
        return tuple(tuple(pool[a:b]) for a, b in zip(cuts, cuts[1:], strict=False) if a < b)

    def roots(collective: Collective, found: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        rooted = collective in (Collective.REDUCE, Collective.BROADCAST) and draw(st.booleans())
        return tuple(draw(st.sampled_from(group)) for group in found) if rooted else ()

    steps = []
    for _ in range(draw(st.integers(0, 4))):
        pool = draw(st.permutations(range(devices)))
        cut = draw(st.integers(0, devices))
        step = []
        for part in (pool[:cut], pool[cut:])[: draw(st.integers(1, 2))]:
            collective, found = draw(st.sampled_from(Collective)), groups(part)
            step.append(Entry(collective, found, roots(collective, found)))
        steps.append(tuple(step))
    goal = Goal()
    if draw(st.booleans()):
        collective, found = draw(st.sampled_from(Collective)), groups(list(range(devices)))
        goal = Goal(collective, found, roots(collective, found))
    return check_schedule(Schedule(devices, tuple(steps), goal))


@settings(max_examples=100, deadline=None)
@given(schedules())
def test_a_written_schedule_reads_back(schedule: Schedule) -> None:
    assert program_or_schedule_of(parse_data(schedule_text(schedule), "f"), "f") == schedule
    as_json = json.dumps(schedule_data(schedule))
    assert program_or_schedule_of(parse_data(as_json, "f", is_json=True), "f") == schedule
    assert program_or_schedule_of(schedule_data(schedule), "f") == schedule


@st.composite
def programs(draw: st.DrawFn) -> tuple[tuple[str, ...], Program]:
    depth = draw(st.integers(1, 3))
    words = st.one_of(WORDS, st.sampled_from(["gpu.data", "gpu.shard", "node.data"]))
    names = ("root", *draw(st.lists(words, min_size=depth, max_size=depth, unique=True)))
    return names, tuple(draw(st.lists(st.sampled_from(instruction_set(depth)), max_size=5)))


@settings(max_examples=40, deadline=None)
@given(programs())
def test_a_written_program_reads_back(case: tuple[tuple[str, ...], Program]) -> None:
    names, program = case
    answer = {"status": "optimal", "program": program_data(program, names), "cost_seconds": 0.1, "blocked": []}
    for data in (
        parse_data(program_text(program, names), "f"),
        {"program": program_data(program, names)},
        parse_data(json.dumps(answer), "f", is_json=True),
        parse_data(json.dumps(answer), "f"),
    ):
        raw = program_or_schedule_of(data, "f")
        assert isinstance(raw, RawProgram)
        assert raw.resolve(names) == program
    if program:
        for data in (show_program(program, names), {"program": show_program(program, names)}):
            raw = program_or_schedule_of(data, "f")
            assert isinstance(raw, RawProgram) and raw.resolve(names) == program


def resolved(source: Path | str) -> Program:
    raw = read_program_or_schedule(source)
    assert isinstance(raw, RawProgram)
    return raw.resolve(NAMES)


def test_every_way_to_write_a_program(tmp_path: Path) -> None:
    program = resolved(SPLIT)
    assert show_program(program, NAMES) == SPLIT
    lines = SPLIT.replace("; ", "\n")
    listed = "program:\n" + "".join(f"  - {part}\n" for part in lines.split("\n"))
    mapped = "program:\n" + "".join(f"  - {json.dumps(step)}\n" for step in program_data(program, NAMES))
    for text in (SPLIT, f"# why\n{lines}  # last\n", f"program: {SPLIT}\n", listed, mapped, f"program: |\n  {SPLIT}\n"):
        assert resolved(put(tmp_path, text)) == program
    assert resolved(put(tmp_path, json.dumps(SPLIT), "p.json")) == program
    assert resolved(put(tmp_path, "program: []")) == ()


def test_the_answer_of_solve_brings_its_placement_along(tmp_path: Path) -> None:
    answer = {
        "status": "optimal",
        "program": program_data(resolved(SPLIT), NAMES),
        "placement": {"axes": ["data"], "matrix": [[4, 16]]},
        "hierarchy": "reduction",
        "layout": None,
    }
    raw = read_program_or_schedule(put(tmp_path, json.dumps(answer), "a.json"))
    assert isinstance(raw, RawProgram)
    assert (raw.matrix, raw.hierarchy) == ([[4, 16]], "reduction")
    assert raw.resolve(NAMES) == resolved(SPLIT)
    for nothing in ({"placement": None}, {"hierarchy": None}):
        less = read_program_or_schedule(put(tmp_path, json.dumps(answer | nothing), "a.json"))
        assert isinstance(less, RawProgram) and None in (less.matrix, less.hierarchy)
    line = refusal(read_program_or_schedule, put(tmp_path, '{"status": "infeasible",\n"program": null}', "a.json"))
    assert ":2: key program" in line and "infeasible" in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AllReduce(node)\n", ["step 1", "not an instruction"]),
        (f"{SPLIT}\nAllReduce(node, Inside)\n", [":2: step 4", "'Inside'", "InsideGroup, Parallel, Master"]),
        ("AllRduce(node, InsideGroup)\n", ["did you mean 'AllReduce'"]),
        ("program: hello", ["key program", "'hello'"]),
        ("program: 3", ["key program", "is 3"]),
        ("program:\n  - {collective: AllReduce, slice: node}\n", [":2: key program[0].form", "missing"]),
        ("program:\n  - {collective: AllReduce, slice: node, forms: Master}\n", [":2: key program[0].forms", "'form'"]),
        ("program:\n  - {collective: AllReduce, slice: 3, form: Master}\n", ["key program[0].slice", "is 3"]),
        ("program:\n  - {collective: AllReduce, slice: a, form: Master, ancestor: [b]}\n", ["ancestor", "a list"]),
        ("program: []\nsteps: []\n", ["key steps", "unknown"]),
        ("AllReduce(node, InsideGroup);" * (MAX_PROGRAM_STEPS + 1), ["too many steps"]),
        ("AllReduce(node, InsideGroup);" * 200_000, ["too long"]),
        ("AllReduce(node, InsideGroup" + " " * 500_000 + "x", ["not an instruction"]),
        (GOOD, ["a problem file"]),
        ("programm: []", ["did you mean 'program'"]),
        ("goal: {}", ["program", "missing"]),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_bad_programs_are_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    line = refusal(read_program_or_schedule, put(tmp_path, text))
    for word in words:
        assert word in line


def test_levels_are_checked_when_they_are_known(tmp_path: Path) -> None:
    text = "program:\n  - AllReduce(root, InsideGroup)\n  - {collective: Reduce, slice: rack, form: InsideGroup}\n"
    path = put(tmp_path, text)
    assert refusal(resolved, path).startswith(f"{path}:3: key program[1]: slice 'rack' is no level")
    assert "step 2: ancestor 'node' of Master is not above" in refusal(
        resolved, put(tmp_path, "AllReduce(root, InsideGroup); AllReduce(node, Master(node))")
    )
    assert "has an ancestor" in refusal(resolved, "AllReduce(node, InsideGroup(root))")


def test_the_schedule_of_section_8(tmp_path: Path) -> None:
    schedule = read_program_or_schedule(put(tmp_path, SCHEDULE))
    quads, pairs = ((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 4), (1, 5), (2, 6), (3, 7))
    assert schedule == Schedule(
        8,
        (
            (Entry(Collective.REDUCE_SCATTER, quads),),
            (Entry(Collective.ALL_REDUCE, pairs),),
            (Entry(Collective.ALL_GATHER, quads),),
        ),
    )


def test_goals_roots_and_mixed_steps(tmp_path: Path) -> None:
    text = (
        "devices: 4\nsteps:\n"
        "  - [{collective: Reduce, groups: [[0, 1]], roots: [1]}, {collective: AllReduce, groups: [[2, 3]]}]\n"
        "goal: {collective: Broadcast, roots: [3]}\n"
    )
    schedule = read_program_or_schedule(put(tmp_path, text))
    assert isinstance(schedule, Schedule)
    assert schedule.steps == ((Entry(Collective.REDUCE, ((0, 1),), (1,)), Entry(Collective.ALL_REDUCE, ((2, 3),))),)
    assert schedule.goal == Goal(Collective.BROADCAST, ((0, 1, 2, 3),), (3,))


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("devices: 8", "devices: true", "1: key devices", ["is true"]),
        ("devices: 8", "devices: 0", "1: key devices", ["is 0"]),
        ("devices: 8", f"devices: {2**20 + 1}", "1: key devices", [str(2**20)]),
        ("devices: 8", "devices: 7", "3: key steps[0]", ["no device 7", "0 to 6"]),
        ("devices: 8\n", "", "1: key devices", ["missing"]),
        ("[0,4]", "[0,0]", "4: key steps[1]", ["device 0 is there twice"]),
        ("[0,4]", "[0,1]", "4: key steps[1]", ["device 1 is there twice"]),
        ("[0,4]", "[]", "4: key steps[1]", ["empty"]),
        ("[0,4]", "[0,yes]", "4: key steps[1].groups[0][1]", ["is true"]),
        ("[0,4]", "[0,4.0]", "4: key steps[1].groups[0][1]", ["4.0"]),
        ("[0,4]", "[0,-4]", "4: key steps[1]", ["-4"]),
        ("[0,4]", "4", "4: key steps[1].groups[0]", ["is 4"]),
        ("[[0,4],[1,5],[2,6],[3,7]]", "3", "4: key steps[1].groups", ["is 3"]),
        ("AllReduce", "AllToAll", "4: key steps[1].collective", ["'AllToAll'", "Broadcast"]),
        ("[3,7]]", "[3,7]], roots: [0,1,2,3]", "4: key steps[1].roots", ["no roots"]),
        ("AllReduce, groups", "Reduce, roots: [0], groups", "4: key steps[1]", ["1 roots for 4 groups"]),
        ("AllReduce, groups", "Reduce, roots: [1,0,2,3], groups", "4: key steps[1]", ["root 1 is not in"]),
        ("AllReduce, groups", "Reduce, roots: [], groups", "4: key steps[1].roots", ["empty"]),
        ("AllReduce, groups", "AllReduce, group", "4: key steps[1].group", ["did you mean 'groups'"]),
        ("steps:", "goal: {groups: []}\nsteps:", "2: key goal.groups", ["empty"]),
        ("steps:", "goal: {groups: [[0, 0]]}\nsteps:", "2: key goal", ["twice"]),
        ("steps:", "goal: {roots: [0]}\nsteps:", "2: key goal.roots", ["no roots"]),
        ("steps:", "goal: 3\nsteps:", "2: key goal", ["is 3"]),
    ],
)
def test_bad_schedules_are_refused(tmp_path: Path, old: str, new: str, place: str, words: list[str]) -> None:
    assert old in SCHEDULE
    path = put(tmp_path, SCHEDULE.replace(old, new, 1))
    line = refusal(read_program_or_schedule, path)
    assert line.startswith(f"{path}:{place}: ")
    for word in words:
        assert word in line


def test_overlapping_entries_of_one_step_are_refused(tmp_path: Path) -> None:
    step = "[{collective: Reduce, groups: [[0, 1]]}, {collective: Reduce, groups: [[1, 2]]}]"
    path = put(tmp_path, f"devices: 4\nsteps:\n  - {step}\n")
    assert refusal(read_program_or_schedule, path).startswith(f"{path}:3: key steps[0]: device 1 is there twice")
