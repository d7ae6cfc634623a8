"""What `simulate` prices: a schedule as it stands, or a program on a placement."""

from __future__ import annotations

from collections.abc import Sequence

from smtsynth.cost.alphabeta import schedule_loads, simulate_program, simulate_schedule
from smtsynth.cost.interface import StepCost
from smtsynth.errors import InputError
from smtsynth.interfaces.programs import RawProgram, read_program_or_schedule
from smtsynth.interfaces.yamltext import label
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import Placement, check_placement, only_placement
from smtsynth.model.problem import Problem
from smtsynth.model.program import show_instruction
from smtsynth.model.schedule import Schedule, Step
from smtsynth.search.solve import Options


def simulation(
    problem: Problem, file: str, placement: Placement | None, options: Options, hierarchy: str | None = None
) -> tuple[list[str], list[list[str]], list[StepCost], Schedule]:
    """Each step in words, the names of its collectives, its cost; and all as a schedule. InputError where file and
    problem don't fit.

    placement, hierarchy: where given, they go before those that an answer of solve names.
    """
    given = read_program_or_schedule(file)
    payload, model = problem.reduction.payload, options.cost_model
    if not isinstance(given, RawProgram):
        costs = simulate_schedule(model, problem.system, given, payload)
        return (
            [_words(step) for step in given.steps],
            [[str(e.collective) for e in step] for step in given.steps],
            costs,
            given,
        )
    hierarchy = hierarchy or given.hierarchy or options.hierarchy
    try:
        if placement is None and given.matrix is not None:
            placement = check_placement(given.matrix, problem.axes, problem.system)
        chosen = placement or only_placement(problem.system, problem.axes)
        lowering = lowering_of(problem, chosen, hierarchy)
    except InputError as error:
        raise error if error.where else error.at(label(file)) from None
    program = given.resolve(lowering.names)
    costs = simulate_program(model, lowering, program, payload, problem.reduction.collective)
    texts = [show_instruction(instruction, lowering.names) for instruction in program]
    return texts, [[str(instruction.collective)] for instruction in program], costs, lowering.schedule(program)


def overlap_interval(problem: Problem, options: Options, total: int, schedule: Schedule) -> tuple[int, int]:
    """Nanoseconds with perfect overlap of the steps, and with none (`total`). InputError where the model knows none."""
    together = options.cost_model.overlapped(problem.system, schedule_loads(schedule, problem.reduction.payload))
    if together is None:
        raise InputError(f"cost model {options.cost_model.name!r} knows no overlap", where="overlap", expected="none")
    return min(together, total), total


def _words(step: Step) -> str:
    parts: Sequence[str] = [
        f"{entry.collective} on {len(entry.groups)} group{'s' * (len(entry.groups) != 1)}" for entry in step
    ]
    return ", ".join(parts) or "nothing"
