"""Check an LRAT proof that a CNF is unsatisfiable: `python -I lrat_check.py FILE.cnf FILE.lrat` (or FILE.lrat.gz).

It stands alone, on the standard library and nothing else, so that it can be read in full and run anywhere.
CNF (DIMACS): comments, "p cnf VARIABLES CLAUSES", then a clause a line, ended by 0; clauses are numbered from 1.
Proof: "ID LITERALS 0 HINTS 0" adds a lemma, "ID d IDS 0" drops clauses. A lemma is accepted if, once its literals are
all false, each hint names a clause with exactly one literal left, which becomes true, and the last hint one with none
left. So each lemma follows from what is before it; the last is the empty clause. RAT (negative hints) is rejected.
"""

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence


class ProofError(ValueError):
    """The CNF or the proof is not what it has to be; the message says where and why."""


def check(cnf: Iterable[str], proof: Iterable[str]) -> int:
    """Check the lines of a proof against those of a CNF; return the number of lemmas, or raise ProofError."""
    clauses = read_cnf(cnf)
    last, lemmas, complete = len(clauses), 0, False
    for number, line in enumerate(proof, 1):
        where, words = f"proof line {number}", line.split()
        if complete:
            raise ProofError(f"{where}: the proof goes on after the empty clause")
        if words[1:2] == ["d"]:
            for name in integers([words[0], *words[2:]], where)[1:-1]:
                if clauses.pop(name, None) is None:
                    raise ProofError(f"{where}: clause {name} is dropped but not there")
            continue
        zero = (values := integers(words, where)).index(0)
        if not last < values[0] or zero >= len(values) - 1:
            raise ProofError(f"{where}: not a lemma with a number beyond {last}, its literals, 0, its hints, 0")
        last, lemma = values[0], frozenset(values[1:zero])
        propagate(lemma, values[zero + 1 : -1], clauses, where)
        clauses[last] = lemma
        lemmas, complete = lemmas + 1, not lemma
    if not complete:
        raise ProofError("the proof ends without the empty clause")
    return lemmas


def propagate(lemma: frozenset[int], hints: Sequence[int], clauses: Mapping[int, frozenset[int]], where: str) -> None:
    """With all of `lemma` false, unit propagation along exactly `hints` ends in a conflict; ProofError if not."""
    false = set(lemma)
    for place, hint in enumerate(hints, 1):
        if hint not in clauses:
            raise ProofError(f"{where}: hint {hint} is {'of kind RAT' if hint < 0 else 'no clause at this point'}")
        left = clauses[hint] - false
        if not left and place == len(hints):
            return
        if len(left) != 1 or -min(left) in false:
            raise ProofError(f"{where}: hint {hint} is neither unit nor the conflict at the end")
        false.add(-min(left))
    raise ProofError(f"{where}: the hints reach no conflict")


def read_cnf(cnf: Iterable[str]) -> dict[int, frozenset[int]]:
    """The clauses of a DIMACS CNF, by number; what its header says has to be so."""
    rows = ((f"CNF line {number}", line.split()) for number, line in enumerate(cnf, 1) if line[:1] != "c")
    where, header = next(rows, ("CNF", []))
    if len(header) != 4 or header[:2] != ["p", "cnf"]:
        raise ProofError(f"{where}: expected 'p cnf VARIABLES CLAUSES'")
    variables, count, _ = integers([*header[2:], "0"], where)
    clauses = {}
    for number, (where, words) in enumerate(rows, 1):
        *clause, _ = integers(words, where)
        if any(not 0 < abs(literal) <= variables for literal in clause):
            raise ProofError(f"{where}: a literal that is not between 1 and {variables} or the negation of one")
        clauses[number] = frozenset(clause)
    if len(clauses) != count:
        raise ProofError(f"the CNF has {len(clauses)} clauses, its header says {count}")
    return clauses


def integers(words: Sequence[str], where: str) -> list[int]:
    """The words as numbers, the last of them 0."""
    if words[-1:] != ["0"] or not all(word.removeprefix("-").isdecimal() and len(word) < 20 for word in words):
        raise ProofError(f"{where}: expected whole numbers, and a 0 at the end")
    return list(map(int, words))


def lines(path: str) -> Iterator[str]:
    """The lines of a text file, unpacked where its name ends in .gz."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="ascii") as file:
            yield from file
    except (OSError, EOFError, UnicodeError, zlib.error) as error:
        raise ProofError(f"{path}: {error}") from None


if __name__ == "__main__":
    try:
        _, cnf_path, proof_path = sys.argv
        check(lines(cnf_path), lines(proof_path))
    except ValueError as error:
        sys.exit(f"not verified: {error}")
    print("s VERIFIED")
