"""What `verify` does with a YAML or JSON file: schedules, and programs on a placement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from smtsynth.errors import InputError
from smtsynth.interfaces.answers import Answer, ScheduleDetail, Settings, goal_text, verdict_data
from smtsynth.interfaces.factors import resolve_over
from smtsynth.interfaces.files import read_problem
from smtsynth.interfaces.programs import MixedSchedule, RawProgram, listed_steps, read_verifiable
from smtsynth.interfaces.verify_programs import NO_QUESTION, verify_any_sizes
from smtsynth.meaning.buffers import Verdict
from smtsynth.model.lowering import HIERARCHIES, Lowering, lowering_of
from smtsynth.model.placement import Placement, check_placement, only_placement
from smtsynth.model.problem import Problem
from smtsynth.model.program import Program
from smtsynth.model.schedule import Goal, Schedule, check_schedule
from smtsynth.verify.placed import describe_device, goal_on, goal_per_axis, judge_lowered, lowered
from smtsynth.verify.schedules import MAX_SOLVER_DEVICES, Asked, Layout, ask, obligation, verify_schedule


def verify_yaml(name: str, is_program: bool, settings: Settings) -> Answer:
    """Verify what a YAML or JSON file, or short program text, holds. Raises InputError for whatever is wrong there."""
    found = read_verifiable(name)
    problem = None if settings.problem is None else read_problem(settings.problem)
    if problem is None:
        for option in ("placement", "hierarchy"):
            if getattr(settings, option) is not None:
                raise InputError("needs a problem", where=f"--{option}", expected="--problem PROBLEM beside it")
    if not isinstance(found, RawProgram):
        if is_program or settings.factors is not None:
            raise InputError("is a schedule", where=name[:200], expected="a program")
        for option in ("collective", "split"):
            if getattr(settings, option) is not None:
                raise InputError("doesn't go with a schedule", where=f"--{option}", expected="`goal:` in its file")
        return _schedule(found, problem, settings)
    if settings.factors is not None:
        if problem is not None:
            raise InputError("comes with a problem", where="--factors", expected="one of the two")
        names, program = resolve_over(found, settings.factors)
        return verify_any_sizes(program, names, settings)
    if problem is None:
        if found.listed is not None:
            raise InputError(
                "an answer of solve doesn't hold the system it is for", where=name[:200], expected="--problem PROBLEM"
            )
        raise InputError(
            "over which factors?", where="--program" if is_program else name[:200], expected="--factors N, or --problem"
        )
    _same_goal(problem, settings)
    return _lowered(found, problem, settings)


def _same_goal(problem: Problem, settings: Settings) -> None:
    """InputError where options give another goal than the problem."""
    if settings.split is not None:
        raise InputError(
            "comes with a problem", where="--split", expected="its own `reduce: {collective: {axis: ReduceScatter, …}}`"
        )
    reduction = problem.reduction
    own = str(reduction.collective)
    if reduction.mixed:
        own = f"AllReduce that ends split over {', '.join(reduction.split)}"
    if settings.collective not in (None, own):
        raise InputError(f"is {settings.collective[:40]!r}", where="--collective", expected=f"the problem's, {own}")


# --- Schedules ---


def _placement(problem: Problem, settings: Settings, matrix: Any = None) -> Placement:
    """The placement that was given, by option or in an answer of solve, or the only one."""
    from smtsynth.interfaces.options import matrix_of

    if settings.placement is not None:
        try:
            return check_placement(matrix_of(settings.placement), problem.axes, problem.system)
        except InputError as error:
            raise InputError(error.what, where="--placement", expected=error.expected) from None
    if matrix is not None:
        return check_placement(matrix, problem.axes, problem.system)
    return only_placement(problem.system, problem.axes)


def _schedule(found: Schedule | MixedSchedule, problem: Problem | None, settings: Settings) -> Answer:
    """The answer on a schedule; a problem gives coordinates, and the goal where the schedule has none."""
    mixed = found if isinstance(found, MixedSchedule) else None
    schedule = found.schedule if isinstance(found, MixedSchedule) else found
    if problem is None:
        if mixed is not None:
            raise InputError(
                "a goal per axis needs a placement", where=mixed.where, expected="--problem PROBLEM --placement MATRIX"
            )
        return _scheduled(schedule, None, settings)
    if problem.system.devices != schedule.devices:
        raise InputError(
            f"the schedule has {schedule.devices} devices, the problem {problem.system.devices}",
            where="--problem",
            expected="equal numbers",
        )
    placement = None
    if mixed is not None or settings.placement is not None or schedule.goal == Goal():
        placement = _placement(problem, settings)
    if mixed is not None and placement is not None:
        try:
            schedule = replace(schedule, goal=goal_per_axis(problem.system, placement, dict(mixed.kinds)))
        except InputError as error:
            raise InputError(error.what, where=mixed.where, expected=error.expected) from None
    elif placement is not None and schedule.goal == Goal():
        schedule = replace(schedule, goal=goal_on(problem, placement))
    return _scheduled(schedule, _where(problem, placement), settings)


def _where(problem: Problem, placement: Placement | None) -> Callable[[int], str]:
    return partial(describe_device, system=problem.system, placement=placement)


def _scheduled(schedule: Schedule, where: Callable[[int], str] | None, settings: Settings) -> Answer:
    settings.progress(f"{len(schedule.steps)} steps on {schedule.devices} devices")
    checked = verify_schedule(check_schedule(schedule), settings.layout, settings.solvers)
    return _schedule_answer(schedule, checked.verdict, where, checked.asked, schedule, settings)


def _schedule_answer(
    schedule: Schedule,
    verdict: Verdict,
    where: Callable[[int], str] | None,
    asked: tuple[Asked, ...],
    question: Schedule | None,
    settings: Settings,
) -> Answer:
    """The answer with this verdict; `question` is what solvers are asked about."""
    if verdict.device is not None and where is not None:
        verdict = replace(verdict, reason=f"{verdict.reason} (device {verdict.device} is {where(verdict.device)})")
    return Answer(
        verdict.verdict,
        verdict_data(verdict),
        goal_text(schedule),
        asked,
        partial(_schedule_questions, question, settings.layout),
        ScheduleDetail(schedule, verdict, where),
        NO_QUESTION if question is None and schedule.devices <= MAX_SOLVER_DEVICES else None,
    )


def _schedule_questions(schedule: Schedule | None, layout: Layout) -> dict[str, str]:
    text = None if schedule is None else obligation(schedule, layout)
    return {} if text is None else {"schedule.smt2": text}


# --- Programs on a placement ---


def _lowered(found: RawProgram, problem: Problem, settings: Settings) -> Answer:
    """The answer on a program as it is lowered on a placement; what an answer of solve lists is what counts there."""
    hierarchy = settings.hierarchy or found.hierarchy or "reduction"
    if hierarchy not in HIERARCHIES:
        raise InputError(f"{hierarchy[:40]!r} is unknown", where="--hierarchy", expected=", ".join(HIERARCHIES))
    placement = _placement(problem, settings, found.matrix)
    lowering = lowering_of(problem, placement, hierarchy)
    program = found.resolve(lowering.names)
    schedule = lowered(problem, lowering, program)
    where = _where(problem, placement)
    if found.listed is not None:
        steps = listed_steps(found.listed, problem.system.devices)
        if steps != schedule.steps:
            return _scheduled(replace(schedule, steps=steps), where, settings)
    settings.progress(f"{len(program)} steps on {schedule.devices} devices")
    return _on_placement(problem, lowering, program, schedule, where, settings)


def _on_placement(
    problem: Problem,
    lowering: Lowering,
    program: Program,
    schedule: Schedule,
    where: Callable[[int], str],
    settings: Settings,
) -> Answer:
    judged, asked = judge_lowered(problem, lowering, program, settings.layout), tuple[Asked, ...]()
    text = None if judged.schedule is None else obligation(judged.schedule, settings.layout)
    if text is not None and judged.verdict.verdict != "unknown":
        asked = ask("schedule", text, judged.verdict.verdict == "proved", settings.solvers)
    return _schedule_answer(schedule, judged.verdict, where, asked, judged.schedule, settings)
