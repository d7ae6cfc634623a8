"""What people read in a terminal: tables of placements, programs in words, steps and their bottlenecks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from smtsynth.cost.alphabeta import simulate_program
from smtsynth.cost.interface import CostModel, StepCost
from smtsynth.interfaces.layout import Table, console
from smtsynth.model.lowering import Lowering
from smtsynth.model.problem import Problem, Reduction
from smtsynth.model.program import Program, show_instruction, show_program
from smtsynth.model.system import System
from smtsynth.model.units import show_bandwidth, show_bytes, show_seconds
from smtsynth.search.compare import Comparison, agree
from smtsynth.search.inclusions import Inclusions
from smtsynth.search.loop import Status
from smtsynth.search.replay import MAX_CONCRETE
from smtsynth.search.solution import Solution
from smtsynth.solvers.outcome import Answer

LEFT_OUT = (
    "Times are modelled, not measured: rings and chains on uplink loads, one step after the other; no overlap of "
    "steps, no congestion beyond the uplinks, no compute."
)


MAX_ROWS = 40  # placements that solve lists, best first
MAX_NAMED = 2**22  # devices; groups of larger systems are counted, not named


def milliseconds(nanoseconds: int | None) -> str:
    """A duration given in nanoseconds, as people write it."""
    return "-" if nanoseconds is None else show_seconds(nanoseconds / 1e9)


def speedup(solution: Solution) -> str:
    """The speed-up over the plain collective, e.g. '1.27x'."""
    return "-" if solution.speedup is None else f"{solution.speedup:.2f}x"


def claim(solution: Solution) -> str:
    """What is claimed, in a word or two: proved, the gap that is left, infeasible or unknown."""
    if solution.status is Status.OPTIMAL:
        return "proved"
    if solution.status is Status.FEASIBLE and solution.cost and solution.lower_bound is not None:
        gap = 100 * (solution.cost - solution.lower_bound) / solution.cost
        return f"gap {gap:.1f} %" if gap else "bound met, not refuted"
    return str(solution.status)


def group_text(devices: Sequence[int], most: int = 8) -> str:
    """A group for people: 0-15, 0,16,32,48 or 0,16,…,240."""
    steps = {two - one for one, two in zip(devices, devices[1:], strict=False)}
    if len(devices) > 2 and steps == {1}:
        return f"{devices[0]}-{devices[-1]}"
    if len(devices) > most and len(steps) == 1:
        return f"{devices[0]},{devices[1]},…,{devices[-1]}"
    shown = ",".join(map(str, devices[:most]))
    return shown if len(devices) <= most else f"{shown},… ({len(devices)} in all)"


def groups_text(lowering: Lowering, step: int, program: Program) -> str:
    """The groups of a step: how many, of how many devices, and the first ones."""
    start, stop, master = program[step].span(lowering.depth)
    size = math.prod(lowering.sizes[start:stop])
    outside = lowering.sizes[:start] if master else lowering.sizes[:start] + lowering.sizes[stop:]
    count = math.prod(outside) * lowering.replicas
    text = f"{count} group{'s' * (count != 1)} of {size}"
    if lowering.system.devices > MAX_NAMED:
        return text
    groups = lowering.groups(program[step])
    first = [group_text(lowering.devices[0, group].tolist()) for group in groups[:2]]
    more = " …" if count > len(first) else ""
    return f"{text}: [{'] ['.join(first)}]{more}"


def unit_text(system: System, level: int, unit: int) -> str:
    """A unit in words, e.g. 'node 2'."""
    return ", ".join(system.describe(unit * system.below(level)).split(", ")[: level + 1])


def bottleneck_text(cost: StepCost, system: System) -> str:
    """Which uplink a step waits for."""
    where = cost.bottleneck
    if where is None:
        return "-"
    if where.link is not None or where.level is None or where.unit is None:
        return str(where.link)
    level = system.levels[where.level]
    if where.device is not None:
        rate = show_bandwidth(level.per_device or 0)
        return f"{level.name} uplink, {where.direction}, {rate} that device {where.device} can drive"
    what = "uplink" if level.kind == "switch" else f"link in the {level.kind}"
    return f"{unit_text(system, where.level, where.unit)} {what}, {where.direction}, {show_bandwidth(level.bandwidth)}"


def solve_report(solution: Solution, problem: Problem, model: CostModel) -> None:
    """The answer of solve: the table of placements where there are several, then the best program."""
    out = console()
    over = ", ".join(problem.reduction.over)
    out.print(
        f"{_goal(problem.reduction)} over {over}: {show_bytes(problem.reduction.payload)} per device, "
        f"{problem.system.devices} devices, {_levels(problem.system)}"
    )
    if solution.placements:
        _placements(out, solution, _plain(problem.reduction))
    _headline(out, solution, _plain(problem.reduction))
    if solution.program:
        _steps(out, solution, problem, model)
    _bounds(out, solution)
    out.print(f"[dim]{LEFT_OUT}[/dim]")


def _goal(reduction: Reduction) -> str:
    """The collective, or the mix, in words."""
    return f"AllReduce that ends split over {', '.join(reduction.split)}," if reduction.mixed else reduction.collective


def _plain(reduction: Reduction) -> str:
    """What the answer is compared with: the same by plain collectives."""
    return "collectives" if reduction.mixed else str(reduction.collective)


def _levels(system: System) -> str:
    return " x ".join(f"{level.size} {level.name}" for level in system.levels)


def _placements(out: Console, solution: Solution, plainly: str) -> None:
    axes = ", ".join(f"{axis.name} {axis.size}" for axis in solution.placement.axes)
    every = sorted(solution.placements, key=lambda one: (one.cost is None, one.cost, one.placement.matrix))
    many = f"{len(every)} placements (rows {axes}), best first:"
    out.print(f"\n{many}" if len(every) > 1 else f"\n1 placement (rows {axes}):")
    numbers = ("speed-up", "best", plainly)
    rows = Table(("placement", *numbers, "claim", "program"), right=numbers, below={"program": ""})
    for one in every[:MAX_ROWS]:
        rows.add_row(
            str(one.placement),
            speedup(one),
            milliseconds(one.cost),
            milliseconds(one.allreduce),
            claim(one),
            show_program(one.program, one.lowering.names) if one.program is not None else one.reason or "-",
            style="bold green" if one.placement == solution.placement else "",
        )
    out.print(rows)
    if len(every) > MAX_ROWS:
        out.print(f"… {len(every) - MAX_ROWS} more (--json lists all)")
    plain = [one.allreduce for one in every if one.allreduce]
    if plain and max(plain) > min(plain):
        out.print(
            f"The placement alone makes plain {plainly} take {milliseconds(min(plain))} to {milliseconds(max(plain))} "
            f"({max(plain) / min(plain):.3g}x)."
        )


def _headline(out: Console, solution: Solution, plainly: str) -> None:
    where = f"on placement {solution.placement}"
    if solution.cost is None:
        out.print(escape(f"\n{str(solution.status).capitalize()} {where}: {solution.reason or 'proved by the solver'}"))
        return
    out.print(
        f"\n[bold]{speedup(solution)} faster than plain {plainly}[/bold]: {milliseconds(solution.cost)} instead of "
        f"{milliseconds(solution.allreduce)} {escape(where)}"
        if solution.cost < solution.allreduce
        else f"\n[bold]No faster than plain {plainly}[/bold]: {milliseconds(solution.cost)} {escape(where)}"
    )
    scope = (
        f"instruction set {solution.instruction_set}, at most {solution.steps_limit} steps, "
        f"hierarchy {solution.hierarchy}, cost model {solution.cost_model}"
    )
    if solution.status is Status.OPTIMAL:
        out.print(f"Optimal: {_refutation(solution)} ({scope})")
    else:
        out.print(escape(f"Not proved optimal ({solution.reason}): {claim(solution)} ({scope})"))


def _refutation(solution: Solution) -> str:
    """What the claim of optimality rests on."""
    last = next((query for query in reversed(solution.loop) if query.answer is Answer.UNSAT), None)
    if last is None:
        return "nothing is to be reduced"
    return f"{solution.solver} refuted any program below {milliseconds(last.bound)} in {last.seconds:.2f} s"


def _steps(out: Console, solution: Solution, problem: Problem, model: CostModel) -> None:
    program, lowering, payload = solution.program or (), solution.lowering, problem.reduction.payload
    out.print()
    columns = ("step", "time", "instruction", "groups", "waits for")
    rows = Table(columns, right=("step", "time"), below={"groups": "", "waits for": "waits for "})
    costs = simulate_program(model, lowering, program, payload, problem.reduction.collective)
    for number, (instruction, cost) in enumerate(zip(program, costs, strict=True)):
        rows.add_row(
            str(number + 1),
            milliseconds(cost.nanoseconds),
            show_instruction(instruction, lowering.names),
            groups_text(lowering, number, program),
            bottleneck_text(cost, problem.system),
        )
    out.print(rows)
    if isinstance(solution.layout, tuple):
        order = escape(group_text(solution.layout, 16))
        out.print(f"Chunks end in permuted order {order}; what runs for real undoes that.")
    if lowering.size > MAX_CONCRETE:
        out.print("Replayed symbolically, for factors of any size (more than 1024 devices per replica).")


def _bounds(out: Console, solution: Solution) -> None:
    if solution.any_schedule_bound is not None:
        out.print(
            f"\nNo schedule on this placement takes less than {milliseconds(solution.any_schedule_bound)} "
            "(what must cross each uplink over its bandwidth)."
        )


def compare_report(comparisons: Sequence[Comparison], merged: bool) -> None:
    """The table of compare."""
    out = console()
    how = "equal states merged" if merged else "one by one, as the paper"
    numbers = ("programs", "enumerated", "took", "solved", "took")
    rows = Table(("placement", *numbers, "agree", "by length"), right=numbers, below={"by length": "by length: "})
    for one in comparisons:
        found = one.enumerated
        rows.add_row(
            str(one.lowering.placement),
            str(found.count),
            milliseconds(found.cost),
            f"{found.seconds:.2f} s",
            milliseconds(one.solved.cost),
            f"{one.solved.seconds:.2f} s",
            {True: "yes", False: "NO", None: "not finished"}[one.agree],
            " ".join(map(str, found.by_length)),
            style="bold red" if one.agree is False else "",
        )
    out.print(rows)
    for one in comparisons:
        if one.agree is None:
            out.print(escape(f"{one.lowering.placement}: {one.enumerated.reason or one.solved.reason}"))
    verdict = {True: "Both agree to the nanosecond.", False: "They DISAGREE: a bug of ours.", None: "Not all finished."}
    out.print(f"{verdict[agree(comparisons)]} (enumeration: {how})")
    out.print(f"[dim]{LEFT_OUT}[/dim]")


def overlap_report(interval: tuple[int, int] | None) -> None:
    """The bounds of perfect and no overlap, nanoseconds, where they were asked for."""
    if interval is not None:
        console().print(
            f"Between {milliseconds(interval[0])} (perfect overlap of steps) and {milliseconds(interval[1])} (none)."
        )


def simulate_report(texts: Sequence[str], costs: Sequence[StepCost], system: System) -> None:
    """The table of simulate; texts: each step in words."""
    out = console()
    numbers = ("step", "time", "latency", "transfer")
    rows = Table((*numbers, "what", "waits for"), right=numbers, below={"waits for": "waits for "})
    for number, (text, cost) in enumerate(zip(texts, costs, strict=True), 1):
        rows.add_row(
            str(number),
            milliseconds(cost.nanoseconds),
            show_seconds(cost.latency),
            show_seconds(cost.transfer),
            text,
            bottleneck_text(cost, system),
        )
    out.print(rows)
    out.print(f"[bold]{milliseconds(sum(cost.nanoseconds for cost in costs))}[/bold] in all")
    out.print(f"[dim]{LEFT_OUT}[/dim]")


def placements_report(problem: Problem, matrices: Sequence[Any], count: int) -> None:
    """The list of placements."""
    out = console()
    axes = ", ".join(f"{axis.name} {axis.size}" for axis in problem.axes)
    out.print(f"{count} placements of {axes} (rows) on {_levels(problem.system)} (columns)")
    for one in matrices:
        out.print(escape(str(one)))
    if len(matrices) < count:
        out.print(f"… {count - len(matrices)} more (--all lists them)")


def inclusions_report(found: Inclusions, instruction_set: str) -> None:
    """Per pair of hierarchies, how many lowered programs of the column the row lacks."""
    out = console()
    names = list(found.programs)
    numbers = ("steps", "programs", *names)
    rows = Table(("hierarchy", *numbers), right=numbers, below={"steps": "step limit "})
    for one in names:
        lacks = ["" if one == two else str(found.lacks(one, two)) for two in names]
        rows.add_row(one, str(found.steps[one]), str(len(found.programs[one])), *lacks)
    out.print(rows)
    out.print(
        f"Lowered programs, instruction set {instruction_set}. Under each hierarchy's name: how many of its programs "
        "the row lacks; 0 means that the row can express all of them."
    )
