"""Program and schedule files (model, sections 4, 5, 8 and 9): reading either, and their JSON forms."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from smtsynth.errors import InputError
from smtsynth.interfaces.nodes import Node
from smtsynth.interfaces.tables import shown
from smtsynth.interfaces.yamltext import Path, is_json, label, parse_data, read_text
from smtsynth.model.program import CALL, Collective, Form, Program, instruction_of
from smtsynth.model.schedule import ROOTED, Entry, Goal, Group, Schedule, Step, check_schedule

MAX_SCHEDULE_DEVICES = 2**20
MAX_PROGRAM_STEPS = 4096
MAX_AXES = 16
COLLECTIVES = [str(collective) for collective in Collective]
FORMS = [str(form) for form in Form]

CALL_EXAMPLE = "Collective(slice, Form) or Collective(slice, Form(ancestor))"

_LOOKS_LIKE_CALL = re.compile(r"\s*\w+\s*\(")


@dataclass(frozen=True, slots=True)
class RawStep:
    """One step as a file has it: where it stands, and its four words."""

    where: str
    collective: str
    slice: str
    form: str
    ancestor: str | None


@dataclass(frozen=True, slots=True)
class RawProgram:
    """A program whose slices and ancestors are still names: only a lowering knows the depths they stand for.

    matrix, hierarchy and listed: those of the answer of solve it was taken from, else None (the matrix, and the
    schedule it lists, unchecked).
    """

    steps: tuple[RawStep, ...]
    matrix: Any = None
    hierarchy: str | None = None
    listed: Node | None = None

    def resolve(self, names: Sequence[str]) -> Program:
        """The program over depth names `names` ('root' first). Raises InputError naming the step's place."""
        program = []
        for step in self.steps:
            try:
                program.append(instruction_of(step.collective, step.slice, step.form, step.ancestor, names))
            except InputError as error:
                raise InputError(error.what, where=step.where, expected=error.expected) from None
        return tuple(program)


@dataclass(frozen=True, slots=True)
class MixedSchedule:
    """A schedule whose goal is a collective per axis: only a placement knows the groups. `where` is the goal's place.

    The schedule's own goal is the default one.
    """

    schedule: Schedule
    kinds: tuple[tuple[str, Collective], ...]
    where: str


def read_program_or_schedule(path: Path) -> RawProgram | Schedule:
    """The program or the schedule that a file holds ('-': standard input); InputError names file, line and key.

    Taken: `program:` with mappings or short text, a schedule, the answer of `solve --json` (its program), a file of
    short text, and short text itself in place of a file name. A goal per axis is left out.
    """
    found = read_verifiable(path)
    return found.schedule if isinstance(found, MixedSchedule) else found


def read_verifiable(path: Path) -> RawProgram | Schedule | MixedSchedule:
    """As read_program_or_schedule, with a schedule's goal as it is given."""
    found = read_words(path)
    return found if isinstance(found, RawProgram) else program_or_schedule_of(found, label(path))


def read_words(path: Path) -> object:
    """The RawProgram of short text or of a file of it; of any other file the plain data."""
    name = str(path)
    if _LOOKS_LIKE_CALL.match(name) and not os.path.exists(name):
        return _short_text(name, "program")
    text = read_text(path)
    plain = re.sub(r"(?m)(^|[ \t])#.*$", "", text)
    if _LOOKS_LIKE_CALL.match(plain):
        return _short_text(plain, label(path))
    return parse_data(text, label(path), is_json=is_json(path))


def program_or_schedule_of(data: object, where: str) -> RawProgram | Schedule | MixedSchedule:
    """The program or the schedule that plain data describes; `where` names its file in messages."""
    root = Node.root(data, where)
    if isinstance(data, str):
        return _short_text(data, where)
    keys = root.keys("a program (key program), a schedule (keys devices, steps) or the output of solve --json")
    if "program" in keys and "status" in keys:
        return _answer(root)
    if "program" in keys:
        return _program(root.fields(("program",))["program"])
    if "devices" in keys or "steps" in keys:
        return _schedule(root)
    if "reductions" in keys and "status" in keys:
        raise root.error("is the answer of a workload", "a program of one reduction")
    if "system" in keys:
        raise root.error("is a problem file", "a program or a schedule")
    root.fields(("program",), ("devices", "steps", "goal"))
    raise root.error("holds no program and no schedule", "the key program, or devices and steps")


def _answer(root: Node) -> RawProgram:
    """The program of an answer of solve, with its placement and hierarchy where the answer has them."""
    found = root.child("program")
    if found.value is None:
        raise found.error(f"there is none in this answer (status {shown(root.child('status').value)})", "a program")
    program, keys, matrix, hierarchy = _program(found), root.keys("an answer of solve"), None, None
    if "placement" in keys and root.child("placement").value is not None:
        placement = root.child("placement")
        if "matrix" in placement.keys("a mapping with the keys axes, matrix"):
            matrix = placement.child("matrix").value
    if "hierarchy" in keys and root.child("hierarchy").value is not None:
        hierarchy = root.child("hierarchy").text("a hierarchy")
    listed = root.child("schedule") if "schedule" in keys and root.child("schedule").value is not None else None
    return replace(program, matrix=matrix, hierarchy=hierarchy, listed=listed)


def listed_steps(listed: Node, devices: int) -> tuple[Step, ...]:
    """The steps of the schedule that an answer of solve lists."""
    return _steps(listed, devices)


def _short_text(text: str, where: str) -> RawProgram:
    """Steps of short text, split at semicolons and line ends."""
    if not text.strip():
        raise InputError("is empty", where=where, expected=f"steps such as {CALL_EXAMPLE}")
    if text.count(";") + text.count("\n") > 4 * MAX_PROGRAM_STEPS:
        raise InputError("is too long", where=where, expected=f"at most {MAX_PROGRAM_STEPS} steps")
    several = "\n" in text.strip()
    steps: list[RawStep] = []
    for number, line in enumerate(text.split("\n"), 1):
        for part in line.split(";"):
            if part.strip():
                place = f"{where}:{number}" if several else where
                steps.append(_call(part.strip(), f"{place}: step {len(steps) + 1}"))
                _count(steps, where)
    return RawProgram(tuple(steps))


def _count(steps: Sequence[RawStep], where: str) -> None:
    """InputError where a program has more steps than any has."""
    if len(steps) > MAX_PROGRAM_STEPS:
        raise InputError("has too many steps", where=where, expected=f"at most {MAX_PROGRAM_STEPS}")


def _call(part: str, where: str) -> RawStep:
    """A step of short text."""
    match = CALL.fullmatch(part) if len(part) <= 400 else None
    if match is None:
        raise InputError(f"{shown(part)} is not an instruction", where=where, expected=CALL_EXAMPLE)
    collective, slice_, form, ancestor = (Node(word, where) for word in match.groups())
    return _step(where, collective, slice_, form, ancestor)


def _step(where: str, collective: Node, slice_: Node, form: Node, ancestor: Node | None) -> RawStep:
    """A step of four words, as far as they can be checked without a lowering."""
    level = "a level name or root"
    above = None if ancestor is None or ancestor.value is None else ancestor.text(level)
    return RawStep(where, collective.word(COLLECTIVES), slice_.text(level), form.word(FORMS), above)


def _program(node: Node) -> RawProgram:
    """The value of `program`: short text, or a list of mappings and short texts."""
    if isinstance(node.value, str):
        return _short_text(node.value, node.where)
    steps: list[RawStep] = []
    for item in node.items("a list of steps, or their short text"):
        if isinstance(item.value, str):
            steps += _short_text(item.value, item.where).steps
        else:
            keys = item.fields(("collective", "slice", "form"), ("ancestor",))
            steps.append(_step(item.where, keys["collective"], keys["slice"], keys["form"], keys.get("ancestor")))
        _count(steps, node.where)
    return RawProgram(tuple(steps))


def _steps(listed: Node, devices: int) -> tuple[Step, ...]:
    """The steps of a schedule, each checked where it stands."""
    steps: list[Step] = []
    for node in listed.items("a list of steps"):
        entries = node.items("a list of entries") if isinstance(node.value, (list, tuple)) else iter([node])
        step = tuple(_entry(entry) for entry in entries)
        _check(Schedule(devices, (step,)), node)
        steps.append(step)
    return tuple(steps)


def _schedule(root: Node) -> Schedule | MixedSchedule:
    """A schedule, every step checked where it stands."""
    keys = root.fields(("devices", "steps"), ("goal",))
    devices = keys["devices"].whole(1, MAX_SCHEDULE_DEVICES)
    steps = _steps(keys["steps"], devices)
    goal = Goal()
    if "goal" in keys:
        kinds = _kinds(keys["goal"])
        if kinds is not None:
            return MixedSchedule(Schedule(devices, steps), kinds, keys["goal"].where)
        goal = _goal(keys["goal"], devices)
        _check(Schedule(devices, (), goal), keys["goal"])
    return Schedule(devices, steps, goal)


def _kinds(node: Node) -> tuple[tuple[str, Collective], ...] | None:
    """The goal's collective per axis, or None where it is one collective for all."""
    keys = node.keys("a mapping with the keys collective, groups, roots, split")
    if "collective" not in keys or not isinstance(node.child("collective").value, dict):
        return None
    entries = node.fields(("collective",))["collective"].entries("a collective for each axis", MAX_AXES)
    return tuple((axis, Collective(kind.word(COLLECTIVES))) for axis, kind in entries.items())


def _check(schedule: Schedule, node: Node) -> None:
    """check_schedule, with its complaint said of `node`."""
    try:
        check_schedule(schedule)
    except InputError as error:
        raise node.moved(error) from None


def _entry(node: Node) -> Entry:
    """One collective over groups of devices."""
    keys = node.fields(("collective", "groups"), ("roots",))
    collective = Collective(keys["collective"].word(COLLECTIVES))
    return Entry(collective, _groups(keys["groups"]), _roots(keys, collective))


def _goal(node: Node, devices: int) -> Goal:
    """The goal; roots without groups speak of one group of all devices."""
    keys = node.fields((), ("collective", "groups", "roots", "split"))
    collective = Collective.ALL_REDUCE
    if "collective" in keys:
        collective = Collective(keys["collective"].word(COLLECTIVES))
    groups = _groups(keys["groups"]) if "groups" in keys else ()
    if "groups" in keys and not groups:
        raise keys["groups"].error("is empty", "at least one group")
    roots = _roots(keys, collective)
    if roots and not groups:
        groups = (tuple(range(devices)),)
    return Goal(collective, groups, roots, _groups(keys["split"]) if "split" in keys else ())


def _are_ids(value: object) -> TypeGuard[list[int]]:
    """Whether a value is a list of whole numbers (true is none)."""
    return isinstance(value, (list, tuple)) and set(map(type, value)) <= {int}


def _ids(node: Node, expected: str) -> Group:
    """A list of device ids."""
    if _are_ids(node.value):
        return tuple(node.value)
    for item in node.items(expected):
        item.whole(0, MAX_SCHEDULE_DEVICES)
    raise node.error("is no list of devices", expected)


def _groups(node: Node) -> tuple[Group, ...]:
    """A list of groups; nodes are made only for what is wrong, as there can be many."""
    expected = "a list of groups, each a list of device numbers"
    if not isinstance(node.value, (list, tuple)):
        raise node.error(f"is {shown(node.value)}", expected)
    return tuple(
        tuple(group) if _are_ids(group) else _ids(node.item(number), "a list of device numbers")
        for number, group in enumerate(node.value)
    )


def _roots(keys: dict[str, Node], collective: Collective) -> Group:
    """The roots of an entry or a goal, one per group; none where the key is absent."""
    if "roots" not in keys:
        return ()
    if collective not in ROOTED:
        raise keys["roots"].error(f"{collective} has no roots", "roots on Reduce or Broadcast")
    roots = _ids(keys["roots"], "a list of device numbers, one per group")
    if not roots:
        raise keys["roots"].error("is empty", "one device per group")
    return roots


def program_data(program: Program, names: Sequence[str]) -> list[dict[str, str | None]]:
    """A program's JSON form (model, section 9); names: depth names, 'root' first."""
    return [
        {
            "collective": str(step.collective),
            "slice": names[step.slice],
            "form": str(step.form),
            "ancestor": None if step.ancestor is None else names[step.ancestor],
        }
        for step in program
    ]


def schedule_data(schedule: Schedule) -> dict[str, Any]:
    """A schedule's JSON form (model, section 8); the goal is left out where it is the default."""
    steps: list[Any] = []
    for step in schedule.steps:
        entries = [_entry_data(entry) for entry in step]
        steps.append(entries[0] if len(entries) == 1 else entries)
    data: dict[str, Any] = {"devices": schedule.devices, "steps": steps}
    goal = schedule.goal
    if goal != Goal():
        data["goal"] = _entry_data(goal)
        if not goal.groups:
            del data["goal"]["groups"]
    return data


def _entry_data(entry: Entry | Goal) -> dict[str, Any]:
    """An entry or a goal as plain data."""
    data: dict[str, Any] = {"collective": str(entry.collective), "groups": [list(group) for group in entry.groups]}
    if entry.roots:
        data["roots"] = list(entry.roots)
    if isinstance(entry, Goal) and entry.split:
        data["split"] = [list(group) for group in entry.split]
    return data


def _flow(entry: dict[str, Any]) -> str:
    """An entry on one line of YAML."""
    words = {key: value if isinstance(value, str) else json.dumps(value) for key, value in entry.items()}
    return "{" + ", ".join(f"{key}: {word}" for key, word in words.items()) + "}"


def schedule_text(schedule: Schedule) -> str:
    """A schedule as a YAML file's text, a step a line."""
    data = schedule_data(schedule)
    lines = [f"devices: {data['devices']}", "steps:" if data["steps"] else "steps: []"]
    for step in data["steps"]:
        lines.append(f"  - {_flow(step)}" if isinstance(step, dict) else f"  - [{', '.join(map(_flow, step))}]")
    if "goal" in data:
        lines.append(f"goal: {_flow(data['goal'])}")
    return "\n".join(lines) + "\n"


def program_text(program: Program, names: Sequence[str]) -> str:
    """A program as a YAML file's text, an instruction a line."""
    steps = program_data(program, names)
    return "\n".join(["program:", *(f"  - {json.dumps(step)}" for step in steps)] if steps else ["program: []"]) + "\n"
