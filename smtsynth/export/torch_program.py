"""A program or schedule as a Python module for torch.distributed."""

from __future__ import annotations

from smtsynth.export.script import Move, Script
from smtsynth.export.writing import NOTHING, Library, lengths_of, module_text, ready, resizes, root_of, step
from smtsynth.model.program import Collective

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

TORCH = Library(
    "torch.distributed",
    opening="import torch.distributed as dist",
    make_groups=MAKE_GROUPS,
    rank="dist.get_rank()",
    array="tensor",
    size="{x}.numel()",
    zeros="{x}.new_zeros({n})",
    copy="{x}.clone()",
)
NEWER_NAMES = {
    Collective.REDUCE_SCATTER: ("reduce_scatter_single", "reduce_scatter_tensor"),
    Collective.ALL_GATHER: ("all_gather_single", "all_gather_into_tensor"),
}


def torch_text(given: Script, checked: bool = False) -> str:
    """The module's text: GROUPS, make_groups() and a function named after the goal, such as all_reduce.

    checked: for a trial run: what a reduce leaves undefined is overwritten, and a schedule that isn't proved returns
    its raw buffer. Raises InputError for a schedule that isn't proved otherwise.
    """
    ready(given, checked)
    used = {move.collective for move in given.moves}
    helpers = [
        f'{new} = getattr(dist, "{new}", None) or dist.{old}  # its older name'
        for collective, (new, old) in NEWER_NAMES.items()
        if collective in used
    ]
    return module_text(given, TORCH, lambda move: _move(given, move, checked), helpers=helpers)


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
