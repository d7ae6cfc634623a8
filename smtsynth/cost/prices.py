"""Prices of one reduction's instructions, looked up once (model, section 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from smtsynth.cost.interface import CostModel
from smtsynth.cost.shares import class_shares, group_types
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Instruction, Program

Parts = tuple[Fraction, ...]


@dataclass
class Prices:
    """Whole nanoseconds of instructions on a lowering with `payload` bytes per device (of the whole buffer).

    `collective` is the reduction's: it says what is held at the start.

    Parts are fractions of the payload that a group holds at input: one for all groups, or one per group type
    (in the order of smtsynth.cost.shares.group_types).
    """

    model: CostModel
    lowering: Lowering
    payload: Fraction
    collective: Collective = Collective.ALL_REDUCE
    known: dict[tuple[Instruction, Parts], int] = field(default_factory=dict)

    def part(self, mask: int) -> Fraction:
        """The fraction held where all rows are held along the factors of `mask`, and one's own along the others."""
        return Fraction(1, math.prod(n for f, n in enumerate(self.lowering.sizes) if not mask >> f & 1))

    def price(self, instruction: Instruction, parts: Parts) -> int:
        """The price where the groups of each type hold these parts, or, with a single one, all hold it."""
        if len(set(parts)) == 1:
            parts = parts[:1]
        found = self.known.get((instruction, parts))
        if found is None:
            if len(parts) == 1:
                shares: Fraction | dict[int, Fraction] = parts[0] * self.payload
            else:
                types = group_types(self.lowering.depth, instruction.span(self.lowering.depth))
                shares = {kind: part * self.payload for kind, part in zip(types, parts, strict=True)}
            found = self.known[instruction, parts] = self.model.price(self.lowering, instruction, shares)
        return found

    def masks(self, instruction: Instruction, masks: Sequence[int]) -> int:
        """The price where the groups of each type hold all rows along these factors (see `part`)."""
        return self.price(instruction, tuple(self.part(mask) for mask in masks))

    def steps(self, program: Program) -> list[tuple[Parts, int]]:
        """Per step of a program: the parts that its groups hold, and its price."""
        result, depth = [], self.lowering.depth
        held = class_shares(self.lowering.sizes, program, self.collective)
        for instruction, shares in zip(program, held, strict=True):
            parts = tuple(shares[kind] for kind in group_types(depth, instruction.span(depth)))
            result.append((parts, self.price(instruction, parts)))
        return result

    def program(self, program: Program) -> int:
        """The cost of a program, the sum of its steps."""
        return sum(price for _, price in self.steps(program))
