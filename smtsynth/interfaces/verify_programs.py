"""What `verify` does with a program over factors of any sizes."""

from __future__ import annotations

from functools import partial

from smtsynth.interfaces.answers import Answer, ProgramDetail, Settings
from smtsynth.model.program import Program, show_program
from smtsynth.verify.programs import ProgramVerdict, Sizes, schedule_over, show_sizes, sizes_tried, verify_program
from smtsynth.verify.schedules import MAX_SOLVER_DEVICES, Asked, Layout, obligation, verify_schedule


def verify_any_sizes(program: Program, names: tuple[str, ...], settings: Settings) -> Answer:
    """The answer on a program over factors of any sizes."""
    depth = len(names) - 1
    verdict = verify_program(depth, program, settings.layout, settings.progress)
    asked: tuple[Asked, ...] = ()
    if settings.solvers:
        asked = _ask_small(depth, program, verdict, settings)
    data = {
        "verdict": verdict.verdict,
        "reason": None if verdict.verdict == "proved" else verdict.reason,
        "step": verdict.step,
        "device": verdict.device,
        "chunk": verdict.chunk,
        "missing": list(verdict.missing) if verdict.verdict == "refuted" else None,
        "duplicated": list(verdict.duplicated) if verdict.verdict == "refuted" else None,
        "layout": verdict.layout,
        "sizes": {"proved": None, "refuted": list(verdict.fails), "unknown": list(verdict.holds)}[verdict.verdict],
    }
    questions = partial(_program_questions, depth, program, settings.layout)
    return Answer(
        verdict.verdict, data, show_program(program, names), asked, questions, ProgramDetail(program, names, verdict)
    )


def _small_sizes(depth: int) -> list[Sizes]:
    """The factor sizes of 2 to 4 that solvers can be asked about."""
    return [sizes for same in sizes_tried(depth) for sizes in same if _devices(sizes) <= MAX_SOLVER_DEVICES]


def _devices(sizes: Sizes) -> int:
    return schedule_over(sizes, ()).devices


def _ask_small(depth: int, program: Program, verdict: ProgramVerdict, settings: Settings) -> tuple[Asked, ...]:
    """What solvers say of the program on the smallest sizes that fail by the buffers, or on the smallest there are."""
    fails = () if verdict.by_rules else verdict.fails
    chosen = [sizes for sizes in fails[:1] or _small_sizes(depth)[:1] if _devices(sizes) <= MAX_SOLVER_DEVICES]
    asked: tuple[Asked, ...] = ()
    for sizes in chosen:
        schedule = schedule_over(sizes, program)
        asked += verify_schedule(schedule, settings.layout, settings.solvers, show_sizes([sizes])).asked
    return asked


def _program_questions(depth: int, program: Program, layout: Layout) -> dict[str, str]:
    """The program's question on each size of at most 16 devices."""
    found = {}
    for sizes in _small_sizes(depth):
        text = obligation(schedule_over(sizes, program), layout)
        if text is not None:
            found[f"program-{'x'.join(map(str, sizes))}.smt2"] = text
    return found
