"""Labels: a certificate that no search and no solver is needed to check.

A label (state, n) is a lower bound on what is still to pay in at most n further steps from a class state. Labels are
right if none exceeds the price of any step from its state plus the label of what the step leads to, with one step
fewer; what has no label counts as 0, and so does the goal, at which a program ends. By induction over n no program is
cheaper than the label of the start. Class states keep every program that the rules accept, so that holds for the
rules. With blocked prefixes a state is one of the product with the automaton that reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from smtsynth.cost.prices import Prices
from smtsynth.errors import InputError, LimitReached
from smtsynth.meaning.classes import EMPTY, ClassState, Shape, States, shape, shares, step
from smtsynth.meaning.goals import Aim
from smtsynth.model.program import Instruction, Program, show_instruction

HEADER = "labels 1"
EVERY = 1000  # states between progress lines


class LabelError(ValueError):
    """The labels don't prove the bound; the message says where."""


class Place(NamedTuple):
    """A class state, and how far a program has followed blocked prefixes (see Prefixes; 0: it left them)."""

    states: States
    node: int = 0


Labels = Mapping[Place, Sequence[float]]  # for 1, 2, … steps left; a single one for any number of steps


class Prefixes:
    """The automaton of blocked prefixes: node 0 has left them all, the others are their proper prefixes, sorted."""

    def __init__(self, blocked: Iterable[Program]) -> None:
        self.blocked = frozenset(blocked)
        begun = sorted({program[:length] for program in self.blocked for length in range(len(program))})
        self._node = {prefix: node for node, prefix in enumerate(begun, 1)}
        self._prefix: list[Program | None] = [None, *begun]

    def __len__(self) -> int:
        return len(self._prefix)

    @property
    def start(self) -> int:
        """The node of the empty program."""
        return self._node.get((), 0)

    def after(self, node: int, instruction: Instruction) -> int | None:
        """The node after one more instruction; None where that completes a blocked prefix."""
        prefix = self._prefix[node]
        if prefix is None:
            return 0
        longer = (*prefix, instruction)
        return None if longer in self.blocked else self._node.get(longer, 0)


class Step(NamedTuple):
    """A step that a place allows: its price in nanoseconds and where it leads."""

    instruction: Instruction
    price: int
    target: Place


@dataclass(frozen=True)
class Transitions:
    """All steps of one synthesis task over the class states."""

    prices: Prices
    choices: tuple[tuple[Instruction, Shape], ...]
    prefixes: Prefixes
    aim: Aim
    start: Place

    @staticmethod
    def of(
        prices: Prices, instructions: Iterable[Instruction], aim: Aim, blocked: Iterable[Program] = ()
    ) -> Transitions:
        """The transitions of programs of `instructions` that begin with none of `blocked`, towards `aim`.

        Raises InputError where the reduction runs over only a part of a factor (no program is right then).
        """
        if any(factor.reduced is None for factor in prices.lowering.factors):
            raise InputError("a factor is reduced over in part only, and class states can't say so")
        prefixes = Prefixes(blocked)
        choices = tuple((one, shape(one, aim.depth)) for one in instructions)
        return Transitions(prices, choices, prefixes, aim, Place(aim.start, prefixes.start))

    def steps(self, place: Place) -> Iterator[Step]:
        """Every step from a place; none from the goal, where a program ends."""
        if self.aim.reached(place.states):
            return
        for instruction, groups in self.choices:
            after = step(place.states, instruction.collective, groups)
            node = self.prefixes.after(place.node, instruction)
            if after is not None and node is not None:
                price = self.prices.masks(instruction, shares(place.states, groups))
                yield Step(instruction, price, Place(after, node))


def make_labels(
    transitions: Transitions,
    steps: int | None,
    bound: int | None,
    deadline: float | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Labels:
    """Labels that prove that no program of at most `steps` steps (None: any number) costs less than `bound` ns.

    bound None: that there is no program. Only places that programs cheaper than the bound can reach get labels.
    Raises LabelError where a program is cheaper, LimitReached past `deadline` (of perf_counter).
    """
    limit = math.inf if bound is None else bound
    edges: dict[Place, list[Step]] = {}
    layers = [{transitions.start: 0}]
    best: dict[Place, int] = {transitions.start: 0}
    while layers[-1] and (steps is None or len(layers) <= steps):
        after: dict[Place, int] = {}
        for place, cost in layers[-1].items():
            if place not in edges:
                edges[place] = list(transitions.steps(place))
                if len(edges) % EVERY == 0:
                    progress(f"{len(edges)} class states reached")
                if deadline is not None and perf_counter() > deadline:
                    raise LimitReached("the time limit was reached")
            for _, price, target in edges[place]:
                total = cost + price
                if total < limit and total < best.get(target, math.inf):
                    best[target] = after[target] = total
        layers.append(after)
    if any(transitions.aim.reached(target.states) for target in best):
        cheapest = min(cost for place, cost in best.items() if transitions.aim.reached(place.states))
        raise LabelError(f"a program costs {cheapest} ns, less than {bound}")
    first: dict[Place, int] = {}
    for number, layer in enumerate(layers):
        for place in layer:
            first.setdefault(place, number)
    return _backwards(transitions, edges, first, steps, limit)


def _backwards(
    transitions: Transitions,
    edges: Mapping[Place, Sequence[Step]],
    first: Mapping[Place, int],
    steps: int | None,
    limit: float,
) -> Labels:
    """The least of price plus label over a place's steps, for 1, 2, … steps left (steps None: until none changes).

    first: after how many steps a place can be reached below the limit; where that leaves fewer steps than asked,
    or the place can't be reached so, it has no label.
    """
    labels: dict[Place, list[float]] = {place: [] for place in edges}
    left, changed = 0, True
    while changed if steps is None else left < steps:
        left += 1
        new = {}
        for place, out in edges.items():
            if steps is None or first[place] + left <= steps:
                ways = (price + label_at(transitions, labels, target, left - 1) for _, price, target in out)
                new[place] = min(limit, min(ways, default=math.inf))
        changed = False
        for place, label in new.items():
            changed = changed or labels[place][-1:] != [label]
            labels[place].append(label)
    return {place: tuple(values if steps else values[-1:]) for place, values in labels.items() if values}


def label_at(transitions: Transitions, labels: Labels, place: Place, left: int | None) -> float:
    """The label of a place with `left` steps left (None: any number): 0 at the goal and where there is none."""
    if transitions.aim.reached(place.states):
        return 0
    if left == 0:
        return math.inf
    values = labels.get(place, ())
    if left is None:
        return values[0] if values else 0
    return values[left - 1] if left <= len(values) else 0


class Checked(NamedTuple):
    """How much was checked: labelled places, and the steps out of them."""

    places: int
    steps: int


def check_labels(transitions: Transitions, labels: Labels, steps: int | None, bound: int | None) -> Checked:
    """Check that the labels prove that no program of at most `steps` steps (None: any number) costs less than `bound`.

    bound None: that there is no program. One pass over the steps of the labelled places, no search. Raises LabelError.
    """
    count = 0
    for place, values in labels.items():
        if len(values) != 1 and steps is None:
            raise LabelError(f"{_text(place)}: {len(values)} labels, expected one for any number of steps")
        if place.node >= len(transitions.prefixes):
            raise LabelError(f"{_text(place)}: there is no prefix number {place.node}")
        if transitions.aim.reached(place.states):
            raise LabelError(f"{_text(place)}: the goal has a label")
        for instruction, price, target in transitions.steps(place):
            count += 1
            for number, value in enumerate(values):
                there = label_at(transitions, labels, target, None if steps is None else number)
                if value > price + there:
                    name = show_instruction(instruction, transitions.prices.lowering.names)
                    raise LabelError(
                        f"{_text(place)}: label {number + 1} is {value}, but {name} costs {price} and leads to {there}"
                    )
    proved = label_at(transitions, labels, transitions.start, steps)
    if proved < (math.inf if bound is None else bound):
        raise LabelError(f"the labels prove {proved} ns, not {'that there is no program' if bound is None else bound}")
    return Checked(len(labels), count)


def _text(place: Place) -> str:
    classes = ("-" if not one.held else f"{one.rows}/{one.contributors}" for one in place.states)
    return f"{','.join(classes)} {place.node}"


def labels_text(labels: Labels) -> str:
    """A line a place: per class "-" or rows/contributors (masks over the factors), the prefix number, the labels."""
    rows = (f"{_text(place)} {' '.join(map(str, values))}\n" for place, values in labels.items())
    return HEADER + "\n" + "".join(rows)


def read_labels(lines: Iterable[str], depth: int) -> dict[Place, tuple[float, ...]]:
    """Read labels_text for `depth` factors. Raises LabelError for lines of another form or a place twice."""
    labels: dict[Place, tuple[float, ...]] = {}
    for number, line in enumerate(lines, 1):
        if number == 1:
            if line.split() != HEADER.split():
                raise LabelError(f"labels line 1: expected {HEADER!r}")
            continue
        try:
            classes, node, *values = line.split()
            place = Place(tuple(_class(text, depth) for text in classes.split(",")), _whole(node))
            found = tuple(math.inf if value == "inf" else _whole(value) for value in values)
        except ValueError:
            raise LabelError(f"labels line {number}: expected a class state, a number, labels") from None
        if len(place.states) != 1 << depth or not found or place in labels:
            raise LabelError(f"labels line {number}: classes missing, no labels or a place that came before")
        labels[place] = found
    return labels


def _class(text: str, depth: int) -> ClassState:
    if text == "-":
        return EMPTY
    rows, contributors = map(_whole, text.split("/"))
    if max(rows, contributors) >> depth:
        raise ValueError("no mask over the factors")
    return ClassState(True, rows, contributors)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("no whole number")
    return int(text)
