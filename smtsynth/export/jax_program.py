"""A program or schedule as a Python module for JAX: a function for the inside of `shard_map`.

All ranks run one program on arrays of one shape. Where ranks hold different lengths, the buffer stays at its largest
and each rank's part is its front. JAX has no Reduce and, on many platforms, no broadcast: both are written as sums,
and the text says that they cost as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from smtsynth.errors import InputError
from smtsynth.export.script import FUNCTION, ROOTED, Move, Script, docstring, show_groups
from smtsynth.export.writing import NOTHING, constants, covers, indented, outside, parts, pieces, ready
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Group

PLAIN = {
    Collective.ALL_REDUCE: ("values", "The sum of `values` over the ranks."),
    Collective.REDUCE: ("values", "The sum of `values` over the ranks, at the root; what others get doesn't matter."),
    Collective.BROADCAST: ("values", "The root's `values`."),
    Collective.REDUCE_SCATTER: ("values", "This rank's part of the sum of `values`, split along the first dimension."),
    Collective.ALL_GATHER: ("part", "The parts of all ranks, one behind the other along the first dimension."),
}
EMULATED = {
    Collective.REDUCE: "JAX has no Reduce: it is a sum that every rank of the group gets, and costs as much.",
    Collective.BROADCAST: "A Broadcast is a sum in which all but the root add zeros, and costs as much.",
}
SPLITS = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


@dataclass
class _Writer:
    """Collects the lines of the function's body and the sets of groups that it names."""

    given: Script
    checked: bool
    groups: dict[str, list[list[int]]] = field(default_factory=dict)
    uses_rank: bool = False

    def group_set(self, name: str, groups: Sequence[Group], equal: bool) -> str:
        """An expression for these groups and the ranks left over: alone, or in groups of equal size."""
        used = {rank for group in groups for rank in group}
        rest = [rank for rank in range(self.given.devices) if rank not in used]
        size = len(groups[0]) if equal else 1
        if len(rest) % size:
            raise InputError(
                f"JAX wants groups of equal size that cover all ranks, and the {len(rest)} ranks outside "
                f"{show_groups(groups)} make no groups of {size}",
                expected="a schedule without such a step, or another target",
            )
        filled = [list(group) for group in groups] + [rest[at : at + size] for at in range(0, len(rest), size)]
        base, number = name, 2
        while self.groups.setdefault(name, filled) != filled:
            name, number = f"{base}_{number}", number + 1
        return f'GROUPS["{name}"]'

    def chosen(self, ranks: Sequence[int]) -> str:
        """An expression for whether the caller is one of these ranks."""
        self.uses_rank = True
        return f"jnp.isin(rank, jnp.array({sorted(ranks)}))"

    def call(self, move: Move, groups: Sequence[Group], x: str) -> list[str]:
        """Lines that make `x` what the collective gives; ranks of no group keep theirs, except with SPLITS."""
        where = self.group_set(move.name, groups, move.collective in SPLITS)
        if move.collective in SPLITS:
            name = {Collective.REDUCE_SCATTER: "psum_scatter", Collective.ALL_GATHER: "all_gather"}[move.collective]
            return [f"{x} = jax.lax.{name}({x}, axis, axis_index_groups={where}, tiled=True)"]
        lines = []
        members = {rank for group in groups for rank in group}
        silent = members - set(move.roots)
        if move.collective is Collective.BROADCAST:
            senders = [rank for rank in range(self.given.devices) if rank not in silent]
            lines.append(f"{x} = jnp.where({self.chosen(senders)}, {x}, 0)")
        lines.append(f"{x} = jax.lax.psum({x}, axis, axis_index_groups={where})")
        if move.collective is Collective.REDUCE and self.checked:
            lines.append(
                f"{x} = jnp.where({self.chosen(sorted(silent))}, {NOTHING}, {x})  # what Reduce leaves undefined"
            )
        return lines

    def move(self, move: Move) -> list[str]:
        """One collective on buffers that all have one length."""
        return [self.comment(move), *self.call(move, move.groups, "buffer")]

    def wide_move(self, move: Move) -> list[str]:
        """One collective on the fronts of wide buffers, a call for each group size and length."""
        kinds: dict[tuple[int, int, int], list[Group]] = {}
        for group, held, kept in zip(move.groups, move.held, move.kept, strict=True):
            kinds.setdefault((len(group) if move.collective in SPLITS else 0, held, kept), []).append(group)
        lines = [self.comment(move)]
        for (_, held, kept), groups in kinds.items():
            members = [rank for group in groups for rank in group]
            lines += [f"front = buffer[: {pieces(held)}]", *self.call(move, groups, "front")]
            put = f"buffer.at[: {pieces(kept)}].set(front)"
            if len(members) == self.given.devices:
                lines.append(f"buffer = {put}")
            else:
                lines.append(f"buffer = jnp.where({self.chosen(members)}, {put}, buffer)")
        return lines

    def comment(self, move: Move) -> str:
        return f"# {move.step}. {move.collective} {move.name}: {show_groups(move.groups)}"


def jax_text(given: Script, checked: bool = False) -> str:
    """The module's text: a function named after the goal, such as all_reduce, and `over(mesh)`.

    checked: for a trial run: what a Reduce leaves undefined is overwritten, and a schedule that isn't proved returns
    its raw buffer. Raises InputError for a schedule that isn't proved otherwise, or whose groups JAX can't take.
    """
    ready(given, checked)
    writer = _Writer(given, checked)
    widest = max(max(given.counts(number)) for number in range(len(given.schedule.steps) + 1))
    body = []
    for move in given.moves:
        body += [*(writer.move(move) if given.uniform else writer.wide_move(move)), ""]
    body = [*_start(given, widest), "", *body, *_finish(given, writer)]
    if writer.uses_rank:
        body.insert(0, "rank = jax.lax.axis_index(axis)")
    notes = [EMULATED[kind] for kind in ROOTED if any(move.collective is kind for move in given.moves)]
    if not given.uniform:
        notes.append("Ranks hold different lengths at times: each one's part is the front of its buffer.")
    if any(not covers(given, move) for move in given.moves):
        notes.append("Ranks outside a step's groups are in groups of their own: JAX wants every rank in some group.")
    argument, says = PLAIN[given.goal]
    name = FUNCTION[given.goal]
    rows = [f'    "{key}": {value},' for key, value in writer.groups.items()]
    lines = [
        f'"""{docstring(given, "by JAX", notes)}',
        '"""',
        "",
        "import functools",
        "",
        "import jax",
        "import jax.numpy as jnp",
        "from jax.sharding import PartitionSpec",
        "",
        *constants(given),
        *(["GROUPS = {", *rows, "}"] if rows else []),
        "",
        "",
        f'def {name}({argument}, axis="ranks"):',
        f'    """{says}',
        "",
        f"    For the inside of shard_map, over a mesh axis of {given.devices} devices in the order of the ranks.",
        '    """',
        *indented(body),
        "",
        "",
        'def over(mesh, axis="ranks"):',
        f'    """{name} for an array whose first dimension is split over this axis of the mesh, compiled."""',
        "    spec = PartitionSpec(axis)",
        f"    inside = functools.partial({name}, axis=axis)",
        "    return jax.jit(jax.shard_map(inside, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))",
    ]
    return "\n".join(lines) + "\n"


def _start(given: Script, widest: int) -> list[str]:
    """The buffer: the values, in whole pieces."""
    share = given.pieces // parts(given)
    held = given.pieces
    if given.goal is Collective.ALL_GATHER:
        held = share
        lines = [f"buffer = {_padded('part', str(share), share)}"]
    elif given.goal is Collective.REDUCE_SCATTER:
        lines = [f"rows = values.reshape({parts(given)}, -1)  # a row for each rank of the group"]
        pad = f"jnp.pad(rows, ((0, 0), (0, -rows.shape[1] % {share})))" if share > 1 else "rows"
        lines.append(f"buffer = {pad}.reshape(-1)")
        if given.arrange is not None:
            lines.append("buffer = buffer.reshape(PIECES, -1)[jnp.array(ARRANGE)].reshape(-1)")
    else:
        lines = [f"buffer = {_padded('values', 'PIECES', given.pieces)}"]
    if not given.uniform or given.take is not None:
        lines.append(f"piece = buffer.size // {held}" if held > 1 else "piece = buffer.size")
        if widest > held and not given.uniform:
            lines.append(f"buffer = jnp.pad(buffer, (0, {pieces(widest - held)}))")
    return lines


def _padded(name: str, text: str, pieces: int) -> str:
    return f"jnp.pad({name}.reshape(-1), (0, -{name}.size % {text}))" if pieces > 1 else f"{name}.reshape(-1)"


def _finish(given: Script, writer: _Writer) -> list[str]:
    """The result, where the plain collective would put it."""
    if not given.proved:
        return ["return buffer"]
    lines = []
    if given.take is not None:
        writer.uses_rank = True
        lines.append("buffer = buffer.reshape(-1, piece)[jnp.array(TAKE)[rank]].reshape(-1)")
    elif not given.uniform:
        kept = given.pieces // parts(given) if given.goal is Collective.REDUCE_SCATTER else given.pieces
        lines.append(f"buffer = buffer[: {pieces(kept)}]")
    if given.undo is not None:
        lines.append("buffer = buffer.reshape(PIECES, -1)[jnp.array(UNDO)].reshape(-1)")
    if given.goal is Collective.ALL_GATHER:
        if given.pieces > parts(given):
            lines.append(f"buffer = buffer.reshape({parts(given)}, -1)[:, : part.size]")
        return [*lines, "return buffer.reshape(-1, *part.shape[1:])"]
    if given.goal is Collective.REDUCE_SCATTER:
        return [*lines, "return buffer[: rows.shape[1]].reshape(-1, *values.shape[1:])"]
    whole = "buffer" if given.pieces == 1 else "buffer[: values.size]"
    result = f"{whole}.reshape(values.shape)"
    if outside(given):
        result = f"jnp.where({writer.chosen(outside(given))}, values, {result})"
    return [*lines, f"return {result}"]
