"""Check an LRAT proof that a CNF is unsatisfiable: `python -I lrat_check.py FILE.cnf FILE.lrat` (or FILE.lrat.gz).

It stands alone: the standard library and nothing else, so that it can be read in full, copied and run anywhere.

CNF (DIMACS): comment lines, "p cnf VARIABLES CLAUSES", then a clause a line, ended by 0; clauses are numbered from 1.
Proof, a line each: "ID LITERALS 0 HINTS 0" adds a lemma, "ID d IDS 0" drops clauses. A lemma is accepted if, with all
its literals false, each hint names a clause that has exactly one literal left, which becomes true, and the last one
a clause that has none. So every lemma follows from the clauses before it. The last lemma is the empty clause.
Hints of other kinds of reasoning (RAT: negative numbers) are rejected.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

Clause = frozenset[int]


class ProofError(ValueError):
    """The CNF or the proof is not what it has to be; the message says where and why."""


def check(cnf: str | Iterable[str], proof: str | Iterable[str]) -> int:
    """Check `proof` (a path or lines) against `cnf` (the same); return the number of lemmas, or raise ProofError."""
    clauses = dict(enumerate(read_cnf(cnf), 1))
    last, lemmas, complete = len(clauses), 0, False
    for number, line in enumerate(lines(proof), 1):
        where = f"proof line {number}"
        words = line.split()
        if complete:
            raise ProofError(f"{where}: the proof goes on after the empty clause")
        if words[1:2] == ["d"]:
            for name in integers(words[2:], where)[:-1]:
                if clauses.pop(name, None) is None:
                    raise ProofError(f"{where}: clause {name} is dropped but not there")
            continue
        values = integers(words, where)
        zero = values.index(0)
        if not 0 < zero < len(values) - 1:
            raise ProofError(f"{where}: not a lemma: expected its number, its literals, 0, its hints, 0")
        if values[0] <= last:
            raise ProofError(f"{where}: lemma number {values[0]} does not exceed all before it")
        lemma, last = frozenset(values[1:zero]), values[0]
        propagate(lemma, values[zero + 1 : -1], clauses, where)
        clauses[last] = lemma
        lemmas, complete = lemmas + 1, not lemma
    if not complete:
        raise ProofError("the proof ends without the empty clause")
    return lemmas


def propagate(lemma: Clause, hints: Sequence[int], clauses: Mapping[int, Clause], where: str) -> None:
    """With the literals of `lemma` false, unit propagation along exactly `hints` ends in a conflict; else ProofError."""
    false = set(lemma)
    for place, hint in enumerate(hints, 1):
        if hint not in clauses:
            raise ProofError(f"{where}: hint {hint} is {'of kind RAT' if hint <= 0 else 'no clause at this point'}")
        left = clauses[hint] - false
        if not left:
            if place < len(hints):
                raise ProofError(f"{where}: hints go on after the conflict")
            return
        (unit, *more) = left
        if more or -unit in false:
            raise ProofError(f"{where}: hint {hint} is neither unit nor a conflict")
        false.add(-unit)
    raise ProofError(f"{where}: the hints reach no conflict")


def read_cnf(cnf: str | Iterable[str]) -> Iterator[Clause]:
    """The clauses of a DIMACS CNF; what its header says has to be so."""
    rows = ((number, line.split()) for number, line in enumerate(lines(cnf), 1) if line[:1] != "c")
    number, header = next(rows, (1, []))
    if len(header) != 4 or header[:2] != ["p", "cnf"]:
        raise ProofError(f"CNF line {number}: expected 'p cnf VARIABLES CLAUSES'")
    variables, count = integers([*header[2:], "0"], f"CNF line {number}")[:2]
    found = 0
    for found, (number, words) in enumerate(rows, 1):
        *clause, end = integers(words, f"CNF line {number}")
        if 0 in clause or any(abs(literal) > variables for literal in clause):
            raise ProofError(f"CNF line {number}: a literal that is not between 1 and {variables} or its negation")
        yield frozenset(clause)
    if found != count:
        raise ProofError(f"the CNF has {found} clauses, its header says {count}")


def integers(words: Sequence[str], where: str) -> list[int]:
    """The words as numbers, the last of them 0."""
    try:
        values = list(map(int, words))
    except ValueError:
        values = []
    if not values or values[-1]:
        raise ProofError(f"{where}: expected whole numbers, the last one 0")
    return values


def lines(source: str | Iterable[str]) -> Iterator[str]:
    """The lines of a text, given as such or by the path of its file (packed where that ends in .gz)."""
    if not isinstance(source, str):
        yield from source
        return
    try:
        with (gzip.open if source.endswith(".gz") else open)(source, "rt", encoding="ascii") as file:
            yield from file
    except (OSError, EOFError, UnicodeError, zlib.error) as error:
        raise ProofError(f"{source}: {error}") from None


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -I lrat_check.py FILE.cnf FILE.lrat[.gz]")
    try:
        check(sys.argv[1], sys.argv[2])
    except ProofError as error:
        sys.exit(f"not verified: {error}")
    print("s VERIFIED")
