"""The witness of a certificate: a program, its schedule and its cost table, replayed and priced from the problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from smtsynth.certify.scope import Scope
from smtsynth.cost.alphabeta import simulate_program, simulate_schedule
from smtsynth.errors import InputError
from smtsynth.model.lowering import Lowering
from smtsynth.model.placement import check_placement
from smtsynth.model.program import Program, parse_program, show_instruction
from smtsynth.model.schedule import Goal
from smtsynth.search.replay import replay

MAX_LISTED = 2**16  # devices; the schedule of a larger system is left out
MAX_EDGES = 256  # devices; on smaller systems every edge of every group is priced too


class WitnessError(ValueError):
    """The witness is not what it has to be; the message says why."""


def witness_data(scope: Scope, lowering: Lowering, program: Program) -> dict[str, Any]:
    """The witness as plain data, replayed and priced. Raises WitnessError where the program isn't right.

    The replay is by the rules and the buffers, or by the meaning for all sizes above 1024 devices a replica; the
    prices are the simulator's, in whole nanoseconds.
    """
    problem, names = scope.problem, lowering.names
    outcome = replay(lowering, program, scope.target(lowering))
    if not outcome.ok:
        raise WitnessError(f"the program fails its replay: {outcome.reason}")
    limit = problem.step_limit(lowering.depth)
    if len(program) > limit:
        raise WitnessError(f"the program has {len(program)} steps, more than {limit}")
    reduction = problem.reduction
    costs = simulate_program(scope.model, lowering, program, reduction.payload, reduction.collective)
    listed = lowering.system.devices <= MAX_LISTED
    if lowering.system.devices <= MAX_EDGES:
        goal = Goal(reduction.collective, lowering.replica_groups)
        schedule = replace(lowering.schedule(program), goal=goal)
        edges = simulate_schedule(scope.model, problem.system, schedule, reduction.payload)
        if [one.nanoseconds for one in edges] != [one.nanoseconds for one in costs]:
            raise WitnessError("its groups cost something else edge by edge than in closed form")
    return {
        "placement": [list(row) for row in lowering.placement.matrix],
        "program": [show_instruction(step, names) for step in program],
        "schedule": schedule_data(lowering, program) if listed else None,
        "nanoseconds": sum(one.nanoseconds for one in costs),
        "steps": [
            {
                "nanoseconds": one.nanoseconds,
                "latency": f"{one.latency} s",
                "transfer": f"{one.transfer} s",
            }
            for one in costs
        ],
    }


def schedule_data(lowering: Lowering, program: Program) -> list[dict[str, Any]]:
    """Each step's collective and its groups of devices."""
    return [{"collective": str(step.collective), "groups": lowering.device_groups(step).tolist()} for step in program]


def read_witness(scope: Scope, data: object) -> tuple[Lowering, Program]:
    """The placement and the program of a witness. Raises WitnessError."""
    if not isinstance(data, dict) or not isinstance(data.get("program"), list):
        raise WitnessError("no program")
    try:
        placement = check_placement(data.get("placement"), scope.problem.axes, scope.problem.system)  # type: ignore[arg-type]
        if scope.placement not in (None, placement):
            raise WitnessError("another placement than the certificate's")
        lowering = scope.lowering(placement)
        program = parse_program(";".join(map(str, data["program"])), lowering.names)
    except InputError as error:
        raise WitnessError(str(error)) from None
    return lowering, program


def check_witness(scope: Scope, data: object) -> tuple[Lowering, Program]:
    """Replay and price the witness anew, and compare all that it says. Raises WitnessError."""
    lowering, program = read_witness(scope, data)
    compare(data, witness_data(scope, lowering, program), scope.bound)
    return lowering, program


def compare(data: object, expected: dict[str, Any], bound: int | None) -> None:
    """Raises WitnessError where a witness isn't the expected one, or doesn't cost what the bound says."""
    where = difference(data, expected)
    if where is not None:
        raise WitnessError(where)
    if expected["nanoseconds"] != bound:
        raise WitnessError(f"it costs {expected['nanoseconds']} ns, and the bound is {bound}")


def difference(given: object, expected: object, path: str = "") -> str | None:
    """Where two pieces of plain data differ, in words; None where they are the same."""
    if type(given) is not type(expected):
        return f"{path or 'all'} is {_short(given)}, expected {_short(expected)}"
    if isinstance(given, dict) and isinstance(expected, dict):
        for key in sorted({*given, *expected}):
            if key not in given or key not in expected:
                return f"{path}.{key}".lstrip(".") + (" is missing" if key in expected else " doesn't belong there")
            found = difference(given[key], expected[key], f"{path}.{key}".lstrip("."))
            if found is not None:
                return found
        return None
    if isinstance(given, list) and isinstance(expected, list):
        if len(given) != len(expected):
            return f"{path} has {len(given)} entries, expected {len(expected)}"
        for number, (one, two) in enumerate(zip(given, expected, strict=True), 1):
            found = difference(one, two, f"{path}[{number}]")
            if found is not None:
                return found
        return None
    return None if given == expected else f"{path or 'all'} is {_short(given)}, expected {_short(expected)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
