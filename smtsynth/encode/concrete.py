"""The concrete encoding: the rules (smtsynth.meaning.rules) as clauses, per device, chunk and contributor.

For small systems; this is the encoding to audit. It accepts exactly the programs that the rules accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from smtsynth.cost.prices import Parts, Prices
from smtsynth.cost.shares import group_types
from smtsynth.encode.choice import Blocked, Choice
from smtsynth.encode.clauses import Clauses, Literal
from smtsynth.encode.costs import Costs
from smtsynth.encode.counting import exactly, total
from smtsynth.errors import LimitReached
from smtsynth.meaning.goals import Target, target_of
from smtsynth.meaning.rules import DeviceState, instruction_groups
from smtsynth.model.program import Collective, Instruction, Span, named
from smtsynth.model.schedule import Group

MAX_DEVICES = 12
MixedRow = tuple[Instruction, Parts]


@dataclass(frozen=True)
class Matrices:
    """Variables of the devices' Boolean matrices at times 0..N, and the clauses that relate them."""

    choice: Choice
    sizes: tuple[int, ...]
    devices: range

    def bit(self, time: int, device: int, chunk: int, contributor: int) -> Literal:
        """`device` holds `chunk` with `contributor` in it."""
        return self.choice.clauses.var("bit", time, device, chunk, contributor)

    def row(self, time: int, device: int, chunk: int) -> Literal:
        """`device` holds `chunk`."""
        return self.choice.clauses.var("row", time, device, chunk)

    def before(self, time: int, device: int, chunk: int, number: int) -> Literal:
        """`device` holds at least `number` of the chunks before `chunk` (chunk = k: of all)."""
        return self.choice.clauses.var("before", time, device, chunk, number)

    def number(self, time: int, device: int, number: int) -> Literal:
        """`device` holds at least `number` chunks."""
        return self.before(time, device, len(self.devices), number)

    def groups(self, span: Span) -> tuple[Group, ...]:
        """The groups of a span, as synthesis devices."""
        return instruction_groups(self.sizes, named(Collective.ALL_REDUCE, span, len(self.sizes)))

    def define(self, target: Target) -> None:
        """Start, goal and steps."""
        clauses, steps, every = self.choice.clauses, self.choice.steps, self.devices
        with clauses.family("start", "At the start every device holds what the reduction starts from."):
            for device, state in enumerate(target.start):
                self._holds(0, device, state, [])
        with clauses.family("goal", "At the end the devices hold what the reduction must reach."):
            self._complete(steps, [], target)
        for time in range(steps):
            self._count(time)
        for step in range(1, steps + 1):
            idle = self.choice.idle(step)
            with clauses.family("idle", "A step is idle exactly where the goal holds, and changes nothing."):
                self._complete(step - 1, [idle], target)
                for device in every:
                    self._keep([idle], step, device, device)
            for span in self.choice.spans:
                on = self.choice.on(step, span)
                for group in self.groups(span):
                    self._needs(step, on, group)
                    self._gives(step, on, group)
                touched = {device for group in self.groups(span) for device in group}
                with clauses.family("untouched", "Devices in no group keep what they have."):
                    for device in set(every) - touched:
                        self._keep([on], step, device, device)

    def _holds(self, time: int, device: int, state: DeviceState, premises: list[Literal]) -> None:
        for chunk in self.devices:
            contributors = next((have for rows, have in state if rows >> chunk & 1), 0)
            self._from(time, device, chunk, contributors, premises)

    def _from(self, time: int, device: int, chunk: int, contributors: int, premises: list[Literal]) -> None:
        for contributor in self.devices:
            bit = self.bit(time, device, chunk, contributor)
            self.choice.clauses.imply(premises, bit if contributors >> contributor & 1 else -bit)

    def _complete(self, time: int, premises: list[Literal], target: Target) -> None:
        if any(target.split):
            for number, parts in enumerate(target.parts):
                self._split(time, premises, target, number, parts)
            return
        for device in self.devices[: 1 if target.collective is Collective.REDUCE else None]:
            self._holds(time, device, target.final[device], premises)

    def _split(
        self, time: int, premises: list[Literal], target: Target, replica: int, parts: Sequence[Sequence[int]]
    ) -> None:
        """Every chunk goes to one part, as many to each, whose devices hold it complete."""
        clauses = self.choice.clauses
        goes = {
            (chunk, part): clauses.var("goes", time, replica, chunk, part)
            for chunk in self.devices
            for part in range(len(parts))
        }
        with clauses.when(*premises):
            for chunk in self.devices:
                clauses.exactly_one([goes[chunk, part] for part in range(len(parts))])
            for part, devices in enumerate(parts):
                count = total(clauses, [[goes[chunk, part]] for chunk in self.devices])
                exactly(clauses, count, len(self.devices) // len(parts))
                for chunk in self.devices:
                    for device in devices:
                        self._from(time, device, chunk, target.final[device][0][1], [goes[chunk, part]])

    def _keep(self, premises: list[Literal], step: int, device: int, source: int) -> None:
        for chunk in self.devices:
            for contributor in self.devices:
                now, was = self.bit(step, device, chunk, contributor), self.bit(step - 1, source, chunk, contributor)
                self.choice.clauses.equal(premises, now, was)

    def _count(self, time: int) -> None:
        clauses, size = self.choice.clauses, len(self.devices)
        with clauses.family("rows", "A chunk is held where any contribution to it is."):
            for device in self.devices:
                for chunk in self.devices:
                    bits = [self.bit(time, device, chunk, contributor) for contributor in self.devices]
                    for bit in bits:
                        clauses.imply([bit], self.row(time, device, chunk))
                    clauses.imply([self.row(time, device, chunk)], *bits)
        with clauses.family("counts", "Chunks held are counted in order."):
            for device in self.devices:
                for chunk in range(size + 1):
                    for number in range(size + 2):
                        self._count_one(time, device, chunk, number)

    def _count_one(self, time: int, device: int, chunk: int, number: int) -> None:
        clauses, now = self.choice.clauses, self.before(time, device, chunk, number)
        if number == 0:
            clauses.add(now)
        elif number > chunk:
            clauses.add(-now)
        else:
            row = self.row(time, device, chunk - 1)
            was, one_less = (
                self.before(time, device, chunk - 1, number),
                self.before(time, device, chunk - 1, number - 1),
            )
            clauses.imply([was], now)
            clauses.imply([row, one_less], now)
            clauses.imply([now, -row], was)
            clauses.imply([now], one_less)

    def _needs(self, step: int, on: Literal, group: Group) -> None:
        before, clauses, root = step - 1, self.choice.clauses, group[0]
        imply, family = clauses.imply, clauses.family
        all_reduce, scatter, gather, reduce, broadcast = (self.choice.does(step, one) for one in Collective)
        sums = (all_reduce, scatter, reduce)
        with family("root-holds", "The first device of every group holds something."):
            imply([on], self.number(before, root, 1))
        with family("equal-rows", "Members of a reduction hold the same chunks."):
            for device in group[1:]:
                for chunk in self.devices:
                    for does in sums:
                        clauses.equal([on, does], self.row(before, device, chunk), self.row(before, root, chunk))
        with family("disjoint-contributors", "No contribution is in two members of a reduction, chunk by chunk."):
            for one, two in combinations(group, 2):
                for chunk in self.devices:
                    for contributor in self.devices:
                        pair = [self.bit(before, one, chunk, contributor), self.bit(before, two, chunk, contributor)]
                        for does in sums:
                            imply([on, does, *pair])
        with family("divides", "A scatter's group size divides the number of chunks."):
            for number in range(len(self.devices) + 1):
                if number % len(group):
                    exactly = [self.number(before, root, number), -self.number(before, root, number + 1)]
                    imply([on, scatter, *exactly])
        with family("equal-counts", "Members of a gather hold the same number of chunks."):
            for device in group[1:]:
                for number in range(1, len(self.devices) + 1):
                    clauses.equal([on, gather], self.number(before, device, number), self.number(before, root, number))
        with family("disjoint-rows", "No chunk is in two members of a gather."):
            for one, two in combinations(group, 2):
                for chunk in self.devices:
                    imply([on, gather, self.row(before, one, chunk), self.row(before, two, chunk)])
        with family("broadcast-covers", "The root of a broadcast holds what every member holds."):
            for device in group[1:]:
                for chunk in self.devices:
                    for contributor in self.devices:
                        imply(
                            [on, broadcast, self.bit(before, device, chunk, contributor)],
                            self.bit(before, root, chunk, contributor),
                        )
        with family("broadcast-gives", "Some member of a broadcast lacks something that the root has."):
            lacks = []
            for device in group[1:]:
                for chunk in self.devices:
                    for contributor in self.devices:
                        lack = clauses.var("lacks", before, root, device, chunk, contributor)
                        imply([lack], self.bit(before, root, chunk, contributor))
                        imply([lack], -self.bit(before, device, chunk, contributor))
                        lacks.append(lack)
            imply([on, broadcast], *lacks)

    def _gives(self, step: int, on: Literal, group: Group) -> None:
        before, clauses, root = step - 1, self.choice.clauses, group[0]
        imply, family = clauses.imply, clauses.family
        all_reduce, scatter, gather, reduce, broadcast = (self.choice.does(step, one) for one in Collective)
        with family("sum", "The sum of a group has what any member has."):
            for chunk in self.devices:
                for contributor in self.devices:
                    total = self._total(step, group, chunk, contributor)
                    bits = [self.bit(before, device, chunk, contributor) for device in group]
                    for bit in bits:
                        imply([bit], total)
                    imply([total], *bits)
        with family("parts", "A scatter cuts the chunks held, in order, into parts of equal number."):
            for chunk in self.devices:
                self._parts(before, group, chunk)
        for place, device in enumerate(group):
            with family("broadcast-result", "After a broadcast everyone has what the root had."):
                self._keep([on, broadcast], step, device, root)
            for chunk in self.devices:
                part = self._part(before, group, place, chunk)
                for contributor in self.devices:
                    now = self.bit(step, device, chunk, contributor)
                    total = self._total(step, group, chunk, contributor)
                    with family(
                        "sum-result", "After AllReduce or AllGather everyone has the sum, after Reduce the root."
                    ):
                        for does in (all_reduce, gather) if device != root else (all_reduce, gather, reduce):
                            clauses.equal([on, does], now, total)
                    with family("reduce-empties", "After a Reduce the others have nothing."):
                        if device != root:
                            imply([on, reduce], -now)
                    with family("scatter-result", "After a scatter the j-th member has the j-th part of the sum."):
                        clauses.equal([on, scatter, part], now, total)
                        imply([on, scatter, -part], -now)

    def _total(self, step: int, group: Group, chunk: int, contributor: int) -> Literal:
        return self.choice.clauses.var("total", step, group, chunk, contributor)

    def _part(self, time: int, group: Group, place: int, chunk: int) -> Literal:
        return self.choice.clauses.var("part", time, group[0], len(group), place, chunk)

    def _parts(self, time: int, group: Group, chunk: int) -> None:
        root, members = group[0], len(group)
        for number in range(members, len(self.devices) + 1, members):
            all_of_them = [self.number(time, root, number), -self.number(time, root, number + 1)]
            for earlier in range(min(number, chunk + 1)):
                here = [self.before(time, root, chunk, earlier), -self.before(time, root, chunk, earlier + 1)]
                for place in range(members):
                    part = self._part(time, group, place, chunk)
                    belongs = place == earlier // (number // members)
                    self.choice.clauses.imply([*all_of_them, *here], part if belongs else -part)

    def charge(self, costs: Costs, prices: Prices, mixed: Iterable[MixedRow]) -> None:
        """What steps cost: by the chunks that all groups hold at least; `mixed` adds exact rows for unequal groups."""
        choice, clauses, size = self.choice, self.choice.clauses, len(self.devices)
        for step in range(1, choice.steps + 1):
            for span in choice.spans:
                roots = [group[0] for group in self.groups(span)]
                for number in range(1, size + 1):
                    common = clauses.var("all-groups", step, span, number)
                    with clauses.family("common-rows", "Where every group holds as many chunks, that is common."):
                        clauses.imply([self.number(step - 1, root, number) for root in roots], common)
                    for collective in Collective:
                        instruction = named(collective, span, choice.depth)
                        if instruction in choice.instructions:
                            price = prices.price(instruction, (Fraction(number, size),))
                            costs.charge(step, [*choice.chosen(step, instruction), common], price)
            for instruction, parts in mixed:
                premises = list(choice.chosen(step, instruction))
                for root, part in zip(self._roots(instruction), self._by_group(instruction, parts), strict=True):
                    number = int(part * size)
                    premises += [self.number(step - 1, root, number), -self.number(step - 1, root, number + 1)]
                costs.charge(step, premises, prices.price(instruction, parts))

    def _roots(self, instruction: Instruction) -> list[int]:
        return [group[0] for group in instruction_groups(self.sizes, instruction)]

    def _by_group(self, instruction: Instruction, parts: Parts) -> list[Fraction]:
        """The part that each group holds, from one part per group type."""
        part_of = dict(zip(group_types(len(self.sizes), instruction.span(len(self.sizes))), parts, strict=True))
        return [part_of[self._class(root)] for root in self._roots(instruction)]

    def _class(self, device: int) -> int:
        mask = 0
        for factor, size in reversed(list(enumerate(self.sizes))):
            device, digit = divmod(device, size)
            mask |= (digit > 0) << factor
        return mask


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
    """Clauses that hold exactly for the programs of at most `steps` of `instructions` that cost less than `bound` ns.

    bound None: any cost. Raises LimitReached above MAX_DEVICES devices per replica. See reduced.encode.
    """
    lowering = prices.lowering
    if lowering.size > MAX_DEVICES:
        raise LimitReached(
            f"the concrete encoding takes at most {MAX_DEVICES} devices per replica, not {lowering.size}"
        )
    choice = Choice(clauses if clauses is not None else Clauses(), lowering.depth, steps, instructions)
    choice.define()
    states = Matrices(choice, lowering.sizes, range(lowering.size))
    states.define(target or target_of(lowering))
    if bound is not None:
        costs = Costs(choice.clauses, steps, bound)
        states.charge(costs, prices, mixed)
        costs.define()
    with choice.clauses.family("blocked", "No program begins with a prefix that failed its replay."):
        for prefix in blocked:
            choice.block(prefix)
    return choice
