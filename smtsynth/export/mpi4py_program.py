"""A program or schedule as a Python module for mpi4py and numpy."""

from __future__ import annotations

from smtsynth.export.script import Move, Script
from smtsynth.export.writing import NOTHING, Library, lengths_of, module_text, needs_rank, ready, resizes, root_of, step
from smtsynth.model.program import Collective

MAKE_GROUPS = '''def make_groups(comm=MPI.COMM_WORLD):
    """(communicator, its ranks) for each name of GROUPS that this rank is in; call it once, on every rank of `comm`."""
    if comm.size != RANKS:
        raise ValueError(f"{comm.size} ranks; expected {RANKS}")
    groups = {}
    for name, rows in GROUPS.items():  # Split is collective: every rank makes the same calls in the same order
        ranks = next((row for row in rows if comm.rank in row), None)
        color, key = (rows.index(ranks), ranks.index(comm.rank)) if ranks else (MPI.UNDEFINED, 0)
        group = comm.Split(color, key)
        if ranks:
            groups[name] = group, ranks
    return groups'''

MPI4PY = Library(
    "mpi4py",
    opening="import numpy as np\nfrom mpi4py import MPI",
    make_groups=MAKE_GROUPS,
    rank="comm.rank",
    array="contiguous array",
    size="{x}.size",
    zeros="np.zeros({n}, {x}.dtype)",
    copy="{x}.copy()",
)


def mpi4py_text(given: Script, checked: bool = False) -> str:
    """The module's text: GROUPS, make_groups(comm) and a function named after the goal, such as all_reduce.

    checked: for a trial run: what a Reduce leaves undefined is overwritten, and a schedule that isn't proved returns
    its raw buffer. Raises InputError for a schedule that isn't proved otherwise.
    """
    ready(given, checked)
    comm = ", comm=MPI.COMM_WORLD" if needs_rank(given) else ""
    return module_text(given, MPI4PY, lambda move: _move(given, move, checked), more=comm)


def _move(given: Script, move: Move, checked: bool) -> list[str]:
    """One collective."""
    if move.collective is Collective.ALL_REDUCE:
        lines = ["group.Allreduce(MPI.IN_PLACE, buffer)"]
    elif move.collective is Collective.REDUCE_SCATTER:
        lines = [
            "part = np.empty(buffer.size // group.size, buffer.dtype)",
            "group.Reduce_scatter_block(buffer, part)",
            "buffer = part",
        ]
    elif move.collective is Collective.ALL_GATHER:
        lines = [
            "whole = np.empty(buffer.size * group.size, buffer.dtype)",
            "group.Allgather(buffer, whole)",
            "buffer = whole",
        ]
    else:
        root = "0" if move.first_roots else f"ranks.index({root_of(move)})"
        lines = [f"root = {root}  # MPI counts it inside the communicator"]
        if move.collective is Collective.REDUCE:
            lines += ["if group.rank == root:", "    group.Reduce(MPI.IN_PLACE, buffer, root=root)", "else:"]
            lines.append("    group.Reduce(buffer, None, root=root)  # what is left in buffer here is undefined")
            if checked:
                lines.append(f"    buffer[:] = {NOTHING}")
        else:
            if resizes(given, move):
                lines.append("if group.rank != root:")
                lines.append(f"    buffer = np.empty({lengths_of(move)}, buffer.dtype)")
            lines.append("group.Bcast(buffer, root=root)")
    ranks = "ranks" if any("ranks" in line for line in lines) else "_"
    return step(given, move, [f'group, {ranks} = groups["{move.name}"]', *lines])
