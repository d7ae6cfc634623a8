"""What `verify` shows in a terminal: the verdict first, then where, why, and what solvers say."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from smtsynth.interfaces.answers import Answer, ProgramDetail, ScheduleDetail, XmlDetail
from smtsynth.interfaces.layout import console, wrapped
from smtsynth.meaning.judge import show_devices
from smtsynth.meaning.pieces import plan
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Group, Schedule
from smtsynth.solvers.outcome import Answer as Said
from smtsynth.verify.assigned import BY_RULES, MORE, OTHER
from smtsynth.verify.explain import Lines, explain
from smtsynth.verify.programs import judge_over, scope, show_sizes
from smtsynth.verify.schedules import MAX_SOLVER_DEVICES

STYLE = {"proved": "bold green", "refuted": "bold red", "unknown": "bold yellow"}
ENDS = {
    Collective.ALL_REDUCE: "every device ends with every chunk, each contribution of its group in it exactly once",
    Collective.REDUCE_SCATTER: "every device ends with exactly its own part of the chunks, each complete",
    Collective.ALL_GATHER: "every device ends with the parts of all devices of its group",
    Collective.REDUCE: "each root ends with every chunk, each contribution of its group in it exactly once",
    Collective.BROADCAST: "every device ends with what its group's root had at the start",
}


def print_answer(answer: Answer, explained: bool, dumped: str | None) -> None:
    """Print the answer; explained: with the group's state around the faulty step; dumped: the folder of questions."""
    out = console()
    detail = answer.detail
    if isinstance(detail, ScheduleDetail):
        _schedule(out, answer, detail, explained)
    elif isinstance(detail, ProgramDetail):
        _program(out, answer, detail, explained)
    else:
        _xml(out, answer, detail)
    _solvers(out, answer)
    if dumped is not None:
        names = ", ".join(answer.questions())
        _line(out, f"Written to {dumped}: {names}")


def _line(out: Console, text: str, indent: int = 0) -> None:
    """Text in lines that fit, the first at the margin and the others indented."""
    for number, line in enumerate(wrapped(text, out.width - indent - 2)):
        out.print(" " * (indent + 2 * (number > 0)) + escape(line), soft_wrap=True)


def _verdict(out: Console, verdict: str, text: str) -> None:
    """The verdict and what it says, first of all."""
    first, *others = wrapped(f"{verdict}: {text}", out.width - 2)
    out.print(f"[{STYLE[verdict]}]{verdict}[/]{escape(first.removeprefix(verdict))}", soft_wrap=True)
    for line in others:
        out.print("  " + escape(line), soft_wrap=True)


def _schedule(out: Console, answer: Answer, detail: ScheduleDetail, explained: bool) -> None:
    schedule, verdict = detail.schedule, detail.verdict
    if verdict.verdict == "proved":
        ends = ENDS[schedule.goal.collective]
        if schedule.goal.collective is Collective.REDUCE_SCATTER and verdict.reason in (OTHER, MORE, BY_RULES):
            ends = verdict.reason
        _verdict(out, "proved", f"{answer.title}: {ends}")
        if verdict.reason == MORE:
            _line(out, "Layout: devices hold more than their part of the chunks (--layout identity refuses that).")
        elif isinstance(verdict.layout, tuple):
            _line(
                out,
                f"Layout: permuted; position by position the chunks are {_some(verdict.layout)}. What runs for real "
                "must undo that (--layout identity refuses it).",
            )
        elif verdict.layout == "identity":
            _line(out, "Layout: identity, every chunk in its place.")
    else:
        _verdict(out, verdict.verdict, verdict.reason)
        _line(out, f"Goal: {answer.title}")
    if verdict.verdict == "refuted":
        _facts(out, detail)
        if explained:
            _explain(out, schedule, detail)
        else:
            _line(out, "--explain shows what the group held before and after.")
    steps = f"{len(schedule.steps)} step{'s' * (len(schedule.steps) != 1)} on {schedule.devices} devices"
    _line(out, f"Checked: {steps}, every contribution counted.")


def _some(numbers: Iterable[int], most: int = 16) -> str:
    texts = list(map(str, numbers))
    return ", ".join(texts if len(texts) <= most else [*texts[:most], f"… ({len(texts)} in all)"])


def _facts(out: Console, detail: ScheduleDetail) -> None:
    """What is wrong, a line each."""
    verdict, schedule = detail.verdict, detail.schedule
    pieces = plan(schedule).pieces
    step = "none: something never came"
    if verdict.step is not None:
        step = f"{verdict.step} of {len(schedule.steps)}, {verdict.collective}"
    device = None
    if verdict.device is not None:
        device = str(verdict.device) + (f" ({detail.where(verdict.device)})" if detail.where else "")
    chunk = None if verdict.chunk is None else f"{verdict.chunk} of {pieces} (from 0)"
    facts = {
        "step": step,
        "device": device,
        "chunk": chunk,
        "missing": show_devices(verdict.missing) or None,
        "twice": show_devices(verdict.duplicated) or None,
        "foreign": show_devices(verdict.foreign) or None,
    }
    for key, value in facts.items():
        if value is not None:
            _line(out, f"{key:<8} {value}", 2)


def _explain(out: Console, schedule: Schedule, detail: ScheduleDetail) -> None:
    """The group's state around the step at fault."""
    scene = explain(schedule, detail.verdict)
    if scene is None:
        return
    group = f"[{_group(scene.group)}]"
    if scene.step is None:
        _line(out, f"At the end, in group {group}:")
    else:
        _line(out, f"Step {scene.step}, {scene.collective} on group {group}:")
    for word, lines in (("before", scene.before), ("after", scene.after)):
        if lines is not None:
            _held(out, word if scene.step is not None else "", lines, scene.group)
    if scene.step is not None and scene.after is None:
        _line(out, "The step cannot run.", 2)


def _group(group: Group) -> str:
    """A group in its order, short."""
    return show_devices(group) if list(group) == sorted(group) else _some(group)


def _held(out: Console, word: str, lines: Lines, group: Group) -> None:
    """What devices held, under a word."""
    if word:
        out.print(f"  {word}")
    for devices, text in lines:
        name = f"device{'s' * (len(devices) > 1)} {show_devices(devices)}"
        _line(out, f"{name}: {text}", 4)
    left = len(group) - sum(len(devices) for devices, _ in lines)
    if left:
        _line(out, f"… and {left} more devices", 4)


def _program(out: Console, answer: Answer, detail: ProgramDetail, explained: bool) -> None:
    verdict, depth = detail.verdict, detail.verdict.depth
    factors = ", ".join(detail.names[1:])
    if verdict.verdict == "proved":
        _verdict(out, "proved", f"{detail.goal} on {scope(depth)} ({factors}), whatever their sizes (from 2 up)")
        if verdict.layout == "identity":
            _line(out, "Layout: identity, every chunk in its place.")
        else:
            _other_layout(out, detail)
    elif verdict.verdict == "refuted":
        _verdict(out, "refuted", verdict.reason)
        _line(out, f"Goal: {detail.goal}")
        _line(out, f"Factors: {factors}. The smallest sizes that fail: {show_sizes(verdict.fails)}.")
        if verdict.holds:
            _line(out, f"It holds on {show_sizes(verdict.holds)}.")
        if verdict.by_rules:
            _line(
                out,
                f"On {show_sizes(verdict.fails[:1])} the rules of the model refuse it, by which a device's chunks are "
                "in ascending order; the buffers, which keep the order that chunks came in, reach the goal.",
            )
        elif explained:
            judged = judge_over(verdict.fails[0], detail.program, detail.aim, detail.layout)
            if judged.schedule is not None:
                _explain(out, judged.schedule, ScheduleDetail(judged.schedule, judged.verdict, None))
        else:
            _line(out, f"--explain shows what a group held on {show_sizes(verdict.fails[:1])}, before and after.")
    else:
        _verdict(out, "unknown", verdict.reason)
        _line(out, f"Goal: {detail.goal}")
        _line(out, f"Factors: {factors}. It holds on {show_sizes(verdict.holds, 30)}." if verdict.holds else "")
    _line(out, f"Program: {answer.title}")


def _other_layout(out: Console, detail: ProgramDetail) -> None:
    """How chunks end where it isn't in chunk order, and an example."""
    sizes = (2,) * detail.aim.depth
    judged = judge_over(sizes, detail.program, detail.aim).verdict
    layout = judged.layout
    example = f": on {show_sizes([sizes])} {_some(layout)}" if isinstance(layout, tuple) else ""
    if detail.aim.collective is not Collective.REDUCE_SCATTER:
        _line(out, f"Layout: one order of the chunks for all devices, which depends on the sizes{example}.")
    elif judged.reason == MORE:
        _line(out, "Layout: devices hold more than their part of the chunks (--layout identity refuses that).")
    else:
        _line(
            out,
            f"Layout: parts go to devices in another assignment, which depends on the sizes{example}, device by "
            "device. What runs for real must undo that (--layout identity refuses it).",
        )


def _xml(out: Console, answer: Answer, detail: XmlDetail) -> None:
    verdict = detail.verdict
    if verdict.verdict == "proved":
        _verdict(out, "proved", f"{answer.title}: right in every interleaving that its order allows")
        _line(out, f"No race, no deadlock with {detail.fifo_slots} messages a FIFO, no unmatched message.")
    else:
        _verdict(out, verdict.verdict, verdict.reason)
        mode = f", {verdict.mode}" if verdict.mode else ""
        kind = f" ({verdict.kind}{mode})" if verdict.kind else ""
        _line(out, f"File: {answer.title}{kind}")
    if verdict.verdict == "refuted":
        places = list(dict.fromkeys(verdict.witness))
        for place in places[:8]:
            step = detail.algorithm.step(place)
            line = f"line {step.line}: " if step.line else ""
            text = f"{line}{place}, {step.type} {step.srcbuf}[{step.srcoff}] -> {step.dstbuf}[{step.dstoff}]"
            _line(out, f"witness  {text}, {step.cnt} chunk{'s' * (step.cnt != 1)}", 2)
        if len(places) > 8:
            _line(out, f"… {len(places)} steps in all", 2)
    for warning in verdict.warnings[:8]:
        _line(out, f"Warning: {warning}")


def _solvers(out: Console, answer: Answer) -> None:
    """Which solvers were asked, and that they agree."""
    asked = answer.asked
    if not asked:
        why = answer.unasked or f"they are up to {MAX_SOLVER_DEVICES} devices, or 12 steps of XML"
        _line(out, f"Solvers: none asked ({why}).")
        return
    agreeing = [one for one in asked if one.answer is not Said.UNKNOWN]
    if agreeing:
        said = ", ".join(f"{one.solver} ({one.question}: {one.answer}, {one.seconds:.2f} s)" for one in agreeing)
        _line(out, f"Solvers: {said}: they agree." if len(agreeing) > 1 else f"Solver: {said}: it agrees.")
    for one in asked:
        if one.answer is Said.UNKNOWN:
            _line(out, f"Solvers: {one.solver} has no answer ({one.question}): {one.reason or 'unknown'}")
