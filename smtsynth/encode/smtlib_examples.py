"""The examples of encodings/examples: `python -m smtsynth.encode.smtlib_examples FOLDER` writes them."""

from __future__ import annotations

import sys
from pathlib import Path

from smtsynth.encode.smtlib_questions import (
    class_program_question,
    obligations_question,
    placement_question,
    program_question,
)
from smtsynth.encode.smtlib_schedule import schedule_obligation
from smtsynth.meaning.goals import target
from smtsynth.model.program import Collective, Instruction, Span, named
from smtsynth.model.schedule import Entry, Schedule

ACROSS, INSIDE = Span(0, 1, False), Span(1, 2, False)


def _instruction(collective: Collective, span: Span) -> Instruction:
    return named(collective, span, 2)


def examples() -> dict[str, str]:
    """File name: text. Each begins with what it asks, and says before each `check-sat` what the answer is."""
    split = (
        _instruction(Collective.REDUCE_SCATTER, INSIDE),
        _instruction(Collective.ALL_REDUCE, ACROSS),
        _instruction(Collective.ALL_GATHER, INSIDE),
    )
    inside, across = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    schedule = Schedule(
        4,
        (
            (Entry(Collective.REDUCE_SCATTER, inside),),
            (Entry(Collective.ALL_REDUCE, across),),
            (Entry(Collective.ALL_GATHER, inside),),
        ),
    )
    five = [_instruction(collective, ACROSS) for collective in Collective]
    questions = {
        "placement": (
            "Is there a placement of axes 4 and 16 on levels 4 and 16?",
            "sat",
            placement_question((4, 16), (4, 16)),
        ),
        "program": (
            "Do these three instructions make a program of at most three steps on 2 x 2 devices?",
            "sat",
            program_question(target((2, 2)), split, 3),
        ),
        "no-program": (
            "Do these three instructions make a program of at most two steps on 2 x 2 devices?",
            "unsat",
            program_question(target((2, 2)), split, 2),
        ),
        "class-program": (
            "Do these three instructions make a program of at most three steps, by the classes of two factors?",
            "sat",
            class_program_question(target((2, 2)), split, 3),
        ),
        "obligations": (
            "Is there a step of a collective along factor 0 of 2 x 2 devices that the class step does not follow?",
            "unsat",
            obligations_question((2, 2), five),
        ),
        "schedule": (
            "Does ReduceScatter in pairs, AllReduce across them and AllGather in them miss the AllReduce of 4 devices?",
            "unsat",
            schedule_obligation(schedule),
        ),
    }
    return {
        f"{name}.smt2": f"; {title}\n" + text.replace("(check-sat)", f"(set-info :status {status})\n(check-sat)")
        for name, (title, status, text) in questions.items()
    }


def main(folder: str) -> None:
    """Write all examples into a folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in examples().items():
        (Path(folder) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
