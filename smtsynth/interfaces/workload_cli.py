"""`smtsynth workload`: prints a workload file for a model's shape, every formula beside its number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from smtsynth.errors import InputError
from smtsynth.workloads.shape import Dense, Mixture, Sizes, Training, is_flag


def _option(one: Field[Any]) -> Callable[[Any], Any]:
    """A field as an option; its value is None where it isn't given."""
    name, text = one.name.replace("_", "-"), one.metadata["help"]
    if is_flag(one):
        default = f"--{name}" if one.default else f"--no-{name}"
        return click.option(f"--{name}/--no-{name}", default=None, help=f"{text}  [default: {default[2:]}]")
    if one.default is not MISSING and one.default is not None:
        text += f"  [default: {one.default}]"
    return click.option(f"--{name}", type=int, metavar="N", help=text)


def _options(shape: type[Dense]) -> Callable[[Any], Any]:
    """The options of a kind: shape, training, sizes, system and constraints."""

    def wrap(command: Any) -> Any:
        own = [
            click.option("--like", metavar="MODEL", help="Start from the shape of a published model; see above."),
            *(_option(one) for one in (*fields(shape), *fields(Training), *fields(Sizes))),
            click.option("--system", default="dgx-h100", show_default=True, help="A preset, or a file with a system."),
            click.option("--size", "size", multiple=True, metavar="LEVEL=N", help="Another size of a preset's level."),
            click.option("--inside", multiple=True, metavar="AXIS=LEVEL", help="Keep an axis inside one unit."),
            click.option("--unsplit", multiple=True, metavar="AXIS", help="Keep an axis within one level."),
        ]
        for option in reversed(own):
            command = option(command)
        return command

    return wrap


@click.group()
def workload() -> None:
    """Print a training step's workload file from a model's shape, to be read, changed and solved.

    \b
    Example:
      smtsynth workload dense --like llama-3-8b --sequence 8192 --global-batch 64 --data 8 --tensor 8 > step.yaml
      smtsynth solve step.yaml
    """


@workload.command()
@_options(Dense)
def dense(**given: Any) -> None:
    """A dense transformer: data, shard (FSDP), context, tensor and pipeline parallel.

    Models for --like: gpt-3-175b, llama-3-8b, llama-3-70b, llama-3-405b. The outermost level of a preset takes the
    size that the axes need.

    \b
    Example: smtsynth workload dense --like llama-3-8b --sequence 8192 --global-batch 64 --shard 8 --tensor 2
    """
    _print("dense", given)


@workload.command()
@_options(Mixture)
def moe(**given: Any) -> None:
    """A transformer with mixtures of experts: as dense, and expert parallel.

    Models for --like: mixtral-8x7b, deepseek-v3. The outermost level of a preset takes the size that the axes need.

    \b
    Example: smtsynth workload moe --like mixtral-8x7b --sequence 4096 --global-batch 256 --data 8 --expert 8
    """
    _print("moe", given)


def _print(kind: str, given: dict[str, Any]) -> None:
    from smtsynth.interfaces.workloads import workload_text
    from smtsynth.workloads.known import SHAPES, shape_of, step_of, training_of

    def some(record: type[Any]) -> dict[str, Any]:
        return {one.name: given[one.name] for one in fields(record) if given[one.name] is not None}

    try:
        shape = shape_of(kind, given["like"], some(SHAPES[kind]))
        training, sizes = training_of(some(Training)), Sizes(**some(Sizes))
        step = step_of(kind, shape, sizes, training)
    except InputError as error:
        where = f"--{(error.where or kind).replace('_', '-')}"
        raise InputError(error.what, where=where, expected=error.expected) from None
    system, source = _system(given["system"], _pairs("--size", given["size"]), sizes)
    try:
        found = step.workload(system, sizes.axes, _constraints(given, sizes, [level.name for level in system.levels]))
    except InputError as error:
        raise InputError(error.what, where=error.where or f"workload {kind}", expected=error.expected) from None
    like = f" like {given['like']}" if given["like"] else ""
    head = [
        f"A training step of a {kind} model{like}, {shape.parameters / 1e9:.4g} billion parameters on {sizes.devices} "
        "devices, by `smtsynth workload`. bytes: per device, of the whole buffer; count: how often in a step.",
        _words("Shape", shape),
        _words("Training", training),
        *source,
    ]
    click.echo(workload_text(found, step.notes, head), nl=False)


def _words(title: str, record: Any) -> str:
    """A record's fields in words."""
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    words = [f"{name} {str(value).lower()}" for name, value in values.items() if value is not None]
    return f"{title}: {', '.join(words)}"


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE texts as a mapping."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value) or name in pairs:
            raise InputError(f"{text[:60]!r} is unclear", where=option, expected="NAME=VALUE, each name once")
        pairs[name] = value
    return pairs


def _system(name: str, given: Mapping[str, str], sizes: Sizes) -> tuple[Any, list[str]]:
    """The system and where its figures come from: a preset sized to the axes, or that of a file."""
    from smtsynth.interfaces.workloads import read_problem_or_workload
    from smtsynth.model.presets import find_preset, preset, preset_names

    if name not in preset_names():
        if given:
            raise InputError("sizes go with a preset", where="--size", expected=", ".join(preset_names()))
        return read_problem_or_workload(name).system, []
    chosen = {}
    for level, size in given.items():
        if not (size.isascii() and size.isdigit() and len(size) < 10):
            raise InputError(f"{size[:40]!r} is no size", where="--size", expected="a whole number")
        chosen[level] = int(size)
    found = find_preset(name)
    outermost, *inner = found.levels
    below = 1
    for template in inner:
        below *= chosen.get(template.name, template.size)
    if outermost.name not in chosen and below > 0 and sizes.devices % below == 0:
        chosen[outermost.name] = sizes.devices // below
    try:
        system = preset(name, chosen)
    except InputError as error:
        raise InputError(error.what, where="--size", expected=error.expected) from None
    return system, [f"System {name}: {found.title}. Source: {found.source} Left out: {found.leaves_out}"]


def _constraints(given: dict[str, Any], sizes: Sizes, levels: list[str]) -> list[Any]:
    """The constraints of --inside and --unsplit."""
    from smtsynth.model.workload import Constraint

    axes = list(sizes.axes)
    inside = _pairs("--inside", given["inside"])
    named = [("--inside", axis) for axis in inside] + [("--unsplit", axis) for axis in given["unsplit"]]
    for option, axis in named:
        if axis not in axes:
            raise InputError(f"there is no axis {axis[:60]!r}", where=option, expected=", ".join(axes))
    for level in inside.values():
        if level not in levels:
            raise InputError(f"there is no level {level[:60]!r}", where="--inside", expected=", ".join(levels))
    return [
        *(Constraint(axis, inside=level) for axis, level in inside.items()),
        *(Constraint(axis, unsplit=True) for axis in given["unsplit"]),
    ]
