"""The command `export`: a placement or a program for the framework or launcher that will use it."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from smtsynth.errors import InputError

if TYPE_CHECKING:
    from smtsynth.export.hosts import Seating
    from smtsynth.export.mesh import Grid
    from smtsynth.interfaces.sources import Sources

PLACED = {
    "jax": "a JAX Mesh",
    "torch": "a PyTorch DeviceMesh",
    "megatron": "Megatron-LM's sizes and order",
    "deepspeed": "a DeepSpeed ProcessTopology",
    "groups": "explicit groups per axis, JSON",
    "hostfile": "ranks to hosts, MPICH hostfile",
    "rankfile": "ranks to hosts, Open MPI rankfile",
    "slurm": "ranks to hosts, Slurm arbitrary list",
}
PROGRAMS = {
    "torch-program": "a program for torch.distributed",
    "jax-program": "a program for JAX's shard_map",
    "mpi4py-program": "a program for mpi4py",
    "msccl": "MSCCL XML, each collective as a ring, proved",
}
TARGETS = [*PLACED, *PROGRAMS]
FILE_SUFFIX = re.compile(r"(?i)\.(txt|hosts?|hostfile|list|lst|conf|cfg|yaml|yml|json)$")
"""How names of files end that are no names of hosts."""


@click.command()
@click.argument("target")
@click.argument("sources", nargs=-1, metavar="[PROBLEM] [FILE]")
@click.option("--placement", metavar="MATRIX", help="The problem's placement, e.g. '[[2,8],[2,2]]'.")
@click.option("--hierarchy", help="Synthesis hierarchy of a program. Default: reduction.")
@click.option("--reduction", metavar="NAME", help="Which reduction of a workload. Default: its only one.")
@click.option(
    "--order", metavar="AXES", help="Axes in the order that ranks or mesh count, slowest first: pipe,data,tensor."
)
@click.option(
    "--as", "tokens", metavar="AXIS=TOKEN", multiple=True, help="Megatron-LM: the axis is tp, cp, ep, dp or pp."
)
@click.option("--hosts", metavar="NAMES|FILE", help="Host names: n01,n02 or n[01-04], or a file of them.")
@click.option("--host-level", metavar="LEVEL", help="The level whose units are hosts. Default: the one called node.")
@click.option("--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def export(target: str, sources: tuple[str, ...], as_json: bool, output: str | None, **given: Any) -> None:
    """Write a placement or a program for a framework or a launcher.

    \b
    Of a PROBLEM and a placement (FILE: an answer of `solve --json`, for its placement):
      jax, torch, megatron, deepspeed, groups, hostfile, rankfile, slurm
    Of a program or schedule FILE (a program needs its PROBLEM):
      torch-program, jax-program, mpi4py-program, msccl
    PROBLEM may be a workload; of its answer, --reduction says which program.

    \b
    Examples:
      smtsynth export torch examples/a100-4x16.yaml --placement '[[2,8],[2,2]]'
      smtsynth solve problem.yaml --json > answer.json
      smtsynth export torch-program problem.yaml answer.json --output all_reduce.py
      smtsynth export hostfile problem.yaml answer.json --hosts 'n[01-04]'
    """
    from smtsynth.interfaces.files import write_text
    from smtsynth.interfaces.nodes import closest
    from smtsynth.interfaces.sources import Sources

    if target not in TARGETS:
        raise InputError(f"target {target[:40]!r} is unknown{closest(target, TARGETS)}", expected=", ".join(TARGETS))
    _refuse(target, given)
    asked = Sources.of(sources, given["placement"], given["hierarchy"], given["reduction"])
    data: dict[str, Any] = {"target": target}
    hint = None
    if target in PROGRAMS:
        data["text"], hint = _program(target, asked, given["order"])
    else:
        data["text"], hint, more = _placed(target, asked, given)
        data |= more
    data["hint"] = hint
    if output is not None:
        write_text(output, data["text"])
    if as_json:
        sys.stdout.write(json.dumps(data, allow_nan=False) + "\n")
    elif output is None:
        click.echo(data["text"], nl=False)
    if hint is not None and not as_json:
        click.echo(hint, err=True)


def _refuse(target: str, given: dict[str, Any]) -> None:
    """InputError for an option that the target doesn't take."""
    launcher = ("hostfile", "rankfile", "slurm")
    programs = ("torch-program", "jax-program", "mpi4py-program")
    takes = {
        "order": ("jax", "torch", *launcher, *programs),
        "tokens": ("megatron",),
        "hosts": launcher,
        "host_level": launcher,
    }
    takes["hierarchy"] = takes["reduction"] = tuple(PROGRAMS)
    for option, targets in takes.items():
        if given[option] and target not in targets:
            name = "--as" if option == "tokens" else f"--{option.replace('_', '-')}"
            raise InputError(
                f"target {target} takes none", where=name, expected=f"a target out of {', '.join(targets)}"
            )


def _program(target: str, asked: Sources, order: str | None) -> tuple[str, str | None]:
    """The text of a program target, and a hint on its use."""
    from smtsynth.export.jax_program import jax_text
    from smtsynth.export.mpi4py_program import mpi4py_text
    from smtsynth.export.torch_program import torch_text
    from smtsynth.interfaces.yamltext import label

    if len(asked.files) != 1:
        what = f"{len(asked.files)} programs to write" if asked.files else "no program to write"
        raise InputError(what, expected="one program or schedule FILE beside the problem, or an answer of solve --json")
    name = asked.files[0]
    try:
        if target == "msccl":
            return _msccl(asked, name)
        write = {"torch-program": torch_text, "jax-program": jax_text, "mpi4py-program": mpi4py_text}[target]
        return write(asked.script(name, order=order)), None
    except InputError as error:
        raise error if error.where else error.at(label(name)) from None


def _msccl(asked: Sources, name: str) -> tuple[str, str | None]:
    """The XML of a schedule, or of one replica of a program, and hints on its use."""
    from smtsynth.export.goals import replica_script
    from smtsynth.export.msccl import msccl_note, msccl_text
    from smtsynth.export.script import script, show_groups
    from smtsynth.model.schedule import Schedule

    found = asked.program(name)
    hints = []
    if isinstance(found.what, Schedule):
        given = script(found.what)
    else:
        lowering, program = found.what
        assert found.problem is not None
        if found.problem.reduction.mixed:
            raise InputError("MSCCL has no mix of collectives", expected="one collective over all reduced axes")
        given = replica_script(lowering, program, found.problem.reduction.collective)
        if len(lowering.devices) > 1:
            hints.append(f"for each communicator of {show_groups(lowering.devices.tolist())}, its ranks in this order")
    written = msccl_text(given)
    hints += filter(None, [msccl_note(given)])
    return written, "\n".join(hints) or None


def _placed(target: str, asked: Sources, given: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """The text of a placement target, a hint on its use, and further JSON keys."""
    from smtsynth.export.deepspeed import deepspeed_text
    from smtsynth.export.groups import groups_text
    from smtsynth.export.jax_mesh import jax_mesh_text
    from smtsynth.export.megatron import megatron_text
    from smtsynth.export.mesh import Grid
    from smtsynth.export.torch_mesh import torch_mesh_text

    placement = asked.answered()
    assert asked.problem is not None
    grid = Grid(asked.problem.system, placement)
    more: dict[str, Any] = {"axes": list(grid.names), "matrix": placement.matrix}
    order = asked.order(given["order"], placement) or tuple(range(len(grid.axes)))
    if target in ("hostfile", "rankfile", "slurm"):
        return _launcher(target, grid, order, given, more)
    if target == "megatron":
        return megatron_text(grid, _tokens(given["tokens"], grid)), None, more
    if target == "deepspeed":
        return deepspeed_text(grid), None, more
    if target == "groups":
        return groups_text(grid), None, more
    return {"jax": jax_mesh_text, "torch": torch_mesh_text}[target](grid, order), None, more


def _tokens(words: tuple[str, ...], grid: Grid) -> dict[str, str]:
    """{axis: token} of the options --as."""
    from smtsynth.export.megatron import TOKENS

    found = {}
    for word in words:
        axis, _, token = word.partition("=")
        if axis not in grid.names or token not in TOKENS:
            expected = f"AXIS=TOKEN, an axis of {', '.join(grid.names)} and a token of {', '.join(TOKENS)}"
            raise InputError(f"{word[:40]!r} does not fit", where="--as", expected=expected)
        if axis in found:
            raise InputError(f"names {axis} twice", where="--as", expected="each axis once")
        found[axis] = token
    return found


def _launcher(
    target: str, grid: Grid, order: tuple[int, ...], given: dict[str, Any], more: dict[str, Any]
) -> tuple[str, str | None, dict[str, Any]]:
    """The text, the hint and the JSON keys of a target for launchers."""
    from smtsynth.export.hosts import (
        expand_hosts,
        hostfile_text,
        rankfile_text,
        seating,
        slurm_command,
        slurm_text,
        unused_hosts,
    )
    from smtsynth.interfaces.yamltext import label, read_text

    hosts, where = None, "--hosts"
    if given["hosts"] is not None:
        text = given["hosts"]
        if os.path.isfile(text):
            where = label(text)
            text = read_text(text)
        elif "/" in text or FILE_SUFFIX.search(text):
            raise InputError("there is no such file", where=f"--hosts {label(text)}", expected="a file of host names")
        hosts = expand_hosts(text, where)
    seats: Seating = seating(grid, order, hosts, given["host_level"], where)
    more["ranks"] = [
        {"rank": s.rank, "device": s.device, "host": s.host, "local_rank": s.local_rank, "local_device": s.local_device}
        for s in seats.seats
    ]
    left = [unused_hosts(seats, hosts)] if hosts else []
    if target == "slurm":
        return slurm_text(seats), "\n".join([*seats.header(), slurm_command(seats), *filter(None, left)]), more
    written = {"hostfile": hostfile_text, "rankfile": rankfile_text}[target](seats)
    return written, "\n".join(filter(None, left)) or None, more
