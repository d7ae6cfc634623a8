"""What `enumerate` shows: programs by length and the cheapest of them."""

from __future__ import annotations

from itertools import islice
from typing import Any

from smtsynth.cost.prices import Prices
from smtsynth.interfaces.layout import Table, console
from smtsynth.interfaces.programs import program_data
from smtsynth.interfaces.report import LEFT_OUT, milliseconds
from smtsynth.meaning.goals import check_whole, target_of
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import Placement
from smtsynth.model.problem import Problem
from smtsynth.model.program import show_program
from smtsynth.model.units import seconds_of
from smtsynth.search.enumerate import StateGraph, cheapest_programs, enumerate_programs
from smtsynth.search.loop import Resources
from smtsynth.search.solve import Options


def listing(
    problem: Problem, placement: Placement, options: Options, resources: Resources, most: int | None
) -> dict[str, Any]:
    """Programs of one placement by length, and the `most` cheapest (None: all), as JSON data."""
    lowering = lowering_of(problem, placement, options.hierarchy)
    steps = options.step_limit(problem, lowering.depth)
    check_whole(lowering)
    target = target_of(lowering, problem.reduction.collective, problem.split)
    graph = StateGraph(target, options.instruction_set, resources.deadline)
    prices = Prices(options.cost_model, lowering, problem.reduction.payload, target.collective)
    counted = enumerate_programs(graph, prices, steps, progress=resources.progress)
    programs = [
        {
            "cost_seconds": seconds_of(cost),
            "program": program_data(program, lowering.names),
            "text": show_program(program, lowering.names),
        }
        for cost, program in (islice(cheapest_programs(graph, prices, steps), most) if counted.finished else ())
    ]
    return {
        "matrix": placement.matrix,
        "steps_limit": steps,
        "instruction_set": options.instruction_set,
        "finished": counted.finished,
        "reason": counted.reason,
        "count": counted.count,
        "programs_by_length": counted.by_length,
        "programs": programs,
    }


def listing_report(found: dict[str, Any]) -> None:
    """The listing for people."""
    out = console()
    lengths = " ".join(map(str, found["programs_by_length"]))
    out.print(f"{found['count']} programs of at most {found['steps_limit']} steps (by length: {lengths})")
    if not found["finished"]:
        out.print(f"Not finished: {found['reason']}")
    rows = Table(("time", "steps", "program"), right=("time", "steps"), below={"program": ""})
    for one in found["programs"]:
        rows.add_row(milliseconds(round(one["cost_seconds"] * 1e9)), str(len(one["program"])), one["text"])
    out.print(rows)
    out.print(f"[dim]{LEFT_OUT}[/dim]")
