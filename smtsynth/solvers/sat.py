"""The SAT solvers: z3's own executable (the default) and CaDiCaL by PySAT, each on a DIMACS file in a child process."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Event

from smtsynth.errors import InputError
from smtsynth.solvers.outcome import Answer, Outcome
from smtsynth.solvers.process import outcome_of, run

SOLVERS = ("z3", "cadical")
DEFAULT_MEMORY = 2 * 2**30


@cache
def z3_executable() -> str:
    """The `z3` program that comes with the z3-solver package. Raises InputError where there is none."""
    try:
        files = importlib.metadata.files("z3-solver") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in ("z3", "z3.exe") and Path(str(file.locate())).is_file():
            return str(Path(str(file.locate())).resolve())
    found = shutil.which("z3")
    if found is None:
        raise InputError("the z3 program was not found", expected="the package z3-solver in this environment")
    return found


def check_solver(name: str) -> str:
    """`name` if that solver can be used here, else InputError."""
    if name not in SOLVERS:
        raise InputError(f"solver {name!r} is unknown", expected=" or ".join(SOLVERS))
    if name == "cadical" and importlib.util.find_spec("pysat") is None:
        raise InputError("solver 'cadical' needs the package python-sat", expected="pip install 'smtsynth[certify]'")
    return name


def solve_dimacs(
    text: str,
    solver: str = "z3",
    seconds: float | None = None,
    memory: int | None = None,
    stop: Event | None = None,
) -> Outcome:
    """Ask `solver` whether the DIMACS text is satisfiable, within `seconds` and `memory` bytes (default 2 GiB).

    Setting `stop` from another thread ends the solver.
    """
    if seconds is not None and seconds <= 0:
        return Outcome(Answer.UNKNOWN, reason="the time limit was reached")
    memory = memory or DEFAULT_MEMORY
    with tempfile.TemporaryDirectory(prefix="smtsynth-") as folder:
        path = Path(folder) / "problem.cnf"
        path.write_text(text)
        if solver == "z3":
            megabytes = min(max(1, memory // 2**20), 2**30)  # z3 cannot hold many more
            command = [z3_executable(), "-dimacs", f"-memory:{megabytes}", str(path)]
        else:
            command = [sys.executable, "-m", "smtsynth.solvers.cadical", str(path), str(min(memory, 2**62))]
        outcome = outcome_of(run(command, seconds, stop), solver)
    if outcome.answer is Answer.UNKNOWN and stop is not None and stop.is_set():
        return replace(outcome, reason="interrupted")
    return outcome
