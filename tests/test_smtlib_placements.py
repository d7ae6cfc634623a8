"""Placements as SMT-LIB questions, against their enumeration."""

from __future__ import annotations

import pytest

from smtsynth.encode.smtlib import conjuncts, encoding_text
from smtsynth.encode.smtlib_questions import placement_question
from smtsynth.model.placement import Axis, placements
from smtsynth.model.system import Level, System
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import SMT_SOLVERS, run_smtlib


def ask(text: str, solver: str) -> Answer:
    (answer,) = run_smtlib(text, solver, 120).answers
    return answer


PLACEMENTS = [
    ((4, 16), (4, 16)),
    ((8, 2, 4), (4, 16)),
    ((16, 2, 2), (4, 16)),
    ((4, 4), (1, 2, 2, 4)),
    ((6, 10), (4, 15)),
    ((7,), (7,)),
    ((2, 2, 2), (2, 4)),
    ((5,), (5,)),
]
UNFIT = [((3, 4), (4, 4)), ((2, 8), (4, 2)), ((4, 8), (4, 4))]


def all_matrices(axes: tuple[int, ...], levels: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    system = System([Level(f"l{number}", size, "1 GB/s") for number, size in enumerate(levels)])
    found = placements(system, [Axis(f"a{number}", size) for number, size in enumerate(axes)])
    return [placement.matrix for placement in found]


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize(("axes", "levels"), PLACEMENTS)
def test_models_are_exactly_the_placements(axes: tuple[int, ...], levels: tuple[int, ...], solver: str) -> None:
    matrices = all_matrices(axes, levels)
    assert ask(placement_question(axes, levels, matrices), solver) == Answer.UNSAT
    for left_out in {matrices[0], matrices[-1]}:
        rest = [matrix for matrix in matrices if matrix != left_out]
        assert ask(placement_question(axes, levels, rest), solver) == Answer.SAT


@pytest.mark.parametrize("name", conjuncts(encoding_text("placement.smt2")))
def test_dropping_a_conjunct_of_the_placement_is_noticed(name: str) -> None:
    questions = [placement_question(axes, levels, all_matrices(axes, levels), {name}) for axes, levels in PLACEMENTS]
    questions += [placement_question(axes, levels, (), {name}) for axes, levels in UNFIT]
    assert any(ask(question, "z3") == Answer.SAT for question in questions)


@pytest.mark.parametrize("solver", SMT_SOLVERS)
@pytest.mark.parametrize(("axes", "levels"), UNFIT)
def test_axes_that_do_not_fit_have_no_placement(axes: tuple[int, ...], levels: tuple[int, ...], solver: str) -> None:
    assert ask(placement_question(axes, levels), solver) == Answer.UNSAT
