"""The proof checker: takes right proofs, and no wrong one; on its own, without anything but the standard library."""

from __future__ import annotations

import ast
import gzip
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from certify_support import UNSAT, Refuted, kept_lemmas, refuted
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.certify import lrat_check
from smtsynth.certify.elaborate import lrat
from smtsynth.certify.lrat_check import ProofError, check, lines

SOURCE = Path(lrat_check.__file__)
CNF = ["p cnf 2 4", "1 2 0", "-1 2 0", "1 -2 0", "-1 -2 0"]
PROOF = ["5 2 0 1 2 0", "6 0 5 3 4 0"]


@pytest.fixture(scope="module")
def two() -> Refuted:
    """The refutation of anything cheaper than the optimum of two factors and five steps."""
    pytest.importorskip("pysat", reason="proofs need python-sat")
    return refuted()


def test_it_is_short_and_imports_nothing_but_the_standard_library() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module)
        elif isinstance(node, ast.Name):
            assert node.id not in {"__import__", "eval", "exec", "compile"}
    assert imported == {"gzip", "sys", "zlib", "collections.abc"} and {"gzip", "sys", "zlib"} <= sys.stdlib_module_names


def run_alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The checker's file alone in a folder, in isolated mode and without any installed package."""
    shutil.copy(SOURCE, folder / "it.py")
    return subprocess.run(
        [sys.executable, "-I", "-S", "it.py", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_it_runs_alone(tmp_path: Path) -> None:
    (tmp_path / "a.cnf").write_text("\n".join(CNF) + "\n")
    (tmp_path / "a.lrat").write_text("\n".join(PROOF) + "\n")
    with gzip.open(tmp_path / "a.lrat.gz", "wt") as packed:
        packed.write("\n".join(PROOF) + "\n")
    for name in ("a.lrat", "a.lrat.gz"):
        done = run_alone(tmp_path, "a.cnf", name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "s VERIFIED\n", "")
    (tmp_path / "b.lrat").write_text(PROOF[0] + "\n")
    for arguments in (("a.cnf", "b.lrat"), ("a.cnf", "none.lrat"), ("none.cnf", "a.lrat"), ("a.cnf",), ("a.cnf", ".")):
        done = run_alone(tmp_path, *arguments)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith("not verified: ") and done.stderr.count("\n") == 1


def test_it_takes_the_refutation_of_a_problem_alone(two: Refuted, tmp_path: Path) -> None:
    (tmp_path / "a.cnf").write_text(two.cnf)
    shutil.copy(two.path, tmp_path / "a.lrat.gz")
    done = run_alone(tmp_path, "a.cnf", "a.lrat.gz")
    assert (done.returncode, done.stdout) == (0, "s VERIFIED\n")
    assert check(two.cnf.splitlines(), lines(str(two.path))) == two.lemmas == len(two.proof) > 100


RIGHT = {
    "comments": (["c by hand", *CNF], PROOF),
    "dropped clauses": (CNF, [PROOF[0], "5 d 1 2 0", PROOF[1]]),
    "numbers with gaps": (CNF, ["7 2 0 1 2 0", "70 0 7 3 4 0"]),
    "an empty clause at the start": (["p cnf 1 2", "1 0", "0"], ["3 0 2 0"]),
    "repeated literals": (["p cnf 1 2", "1 1 0", "-1 0"], ["3 0 1 2 0"]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_proofs_are_taken(name: str) -> None:
    cnf, proof = RIGHT[name]
    assert check(cnf, proof) == sum(" d " not in line for line in proof)


WRONG = {
    "empty": ([], "without the empty clause"),
    "no empty clause": (PROOF[:1], "without the empty clause"),
    "goes on": ([*PROOF, "7 1 0 1 4 0"], "goes on"),
    "RAT": (["5 2 0 1 -2 3 0", PROOF[1]], "RAT"),
    "RAT with no other hints": (["5 3 0 -1 0", "6 0 5 0"], "RAT"),
    "unknown hint": (["5 2 0 1 9 0", PROOF[1]], "no clause"),
    "hint on itself": (["5 2 0 1 5 0", PROOF[1]], "no clause"),
    "hint on a later lemma": (["5 0 6 0", "6 2 0 1 2 0"], "no clause"),
    "hint 0": (["5 2 0 0 1 2 0"], "no clause"),
    "hint on a dropped clause": ([PROOF[0], "5 d 3 0", PROOF[1]], "no clause"),
    "dropped twice": (["5 d 1 1 0", *PROOF], "not there"),
    "dropped before it comes": (["5 d 5 0", *PROOF], "not there"),
    "number of a clause": (["4 2 0 1 2 0", PROOF[1]], "beyond 4"),
    "number of a lemma": ([PROOF[0], "5 0 5 3 4 0"], "beyond 5"),
    "number of a dropped lemma": (["6 2 0 1 2 0", "6 d 6 0", "6 0 3 4 0"], "beyond 6"),
    "descending numbers": (["9 2 0 1 2 0", "6 0 9 3 4 0"], "beyond 9"),
    "negative number": (["-5 2 0 1 2 0"], "beyond"),
    "no hints": (["5 2 0 0", PROOF[1]], "no conflict"),
    "no part for hints": (["5 2 0", PROOF[1]], "not a lemma"),
    "conflict missing": (["5 2 0 1 0", PROOF[1]], "no conflict"),
    "hints after the conflict": (["5 2 0 1 2 3 0", PROOF[1]], "neither"),
    "hint with two literals left": (["5 0 1 2 3 0"], "neither"),
    "hint that holds already": (["5 2 0 1 1 2 0", PROOF[1]], "neither"),
    "end missing": (["5 2 0 1 2", PROOF[1]], "0 at the end"),
    "a blank line": (["", *PROOF], "0 at the end"),
    "a word": (["5 2 0 1 two 0", PROOF[1]], "whole numbers"),
    "an underscore": (["5 2 0 1_0 2 0", PROOF[1]], "whole numbers"),
    "a plus": (["5 +2 0 1 2 0", PROOF[1]], "whole numbers"),
    "a huge number": ([f"{'9' * 5000} 2 0 1 2 0", PROOF[1]], "whole numbers"),
    "a wrong line that drops": (["x d 1 0", *PROOF], "whole numbers"),
    "a comment": (["c here", *PROOF], "whole numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_proofs_are_rejected(name: str) -> None:
    proof, reason = WRONG[name]
    with pytest.raises(ProofError, match=reason):
        check(CNF, proof)


WRONG_CNF = {
    "empty": ([], "expected 'p cnf"),
    "no header": (CNF[1:], "expected 'p cnf"),
    "another header": (["p dnf 2 4", *CNF[1:]], "expected 'p cnf"),
    "header too long": (["p cnf 2 4 1", *CNF[1:]], "expected 'p cnf"),
    "header without numbers": (["p cnf two 4", *CNF[1:]], "whole numbers"),
    "a clause missing": (CNF[:-1], "has 3 clauses, its header says 4"),
    "a clause too many": ([*CNF, "1 0"], "has 5 clauses"),
    "a variable out of range": ([*CNF[:-1], "-1 -3 0"], "between 1 and 2"),
    "an end inside": ([*CNF[:-1], "-1 0 -2 0"], "between 1 and 2"),
    "two clauses on a line": (["p cnf 2 4", "1 2 0 -1 2 0", *CNF[3:]], "between 1 and 2"),
    "no end": ([*CNF[:-1], "-1 -2"], "0 at the end"),
    "a blank line": ([*CNF[:-1], "", CNF[-1]], "0 at the end"),
    "a second header": ([*CNF[:2], CNF[0], *CNF[2:]], "whole numbers"),
}


@pytest.mark.parametrize("name", WRONG_CNF)
def test_wrong_cnfs_are_rejected(name: str) -> None:
    cnf, reason = WRONG_CNF[name]
    with pytest.raises(ProofError, match=reason):
        check(cnf, PROOF)


def rejects(two: Refuted, proof: list[str]) -> bool:
    try:
        check(two.cnf.splitlines(), proof)
    except ProofError:
        return True
    return False


def split(line: str) -> tuple[str, list[str], list[str]]:
    """A lemma's number, literals and hints."""
    number, *words = line.split()
    end = words.index("0")
    return number, words[:end], words[end + 1 : -1]


def joined(number: str, literals: list[str], hints: list[str]) -> str:
    return " ".join([number, *literals, "0", *hints, "0"])


def without_a_hint(line: str, choose: random.Random) -> str:
    number, literals, hints = split(line)
    del hints[choose.randrange(len(hints))]
    return joined(number, literals, hints)


def flipped(line: str, choose: random.Random) -> str:
    number, literals, hints = split(line)
    place = choose.randrange(len(literals))
    literals[place] = str(-int(literals[place]))
    return joined(number, literals, hints)


def hint_doubled(line: str, choose: random.Random) -> str:
    number, literals, hints = split(line)
    return joined(number, literals, [hints[0], *hints])


@pytest.mark.parametrize("change", [without_a_hint, flipped, hint_doubled])
def test_no_lemma_bears_a_change(two: Refuted, change: Callable[[str, random.Random], str]) -> None:
    choose = random.Random(1)
    places = choose.sample(range(len(two.proof) - 1), 25)
    assert not rejects(two, two.proof)
    for place in places:
        changed = [*two.proof[:place], change(two.proof[place], choose), *two.proof[place + 1 :]]
        assert changed != two.proof and rejects(two, changed), two.proof[place]


def test_every_lemma_and_every_hint_is_needed(two: Refuted) -> None:
    choose = random.Random(2)
    for place in choose.sample(range(len(two.proof)), 25):
        assert rejects(two, [*two.proof[:place], *two.proof[place + 1 :]])
    number, literals, hints = split(two.proof[-1])
    for place in range(len(hints)):
        assert rejects(two, [*two.proof[:-1], joined(number, literals, [*hints[:place], *hints[place + 1 :]])])


def test_a_truncated_file_is_rejected(two: Refuted, tmp_path: Path) -> None:
    packed, text = two.path.read_bytes(), gzip.decompress(two.path.read_bytes()).decode()
    path, cnf = tmp_path / "a.lrat.gz", two.cnf.splitlines()
    for length in [0, 1, 5, 9, 10, 11, len(packed) // 2, *range(len(packed) - 9, len(packed))]:
        path.write_bytes(packed[:length])
        with pytest.raises(ProofError):
            check(cnf, lines(str(path)))
    path.write_bytes(packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:])  # a byte of the sum over the text
    with pytest.raises(ProofError, match="CRC"):
        check(cnf, lines(str(path)))
    plain = tmp_path / "a.lrat"
    for length in [*range(len(text) - 40, len(text) - 1), len(text) // 2, len(text) // 3]:
        plain.write_text(text[:length])
        with pytest.raises(ProofError):
            check(cnf, lines(str(plain)))
    plain.write_bytes(text.encode() + b"\xff")
    with pytest.raises(ProofError, match="ascii"):
        check(cnf, lines(str(plain)))


def test_the_proof_does_not_fit_a_neighbour(two: Refuted) -> None:
    for other in two.neighbours:
        assert other != two.cnf
        with pytest.raises(ProofError):
            check(other.splitlines(), two.proof)


def satisfied(clauses: list[tuple[int, ...]], values: tuple[bool, ...]) -> bool:
    return all(any(values[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(UNSAT, st.data())
def test_what_it_takes_follows(clauses: list[tuple[int, ...]], data: st.DataObject) -> None:
    """Whatever is done to CNF and proof: what is still accepted is unsatisfiable."""
    pytest.importorskip("pysat")
    proof = [[int(word) for word in line.split()] for line in lrat(kept_lemmas(clauses), len(clauses))]
    rows = [list(clause) for clause in clauses]
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            row = data.draw(st.sampled_from(rows))
            row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.sampled_from([-4, -3, -2, -1, 1, 2, 3, 4]))
        else:
            line = data.draw(st.sampled_from(proof))
            place = data.draw(st.integers(0, len(line) - 1))
            line[place : place + data.draw(st.integers(0, 1))] = data.draw(
                st.lists(st.integers(-4, len(clauses) + 4), max_size=1)
            )
    cnf = [f"p cnf 4 {len(rows)}", *(" ".join(map(str, [*row, 0])) for row in rows)]
    try:
        check(cnf, [" ".join(map(str, line)) for line in proof])
    except ProofError:
        return
    changed = [tuple(row) for row in rows]
    assert not any(satisfied(changed, values) for values in product([False, True], repeat=4))
