"""The reduced encoding: the class meaning (smtsynth.meaning.classes) as clauses, for any factor sizes.

It over-approximates the rules, so what it refutes is refuted; a model wants a replay. A Broadcast that changes
nothing is admitted (it never makes a program cheaper).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from smtsynth.cost.prices import Prices
from smtsynth.encode.choice import Blocked, Choice
from smtsynth.encode.clauses import Clauses, Literal
from smtsynth.encode.costs import Costs
from smtsynth.meaning.classes import Shape, shape, submasks
from smtsynth.meaning.goals import Aim, Target, target_of
from smtsynth.model.program import Collective, Instruction, named

MixedRow = tuple[Instruction, tuple[int, ...]]


@dataclass(frozen=True)
class Classes:
    """Variables of the class states at times 0..N, and the clauses that relate them."""

    choice: Choice

    @property
    def _factors(self) -> range:
        return range(self.choice.depth)

    def held(self, time: int, kind: int) -> Literal:
        """The devices of class `kind` hold anything."""
        return self.choice.clauses.var("held", time, kind)

    def rows(self, time: int, kind: int, factor: int) -> Literal:
        """They hold all rows along `factor`."""
        return self.choice.clauses.var("rows", time, kind, factor)

    def contributors(self, time: int, kind: int, factor: int) -> Literal:
        """Their rows have all contributors along `factor`."""
        return self.choice.clauses.var("contributors", time, kind, factor)

    def _bits(self, time: int, kind: int) -> list[Literal]:
        rows = [self.rows(time, kind, factor) for factor in self._factors]
        return rows + [self.contributors(time, kind, factor) for factor in self._factors]

    def _same(self, premises: list[Literal], time: int, kind: int, time2: int, kind2: int) -> None:
        clauses = self.choice.clauses
        clauses.equal(premises, self.held(time, kind), self.held(time2, kind2))
        for one, two in zip(self._bits(time, kind), self._bits(time2, kind2), strict=True):
            clauses.equal(premises, one, two)

    def define(self, aim: Aim) -> None:
        """Start, goal and steps."""
        clauses, steps = self.choice.clauses, self.choice.steps
        kinds = range(1 << self.choice.depth)
        with clauses.family("start", "At the start every device holds what the reduction starts from."):
            for kind, state in enumerate(aim.start):
                masks = (state.rows, state.contributors)
                bits = [state.held, *(bool(mask >> f & 1) for mask in masks for f in self._factors)]
                for literal, true in zip([self.held(0, kind), *self._bits(0, kind)], bits, strict=True):
                    clauses.add(literal if true else -literal)
        with clauses.family("goal", "At the end the devices hold what the reduction must reach."):
            self._complete(steps, [], aim)
        for step in range(1, steps + 1):
            with clauses.family("idle", "A step is idle only where the goal holds, and changes nothing."):
                self._complete(step - 1, [self.choice.idle(step)], aim)
                for kind in kinds:
                    self._same([self.choice.idle(step)], step, kind, step - 1, kind)
            with clauses.family("idle-to-the-end", "After an idle step all steps are idle."):
                if step > 1:
                    clauses.imply([self.choice.idle(step - 1)], self.choice.idle(step))
            for span in self.choice.spans:
                groups = shape(named(Collective.ALL_REDUCE, span, self.choice.depth), self.choice.depth)
                on = self.choice.on(step, span)
                touched = set()
                for root in groups.roots:
                    self._group(step, on, groups, root)
                    touched.update(groups.members(root))
                with clauses.family("untouched", "Devices in no group keep what they have."):
                    for kind in set(kinds) - touched:
                        self._same([on], step, kind, step - 1, kind)

    def _complete(self, time: int, premises: list[Literal], aim: Aim) -> None:
        imply = self.choice.clauses.imply
        for kind in aim.kinds:
            imply(premises, self.held(time, kind))
            for factor in self._factors:
                if aim.whole >> factor & 1:
                    imply(premises, self.rows(time, kind, factor))
                all_from = self.contributors(time, kind, factor)
                imply(premises, all_from if aim.summed >> factor & 1 else -all_from)

    def _group(self, step: int, on: Literal, groups: Shape, root: int) -> None:
        """Needs and effects on the groups whose root is of class `root`."""
        before, clauses = step - 1, self.choice.clauses
        imply, equal, family = clauses.imply, clauses.equal, clauses.family
        all_reduce, scatter, gather, reduce, broadcast = (self.choice.does(step, one) for one in Collective)
        joined = [factor for factor in self._factors if groups.joined >> factor & 1]
        others = [factor for factor in self._factors if factor not in joined]
        rest = groups.members(root)[1:]
        with family("root-holds", "The first device of every group holds something."):
            imply([on], self.held(before, root))
        with family("members-alike", "Members of a reduction or a gather hold alike, but for the joined factors' own."):
            for member in rest:
                self._same([on, -broadcast], before, member, before, root)
        with family(
            "joined-rows", "A reduction or broadcast needs all rows along the joined factors, a gather its own."
        ):
            for factor in joined:
                rows = self.rows(before, root, factor)
                for does in (all_reduce, scatter, reduce, broadcast):
                    imply([on, does], rows)
                imply([on, gather], -rows)
        with family(
            "joined-contributors", "Along the joined factors a reduction needs own contributors, a broadcast all."
        ):
            for factor in joined:
                total = self.contributors(before, root, factor)
                for does in (all_reduce, scatter, reduce):
                    imply([on, does], -total)
                imply([on, broadcast], total)
        with family("broadcast-covers", "The root of a broadcast holds at least what the others hold."):
            for member in rest:
                for mine, its in zip(self._bits(before, member), self._bits(before, root), strict=True):
                    imply([on, broadcast, mine], its)
        with family("reduce-empties", "A reduce leaves nothing but at the root."):
            for member in rest:
                for literal in [self.held(step, member), *self._bits(step, member)]:
                    imply([on, reduce], -literal)
        with family("result", "Everyone else has the sum, its part, the union or what the root had."):
            for member in [root, *rest]:
                gets = [on] if member == root else [on, -reduce]
                imply(gets, self.held(step, member))
                for factor in others:
                    equal(gets, self.rows(step, member, factor), self.rows(before, root, factor))
                    equal(gets, self.contributors(step, member, factor), self.contributors(before, root, factor))
                for factor in joined:
                    rows, total = self.rows(step, member, factor), self.contributors(step, member, factor)
                    imply([on, scatter], -rows)
                    imply([*gets, -scatter], rows)
                    imply([*gets, -gather], total)
                    equal([on, gather], total, self.contributors(before, root, factor))

    def charge(self, costs: Costs, prices: Prices, mixed: Iterable[MixedRow]) -> None:
        """What steps cost: by the rows that all groups hold at least; `mixed` adds exact rows for unequal groups."""
        choice = self.choice
        clauses, every = choice.clauses, (1 << choice.depth) - 1
        for step in range(1, choice.steps + 1):
            for span in choice.spans:
                groups = shape(named(Collective.ALL_REDUCE, span, choice.depth), choice.depth)
                others = [factor for factor in self._factors if not groups.joined >> factor & 1]
                common = {factor: clauses.var("all-groups", step, span, factor) for factor in others}
                on = choice.on(step, span)
                with clauses.family("common-rows", "Where every group holds all rows along a factor, that is common."):
                    for factor, name in common.items():
                        clauses.imply([on, *(self.rows(step - 1, root, factor) for root in groups.roots)], name)
                for collective in Collective:
                    instruction = named(collective, span, choice.depth)
                    if instruction not in choice.instructions:
                        continue
                    base = 0 if collective is Collective.ALL_GATHER else groups.joined
                    for mask in submasks(every & ~groups.joined):
                        premises = [common[factor] for factor in others if mask >> factor & 1]
                        price = prices.masks(instruction, (base | mask,))
                        costs.charge(step, [*choice.chosen(step, instruction), *premises], price)
            for instruction, masks in mixed:
                groups = shape(instruction, choice.depth)
                premises = list(choice.chosen(step, instruction))
                for root, mask in zip(groups.roots, masks, strict=True):
                    for factor in self._factors:
                        rows = self.rows(step - 1, root, factor)
                        premises.append(rows if mask >> factor & 1 else -rows)
                costs.charge(step, premises, prices.masks(instruction, masks))


def encode(
    prices: Prices,
    instructions: tuple[Instruction, ...],
    steps: int,
    bound: int | None,
    mixed: Iterable[MixedRow] = (),
    blocked: Iterable[Blocked] = (),
    clauses: Clauses | None = None,
    target: Target | None = None,
) -> Choice:
    """Clauses that hold for programs of at most `steps` of `instructions` that cost less than `bound` ns (None: any).

    mixed: (instruction, rows mask per group kind) that get their exact price; blocked: prefixes that are excluded.
    target: what is to be reached (default: the AllReduce of the lowering).
    Returns the choice; its `clauses` are the encoding, its `decode` reads a model.
    """
    lowering = prices.lowering
    choice = Choice(clauses if clauses is not None else Clauses(), lowering.depth, steps, instructions)
    choice.define()
    states = Classes(choice)
    states.define((target or target_of(lowering)).aim)
    if bound is not None:
        costs = Costs(choice.clauses, steps, bound)
        states.charge(costs, prices, mixed)
        costs.define()
    with choice.clauses.family("blocked", "No program begins with a prefix that failed its replay."):
        for prefix in blocked:
            choice.block(prefix)
    return choice
