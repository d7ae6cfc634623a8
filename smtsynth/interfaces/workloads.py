"""Workload files: several reductions on one system, written out or made from a model's shape, and back to text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import yaml

from smtsynth.errors import InputError
from smtsynth.interfaces.choices import choice_data, choice_of
from smtsynth.interfaces.files import (
    MAX_PROBLEM_VALUES,
    is_workload,
    limits_data,
    limits_of,
    named_axes,
    problem_of,
    reduction_data,
    reduction_of,
    system_data,
    system_of,
)
from smtsynth.interfaces.nodes import Node
from smtsynth.interfaces.yamltext import Path, label, read_data
from smtsynth.model.choice import CostChoice
from smtsynth.model.placement import Axis
from smtsynth.model.problem import Limits, Problem
from smtsynth.model.system import MAX_DEVICES
from smtsynth.model.units import exact_text
from smtsynth.model.workload import MAX_COUNT, Constraint, NamedReduction, Pattern, Traffic, Workload
from smtsynth.workloads.known import MODELS, SHAPES, shape_of, step_of, training_of
from smtsynth.workloads.shape import MOST, Sizes, Training, is_flag
from smtsynth.workloads.step import Step

__all__ = ["is_workload", "read_problem_or_workload", "read_workload", "workload_of", "workload_text"]

MAX_ENTRIES = 256
PATTERNS = [str(pattern) for pattern in Pattern]
KINDS = "inside, or unsplit: true, or level and factor"


def read_workload(path: Path) -> Workload:
    """The workload of a YAML or JSON file ('-': standard input). InputError names file, line and key."""
    return workload_of(read_data(path, MAX_PROBLEM_VALUES), label(path))


def read_problem_or_workload(path: Path) -> Problem | Workload:
    """The problem or the workload of a file, by its keys: `reduce`, or `reductions` or `model`."""
    data = read_data(path, MAX_PROBLEM_VALUES)
    return workload_of(data, label(path)) if is_workload(data) else problem_of(data, label(path))


def workload_of(data: object, where: str) -> Workload:
    """The workload that plain data describes; `where` names its file in messages."""
    root = Node.root(data, where)
    if isinstance(data, dict) and "reduce" in data and not is_workload(data):
        what = "has `reductions` beside" if "reductions" in data else "is"
        one = "`reduce`" if "reductions" in data else "a problem of one reduction (`reduce`)"
        raise root.error(f"{what} {one}", "a workload: `reductions`, or `model`")
    made = isinstance(data, dict) and "model" in data
    for key in ("reductions", "traffic"):
        if made and isinstance(data, dict) and key in data:
            raise root.child(key).error("stands beside `model`, which makes it", "one of the two")
    keys = root.fields(
        ("system", "axes", *(["model"] if made else [])),
        ("constraints", "limits", "cost_model") + (() if made else ("reductions", "traffic")),
    )
    system = system_of(keys["system"])
    axes = named_axes(keys["axes"], system)
    limits = limits_of(keys["limits"]) if "limits" in keys else Limits()
    model = choice_of(keys["cost_model"]) if "cost_model" in keys else None
    levels = [level.name for level in system.levels]
    constraints = [_constraint(node, axes, levels) for node in _list(keys, "constraints", "a list of constraints")]
    if made:
        step = _model(keys["model"], keys["axes"], axes)
        try:
            return step.workload(system, axes, constraints, limits, model)
        except InputError as error:
            raise keys["model"].moved(error) from None
    reductions = [_reduction(node, axes) for node in _list(keys, "reductions", "a list of reductions")]
    traffic = [_traffic(node, axes) for node in _list(keys, "traffic", "a list of traffic")]
    if not reductions and ("reductions" in keys or not traffic):
        node = keys.get("reductions", root)
        raise node.error("a workload has no reductions" if node is root else "is empty", "at least one reduction")
    _own_names([*_list(keys, "reductions", ""), *_list(keys, "traffic", "")])
    try:
        return Workload(system, axes, reductions, traffic, constraints, limits, model)
    except InputError as error:
        raise root.moved(error) from None


def _list(keys: Mapping[str, Node], key: str, expected: str) -> Iterable[Node]:
    """The items of a key's list, none where the key is missing."""
    return keys[key].items(expected, MAX_ENTRIES) if key in keys else ()


def _own_names(nodes: Iterable[Node]) -> None:
    """InputError where two reductions or traffics have one name."""
    lines: dict[object, str] = {}
    for node in nodes:
        name = node.child("name")
        if name.value in lines:
            what = f"two entries are named {name.value!r}, the first at {lines[name.value]}"
            raise name.error(what, "a name of its own for each")
        lines[name.value] = node.path


def _reduction(node: Node, axes: tuple[Axis, ...]) -> NamedReduction:
    """One of `reductions`."""
    keys = node.fields(("name", "over", "bytes"), ("collective", "count"))
    name = keys["name"].text("the reduction's name")
    reduction = reduction_of(keys, axes)
    count = keys["count"].whole(1, MAX_COUNT) if "count" in keys else 1
    try:
        return NamedReduction(name, reduction, count)
    except InputError as error:
        raise keys["name"].moved(error) from None


def _traffic(node: Node, axes: tuple[Axis, ...]) -> Traffic:
    """One of `traffic`."""
    keys = node.fields(("name", "axis", "pattern", "bytes"), ("count",))
    name = keys["name"].text("the traffic's name")
    axis = keys["axis"].word([axis.name for axis in axes])
    pattern = keys["pattern"].word(PATTERNS)
    payload = keys["bytes"].amount("bytes", bare=True)
    count = keys["count"].whole(1, MAX_COUNT) if "count" in keys else 1
    try:
        return Traffic(name, axis, pattern, payload, count)
    except InputError as error:
        raise keys["name"].moved(error) from None


def _constraint(node: Node, axes: tuple[Axis, ...], levels: list[str]) -> Constraint:
    """One of `constraints`: an axis, and exactly one kind."""
    keys = node.fields(("axis",), ("inside", "unsplit", "level", "factor"))
    axis = keys["axis"].word([axis.name for axis in axes])
    found = [key for key in ("inside", "unsplit", "level", "factor") if key in keys]
    if found not in (["inside"], ["unsplit"], ["level", "factor"]):
        what = f"a constraint has {' and '.join(found)}" if found else "a constraint says nothing of the axis"
        raise node.error(what, f"{KINDS}, one of the three")
    if "inside" in keys:
        return Constraint(axis, inside=keys["inside"].word(levels))
    if "unsplit" in keys:
        if keys["unsplit"].truth() is not True:
            raise keys["unsplit"].error("is false", "true, or no such constraint")
        return Constraint(axis, unsplit=True)
    return Constraint(axis, level=keys["level"].word(levels), factor=keys["factor"].whole(1, MAX_DEVICES))


def _model(node: Node, axes_node: Node, axes: tuple[Axis, ...]) -> Step:
    """A ready-made step: the model's kind, its shape and training; the parallel sizes are the axes."""
    if "kind" not in node.keys("a mapping with the key kind, and the model's shape"):
        raise InputError("is missing", where=f"{node.where}.kind", expected=f"one of {', '.join(SHAPES)}")
    kind = node.child("kind").word(list(SHAPES))
    ours = {one.name: one for one in (*fields(SHAPES[kind]), *fields(Training))}
    keys = node.fields(("kind",), ("like", *ours))
    like = keys["like"].word(list(MODELS[kind])) if "like" in keys else None
    given: dict[str, Any] = {}
    for name, one in ours.items():
        if name in keys:
            given[name] = keys[name].truth() if is_flag(one) else keys[name].whole(one.metadata["least"], MOST)
    trained = {one.name for one in fields(Training)}
    try:
        shape = shape_of(kind, like, {name: value for name, value in given.items() if name not in trained})
        training = training_of({name: value for name, value in given.items() if name in trained})
        return step_of(kind, shape, Sizes.of({axis.name: axis.size for axis in axes}), training)
    except InputError as error:
        names = [axis.name for axis in axes]
        if error.where in keys:
            raise keys[error.where].moved(error) from None
        if error.where == "axes" or error.where in names:
            raise (axes_node if error.where == "axes" else axes_node.child(error.where or "")).moved(error) from None
        raise InputError(error.what, where=f"{node.where}.{error.where}", expected=error.expected) from None


def workload_text(workload: Workload, notes: Mapping[str, str] | None = None, head: Iterable[str] = ()) -> str:
    """The workload as a YAML file's text, which reads back as the same; `notes` (by name) and `head` as comments.

    Raises InputError where a quantity has no short decimal.
    """
    lines = [line for text in head for line in _comment(text, "")]
    lines += _flow("system", system_data(workload.system))
    lines.append("axes: " + _inline({axis.name: axis.size for axis in workload.axes}))
    reductions = [
        {"name": one.name} | reduction_data(one.reduction) | {"count": one.count} for one in workload.reductions
    ]
    traffic = [
        {
            "name": one.name,
            "axis": one.axis,
            "pattern": str(one.pattern),
            "bytes": exact_text(one.payload, "bytes"),
            "count": one.count,
        }
        for one in workload.traffic
    ]
    lines += _entries("reductions", reductions, notes or {}) + _entries("traffic", traffic, notes or {})
    lines += _entries("constraints", [_constraint_data(one) for one in workload.constraints], {})
    lines += [f"{key}: {_inline(value)}" for key, value in limits_data(workload.limits).items()]
    if workload.cost_model != CostChoice():
        lines.append(f"cost_model: {_inline(choice_data(workload.cost_model))}")
    return "\n".join(lines) + "\n"


def _constraint_data(one: Constraint) -> dict[str, Any]:
    kinds: dict[str, Any] = {"inside": one.inside, "unsplit": one.unsplit, "level": one.level, "factor": one.factor}
    return {"axis": one.axis} | {key: value for key, value in kinds.items() if value not in (None, False)}


def _inline(data: Any) -> str:
    """Data in one line."""
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=True, width=10**9).strip()


def _flow(key: str, data: dict[str, Any]) -> list[str]:
    """A key's mapping, a line for each entry of the lists in it."""
    text = yaml.safe_dump({key: data}, sort_keys=False, default_flow_style=None, width=10**9)
    return text.rstrip("\n").split("\n")


def _entries(key: str, entries: list[dict[str, Any]], notes: Mapping[str, str]) -> list[str]:
    """A key's list, an entry a line, each with its note above."""
    lines = [f"{key}:"] if entries else []
    for entry in entries:
        if entry.get("name") in notes:
            lines += _comment(notes[entry["name"]], "  ")
        lines.append(f"  - {_inline(entry)}")
    return lines


def _comment(text: str, indent: str) -> list[str]:
    """A text as comment lines."""
    start = f"{indent}# "
    return textwrap.wrap(text, 112, initial_indent=start, subsequent_indent=f"{start}  ", break_on_hyphens=False)
