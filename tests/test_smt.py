"""SMT-LIB text put to z3 and cvc5 in child processes."""

from __future__ import annotations

import importlib.util

import pytest

from smtsynth.errors import InputError, InternalError
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import SMT_SOLVERS, run_smtlib

HEAD = "(set-option :produce-models true)\n(set-logic QF_BV)\n(declare-const x (_ BitVec 4))\n"
# The factors of a product of two primes of 48 bits.
HARD = (
    "(set-logic QF_BV)\n(declare-const x (_ BitVec 96))\n(declare-const y (_ BitVec 96))\n"
    f"(assert (= (bvmul x y) (_ bv{(2**48 - 59) * (2**47 - 115)} 96)))\n"
    f"(assert (bvult (_ bv1 96) x))\n(assert (bvult x (_ bv{2**48} 96)))\n"
    f"(assert (bvult (_ bv1 96) y))\n(assert (bvult y (_ bv{2**48} 96)))\n(check-sat)\n"
)


@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_answers_come_in_order_with_values(solver: str) -> None:
    text = HEAD + "(push 1)\n(assert (= x (bvadd x #b0001)))\n(check-sat)\n(pop 1)\n"
    text += "(assert (= (bvmul x #b0011) #b1111))\n(check-sat)\n(get-value (x))\n"
    result = run_smtlib(text, solver, 60)
    assert result.answers == (Answer.UNSAT, Answer.SAT)
    assert result.reason is None and "".join(result.values).replace(" ", "") in ("((x#b0101))", "((x#x5))")


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize("line", ["(assert (nonsense x))", "(assert (= x #b00000))", "(assert"])
def test_a_script_that_is_rejected_is_our_bug(solver: str, line: str) -> None:
    with pytest.raises(InternalError, match=f"{solver} rejects"):
        run_smtlib(HEAD + line + "\n(check-sat)\n", solver, 60)


def test_cvc5_takes_standard_smt_lib_only() -> None:
    solver_own = HEAD + "(declare-fun p (Int) Bool)\n(check-sat-using smt)\n(check-sat)\n"
    with pytest.raises(InternalError):
        run_smtlib(solver_own, "cvc5", 60)


@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_a_time_limit_gives_unknown(solver: str) -> None:
    result = run_smtlib(HARD, solver, 0.5)
    assert result.answers == (Answer.UNKNOWN,)
    assert result.reason is not None and "time limit" in result.reason


@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_answers_before_the_time_limit_are_kept(solver: str) -> None:
    text = HARD.replace("(set-logic QF_BV)\n", "(set-logic QF_BV)\n(push 1)\n(assert false)\n(check-sat)\n(pop 1)\n")
    result = run_smtlib(text, solver, 2)
    assert result.answers == (Answer.UNSAT, Answer.UNKNOWN) and result.reason is not None


@pytest.mark.parametrize("solver", SMT_SOLVERS)
def test_a_memory_limit_gives_unknown(solver: str) -> None:
    result = run_smtlib(HARD, solver, 60, memory=(10 if solver == "z3" else 40) * 2**20)
    assert result.answers == (Answer.UNKNOWN,)
    assert result.reason is not None and "limit" in result.reason


def test_a_solver_that_is_not_there_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="'other' is unknown; expected z3 or cvc5"):
        run_smtlib(HEAD, "other")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs the package cvc5"):
        run_smtlib(HEAD, "cvc5")
