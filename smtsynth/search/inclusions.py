"""Which synthesis hierarchy can express which programs, as lowered sets (model, section 3; paper, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smtsynth.meaning.goals import target_of
from smtsynth.meaning.rules import State
from smtsynth.model.lowering import HIERARCHIES, Lowering, lowering_of
from smtsynth.model.placement import Placement
from smtsynth.model.problem import Problem
from smtsynth.model.program import Collective, Instruction, Program, default_steps
from smtsynth.search.enumerate import StateGraph

LoweredStep = tuple[Collective, frozenset[frozenset[int]]]
LoweredProgram = tuple[LoweredStep, ...]


@dataclass(frozen=True, slots=True)
class Inclusions:
    """Per hierarchy the lowered programs it has (collectives over sets of device groups), within `steps` steps."""

    steps: dict[str, int]
    programs: dict[str, frozenset[LoweredProgram]]

    def lacks(self, one: str, two: str) -> int:
        """How many lowered programs of hierarchy `two` the hierarchy `one` does not have."""
        return len(self.programs[two] - self.programs[one])


def all_programs(graph: StateGraph, steps: int) -> Iterator[Program]:
    """Every program of at most `steps` steps that reaches the goal."""
    can: dict[tuple[State, int], bool] = {}

    def reaches(state: State, left: int) -> bool:
        if graph.reached(state):
            return True
        if (state, left) not in can:
            can[state, left] = left > 0 and any(reaches(target, left - 1) for _, _, target in graph.edges(state))
        return can[state, left]

    stack: list[tuple[State, Program]] = [(graph.target.start, ())] if reaches(graph.target.start, steps) else []
    while stack:
        state, program = stack.pop()
        if graph.reached(state):
            yield program
            continue
        for instruction, _, target in graph.edges(state):
            if reaches(target, steps - len(program) - 1):
                stack.append((target, (*program, instruction)))


def lowered(lowering: Lowering, instruction: Instruction) -> LoweredStep:
    """An instruction as its collective and the sets of devices it runs on."""
    groups = lowering.device_groups(instruction).tolist()
    return instruction.collective, frozenset(frozenset(group) for group in groups)


def inclusions(
    problem: Problem,
    placement: Placement,
    instruction_set: str,
    steps: int | None = None,
    deadline: float | None = None,
) -> Inclusions:
    """Enumerate and lower the programs of every hierarchy on one placement (small systems).

    steps None: each hierarchy's own default limit. Raises LimitReached past the deadline or where it is too large.
    """
    limits: dict[str, int] = {}
    sets: dict[str, frozenset[LoweredProgram]] = {}
    for hierarchy in HIERARCHIES:
        lowering = lowering_of(problem, placement, hierarchy)
        limits[hierarchy] = steps or default_steps(lowering.depth)
        if any(factor.reduced is None for factor in lowering.factors):
            sets[hierarchy] = frozenset()
            continue
        graph = StateGraph(target_of(lowering), instruction_set, deadline)
        known: dict[Instruction, LoweredStep] = {}
        found = set()
        for program in all_programs(graph, limits[hierarchy]):
            for instruction in program:
                if instruction not in known:
                    known[instruction] = lowered(lowering, instruction)
            found.add(tuple(known[instruction] for instruction in program))
        sets[hierarchy] = frozenset(found)
    return Inclusions(limits, sets)
