"""CaDiCaL (by PySAT) on a DIMACS file, as a program of its own: `python -m smtsynth.solvers.cadical FILE BYTES`."""

from __future__ import annotations

import resource
import sys


def main(path: str, memory: int) -> int:
    """Solve the file within `memory` bytes; print the result in the SAT competition format."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        from pysat.formula import CNF
        from pysat.solvers import Solver

        with Solver("cadical195", bootstrap_with=CNF(from_file=path).clauses) as solver:
            if solver.solve():
                print("s SATISFIABLE")
                print("v " + " ".join(map(str, solver.get_model())) + " 0")
            else:
                print("s UNSATISFIABLE")
    except MemoryError:
        print("out of memory", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
