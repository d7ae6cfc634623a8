"""What the writers of Python programs share: constants, the parts of a buffer, and when a program can be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smtsynth.errors import InputError
from smtsynth.export.script import (
    FUNCTION,
    ROOTED,
    Move,
    Script,
    check_size,
    docstring,
    groups_literal,
    require_proved,
    show_groups,
)
from smtsynth.model.program import Collective

NOTHING = -9 * 2**59
"""What a checked program writes over buffers that a Reduce leaves undefined. Up to 31 of it, added modulo 2**64 to a
sum of trial values (below 2**59), are never such a sum, so that their use shows."""

SPLIT_GOALS = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


def ready(given: Script, checked: bool) -> Script:
    """The script, if a program can be written of it. InputError where it isn't proved (unless `checked`: a program for
    a trial run, that returns its raw buffer where nothing is proved) or where its goal has no plain counterpart."""
    if not checked:
        require_proved(given)
    if given.goal in SPLIT_GOALS:
        sizes = {len(group) for group in given.split_groups}
        if len(sizes) > 1 or sum(map(len, given.split_groups)) < given.devices:
            raise InputError(
                f"the goal's groups for {given.goal} differ in size or leave ranks out",
                expected="equal groups that cover all ranks",
            )
    if given.goal is Collective.REDUCE_SCATTER and given.layout is not None:
        raise InputError("the pieces of a rank's part end in another order", expected="parts in order")
    return check_size(given)


def parts(given: Script) -> int:
    """Ranks among which the goal splits a buffer: m for ReduceScatter and AllGather, else 1."""
    return len(given.split_groups[0]) if given.goal in SPLIT_GOALS else 1


def constants(given: Script) -> list[str]:
    """RANKS, PIECES, and the order to undo, as lines of Python."""
    lines = [f"RANKS = {given.devices}"]
    if given.pieces > 1:
        lines.append(f"PIECES = {given.pieces}  # equal pieces of a buffer; zeros are added where it does not divide")
    if given.arrange is not None:
        lines.append(f"ARRANGE = {list(given.arrange)}  # the piece to put at each position before the first step")
        lines.append(f"TAKE = {[list(part) for part in given.take or ()]}  # where each rank's part is after the last")
    if given.undo is not None:
        lines.append(f"UNDO = {list(given.undo)}  # where each piece, in order, stands after the last step")
    if outside(given):
        lines.append(f"OUTSIDE = {outside(given)}  # ranks that help, and keep what they have")
    if given.schedule.goal.groups and given.goal_groups != (tuple(range(given.devices)),):
        lines.append(f"GOAL = {[list(group) for group in given.goal_groups]}  # ranks that share a result")
    if given.goal in ROOTED:
        lines.append(f"ROOTS = {list(given.goal_roots)}  # of the groups of the goal")
    return lines


@dataclass(frozen=True, slots=True)
class Library:
    """A library whose ranks are processes: what its modules open with, and how it spells what programs do to buffers.

    array: what it calls one; size, zeros, copy: format strings over x (an array) and n (a size); rank: the caller's.
    """

    name: str
    opening: str
    make_groups: str
    rank: str
    array: str
    size: str
    zeros: str
    copy: str


ARGUMENT = {Collective.ALL_GATHER: "part"}
SAYS = {
    Collective.ALL_REDUCE: "Sum the {array} `values` over the ranks, in place.",
    Collective.REDUCE: "Sum the {array} `values` over the ranks, in place at the root.",
    Collective.BROADCAST: "Overwrite the {array} `values` on every rank with the root's.",
    Collective.REDUCE_SCATTER: "This rank's part of the sum of `values`, split along the first dimension.",
    Collective.ALL_GATHER: "The parts of all ranks, one behind the other along the first dimension.",
}


def module_text(
    given: Script, to: Library, write: Callable[[Move], list[str]], *, helpers: Sequence[str] = (), more: str = ""
) -> str:
    """The module's text: constants, GROUPS, make_groups() and a function named after the goal, such as all_reduce.

    write: the lines of a move; helpers: lines behind GROUPS; more: further parameters of the function.
    """
    lines = [f'"""{docstring(given, f"by {to.name}")}', '"""', "", *to.opening.split("\n"), ""]
    lines += [*constants(given), groups_literal(given), *helpers, "", "", *to.make_groups.split("\n"), "", ""]
    lines.append(f"def {FUNCTION[given.goal]}({ARGUMENT.get(given.goal, 'values')}, groups{more}):")
    lines.append(f'    """{SAYS[given.goal].format(array=to.array)}"""')
    body = [*start(given, to), ""]
    for move in given.moves:
        body += [*write(move), ""]
    body += finish(given, to)
    return "\n".join([*lines, *indented(body)]) + "\n"


def resizes(given: Script, move: Move) -> bool:
    """Whether the move is a Broadcast for which some member needs a buffer of another size."""
    if move.collective is not Collective.BROADCAST:
        return False
    before = given.counts(move.step - 1)
    return any(before[rank] != held for group, held in zip(move.groups, move.held, strict=True) for rank in group)


def start(given: Script, to: Library) -> list[str]:
    """Lines that make `buffer`: a copy of the argument, in whole pieces; and `piece`, if it is needed."""
    size = to.size.format(x="values")
    share = given.pieces // parts(given)
    if given.goal is Collective.ALL_GATHER:
        size = to.size.format(x="part")
        lines = [f"buffer = {to.copy.format(x='part.reshape(-1)')}"]
        if share > 1:
            lines = [
                f"buffer = {to.zeros.format(x='part', n=f'-(-{size} // {share}) * {share}')}  # {share} pieces a part",
                f"buffer[: {size}] = part.reshape(-1)",
            ]
        piece = f"{to.size.format(x='buffer')} // {share}"
    elif given.goal is Collective.REDUCE_SCATTER:
        count = parts(given)
        lines = [f"rows = values.reshape({count}, -1)  # a row for each rank of the group"]
        if share == 1:
            lines.append(f"buffer = {to.copy.format(x='rows.reshape(-1)')}")
        else:
            wide = to.zeros.format(x="values", n=f"({count}, -(-rows.shape[1] // {share}) * {share})")
            lines += [f"buffer = {wide}", "buffer[:, : rows.shape[1]] = rows", "buffer = buffer.reshape(-1)"]
        if given.arrange is not None:
            lines.append("buffer = buffer.reshape(PIECES, -1)[ARRANGE].reshape(-1)")
        piece = f"{to.size.format(x='buffer')} // PIECES"
    elif given.pieces == 1:
        lines = [f"buffer = {to.copy.format(x='values.reshape(-1)')}"]
        piece = to.size.format(x="buffer")
    else:
        lines = [
            f"buffer = {to.zeros.format(x='values', n=f'-(-{size} // PIECES) * PIECES')}",
            f"buffer[: {size}] = values.reshape(-1)",
        ]
        piece = f"{to.size.format(x='buffer')} // PIECES"
    if given.take is not None or any(resizes(given, move) for move in given.moves):
        lines.append(f"piece = {piece}")
    return lines


def finish(given: Script, to: Library) -> list[str]:
    """Lines that put the result where the plain collective would."""
    if not given.proved:
        return ["return buffer"]
    lines, rank = [], to.rank
    if given.undo is not None:
        lines.append("buffer = buffer.reshape(PIECES, -1)[UNDO].reshape(-1)")
    if given.goal is Collective.ALL_GATHER:
        if given.pieces > parts(given):
            lines.append(f"buffer = buffer.reshape({parts(given)}, -1)[:, : {to.size.format(x='part')}]")
        return [*lines, "return buffer.reshape(-1, *part.shape[1:])"]
    if given.goal is Collective.REDUCE_SCATTER:
        if given.take is not None:
            lines.append(f"buffer = buffer.reshape(-1, piece)[TAKE[{rank}]].reshape(-1)")
        return [*lines, "return buffer[: rows.shape[1]].reshape(-1, *values.shape[1:])"]
    whole = "buffer" if given.pieces == 1 else f"buffer[: {to.size.format(x='values')}]"
    write = f"values[...] = {whole}.reshape(values.shape)"
    if given.goal is Collective.REDUCE:
        return [*lines, f"if {rank} in ROOTS:", f"    {write}"]
    if outside(given):
        return [*lines, f"if {rank} not in OUTSIDE:", f"    {write}"]
    return [*lines, write]


def outside(given: Script) -> list[int]:
    """Ranks of no goal group."""
    return sorted(set(range(given.devices)) - {rank for group in given.goal_groups for rank in group})


def root_of(move: Move) -> str:
    """An expression for the root, a global rank, of the group whose ranks are `ranks`."""
    if move.first_roots:
        return "ranks[0]"
    table = ", ".join(f"{group[0]}: {root}" for group, root in zip(move.groups, move.roots, strict=True))
    return f"{{{table}}}[ranks[0]]"


def lengths_of(move: Move) -> str:
    """An expression for the elements that a Broadcast's root holds, in the group whose ranks are `ranks`."""
    if len(set(move.held)) == 1:
        return pieces(move.held[0])
    table = ", ".join(f"{group[0]}: {held}" for group, held in zip(move.groups, move.held, strict=True))
    return f"{{{table}}}[ranks[0]] * piece"


def covers(given: Script, move: Move) -> bool:
    """Whether every rank takes part."""
    return len(move.members) == given.devices


def step(given: Script, move: Move, lines: Sequence[str]) -> list[str]:
    """A step: a comment, then its lines, for the ranks that take part."""
    comment = f"# {move.step}. {move.collective} {move.name}: {show_groups(move.groups)}"
    if covers(given, move):
        return [comment, *lines]
    return [comment, f'if "{move.name}" in groups:', *indented(lines)]


def needs_rank(given: Script) -> bool:
    """Whether what is done with the result depends on the rank."""
    return given.proved and (given.goal is Collective.REDUCE or bool(outside(given)) or given.take is not None)


def pieces(count: int) -> str:
    """An expression for the elements of so many pieces."""
    return "piece" if count == 1 else f"{count} * piece"


def indented(lines: Sequence[str], by: int = 4) -> list[str]:
    """The lines, further in; empty ones stay empty."""
    return [" " * by + line if line else line for line in lines]
