"""What the tests of certificates share: a refuted problem, small unsatisfiable clauses, their proofs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from conftest import A100, problem
from hypothesis import strategies as st

from smtsynth import lower
from smtsynth.certify.elaborate import Lemma, Literals, Proof, elaborate, read_drup, read_lrat
from smtsynth.certify.lrat_check import lines
from smtsynth.certify.refutation import refute
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.encode.reduced import encode
from smtsynth.model.program import instruction_set
from smtsynth.solvers.drup import ProofKind, solve_drup, solve_lrat

OPTIMUM = 417776266  # of the model's worked example, section 6: 2^31 bytes


@dataclass(frozen=True)
class Refuted:
    """A CNF, its proof (path, and as lines), the number of lemmas, and CNFs of neighbouring problems."""

    cnf: str
    path: Path
    lemmas: int
    proof: list[str]
    neighbours: tuple[str, ...]


def two_factor_prices(payload: int = 2**31) -> Prices:
    """The model's worked example: 4 nodes of 16."""
    given = problem(A100, (64,), (0,), payload)
    return Prices(AlphaBeta(), lower(given, [[4, 16]]), given.reduction.payload)


def cnf_below(bound: int, payload: int = 2**31, steps: int = 5, name: str = "full") -> str:
    """The CNF that asks for a program of two factors cheaper than `bound`."""
    return encode(two_factor_prices(payload), instruction_set(2, name), steps, bound).clauses.dimacs()


@cache
def refuted(kind: ProofKind = ProofKind.LRAT) -> Refuted:
    """The worked example below its optimum; neighbours: a bound that a program meets, other sizes, steps and sets."""
    cnf = cnf_below(OPTIMUM)
    path = Path(tempfile.mkdtemp(prefix="smtsynth-test-")) / "proof.lrat.gz"
    lemmas = refute(cnf, path, kind=kind).lemmas
    neighbours = (
        cnf_below(OPTIMUM + 1),
        cnf_below(OPTIMUM, payload=2**31 - 2**20),
        cnf_below(OPTIMUM, steps=4),
        cnf_below(OPTIMUM, name="p2"),
    )
    return Refuted(cnf, path, lemmas, [line.rstrip("\n") for line in lines(str(path))], neighbours)


def clauses_of(cnf: str) -> list[tuple[int, ...]]:
    """The clauses of our own DIMACS text, literals in order."""
    return [tuple(int(word) for word in line.split()[:-1]) for line in cnf.splitlines()[1:]]


def satisfiable(clauses: list[tuple[int, ...]]) -> bool:
    """Whether some values of four variables satisfy all clauses."""
    return any(
        all(any(values[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)
        for values in product([False, True], repeat=4)
    )


LITERALS = st.sampled_from([-4, -3, -2, -1, 1, 2, 3, 4])
CLAUSES = st.lists(st.lists(LITERALS, min_size=1, max_size=3).map(tuple), min_size=6, max_size=24)
UNSAT = CLAUSES.filter(lambda clauses: not satisfiable(clauses))


def raw_proof(clauses: list[tuple[int, ...]], kind: ProofKind) -> Proof:
    """CaDiCaL's proof that the clauses are unsatisfiable, read."""
    solve: Callable[[list[list[int]], str], bool] = solve_lrat if kind is ProofKind.LRAT else solve_drup
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "proof")
        assert not solve([list(clause) for clause in clauses], path)
        return read(clauses, kind, Path(path).read_text())


def read(clauses: list[Literals] | list[tuple[int, ...]], kind: ProofKind, text: str) -> Proof:
    """A proof of this kind."""
    return (read_lrat if kind is ProofKind.LRAT else read_drup)(clauses, text.splitlines())


def kept_lemmas(clauses: list[tuple[int, ...]], kind: ProofKind = ProofKind.LRAT) -> list[Lemma]:
    """The elaborated proof that the clauses are unsatisfiable."""
    return elaborate(raw_proof(clauses, kind))
