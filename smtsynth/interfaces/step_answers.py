"""The programs in an answer of `solve --json` for a workload, a reduction each."""

from __future__ import annotations

from smtsynth.errors import InputError
from smtsynth.interfaces.nodes import Node
from smtsynth.interfaces.programs import RawProgram, program_or_schedule_of

SHARED = ("placement", "hierarchy")
"""Keys of the whole answer that each of its programs needs."""


def is_step_answer(data: object) -> bool:
    """Whether plain data is an answer for a workload, by its keys."""
    return isinstance(data, dict) and "reductions" in data and "status" in data


def step_programs(data: object, where: str, wanted: str | None = None) -> dict[str, RawProgram]:
    """The programs by the names of their reductions: all there are, or the one that is wanted.

    Raises InputError where there is none, naming the place.
    """
    root = Node.root(data, where)
    shared = {key: root.child(key).value for key in SHARED if key in root.keys("an answer of solve")}
    found, names = {}, []
    for node in root.child("reductions").items("a list of reductions"):
        keys = node.keys("a reduction of an answer of solve")
        for key in ("name", "status", "program"):
            if key not in keys:
                raise node.error(f"holds no {key}", "a reduction of an answer of solve")
        name = node.child("name").text("a name")
        names.append(name)
        if wanted not in (None, name):
            continue
        if node.child("program").value is None:
            raise node.error(f"holds no program for {name}", "--reduction with another")
        program = program_or_schedule_of({key: node.child(key).value for key in keys} | shared, f"{where}: {name}")
        assert isinstance(program, RawProgram)
        found[name] = program
    if wanted is not None and wanted not in names:
        raise InputError(
            f"{wanted[:40]!r} is not in {where}", where="--reduction", expected=f"one of {', '.join(names)}"
        )
    if not found:
        raise root.error("holds no program", "an answer with programs")
    return found
