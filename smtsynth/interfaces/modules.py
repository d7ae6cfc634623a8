"""Python modules that `export` wrote, and that may have been changed by hand: read, never run, before they are run."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smtsynth.errors import InputError
from smtsynth.export.script import FUNCTION, Script, script
from smtsynth.interfaces.yamltext import label, read_text
from smtsynth.model.schedule import Entry, Goal, Schedule, check_schedule

LIBRARIES = {"mpi4py": "mpi", "torch": "gloo", "jax": "jax"}
NAMES = ("RANKS", "GOAL", "ROOTS")
_PYTHON = re.compile(r"(?m)^(import \w|from \w[\w.]* import |def \w+\(|RANKS = )")


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its text, the script of the goal it has to reach, and the backend it is for (None: can't be told)."""

    text: str
    script: Script
    backend: str | None


def is_module(name: str) -> bool:
    """Whether a name is that of a Python module."""
    return name.lower().endswith(".py")


def check_kind(name: str) -> None:
    """InputError for a file that holds XML or Python under another name."""
    if not os.path.isfile(name):
        return
    text = read_text(name)
    if text.lstrip().startswith("<"):
        raise InputError(
            "is XML, which isn't run", where=label(name), expected=f"a program or schedule, or `smtsynth verify {name}`"
        )
    if _PYTHON.search(text):
        raise InputError("is Python by the look of it", where=label(name), expected="a name that ends in .py")


def read_module(name: str) -> Module:
    """A module; its text is read for what it imports, RANKS, GOAL, ROOTS and the name of its function."""
    where, text = label(name), read_text(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        found = _constants(tree)
    except SyntaxError as error:
        raise InputError(f"is no Python ({error.msg})", where=f"{where}:{error.lineno}", expected="a module") from None
    except (ValueError, RecursionError, MemoryError):
        raise InputError("is no module that export wrote", where=where, expected="RANKS = N, GOAL, ROOTS") from None
    ranks, roots = found.get("RANKS"), found.get("ROOTS", [])
    if type(ranks) is not int:
        what = "is no module that export wrote" if ranks is None else f"RANKS is {ranks!r:.40}"
        raise InputError(what, where=where, expected="RANKS = N, a number of ranks, and its other names")
    groups = found.get("GOAL", [list(range(ranks))] if 0 < ranks <= 2**20 else [])
    if not _is_ids(roots):
        raise InputError(f"ROOTS is {roots!r:.40}", where=where, expected="a list of ranks")
    if not isinstance(groups, (list, tuple)) or not all(map(_is_ids, groups)):
        raise InputError(f"GOAL is {groups!r:.40}", where=where, expected="a list of lists of ranks")
    kinds = [kind for kind, word in FUNCTION.items() for line in tree.body if getattr(line, "name", None) == word]
    if len(kinds) != 1:
        raise InputError(
            "defines no one collective", where=where, expected=f"one function of {', '.join(FUNCTION.values())}"
        )
    shape = tuple(tuple(group) for group in groups)
    plain = Schedule(ranks, ((Entry(kinds[0], shape, tuple(roots)),),), Goal(kinds[0], shape, tuple(roots)))
    try:
        return Module(text, script(check_schedule(plain)), _backend(tree))
    except InputError as error:
        raise error.at(where) from None


def _constants(tree: ast.Module) -> dict[str, Any]:
    """The values of the names that matter, where they are literals."""
    return {
        line.targets[0].id: ast.literal_eval(line.value)
        for line in tree.body
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and line.targets[0].id in NAMES
    }


def _is_ids(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(type(item) is int for item in value)


def _backend(tree: ast.Module) -> str | None:
    """The backend of the one library that a module imports."""
    names = [one.name for line in ast.walk(tree) if isinstance(line, ast.Import) for one in line.names]
    names += [line.module or "" for line in ast.walk(tree) if isinstance(line, ast.ImportFrom)]
    found = {LIBRARIES[name.split(".")[0]] for name in names if name.split(".")[0] in LIBRARIES}
    return found.pop() if len(found) == 1 else None


def backend_of(modules: Mapping[str, Module], asked: str | None) -> str:
    """The backend: the one asked for, else that of the modules, else mpi. InputError where a module is for another."""
    chosen = asked
    for name, module in modules.items():
        if module.backend is None:
            continue
        if chosen is not None and module.backend != chosen and (chosen in LIBRARIES.values()):
            raise InputError(
                f"is written for backend {module.backend}",
                where=label(name),
                expected=f"--backend {module.backend}" if asked else f"modules for one backend, here {chosen}",
            )
        chosen = chosen or module.backend
    return chosen or "mpi"
