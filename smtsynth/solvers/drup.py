"""Refutations with a proof: CaDiCaL (by PySAT) on a DIMACS file, as a program: `python -m smtsynth.solvers.drup …`.

Two kinds of proof: `drup`, the lemmas alone, is PySAT's own; `lrat` has, with each lemma, the clauses it follows from,
which CaDiCaL knows and PySAT doesn't ask for, so that the trace is opened here the way PySAT opens it, after the
option is set. Neither is to be trusted: smtsynth.certify makes of both what its checker takes.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import resource
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from threading import Event

from smtsynth.errors import InputError
from smtsynth.solvers.outcome import Answer, Outcome
from smtsynth.solvers.process import outcome_of, run


class ProofKind(StrEnum):
    """What a lemma of the proof comes with: the clauses it follows from, or nothing."""

    LRAT = "lrat"
    DRUP = "drup"


DEFAULT_MEMORY = 4 * 10**9


def solver_version() -> str:
    """Which solver writes the proofs. Raises InputError where it isn't installed."""
    if importlib.util.find_spec("pysat") is None:
        raise InputError("proofs need the package python-sat", expected="pip install 'smtsynth[certify]'")
    return f"CaDiCaL 1.9.5 of python-sat {importlib.metadata.version('python-sat')}"


def prove(
    cnf: Path,
    proof: Path,
    kind: ProofKind = ProofKind.LRAT,
    seconds: float | None = None,
    memory: int | None = None,
    stop: Event | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Refute the DIMACS file `cnf` and write the proof, within `seconds` and `memory` bytes (default 4 GB).

    The proof itself may take as many bytes. Setting `stop` from another thread ends the solver. Raises InputError
    where the solver isn't installed.
    """
    memory = memory or DEFAULT_MEMORY
    solver = solver_version()
    if seconds is not None and seconds <= 0:
        return Outcome(Answer.UNKNOWN, reason="the time limit was reached")

    def tick() -> None:
        size = proof.stat().st_size if proof.exists() else 0
        progress(f"{solver} refutes: {size / 1e6:.1f} MB of proof")

    command = [sys.executable, "-m", "smtsynth.solvers.drup", str(cnf), str(proof), kind, str(memory)]
    finished = run(command, seconds, stop, tick)
    if finished.status == -signal.SIGXFSZ:
        return Outcome(Answer.UNKNOWN, reason=f"the proof takes more than {memory} bytes", seconds=finished.seconds)
    return outcome_of(finished, "cadical")


def solve_lrat(clauses: list[list[int]], proof: str) -> bool:
    """Whether the clauses are satisfiable; where not, the file `proof` has a proof with hints."""
    import pysolvers  # type: ignore[import-not-found]
    from pysat.solvers import Cadical195

    with Cadical195() as solver:
        solver.configure({"lrat": 1, "binary": 0})
        solver.prfile = open(proof, "w+b")  # noqa: SIM115 (PySAT closes it)
        solver.prfp = pysolvers.cadical195_tracepr(solver.cadical, solver.prfile)
        for clause in clauses:
            solver.add_clause(clause)
        satisfiable = bool(solver.solve())
        pysolvers.flushpr(solver.prfp)
    return satisfiable


def solve_drup(clauses: list[list[int]], proof: str) -> bool:
    """Whether the clauses are satisfiable; where not, the file `proof` has a proof without hints."""
    from pysat.solvers import Solver

    with Solver("cadical195", bootstrap_with=clauses, with_proof=True) as solver:
        satisfiable = bool(solver.solve())
        with open(proof, "w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in (solver.get_proof() or () if not satisfiable else ()))
    return satisfiable


def main(cnf: str, proof: str, kind: str, memory: str) -> int:
    """Solve within `memory` bytes; write the proof, print the result in the SAT competition format."""
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(memory), int(memory)))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        from pysat.formula import CNF

        clauses = CNF(from_file=cnf).clauses
        satisfiable = (solve_lrat if kind == ProofKind.LRAT else solve_drup)(clauses, proof)
    except MemoryError:
        print("out of memory", file=sys.stderr)
        return 1
    print("s SATISFIABLE" if satisfiable else "s UNSATISFIABLE")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
