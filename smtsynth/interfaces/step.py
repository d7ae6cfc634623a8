"""What `solve` shows of a workload: the training step's placement, its reductions, and with --why the reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from smtsynth.cost.alphabeta import simulate_program
from smtsynth.cost.interface import CostModel
from smtsynth.cost.wired_traffic import traffic_step
from smtsynth.errors import InputError
from smtsynth.interfaces.jsonout import schedule_json
from smtsynth.interfaces.layout import Table, console
from smtsynth.interfaces.programs import program_data
from smtsynth.interfaces.progress import watching
from smtsynth.interfaces.report import LEFT_OUT, bottleneck_text, milliseconds
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import Placement, show_matrix
from smtsynth.model.program import show_program
from smtsynth.model.units import seconds_of, show_bytes
from smtsynth.search.changes import Piece, changes
from smtsynth.search.loop import Resources, Status
from smtsynth.search.solve import Options
from smtsynth.search.why import Choice, best_plain, defaults, innermost, runners_up
from smtsynth.search.workload import ReductionAnswer, Tables, WorkloadSolution
from smtsynth.solvers.outcome import Answer


def step_json(found: WorkloadSolution, options: Options) -> dict[str, Any]:
    """`smtsynth solve --json` of a workload (model, section 9, with `reductions`)."""
    placement = found.placement
    return {
        "status": found.status,
        "cost_seconds": seconds_of(found.cost),
        "lower_bound_seconds": seconds_of(found.lower_bound),
        "allreduce_seconds": seconds_of(found.plain),
        "placement": placement and {"axes": [axis.name for axis in placement.axes], "matrix": placement.matrix},
        "reductions": [_reduction_json(one) for one in found.reductions],
        "traffic": [
            {"name": one.name, "count": one.count, "cost_seconds": seconds_of(cost)} for one, cost in found.traffic
        ],
        "instruction_set": options.instruction_set,
        "hierarchy": options.hierarchy,
        "cost_model": options.cost_model.name,
        "reason": found.reason,
        "conflict": [str(one) for one in found.conflict],
        "loop": [
            {"bound_seconds": seconds_of(query.bound), "answer": query.answer, "seconds": query.seconds}
            for query in found.loop
        ],
        "solve_seconds": found.seconds,
    }


def _reduction_json(one: ReductionAnswer) -> dict[str, Any]:
    solution = one.solution
    program, schedule = solution.program, solution.schedule
    return {
        "name": one.named.name,
        "count": one.named.count,
        "status": solution.status,
        "steps_limit": solution.steps_limit,
        "cost_seconds": seconds_of(solution.cost),
        "allreduce_seconds": seconds_of(solution.allreduce),
        "program": None if program is None else program_data(program, solution.lowering.names),
        "schedule": None if schedule is None else schedule_json(schedule),
    }


def step_report(found: WorkloadSolution, options: Options) -> None:
    """The answer for people."""
    out, workload = console(), found.workload
    axes = ", ".join(f"{axis.name} {axis.size}" for axis in workload.axes)
    levels = " x ".join(f"{level.size} {level.name}" for level in workload.system.levels)
    count = len(workload.reductions)
    out.print(f"A step of {count} reduction{'s' * (count != 1)}; {axes} on {levels}", markup=False)
    if found.placement is None or found.cost is None or found.plain is None:
        out.print(f"\n{str(found.status).capitalize()}: {found.reason}", markup=False)
        return
    gain = found.plain / found.cost if found.cost else 1.0
    how = f"{gain:.2f}x faster" if gain >= 1 else f"{1 / gain:.2f}x slower"
    out.print(
        f"\n{how} than with plain collectives: {milliseconds(found.cost)} a step instead of "
        f"{milliseconds(found.plain)}, on placement {found.placement}",
        markup=False,
        style="bold",
    )
    out.print(_claim(found, options), markup=False)
    out.print()
    rows = Table(
        ("reduction", "share", "count", "each", "plain", "speed-up", "waits for", "program"),
        right=("share", "count", "each", "plain", "speed-up"),
        below={"program": "", "waits for": "waits for "},
    )
    for one in found.reductions:
        rows.add_row(*_row(one, found.cost, options.cost_model))
    for flow, cost in found.traffic:
        share = f"{100 * flow.count * cost / found.cost:.0f} %" if found.cost else "-"
        each = milliseconds(cost)
        cost_of = traffic_step(workload.system, found.placement, workload.row(flow.axis), flow.pattern, flow.payload)
        where = bottleneck_text(cost_of, workload.system)
        rows.add_row(flow.name, share, str(flow.count), each, each, "", where, f"given traffic, {flow.pattern}")
    out.print(rows)
    out.print(LEFT_OUT, style="dim")


def _claim(found: WorkloadSolution, options: Options) -> str:
    done, of = found.tables.looked_at() if found.tables else (0, 0)
    looked = f"{done} of {of} rows looked at"
    if found.status is Status.OPTIMAL:
        last = next((query for query in reversed(found.loop) if query.answer is Answer.UNSAT), None)
        time = f" in {last.seconds:.2f} s" if last else ""
        took = f"{found.seconds:.1f} s in all"
        steps = " or ".join(map(str, sorted({one.solution.steps_limit for one in found.reductions})))
        scope = f"instruction set {options.instruction_set}, at most {steps or 'no'} steps, {options.cost_model.name}"
        return (
            f"Optimal: the solver refuted any placement and programs that take less{time} ({scope}; {looked}, {took})"
        )
    gap = 100 * ((found.cost or 0) - (found.lower_bound or 0)) / (found.cost or 1)
    return f"Not proved optimal ({found.reason or 'some bounds are loose'}): gap {gap:.1f} % ({looked})"


def _row(one: ReductionAnswer, total: int, model: CostModel) -> Sequence[str]:
    solution, reduction = one.solution, one.named.reduction
    program, lowering = solution.program or (), solution.lowering
    costs = simulate_program(model, lowering, program, reduction.payload, reduction.collective)
    longest = max(costs, key=lambda cost: cost.nanoseconds, default=None)
    share = f"{100 * (one.total or 0) / total:.0f} %" if total else "-"
    gain = "-" if solution.speedup is None else f"{solution.speedup:.2f}x"
    over = ",".join(reduction.over)
    name = f"{one.named.name} ({reduction.collective} over {over}, {show_bytes(reduction.payload)})"
    where = "-" if longest is None else bottleneck_text(longest, lowering.system)
    text = show_program(program, lowering.names)
    each, flat = milliseconds(solution.cost), milliseconds(solution.allreduce)
    return name, share, str(one.named.count), each, flat, gain, where, text


def why_report(found: WorkloadSolution, options: Options, resources: Resources) -> None:
    """Runners-up, defaults, which axis innermost, what placement alone brings, and where the answer changes."""
    if found.placement is None or found.cost is None:
        return
    out, shown = console(), dict[str, list[Choice]]()
    for title, choices in _groups(found, options, resources):
        shown[title] = choices
        out.print(f"\n{title}", style="bold")
        rows = Table(
            ("what", "step", "to best", "plain collectives", "placement"),
            right=("step", "to best", "plain collectives"),
            below={"placement": "placement "},
        )
        for one in choices:
            rows.add_row(*_choice(one, found.cost))
        out.print(rows)
    _gains(found, shown)
    out.print("\nWhere the answer changes, as all payloads grow together, from 1/1024x to 1024x", style="bold")
    try:
        with watching(resources) as watched:
            pieces = changes(found.workload, options, watched)
    except InputError as error:
        out.print(f"Not looked for: {error.what}.", markup=False)
        return
    if not pieces:
        out.print("Not found within the limits.")
        return
    rows = Table(("payloads from", "placement", "programs"), right=("payloads from",), below={"programs": ""})
    for before, piece in zip([None, *pieces], pieces, strict=False):
        rows.add_row(_factor(piece.start), show_matrix(piece.matrix), _programs(found, piece, before))
    out.print(rows)
    if resources.interrupted.is_set():
        out.print("\nInterrupted: these tables are not complete.")


def _groups(found: WorkloadSolution, options: Options, resources: Resources) -> Iterator[tuple[str, list[Choice]]]:
    """The tables of `why` by their titles, each as it is ready."""
    assert found.placement is not None
    winner, tables = found.placement.matrix, found.tables or Tables(found.workload, options)
    first = Choice("this answer", winner, found.cost, found.plain)
    groups: list[tuple[str, Callable[[Resources], list[Choice]]]] = [
        ("Placements", lambda watched: [first, *runners_up(tables, winner, 3, watched)]),
        ("Common defaults", lambda watched: defaults(tables, watched)),
        ("Which axis innermost", lambda watched: [one for _, one in innermost(tables, winner, watched)]),
        ("Placement alone", lambda watched: [best_plain(tables, winner, watched)]),
    ]
    for title, make in groups:
        with watching(resources) as watched:
            choices = make(watched)
        yield title, choices


def why_json(found: WorkloadSolution, options: Options, resources: Resources) -> dict[str, Any]:
    """The same for scripts: the key `why`, with the tables and the payload factors at which the answer changes."""
    if found.placement is None or found.cost is None:
        return {"why": None}
    why: dict[str, Any] = {}
    for title, choices in _groups(found, options, resources):
        why[title.lower().replace(" ", "_")] = [
            {
                "name": one.name,
                "matrix": one.matrix,
                "cost_seconds": seconds_of(one.cost),
                "plain_seconds": seconds_of(one.plain),
                "breaks": [str(broken) for broken in one.broken],
                "reason": one.reason,
            }
            for one in choices
        ]
    try:
        with watching(resources) as watched:
            pieces: list[Piece] | None = changes(found.workload, options, watched)
    except InputError:
        pieces = None
    why["changes"] = pieces and [
        {"from_factor": float(piece.start), "matrix": piece.matrix, "programs": _texts(found, piece)}
        for piece in pieces
    ]
    return {"why": why}


def _texts(found: WorkloadSolution, piece: Piece) -> dict[str, str]:
    """The programs of a piece by reduction, as text."""
    texts = {}
    for one, program in zip(found.workload.reductions, piece.programs, strict=True):
        lowering = lowering_of(found.workload.problem(one), Placement(found.workload.axes, piece.matrix))
        texts[one.name] = show_program(program, lowering.names)
    return texts


def _choice(one: Choice, best: int) -> Sequence[str]:
    matrix = show_matrix(one.matrix) if one.matrix is not None else one.reason or "-"
    if one.broken:
        matrix += f" (breaks: {'; '.join(map(str, one.broken))})"
    if one.matrix is not None and one.reason:
        matrix += f" ({one.reason})"
    ratio = "-" if one.cost is None or not best else f"{one.cost / best:.2f}x"
    return one.name, milliseconds(one.cost), ratio, milliseconds(one.plain), matrix


def _gains(found: WorkloadSolution, groups: Mapping[str, Sequence[Choice]]) -> None:
    """How much placement and programs bring against the first default with plain collectives."""
    allowed = (one for one in groups["Common defaults"] if one.plain is not None and not one.broken)
    start = next(allowed, None)
    alone = groups["Placement alone"][0]
    if start is None or not start.plain or not alone.plain or not found.cost or not start.cost:
        return
    console().print(
        f"Against plain collectives on '{start.name}' ({milliseconds(start.plain)}): placement alone "
        f"{start.plain / alone.plain:.2f}x, programs alone {start.plain / start.cost:.2f}x, both "
        f"{start.plain / found.cost:.2f}x.",
        markup=False,
    )


def _factor(factor: Fraction) -> str:
    value = float(factor)
    return f"{value:.4g}x" if value >= 1 else f"1/{1 / value:.4g}x"


def _programs(found: WorkloadSolution, piece: Piece, before: Piece | None) -> str:
    """The programs of a piece; of a later one those that are others than before."""
    same = before is not None and before.matrix == piece.matrix
    return " | ".join(
        f"{name}: {text or 'nothing'}"
        for number, (name, text) in enumerate(_texts(found, piece).items())
        if not (same and before is not None and before.programs[number] == piece.programs[number])
    )
