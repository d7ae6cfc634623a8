"""Compare: the solver's optimum beside that of enumeration, placement by placement (paper, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smtsynth.cost.prices import Prices
from smtsynth.errors import LimitReached
from smtsynth.meaning.goals import Target, target_of
from smtsynth.model.lowering import Lowering, lowering_of
from smtsynth.model.placement import Placement
from smtsynth.model.problem import Problem
from smtsynth.search.enumerate import Enumeration, StateGraph, enumerate_programs
from smtsynth.search.loop import Resources, Status
from smtsynth.search.solution import Solution
from smtsynth.search.solve import Options, solve_lowering


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both answers for one placement."""

    lowering: Lowering
    enumerated: Enumeration
    solved: Solution

    @property
    def agree(self) -> bool | None:
        """Whether both finished with the same cost (or both with none); None where either didn't finish."""
        done = self.solved.status in (Status.OPTIMAL, Status.INFEASIBLE)
        return self.enumerated.cost == self.solved.cost if done and self.enumerated.finished else None


def agree(comparisons: Sequence[Comparison]) -> bool | None:
    """Whether all agree; False as soon as one disagrees, None where one didn't finish."""
    answers = [one.agree for one in comparisons]
    return False if False in answers else None if None in answers else True


def compare(
    problem: Problem, placements: Sequence[Placement], options: Options, resources: Resources, merge: bool = True
) -> list[Comparison]:
    """Enumerate and solve each placement. `merge`: keep equal states once while enumerating.

    Once the deadline is past or an interrupt came, the first placement that it left unfinished is the last one listed.
    """
    result: list[Comparison] = []
    graphs: dict[Target, StateGraph] = {}
    for placement in placements:
        lowering = lowering_of(problem, placement, options.hierarchy)
        left = resources.left()
        over = resources.interrupted.is_set() or (left is not None and left <= 0)
        if over and result and result[-1].agree is None:
            break  # what was not finished is said; the rest would not be either
        resources.progress(f"placement {placement}")
        solved = solve_lowering(lowering, problem, options, resources)
        if any(factor.reduced is None for factor in lowering.factors):  # no groups tell the parts apart: no programs
            none = Enumeration((0,) * solved.steps_limit, None, None, True, None, 0.0)
            result.append(Comparison(lowering, none, solved))
            continue
        try:
            if resources.interrupted.is_set():
                raise KeyboardInterrupt
            goal = target_of(lowering, problem.reduction.collective, problem.split)
            if goal not in graphs:
                graphs[goal] = StateGraph(goal, options.instruction_set, resources.deadline)
            prices = Prices(options.cost_model, lowering, problem.reduction.payload, goal.collective)
            found = enumerate_programs(graphs[goal], prices, solved.steps_limit, merge, resources.progress)
        except LimitReached as limit:
            found = Enumeration((), None, None, False, str(limit), 0.0)
        except KeyboardInterrupt:
            resources.interrupted.set()
            found = Enumeration((), None, None, False, "interrupted", 0.0)
        result.append(Comparison(lowering, found, solved))
    return result
