"""What a certificate is about, and the questions that it answers, all derived from the problem alone.

A scope is a problem with the words its claim is made in; its cases are its placements, those with the same prices
and the same target together. The producer and the check build the same cases, each for itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from smtsynth.certify.labels import Transitions
from smtsynth.cost.interface import CostModel
from smtsynth.cost.models import cost_model_of
from smtsynth.cost.prices import Prices
from smtsynth.encode import placement as placement_encoding
from smtsynth.encode import reduced
from smtsynth.encode.choice import Choice
from smtsynth.encode.clauses import Clauses
from smtsynth.encode.reduced import MixedRow
from smtsynth.meaning import rules
from smtsynth.meaning.classes import shape
from smtsynth.meaning.goals import Target, target_of
from smtsynth.meaning.words import run_words
from smtsynth.model.lowering import Lowering, lower, lowering_of
from smtsynth.model.placement import Placement, placements
from smtsynth.model.problem import Problem
from smtsynth.model.program import Collective, Instruction, Program, instruction_set
from smtsynth.search.replay import MAX_CONCRETE


@dataclass(frozen=True)
class Scope:
    """The problem (its limit of steps and its cost model are the claim's) and what else a claim is relative to.

    placement: the one that was given, or None where the claim is about all. bound: nanoseconds that nothing beats;
    None where the claim is that there is no program at all.
    """

    problem: Problem
    instruction_set: str
    hierarchy: str
    placement: Placement | None
    bound: int | None

    @cached_property
    def model(self) -> CostModel:
        """The cost model, made from the problem's choice."""
        return cost_model_of(self.problem.cost_model)

    def lowering(self, placement: Placement) -> Lowering:
        """The synthesis hierarchy on a placement."""
        return lowering_of(self.problem, placement, self.hierarchy)

    def target(self, lowering: Lowering) -> Target:
        """What is to be reached on a lowering."""
        return target_of(lowering, self.problem.reduction.collective, self.problem.split)

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The cases, by their first placement."""
        problem = self.problem
        every = [self.placement] if self.placement is not None else placements(problem.system, problem.axes)
        together: dict[object, list[Lowering]] = {}
        for lowering in map(self.lowering, every):
            key = (self.model.key(lowering), self.target(lowering) if lowering.depth else None)
            together.setdefault(key, []).append(lowering)
        return tuple(Case(self, tuple(lowerings)) for lowerings in together.values())

    def case_of(self, placement: Placement) -> int:
        """The number of the case that a placement belongs to."""
        for number, case in enumerate(self.cases):
            if any(one.placement == placement for one in case.lowerings):
                return number
        raise KeyError(placement)

    def other_placement(self) -> Clauses:
        """The placement constraints with every listed placement blocked: clauses that hold for any further one."""
        matrix = placement_encoding.encode(self.problem.axes, self.problem.system)
        with matrix.clauses.family("listed", "It is none of the placements that the certificate lists."):
            for case in self.cases:
                for lowering in case.lowerings:
                    matrix.block(lowering.placement)
        return matrix.clauses


@dataclass(frozen=True)
class Case:
    """Placements that share everything a claim depends on, so that one proof serves them all."""

    scope: Scope
    lowerings: tuple[Lowering, ...]

    @property
    def lowering(self) -> Lowering:
        """The first of them."""
        return self.lowerings[0]

    @cached_property
    def target(self) -> Target:
        """What is to be reached."""
        return self.scope.target(self.lowering)

    @cached_property
    def prices(self) -> Prices:
        """The prices of instructions."""
        reduction = self.scope.problem.reduction
        return Prices(self.scope.model, self.lowering, reduction.payload, reduction.collective)

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instruction set."""
        return instruction_set(self.lowering.depth, self.scope.instruction_set)

    @property
    def steps(self) -> int:
        """The limit of steps."""
        return self.scope.problem.step_limit(self.lowering.depth)

    def argument(self, witness: Placement | None) -> str | None:
        """Why nothing here costs less than the bound, where that takes no proof; None where it takes one.

        The case of the witness's placement is always proved, but where the bound is 0.
        """
        scope, lowering = self.scope, self.lowering
        if scope.bound == 0:
            return "no cost is below 0"
        if any(factor.reduced is None for factor in lowering.factors):
            return "there is no program: groups can't tell apart the parts of a level that is reduced over in part"
        own = any(one.placement == witness for one in self.lowerings)
        reduction = scope.problem.reduction
        if scope.bound is None or own or reduction.collective is not Collective.ALL_REDUCE:
            return None
        plain = lower(scope.problem.system, lowering.placement, lowering.reduced_rows)
        least = scope.model.any_schedule(plain, reduction.payload)
        if least is not None and least >= scope.bound:
            return f"no schedule at all takes less than {least} ns, as so many bytes must leave a unit"
        return None

    def question(self, mixed: Iterable[MixedRow], blocked: Iterable[Program], clauses: Clauses | None = None) -> Choice:
        """The constraints on a program below the bound: the definitions, and the blocked prefixes."""
        return reduced.encode(
            self.prices, self.instructions, self.steps, self.scope.bound, mixed, blocked, clauses, self.target
        )

    def transitions(self, blocked: Iterable[Program]) -> Transitions:
        """The steps over class states, for labels."""
        return Transitions.of(self.prices, self.instructions, self.target.aim, blocked)

    @cached_property
    def least_step(self) -> int:
        """Nanoseconds that every step costs at least: the least price of the smallest share that a group can hold."""
        depth = self.lowering.depth
        return min(
            self.prices.masks(one, (0 if one.collective is Collective.ALL_GATHER else shape(one, depth).joined,))
            for one in self.instructions
        )

    @property
    def steps_suffice(self) -> bool:
        """Whether a program beyond the limit of steps reaches the bound by the least price of its steps alone."""
        return self.scope.bound is not None and (self.steps + 1) * self.least_step >= self.scope.bound

    def why_blocked(self, prefix: Program) -> str | None:
        """Why no right program below the bound begins with `prefix`; None where there is no reason."""
        if self.lowering.size <= MAX_CONCRETE:
            state = rules.run(prefix, self.target.sizes, self.target.start, lambda state: False)
            if isinstance(state, rules.Failure):
                return f"refused by the rules: {state}"
        else:
            words = run_words(self.lowering.depth, prefix, aim=self.target.aim)
            if words.step is not None:
                return f"refused by the meaning for all sizes, as the replay of so many devices: {words.reason}"
        cost, bound = self.prices.program(prefix), self.scope.bound
        return f"costs {cost} ns already" if bound is not None and cost >= bound else None

    @property
    def symbolic(self) -> bool:
        """Whether programs are replayed by the meaning for all sizes, which may refuse right ones."""
        return self.lowering.size > MAX_CONCRETE
