"""A program or schedule as a Python module for torch.distributed."""

from __future__ import annotations

from smtsynth.export.script import Move, Script, docstring, groups_literal
from smtsynth.export.writing import (
    NOTHING,
    TORCH,
    constants,
    finish,
    indented,
    lengths_of,
    ready,
    resizes,
    result_name,
    root_of,
    start,
    step,
)
from smtsynth.model.program import Collective

PLAIN = {
    Collective.ALL_REDUCE: ("values", "Sum the tensor `values` over the ranks, in place."),
    Collective.REDUCE: ("values", "Sum the tensor `values` over the ranks, in place at the root."),
    Collective.BROADCAST: ("values", "Give every rank the root's tensor, in place of its `values`."),
    Collective.REDUCE_SCATTER: ("values", "This rank's part of the sum of `values`, split along the first dimension."),
    Collective.ALL_GATHER: ("part", "The parts of all ranks, one behind the other along the first dimension."),
}

MAKE_GROUPS = '''def make_groups():
    """(process group, its ranks) for each name of GROUPS that this rank is in; call it once, on every rank.

    new_group is a collective of all ranks: each of them makes every group, its own or not, in the same order.
    """
    if dist.get_world_size() != RANKS:
        raise ValueError(f"{dist.get_world_size()} ranks; expected {RANKS}")
    groups = {}
    for name, rows in GROUPS.items():
        for ranks in rows:
            group = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                groups[name] = group, ranks
    return groups'''


def torch_text(given: Script, checked: bool = False) -> str:
    """The module's text: GROUPS, make_groups() and a function named after the goal, such as all_reduce.

    checked: for a trial run: what a reduce leaves undefined is overwritten, and a schedule that isn't proved returns
    its raw buffer. Raises InputError for a schedule that isn't proved otherwise.
    """
    ready(given, checked)
    lines = [f'"""{docstring(given, "by torch.distributed")}', '"""', "", "import torch.distributed as dist", ""]
    lines += [*constants(given), groups_literal(given)]
    used = {move.collective for move in given.moves}
    for collective, new, old in (
        (Collective.REDUCE_SCATTER, "reduce_scatter_single", "reduce_scatter_tensor"),
        (Collective.ALL_GATHER, "all_gather_single", "all_gather_into_tensor"),
    ):
        if collective in used:
            lines.append(f'{new} = getattr(dist, "{new}", None) or dist.{old}  # its older name')
    lines += ["", "", *MAKE_GROUPS.split("\n"), "", ""]
    argument, says = PLAIN[given.goal]
    lines += [f"def {result_name(given)}({argument}, groups):", f'    """{says}"""']
    body = [*start(given, TORCH), ""]
    for move in given.moves:
        body += [*_move(given, move, checked), ""]
    body += finish(given, TORCH, "dist.get_rank()")
    return "\n".join([*lines, *indented(body)]) + "\n"


def _move(given: Script, move: Move, checked: bool) -> list[str]:
    """One collective. Roots are global ranks; torch orders the ranks of a group by number, whatever was asked for."""
    rises = all(list(group) == sorted(group) for group in move.groups)
    if move.collective is Collective.ALL_REDUCE:
        lines = ["dist.all_reduce(buffer, group=group)"]
    elif move.collective is Collective.REDUCE_SCATTER:
        lines = []
        if not rises:
            lines = [
                "order = [ranks.index(rank) for rank in sorted(ranks)]  # torch sorts the ranks of a group",
                "buffer = buffer.view(len(ranks), -1)[order].reshape(-1)",
            ]
        lines += [
            "part = buffer.new_empty(buffer.numel() // len(ranks))",
            "reduce_scatter_single(part, buffer, group=group)",
            "buffer = part",
        ]
    elif move.collective is Collective.ALL_GATHER:
        lines = [
            "whole = buffer.new_empty(buffer.numel() * len(ranks))",
            "all_gather_single(whole, buffer, group=group)",
            "buffer = whole",
        ]
        if not rises:
            lines += [
                "order = [sorted(ranks).index(rank) for rank in ranks]  # torch sorts the ranks of a group",
                "buffer = buffer.view(len(ranks), -1)[order].reshape(-1)",
            ]
    elif move.collective is Collective.REDUCE:
        lines = [f"root = {root_of(move)}", "dist.reduce(buffer, dst=root, group=group)"]
        lines[-1] += "  # undefined at the others from here on"
        if checked:
            lines += ["if dist.get_rank() != root:", f"    buffer.fill_({NOTHING})"]
    else:
        lines = [f"root = {root_of(move)}"]
        if resizes(given, move):
            lines.append("if dist.get_rank() != root:")
            lines.append(f"    buffer = buffer.new_empty({lengths_of(move)})")
        lines.append("dist.broadcast(buffer, src=root, group=group)")
    ranks = "ranks" if any("ranks" in line for line in lines) else "_"
    return step(given, move, [f'group, {ranks} = groups["{move.name}"]', *lines])
