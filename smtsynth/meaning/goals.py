"""Where a reduction starts and what it must reach (model, section 5), by the rules and by device classes.

`split` says along which factors the chunks may end split (ReduceScatter, or the scattered axes of a mix); AllGather
starts split along all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from smtsynth.errors import InputError
from smtsynth.meaning import classes, rules
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Program


@dataclass(frozen=True)
class Target:
    """A reduction over factors of `sizes`: its collective, the factors it runs over, and those it ends split over.

    For AllReduce and mixes with ReduceScatter, `reduced` and `split` are flags per factor (split within reduced); the
    other collectives run over all factors.
    """

    sizes: tuple[int, ...]
    collective: Collective
    reduced: tuple[bool, ...]
    split: tuple[bool, ...]

    @property
    def depth(self) -> int:
        """The number of factors."""
        return len(self.sizes)

    @property
    def size(self) -> int:
        """The number of synthesis devices, and of chunks."""
        return math.prod(self.sizes)

    @property
    def whole(self) -> int:
        """Mask of the factors along which every device must end with all rows."""
        return sum(1 << factor for factor, flag in enumerate(self.split) if not flag)

    @property
    def summed(self) -> int:
        """Mask of the factors along which contributors must be complete."""
        return sum(1 << factor for factor, flag in enumerate(self.reduced) if flag)

    # --- by the rules ---

    @cached_property
    def start(self) -> rules.State:
        """What the devices hold at the start."""
        every, size = (1 << self.size) - 1, self.size
        if self.collective is Collective.ALL_GATHER:
            return tuple(((1 << device, 1 << device),) for device in range(size))
        if self.collective is Collective.BROADCAST:
            return (((every, 1),), *([()] * (size - 1)))
        return rules.initial(size)

    @cached_property
    def final(self) -> rules.State:
        """What each device must end with, or, where chunks end split, with a part of."""
        if self.collective is Collective.BROADCAST:
            return ((((1 << self.size) - 1, 1),),) * self.size
        if self.collective is Collective.ALL_GATHER:
            return (rules.blocks((1 << device, 1 << device) for device in range(self.size)),) * self.size
        return rules.complete(self.sizes, self.reduced)

    def reached(self, state: rules.State) -> bool:
        """Whether the state is what the reduction must reach."""
        if self.collective is Collective.REDUCE:
            return state[0] == self.final[0]
        return self.assignment(state) is not None if any(self.split) else state == self.final

    @cached_property
    def parts(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Per replica, per coordinate along the split factors: the devices that must hold that part."""
        replicas: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        for device, digits in enumerate(product(*(range(n) for n in self.sizes))):
            outside = tuple(digit for digit, flag in zip(digits, self.reduced, strict=True) if not flag)
            part = tuple(digit for digit, flag in zip(digits, self.split, strict=True) if flag)
            replicas.setdefault(outside, {}).setdefault(part, []).append(device)
        return tuple(tuple(map(tuple, parts.values())) for parts in replicas.values())

    def assignment(self, state: rules.State) -> tuple[tuple[int, ...], ...] | None:
        """Which part (its number along the split factors) each chunk goes to, per replica; None where there is no way.

        Every part is the same number of chunks, and all devices of a part hold its chunks complete.
        """
        found = []
        for parts in self.parts:
            held = []
            for devices in parts:
                common = (1 << self.size) - 1
                for device in devices:
                    contributors = self.final[device][0][1]
                    common &= next((rows for rows, have in state[device] if have == contributors), 0)
                held.append(common)
            chunks = _assign(held, self.size, self.size // len(parts))
            if chunks is None:
                return None
            found.append(chunks)
        return tuple(found)

    # --- by device classes ---

    @property
    def aim(self) -> Aim:
        """The target by device classes, whatever the sizes."""
        return Aim(self.depth, self.collective, self.summed, self.whole)


class Aim(NamedTuple):
    """A target by device classes: masks of the factors along which contributors, and rows, must be complete."""

    depth: int
    collective: Collective
    summed: int
    whole: int

    @property
    def kinds(self) -> range:
        """The classes that matter at the end: all, or that of device 0 alone."""
        return range(1 if self.collective is Collective.REDUCE else 1 << self.depth)

    @property
    def start(self) -> classes.States:
        """The class states at the start. Where nothing is summed, contributors count as complete from the start."""
        every = (1 << self.depth) - 1
        if self.collective is Collective.ALL_GATHER:
            return tuple([classes.ClassState(True, 0, every)] * (1 << self.depth))
        if self.collective is Collective.BROADCAST:
            return (classes.ClassState(True, every, every), *([classes.EMPTY] * every))
        return classes.initial(self.depth)

    def reached(self, states: classes.States) -> bool:
        """Whether class states can be those of a state that Target.reached accepts."""
        return all(
            states[kind].held
            and states[kind].contributors == self.summed
            and states[kind].rows & self.whole == self.whole
            for kind in self.kinds
        )


def _assign(held: Sequence[int], chunks: int, most: int) -> tuple[int, ...] | None:
    """Give each chunk to a part that holds it, `most` chunks to a part (augmenting paths); None if impossible."""
    owner = [-1] * chunks
    load = [0] * len(held)

    def place(chunk: int, seen: set[int]) -> bool:
        able = [part for part, rows in enumerate(held) if rows >> chunk & 1 and part not in seen]
        for part in able:
            if load[part] < most:  # first of all, so that few chunks have to move
                load[part] += 1
                owner[chunk] = part
                return True
        for part in able:
            if part not in seen:
                seen.add(part)
                for other in range(chunks):
                    if owner[other] == part and place(other, seen):
                        owner[chunk] = part
                        return True
        return False

    return tuple(owner) if all(place(chunk, set()) for chunk in range(chunks)) else None


def target(
    sizes: Sequence[int],
    collective: Collective = Collective.ALL_REDUCE,
    reduced: Sequence[bool] | None = None,
    split: Sequence[bool] | None = None,
) -> Target:
    """The target of a collective over all factors, or over `reduced` ones, ending split over `split`.

    Without `split`, a ReduceScatter ends split over all reduced factors and nothing else does.
    """
    flags = tuple(reduced) if reduced is not None else (True,) * len(sizes)
    if split is None:
        split = flags if collective is Collective.REDUCE_SCATTER else (False,) * len(sizes)
    return Target(tuple(sizes), collective, flags, tuple(split))


def check_whole(lowering: Lowering) -> None:
    """InputError where the reduction runs over a part of a factor, whose devices no groups tell apart."""
    if any(factor.reduced is None for factor in lowering.factors):
        raise InputError(
            f"hierarchy {lowering.hierarchy!r} reduces over a part of a level, which its groups can't tell apart",
            expected="another hierarchy, or another placement",
        )


def target_of(
    lowering: Lowering, collective: Collective = Collective.ALL_REDUCE, split: Sequence[int] | None = None
) -> Target:
    """The target of a reduction on a lowering, a ReduceScatter ending split over the matrix rows `split` (None: all).

    A factor that joins split rows with others can't be split along the former alone, so it stays whole. Raises
    InputError for another collective than AllReduce in a hierarchy that has other devices than the replica's.
    """
    if collective is not Collective.ALL_REDUCE and not lowering.hierarchy.startswith("reduction"):
        raise InputError(
            f"hierarchy {lowering.hierarchy!r} takes no {collective}", expected="reduction or reduction-factors"
        )
    matrix, split = lowering.placement.matrix, lowering.reduced_rows if split is None else split
    flags = [all(matrix[row][factor.level] == 1 or row in split for row in factor.rows) for factor in lowering.factors]
    return target(
        lowering.sizes,
        collective,
        [bool(factor.reduced) for factor in lowering.factors],
        flags if collective is Collective.REDUCE_SCATTER else None,
    )


def run_rules(program: Program, goal: Target) -> rules.Failure | None:
    """None if the program reaches the goal exactly with its last step, by the rules; else the failure and its step."""
    state = rules.run(program, goal.sizes, goal.start, goal.reached)
    if isinstance(state, rules.Failure) or goal.reached(state):
        return state if isinstance(state, rules.Failure) else None
    if any(goal.split):
        return rules.Failure("the goal is not reached: the chunks can't be assigned to devices that hold them", (), ())
    return rules.shortfall(state, goal.final)
