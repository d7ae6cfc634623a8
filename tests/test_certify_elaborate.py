"""Solver, elaboration and limits: what comes out is accepted by the checker, whatever kind of proof went in."""

from __future__ import annotations

import gzip
import io
import random
import signal
from array import array
from collections.abc import Callable
from pathlib import Path
from threading import Event, Timer

import pytest
from certify_support import (
    CLAUSES,
    OPTIMUM,
    UNSAT,
    clauses_of,
    cnf_below,
    kept_lemmas,
    raw_proof,
    read,
    refuted,
    satisfiable,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.certify import elaborate as elaboration
from smtsynth.certify import refutation
from smtsynth.certify.elaborate import Lemma, drup, elaborate, follow, lrat
from smtsynth.certify.lrat_check import check
from smtsynth.certify.refutation import pack, refute
from smtsynth.errors import InputError, InternalError, LimitReached
from smtsynth.solvers import drup as proofs
from smtsynth.solvers.drup import ProofKind, prove
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.process import Finished

pytest.importorskip("pysat", reason="proofs need python-sat")

Clauses = list[tuple[int, ...]]
KINDS = list(ProofKind)


def dimacs(clauses: Clauses) -> list[str]:
    return [f"p cnf 4 {len(clauses)}", *(" ".join(map(str, [*clause, 0])) for clause in clauses)]


def check_trimmed(clauses: Clauses, kept: list[Lemma]) -> None:
    """Every lemma but the last is a hint of a later one, and every hint is needed."""
    every: list[tuple[int, ...]] = [(), *clauses, *(tuple(literals) for literals, _ in kept)]
    named = {hint for _, hints in kept for hint in hints}
    assert named >= set(range(len(clauses) + 1, len(every) - 1))
    for literals, hints in kept[:: 1 + len(kept) // 100]:
        assert follow(every, literals, hints) == hints
        for hint in hints:
            assert follow(every, literals, [one for one in hints if one != hint]) is None


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(clauses=UNSAT)
def test_small_proofs_are_accepted_and_trimmed(kind: ProofKind, clauses: Clauses) -> None:
    kept = kept_lemmas(clauses, kind)
    assert check(dimacs(clauses), lrat(kept, len(clauses))) == len(kept)
    check_trimmed(clauses, kept)


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_s_refutation_is_accepted_and_trimmed(kind: ProofKind) -> None:
    found = refuted(kind)
    clauses = clauses_of(found.cnf)
    kept = []
    for line in found.proof:
        words = [int(word) for word in line.split()]
        end = words.index(0)
        kept.append((words[1:end], words[end + 1 : -1]))
    assert check(found.cnf.splitlines(), found.proof) == found.lemmas == len(kept)
    check_trimmed(clauses, kept)


def test_the_solver_s_hints_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CaDiCaL's own hints nothing has to be searched for, so that large proofs take seconds."""

    def fail(*arguments: object) -> None:
        raise AssertionError("a search for hints")

    monkeypatch.setattr(elaboration, "Propagation", fail)
    clauses = clauses_of(cnf_below(OPTIMUM))
    kept = kept_lemmas(clauses, ProofKind.LRAT)
    assert len(kept) == refuted().lemmas
    with pytest.raises(AssertionError, match="search"):
        kept_lemmas(clauses, ProofKind.DRUP)


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_wrong_hints_are_made_good(share: float) -> None:
    choose = random.Random(3)
    clauses = clauses_of(cnf_below(OPTIMUM))
    proof = raw_proof(clauses, ProofKind.LRAT)
    for number, hints in proof.hints.items():
        if choose.random() < share:
            proof.hints[number] = array("q", [choose.randrange(len(proof.clauses)) for _ in hints])
    kept = elaborate(proof)
    assert check(cnf_below(OPTIMUM).splitlines(), lrat(kept, len(clauses))) == len(kept)
    check_trimmed(clauses, kept)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(CLAUSES, st.lists(st.lists(st.sampled_from([-4, -3, -2, -1, 1, 2, 3, 4]), max_size=2), max_size=6))
def test_nothing_that_does_not_follow_comes_out(clauses: Clauses, lemmas: list[list[int]]) -> None:
    text = "".join(" ".join(map(str, [*lemma, 0])) + "\n" for lemma in [*lemmas, []])
    try:
        kept = elaborate(read(clauses, ProofKind.DRUP, text))
    except InternalError as error:
        assert "does not follow" in str(error)
        return
    assert check(dimacs(clauses), lrat(kept, len(clauses))) == len(kept)
    assert not satisfiable(clauses)


def test_a_proof_without_its_end_is_refused() -> None:
    clauses: Clauses = [(1, 2), (-1, 2), (1, -2), (-1, -2)]
    for kind, text in ((ProofKind.DRUP, "2 0\n"), (ProofKind.LRAT, "5 2 0 1 2 0\n"), (ProofKind.LRAT, "")):
        with pytest.raises(InternalError, match="does not end in the empty clause"):
            elaborate(read(clauses, kind, text))
    kept = elaborate(read(clauses, ProofKind.DRUP, "2 0\nd 1 2 0\nd 3 4 0\n0\nd 2 0\n"))
    assert check(dimacs(clauses), lrat(kept, 4)) == 2 and list(drup(kept)) == ["2 0\n", "0\n"]


def test_an_empty_clause_needs_no_solver() -> None:
    clauses: Clauses = [(1,), ()]
    kept = elaborate(read(clauses, ProofKind.DRUP, ""))
    assert check(["p cnf 1 2", "1 0", "0"], lrat(kept, 2)) == 1


def test_numbers_between_the_originals_are_found() -> None:
    """CaDiCaL simplifies clauses as they come, and numbers the simplified ones too."""
    clauses: Clauses = [(1,), (-1, 2, 3), (-1, 2, -3), (-2, 4), (-2, -4)]
    text = "3 2 3 0 1 2 0\n5 2 -3 0 1 4 0\n8 2 0 3 5 0\n8 d 3 5 0\n9 4 0 8 6 0\n10 0 8 9 7 0\n"
    proof = read(clauses, ProofKind.LRAT, text)
    assert list(proof.hints[6]) == [1, 2] and list(proof.hints[7]) == [1, 3] and list(proof.events)[3:5] == [-6, -7]
    kept = elaborate(proof)
    assert check(dimacs(clauses), lrat(kept, 5)) == 5


def test_dratify_accepts_the_refutation() -> None:
    dratify = pytest.importorskip("dratify", reason="the independent checker dratify is not installed")
    clauses = clauses_of(cnf_below(OPTIMUM))
    text = "".join(drup(kept_lemmas(clauses)))
    right = dratify.check_proof(dratify.parse_dimacs(cnf_below(OPTIMUM)), text, check_rat=False)
    assert right.ok and right.reached_empty
    wrong = dratify.check_proof(dratify.parse_dimacs(cnf_below(OPTIMUM + 1)), text, check_rat=False)
    assert not wrong.ok


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elaboration, "EVERY", 100)
    clauses = clauses_of(cnf_below(OPTIMUM))
    said: list[str] = []
    elaborate(raw_proof(clauses, ProofKind.LRAT), said.append)
    assert len(said) == refuted().lemmas // 100 and said[0].startswith("100 lemmas kept")


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        pack(file, ["1 0\n", "2 0\n"])
    assert files[0].getvalue() == files[1].getvalue() and gzip.decompress(files[0].getvalue()) == b"1 0\n2 0\n"
    refute(cnf_below(OPTIMUM), tmp_path / "again.gz")
    assert (tmp_path / "again.gz").read_bytes() == refuted().path.read_bytes()


def test_what_can_be_satisfied_is_not_refuted(tmp_path: Path) -> None:
    target = tmp_path / "proof.gz"
    with pytest.raises(InternalError, match="satisfiable"):
        refute(cnf_below(OPTIMUM + 1), target)
    assert not target.exists()


def test_limits_end_the_work(tmp_path: Path) -> None:
    target, cnf = tmp_path / "proof.gz", cnf_below(OPTIMUM)
    with pytest.raises(LimitReached, match="time limit"):
        refute(cnf, target, seconds=0)
    with pytest.raises(LimitReached, match="time limit"):
        refute(cnf, target, seconds=0.01)
    with pytest.raises(LimitReached, match=r"no proof: (cadical|the elaboration)"):
        refute(cnf, target, memory=30 * 2**20)
    stop = Event()
    stop.set()
    with pytest.raises(LimitReached):
        refute(cnf, target, stop=stop)
    assert not target.exists()


@pytest.mark.parametrize(
    ("finished", "stopped", "error", "said"),
    [
        (Finished("", "", -9, True, 1.0), False, LimitReached, "time limit"),
        (Finished("", "", -9, False, 1.0), True, LimitReached, "stopped"),
        (Finished("", "out of memory\n", 1, False, 1.0), False, LimitReached, "more than 4000000000 bytes"),
        (Finished("", "ImportError: failed to map segment", 1, False, 1.0), False, LimitReached, "more than"),
        (Finished("", "lemma 3 does not\nfollow", 1, False, 1.0), False, InternalError, "1: lemma 3 does not follow"),
    ],
)
def test_how_the_elaboration_failed_is_said(
    finished: Finished,
    stopped: bool,
    error: type[Exception],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop = Event()

    def run(*arguments: object) -> Finished:
        if stopped:
            stop.set()
        return finished

    monkeypatch.setattr(refutation, "run", run)
    with pytest.raises(error, match=said):
        refute(cnf_below(OPTIMUM), tmp_path / "proof.gz", stop=stop)
    assert not (tmp_path / "proof.gz").exists()


def test_stopping_from_outside() -> None:
    stop = Event()
    timer = Timer(0.05, stop.set)
    timer.start()
    try:
        with pytest.raises(LimitReached):
            refute(hard(), Path("never"), stop=stop, seconds=60)
    finally:
        timer.cancel()


def hard() -> str:
    """Eleven pigeons in ten holes: longer than anyone waits."""
    holes, pigeons = range(10), range(11)
    clauses = [" ".join(str(1 + 10 * pigeon + hole) for hole in holes) + " 0" for pigeon in pigeons]
    clauses += [
        f"{-(1 + 10 * one + hole)} {-(1 + 10 * two + hole)} 0"
        for hole in holes
        for two in pigeons
        for one in range(two)
    ]
    return "\n".join([f"p cnf 110 {len(clauses)}", *clauses]) + "\n"


def test_a_proof_too_large_for_the_limit_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], *rest: object) -> Finished:
        return Finished("", "", -signal.SIGXFSZ, False, 1.0)

    monkeypatch.setattr(proofs, "run", run)
    outcome = prove(tmp_path / "a.cnf", tmp_path / "a.proof", memory=1000)
    assert outcome.answer is Answer.UNKNOWN and outcome.reason == "the proof takes more than 1000 bytes"


def test_without_the_solver_s_package(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Callable[[str], None] = lambda name: None  # noqa: E731
    monkeypatch.setattr(proofs.importlib.util, "find_spec", missing)
    with pytest.raises(InputError, match="python-sat"):
        proofs.solver_version()
