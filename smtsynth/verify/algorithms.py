"""MSCCL algorithms by a second path: the question about all orders put to SMT solvers, for small files."""

from __future__ import annotations

from collections.abc import Sequence

from smtsynth.errors import InputError
from smtsynth.msccl.memory import modes
from smtsynth.msccl.model import Algorithm
from smtsynth.msccl.query import order_query
from smtsynth.msccl.verdict import Kind, MscclVerdict
from smtsynth.verify.schedules import Asked, ask

MAX_ASKED = 12  # steps of a file that solvers are asked about by default
MAX_WRITTEN = 64  # steps of a file whose questions are written


def order_questions(algorithm: Algorithm, fifo_slots: int, most: int = MAX_WRITTEN) -> dict[str, str]:
    """The questions about orders of the steps, as {file name: text}; none where there are more than `most` steps.

    order: can all steps run (sat unless there is a deadlock); race, per mode: can two conflicting steps come in
    either order; goal, per mode: can something go wrong at the end.
    """
    if algorithm.step_count > most:
        return {}
    try:
        found = {"order.smt2": order_query(algorithm, "order", None, fifo_slots)}
        for mode in modes(algorithm):
            for question in ("race", "goal"):
                name = f"{question}-{mode.replace(' ', '-')}.smt2"
                found[name] = order_query(algorithm, question, mode, fifo_slots)
    except InputError:
        return {}  # messages that don't match up: there are no orders to ask about
    return found


def agree(algorithm: Algorithm, verdict: MscclVerdict, fifo_slots: int, solvers: Sequence[str]) -> tuple[Asked, ...]:
    """What solvers say of a small file's orders; InternalError where that contradicts the verdict.

    What needs no order (bounds, messages, flags) isn't asked; nor is what no longer counts once something is wrong.
    """
    questions = order_questions(algorithm, fifo_slots, MAX_ASKED) if solvers else {}
    expected: dict[str, bool] = {}  # whether the question's answer is unsat
    if verdict.kind is None:
        expected = {name: name != "order.smt2" for name in questions}
    elif verdict.kind is Kind.DEADLOCK:
        expected = {"order.smt2": True}
    elif verdict.kind in (Kind.RACE, Kind.UNWRITTEN, Kind.WRONG_SUM) and verdict.mode is not None:
        question = "race" if verdict.kind is Kind.RACE else "goal"
        expected = {f"{question}-{verdict.mode.replace(' ', '-')}.smt2": False}
    asked: tuple[Asked, ...] = ()
    for name, holds in expected.items():
        if name in questions:
            asked += ask(name.removesuffix(".smt2"), questions[name], holds, solvers)
    return asked
