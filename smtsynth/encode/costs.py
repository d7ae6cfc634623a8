"""Cost as a bounded integer: step costs by thresholds, their exact sum in binary, and `sum < bound`.

A threshold S(t, j) says that step t costs at least the j-th price; rows of the price table imply thresholds, the
largest threshold that holds is the step's cost, and full adders sum the steps in whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from smtsynth.encode.clauses import Clauses, Literal


@dataclass
class Costs:
    """The cost of a program of `steps` steps, required to be less than `bound` nanoseconds."""

    clauses: Clauses
    steps: int
    bound: int
    rows: list[tuple[int, tuple[Literal, ...], int]] = field(default_factory=list)

    def charge(self, step: int, premises: Iterable[Literal], price: int) -> None:
        """Where all `premises` hold, step `step` costs at least `price` nanoseconds."""
        self.rows.append((step, tuple(premises), price))

    def define(self) -> None:
        """All charges, the sum and the bound."""
        clauses = self.clauses
        prices = sorted({price for _, _, price in self.rows if 0 < price < self.bound})
        rank = {price: number for number, price in enumerate(prices)}
        with clauses.family("prices", "A step costs at least what the price table says of it."):
            for step, premises, price in self.rows:
                if price >= self.bound:
                    clauses.imply(premises)
                elif price > 0:
                    clauses.imply(premises, self._threshold(step, rank[price]))
        with clauses.family("step-cost", "A step's cost in binary is that of its largest threshold."):
            for step in range(1, self.steps + 1):
                self._step_cost(step, prices)
        with clauses.family("sum", "The cost so far is the sum of the steps' costs."):
            for bit in range(self._width):
                clauses.equal([], self._sum(1, bit), self._cost(1, bit))
            for step in range(2, self.steps + 1):
                self._add(step)
        with clauses.family("bound", "The cost so far is less than the bound."):
            for step in range(1, self.steps + 1):
                less_than(clauses, [self._sum(step, bit) for bit in range(self._width)], self.bound)

    @property
    def _width(self) -> int:
        return max(1, (self.bound - 1).bit_length())

    def _threshold(self, step: int, number: int) -> Literal:
        return self.clauses.var("at-least", step, number)

    def _cost(self, step: int, bit: int) -> Literal:
        return self.clauses.var("cost", step, bit)

    def _sum(self, step: int, bit: int) -> Literal:
        return self.clauses.var("sum", step, bit)

    def _step_cost(self, step: int, prices: Sequence[int]) -> None:
        add = self.clauses.add
        thresholds = [self._threshold(step, number) for number in range(len(prices))]
        for lower, higher in zip(thresholds, thresholds[1:], strict=False):
            add(-higher, lower)
        none = [-thresholds[0]] if thresholds else []
        for bit in range(self._width):
            self.clauses.imply(none, -self._cost(step, bit))
        for number, price in enumerate(prices):
            premises = [thresholds[number], *(-higher for higher in thresholds[number + 1 : number + 2])]
            for bit in range(self._width):
                self.clauses.imply(premises, self._cost(step, bit) if price >> bit & 1 else -self._cost(step, bit))

    def _add(self, step: int) -> None:
        add = self.clauses.add
        carry: Literal | None = None
        for bit in range(self._width):
            one, two, out = self._sum(step - 1, bit), self._cost(step, bit), self._sum(step, bit)
            over = self.clauses.var("carry", step, bit)
            inputs = [one, two] if carry is None else [one, two, carry]
            for signs in range(1 << len(inputs)):
                premises = [-literal if signs >> i & 1 else literal for i, literal in enumerate(inputs)]
                ones = len(inputs) - signs.bit_count()
                self.clauses.imply(premises, out if ones % 2 else -out)
            for i, literal in enumerate(inputs):
                rest = inputs[:i] + inputs[i + 1 :]
                if len(inputs) == 3:
                    add(*(-other for other in rest), over)
                    add(*rest, -over)
                else:
                    add(literal, -over)
            if len(inputs) == 2:
                add(-one, -two, over)
            carry = over
        assert carry is not None
        add(-carry)


def less_than(clauses: Clauses, bits: Sequence[Literal], bound: int) -> None:
    """The binary number of `bits` (least significant first) is less than `bound`, which is at least 1."""
    top = bound - 1
    if top >= 1 << len(bits):
        return
    for bit, literal in enumerate(bits):
        if not top >> bit & 1:
            clauses.add(-literal, *(-bits[higher] for higher in range(bit + 1, len(bits)) if top >> higher & 1))
