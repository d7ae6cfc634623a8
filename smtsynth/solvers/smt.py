"""SMT-LIB text put to z3 (its executable) or cvc5 (the pip package), in a child process with a time limit."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from smtsynth.errors import InputError, InternalError
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.process import run
from smtsynth.solvers.sat import DEFAULT_MEMORY, z3_executable

SMT_SOLVERS = ("z3", "cvc5")


@dataclass(frozen=True, slots=True)
class SmtAnswers:
    """One answer per `check-sat` of a script, in order; those not reached are unknown, and `reason` says why.

    `values` are the lines that came of `get-value` and the like, as the solver printed them.
    """

    answers: tuple[Answer, ...]
    values: tuple[str, ...] = ()
    reason: str | None = None
    seconds: float = 0.0


def run_smtlib(text: str, solver: str = "z3", seconds: float | None = None, memory: int | None = None) -> SmtAnswers:
    """Put a script to `solver` ("z3" or "cvc5"), within `seconds` and `memory` bytes (default 2 GiB).

    Raises InputError where the solver isn't installed, InternalError where it rejects the script.
    """
    memory = memory or DEFAULT_MEMORY
    questions = text.count("(check-sat")
    if solver not in SMT_SOLVERS:
        raise InputError(f"SMT solver {solver!r} is unknown", expected=" or ".join(SMT_SOLVERS))
    if solver == "cvc5" and importlib.util.find_spec("cvc5") is None:
        raise InputError("solver 'cvc5' needs the package cvc5", expected="pip install cvc5")
    with tempfile.TemporaryDirectory(prefix="smtsynth-") as folder:
        path = Path(folder) / "question.smt2"
        path.write_text(text, encoding="utf-8")
        if solver == "z3":
            command = [z3_executable(), "-smt2", f"-memory:{max(1, memory // 2**20)}", str(path)]
        else:
            command = [sys.executable, "-m", "smtsynth.solvers.cvc5_child", str(path), str(memory)]
        finished = run(command, seconds)
    lines = finished.output.splitlines()
    answers = [Answer(line) for line in lines if line in list(Answer)][:questions]
    values = tuple(line for line in lines if line not in list(Answer))
    if len(answers) == questions and not finished.status:
        return SmtAnswers(tuple(answers), values, seconds=finished.seconds)
    said = " ".join(f"{finished.output[-400:]} {finished.errors[-400:]}".split())
    if finished.late:
        reason = f"{solver} reached the time limit"
    elif "memory" in said:
        reason = f"{solver} reached the memory limit"
    else:
        error = next((line for line in lines if line.startswith("(error")), said[-400:])
        raise InternalError(f"{solver} rejects our SMT-LIB: {error or f'status {finished.status}'}")
    answers += [Answer.UNKNOWN] * (questions - len(answers))
    return SmtAnswers(tuple(answers), values, reason, finished.seconds)
