"""Problem files (model, section 8): reading them into problems, and writing files."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import yaml

from smtsynth.errors import InputError, check_type
from smtsynth.interfaces.choices import choice_data, choice_of
from smtsynth.interfaces.nodes import Node
from smtsynth.interfaces.wirings import level_sizes, topology_data, topology_of
from smtsynth.interfaces.yamltext import Path, label, read_data
from smtsynth.model.choice import CostChoice
from smtsynth.model.placement import Axis, check_axes
from smtsynth.model.presets import find_preset, preset, preset_names
from smtsynth.model.problem import MAX_STEPS, Limits, Problem, Reduction
from smtsynth.model.program import Collective
from smtsynth.model.system import KINDS, MAX_DEVICES, UNWIRED, Level, System
from smtsynth.model.units import exact_text

MAX_PROBLEM_VALUES = 2**16
MAX_LEVELS = 16
MAX_AXES = 16
COLLECTIVES = [str(collective) for collective in Collective]
WORKLOAD_KEYS = ("reductions", "traffic", "constraints", "model")  # of a workload, not of a problem


def read_problem(path: Path) -> Problem:
    """The problem of a YAML or JSON file ('-': standard input). InputError names file, line and key."""
    check_type(path, (str, os.PathLike), "file", "a path")
    return problem_of(read_data(path, MAX_PROBLEM_VALUES), label(path))


def problem_of(data: object, where: str) -> Problem:
    """The problem that plain data describes (model, section 8); `where` names its file in messages."""
    root = Node.root(data, where)
    if is_workload(data):
        raise root.error("holds several reductions (a workload)", "a problem with one `reduce`; solve takes workloads")
    both = [key for key in WORKLOAD_KEYS if isinstance(data, dict) and key in data]
    if both:
        raise root.error(f"has `{both[0]}` beside `reduce`", "a problem with `reduce`, or a workload without")
    keys = root.fields(("system", "axes", "reduce"), ("limits", "cost_model"))
    system = system_of(keys["system"])
    axes = named_axes(keys["axes"], system)
    reduction = reduction_of(keys["reduce"].fields(("over", "bytes"), ("collective",)), axes)
    limits = limits_of(keys["limits"]) if "limits" in keys else Limits()
    return Problem(system, axes, reduction, limits, choice_of(keys["cost_model"]) if "cost_model" in keys else None)


def is_workload(data: object) -> bool:
    """Whether a file's data is that of a workload (several reductions), rather than of a problem."""
    return isinstance(data, dict) and "reduce" not in data and any(key in data for key in WORKLOAD_KEYS)


def system_of(node: Node) -> System:
    """A system: its levels, or a preset and other sizes for some of its levels."""
    if "preset" in node.keys("a mapping with the key levels, or preset"):
        keys = node.fields(("preset",), ("sizes",))
        name = keys["preset"].word(preset_names())
        sizes: dict[str, int] = {}
        if "sizes" in keys:
            for level, size in keys["sizes"].fields((), tuple(find_preset(name).sizes)).items():
                sizes[level] = size.whole(1, MAX_DEVICES)
                try:
                    preset(name, {level: sizes[level]})
                except InputError as error:
                    raise size.moved(error) from None
        try:
            return preset(name, sizes)
        except InputError as error:
            raise node.moved(error) from None
    keys = node.fields(("levels",), ("overhead", "copy", "topology"))
    overhead = keys["overhead"].amount("seconds", zero=True) if "overhead" in keys else Fraction(0)
    copy = keys["copy"].amount("bytes/s") if "copy" in keys else None
    wired = "topology" in keys
    found = [_level(level, wired) for level in keys["levels"].items("a list of levels, outermost first", MAX_LEVELS)]
    topology = topology_of(keys["topology"], level_sizes(found)) if wired else None
    try:
        return System(found, overhead, copy=copy, topology=topology)
    except InputError as error:
        raise keys["topology" if error.where == "topology" else "levels"].moved(error) from None


def _level(node: Node, wired: bool) -> Level:
    """One level; with a topology only its name and size."""
    if wired:
        keys = node.fields(("name", "size"))
        return _named_level(keys, UNWIRED, Fraction(0), None, {})
    keys = node.fields(("name", "size", "bandwidth"), ("latency", "per_device", "kind", "dims", "duplex", "per_group"))
    bandwidth = keys["bandwidth"].amount("bytes/s")
    latency = keys["latency"].amount("seconds", zero=True) if "latency" in keys else Fraction(0)
    per_device = keys["per_device"].amount("bytes/s") if "per_device" in keys else None
    beyond: dict[str, Any] = {}
    if "kind" in keys:
        beyond["kind"] = keys["kind"].word(KINDS)
    if "dims" in keys:
        beyond["dims"] = [one.whole(1, MAX_DEVICES) for one in keys["dims"].items("a torus' sizes", MAX_LEVELS)]
    if "duplex" in keys:
        beyond["duplex"] = keys["duplex"].word(("full", "half"))
    if "per_group" in keys:
        beyond["per_group"] = keys["per_group"].amount("bytes/s")
    return _named_level(keys, bandwidth, latency, per_device, beyond)


def _named_level(
    keys: Mapping[str, Node],
    bandwidth: Fraction,
    latency: Fraction,
    per_device: Fraction | None,
    beyond: Mapping[str, Any],
) -> Level:
    name, size = keys["name"].text("the level's name"), keys["size"].whole(1, MAX_DEVICES)
    try:
        return Level(name, size, bandwidth, latency, per_device, **beyond)
    except InputError as error:
        raise keys["name"].moved(error) from None


def named_axes(node: Node, system: System) -> tuple[Axis, ...]:
    """The axes, name to size, in file order."""
    axes = []
    for name, size in node.entries("a mapping of axis names to sizes", MAX_AXES).items():
        number = size.whole(1, MAX_DEVICES)
        try:
            axes.append(Axis(name, number))
        except InputError as error:
            raise size.moved(error) from None
    try:
        return check_axes(axes, system)
    except InputError as error:
        raise node.moved(error) from None


def reduction_of(keys: Mapping[str, Node], axes: tuple[Axis, ...]) -> Reduction:
    """What is reduced: `over` which axes, how many `bytes` per device, by which `collective` (optional)."""
    names = [axis.name for axis in axes]
    over = [item.word(names) for item in keys["over"].items("a list of axis names", MAX_AXES)]
    payload = keys["bytes"].amount("bytes", bare=True)
    collective: str | dict[str, str] = "AllReduce"
    if "collective" in keys:
        if isinstance(keys["collective"].value, dict):
            mix = keys["collective"].entries("a collective for each axis of `over`", MAX_AXES)
            collective = {axis: kind.word(COLLECTIVES) for axis, kind in mix.items()}
        else:
            collective = keys["collective"].word(COLLECTIVES)
    try:
        return Reduction(over, payload, collective)
    except InputError as error:
        raise (keys["collective"] if error.where == "collective" else keys["over"]).moved(error) from None


def limits_of(node: Node) -> Limits:
    """Limits: steps, time, memory."""
    keys = node.fields((), ("steps", "time", "memory"))
    steps = keys["steps"].whole(1, MAX_STEPS) if "steps" in keys else None
    seconds = float(keys["time"].amount("seconds")) if "time" in keys else None
    memory = None
    if "memory" in keys:
        memory = int(keys["memory"].amount("bytes"))
        if memory < 1:
            raise keys["memory"].error("is less than a byte", "a size such as '2 GiB'")
    return Limits(steps, seconds, memory)


def problem_data(problem: Problem) -> dict[str, Any]:
    """The problem as plain data that `problem_of` reads back. InputError where a quantity has no short decimal."""
    axes = {axis.name: axis.size for axis in problem.axes}
    data = {"system": system_data(problem.system), "axes": axes, "reduce": reduction_data(problem.reduction)}
    choice = {} if problem.cost_model == CostChoice() else {"cost_model": choice_data(problem.cost_model)}
    return data | limits_data(problem.limits) | choice


def system_data(system: System) -> dict[str, Any]:
    """The system as plain data."""
    levels: list[dict[str, Any]] = []
    for level in system.levels:
        entry: dict[str, Any] = {"name": level.name, "size": level.size}
        levels.append(entry)
        if system.topology is not None:
            continue
        entry["bandwidth"] = exact_text(level.bandwidth, "bytes/s")
        entry["latency"] = exact_text(level.latency, "seconds")
        if level.per_device is not None:
            entry["per_device"] = exact_text(level.per_device, "bytes/s")
        if level.per_group is not None:
            entry["per_group"] = exact_text(level.per_group, "bytes/s")
        entry |= {} if level.kind == "switch" else {"kind": level.kind}
        entry |= {} if level.duplex == "full" else {"duplex": level.duplex}
        entry |= {"dims": list(level.dims)} if level.dims else {}
    data: dict[str, Any] = {"levels": levels}
    if system.overhead:
        data["overhead"] = exact_text(system.overhead, "seconds")
    if system.copy is not None:
        data["copy"] = exact_text(system.copy, "bytes/s")
    if system.topology is not None:
        data["topology"] = topology_data(system.topology)
    return data


def reduction_data(reduction: Reduction) -> dict[str, Any]:
    """What is reduced, as plain data."""
    data: dict[str, Any] = {"over": list(reduction.over), "bytes": exact_text(reduction.payload, "bytes")}
    if reduction.collective is not Collective.ALL_REDUCE:
        data["collective"] = str(reduction.collective)
        if reduction.mixed:
            kinds = {axis: Collective.REDUCE_SCATTER for axis in reduction.split}
            data["collective"] = {axis: str(kinds.get(axis, Collective.ALL_REDUCE)) for axis in reduction.over}
    return data


def limits_data(limits: Limits) -> dict[str, Any]:
    """The key `limits` with those that are given, or nothing."""
    texts = {
        "steps": limits.steps,
        "time": _seconds_text(limits.seconds),
        "memory": None if limits.memory is None else exact_text(limits.memory, "bytes"),
    }
    given = {key: value for key, value in texts.items() if value is not None}
    return {"limits": given} if given else {}


def _seconds_text(seconds: float | None) -> str | None:
    """A time limit as text from which the same float comes back."""
    return None if seconds is None else exact_text(Fraction(str(seconds)), "seconds")


def problem_text(problem: Problem) -> str:
    """The problem as a YAML file's text."""
    return yaml.safe_dump(problem_data(problem), sort_keys=False, default_flow_style=None, width=1000)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: beside its place first, then renamed over it. InputError where it can't be.

    What is no regular file (a pipe, a terminal) is written straight.
    """
    try:
        target = os.path.realpath(path)
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
            return
        beside = os.path.join(os.path.dirname(target), f".smtsynth-{secrets.token_hex(8)}.tmp")
        try:
            with open(beside, "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if os.path.exists(target):
                shutil.copymode(target, beside)
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be written ({reason})", where=label(path), expected="a writable place") from None
