"""The JSON that scripts read (model, section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smtsynth.cost.interface import Bottleneck, StepCost
from smtsynth.interfaces.programs import program_data
from smtsynth.model.placement import Placement
from smtsynth.model.schedule import Schedule
from smtsynth.model.system import System
from smtsynth.model.units import seconds_of
from smtsynth.search.compare import Comparison, agree
from smtsynth.search.solution import Solution

MAX_LISTED = 2**20  # devices; the schedule of a larger system is too long to write down, and left out


def placements_json(found: Sequence[Placement]) -> dict[str, Any]:
    """`smtsynth placements --json`."""
    return {"count": len(found), "placements": [{"matrix": one.matrix} for one in found]}


def schedule_json(schedule: Schedule) -> list[dict[str, Any]]:
    """The steps of a lowered program: one collective each."""
    return [{"collective": entry.collective, "groups": entry.groups} for step in schedule.steps for entry in step]


def solution_json(solution: Solution) -> dict[str, Any]:
    """`smtsynth solve --json`."""
    lowering, program = solution.lowering, solution.program
    schedule = solution.schedule if lowering.system.devices <= MAX_LISTED else None
    result: dict[str, Any] = {
        "status": solution.status,
        "cost_seconds": seconds_of(solution.cost),
        "lower_bound_seconds": seconds_of(solution.lower_bound),
        "allreduce_seconds": seconds_of(solution.allreduce),
        "placement": {
            "axes": [axis.name for axis in lowering.placement.axes],
            "matrix": lowering.placement.matrix,
        },
        "program": None if program is None else program_data(program, lowering.names),
        "schedule": None if schedule is None else schedule_json(schedule),
        "steps_limit": solution.steps_limit,
        "instruction_set": solution.instruction_set,
        "hierarchy": solution.hierarchy,
        "cost_model": solution.cost_model,
        "layout": solution.layout,
        "reason": solution.reason,
        "blocked": [program_data(one, lowering.names) for one in solution.blocked],
        "any_schedule_bound_seconds": seconds_of(solution.any_schedule_bound),
        "loop": [
            {"bound_seconds": seconds_of(query.bound), "answer": query.answer, "seconds": query.seconds}
            for query in solution.loop
        ],
        "solve_seconds": solution.seconds,
    }
    if solution.placements:
        result["placements"] = [
            {
                "matrix": one.placement.matrix,
                "status": one.status,
                "cost_seconds": seconds_of(one.cost),
                "lower_bound_seconds": seconds_of(one.lower_bound),
                "allreduce_seconds": seconds_of(one.allreduce),
            }
            for one in solution.placements
        ]
    return result


def compare_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """`smtsynth compare --json`."""
    return {
        "placements": [
            {
                "matrix": one.lowering.placement.matrix,
                "programs": one.enumerated.count,
                "programs_by_length": one.enumerated.by_length,
                "enumerated_cost_seconds": seconds_of(one.enumerated.cost),
                "solved_cost_seconds": seconds_of(one.solved.cost),
                "agree": one.agree,
                "enumerate_seconds": one.enumerated.seconds,
                "solve_seconds": one.solved.seconds,
            }
            for one in comparisons
        ],
        "agree": agree(comparisons),
    }


def overlap_json(interval: tuple[int, int] | None) -> dict[str, Any]:
    """The bounds of perfect and no overlap, nanoseconds, where they were asked for."""
    return {} if interval is None else {"overlap_seconds": [seconds_of(one) for one in interval]}


def simulate_json(collectives: Sequence[Sequence[str]], costs: Sequence[StepCost], system: System) -> dict[str, Any]:
    """`smtsynth simulate --json`; collectives: the names of each step's."""
    return {
        "seconds": seconds_of(sum(cost.nanoseconds for cost in costs)),
        "steps": [
            {
                "collectives": list(names),
                "seconds": seconds_of(cost.nanoseconds),
                "latency_seconds": float(cost.latency),
                "transfer_seconds": float(cost.transfer),
                "bottleneck": None if cost.bottleneck is None else _bottleneck_json(cost.bottleneck, system),
            }
            for names, cost in zip(collectives, costs, strict=True)
        ],
    }


def _bottleneck_json(where: Bottleneck, system: System) -> dict[str, Any]:
    """Level, unit and direction; on a topology of links these are null, and the link is named."""
    level = None if where.level is None else system.levels[where.level].name
    data: dict[str, Any] = {"level": level, "unit": where.unit, "direction": where.direction}
    return data if where.link is None else data | {"link": where.link}
