"""All models of a set of clauses, projected on some variables (for counting and tests; in this process, no limits)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from smtsynth.solvers.outcome import Answer


class UnknownAnswer(Exception):
    """The solver could not say; never read as 'no more models'."""


def all_models(dimacs: str, literals: Sequence[int]) -> Iterator[frozenset[int]]:
    """Yield, for each assignment of the variables `literals` that some model has, the set of those that are true."""
    import z3  # here, because importing it takes a while

    solver = z3.SolverFor("QF_FD")
    with tempfile.TemporaryDirectory(prefix="smtsynth-") as folder:
        path = Path(folder) / "problem.cnf"
        path.write_text(dimacs)
        solver.from_file(str(path))
    variables = [z3.Bool(literal) for literal in literals]
    while (answer := solver.check()) == z3.sat:
        model = solver.model()
        true = frozenset(
            n for n, variable in zip(literals, variables, strict=True) if z3.is_true(model.eval(variable, True))
        )
        yield true
        solver.add(z3.Or([z3.Not(v) if n in true else v for n, v in zip(literals, variables, strict=True)]))
    if answer != z3.unsat:
        raise UnknownAnswer(f"{Answer.UNKNOWN}: {solver.reason_unknown()}")
