"""Trial values: integers from which a sum of them tells which element it is of, and what each rank must end with.

A value has its element's tag (a random number, the same on every rank) in its top bits, a one in a field that counts
contributions, and random low bits. A sum of up to 127 of them gives back the count and, if all are of one element, the
tag: so a wrong result can be read. A mean of other tags is no tag, but by a chance of one in millions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from smtsynth.export.script import Script
from smtsynth.export.writing import parts
from smtsynth.model.program import Collective

Ints = npt.NDArray[np.int64]

MAX_ELEMENTS = 2**17
RANDOM_BITS, COUNT_BITS, TAG_BITS = 16, 7, 22
COUNT_AT = RANDOM_BITS + COUNT_BITS
TAG_AT = COUNT_AT + COUNT_BITS
BITS = TAG_AT + TAG_BITS + COUNT_BITS
"""Bits of a sum of values: 59, so that what a checked program writes over undefined buffers lies beyond."""


@cache
def tags(count: int) -> Ints:
    """Different random numbers of TAG_BITS bits, one for each of so many elements."""
    return np.random.default_rng(count).permutation(2**TAG_BITS)[:count].astype(np.int64)


def values(count: int, seed: int, rank: int) -> Ints:
    """The values of a rank for so many elements."""
    low = np.random.default_rng([seed, rank]).integers(1, 2**RANDOM_BITS, size=count)
    return (tags(count) << TAG_AT) + (1 << COUNT_AT) + low


def elements_of(sums: Ints, count: int) -> Ints:
    """The element, out of so many, that each sum is of; -1 where it is no sum of values of one element."""
    times = (sums >> COUNT_AT) & ((1 << COUNT_BITS) - 1)
    total = sums >> TAG_AT
    tag = total // np.maximum(times, 1)
    order = np.argsort(tags(count))
    place = np.minimum(np.searchsorted(tags(count)[order], tag), count - 1)
    known = (sums > 0) & (times > 0) & (tag * times == total) & (tags(count)[order][place] == tag)
    return np.where(known, order[place], -1)


@dataclass(frozen=True)
class Trial:
    """A script on so many elements: a buffer of all_reduce, reduce and broadcast, or of one rank's part otherwise."""

    script: Script
    elements: int
    seed: int

    @property
    def count(self) -> int:
        """m: ranks among which the goal splits a buffer, else 1."""
        return parts(self.script)

    @property
    def share(self) -> int:
        """Pieces of one part."""
        return self.script.pieces // self.count

    @property
    def piece(self) -> int:
        """Elements of a piece, added zeros included."""
        return -(-self.elements // self.share)

    @property
    def whole(self) -> int:
        """Elements of a whole buffer, added zeros left out."""
        return self.elements * self.count

    @cached_property
    def cells(self) -> Ints:
        """Element numbers, shape (chunks, cells of a piece); -1 for added zeros."""
        inside = np.arange(self.share * self.piece)
        row = np.where(inside < self.elements, inside, -1)
        rows = np.where(row >= 0, row + self.elements * np.arange(self.count)[:, None], -1)
        return rows.reshape(self.script.pieces, self.piece)

    @cached_property
    def chunk_of(self) -> Ints:
        """The chunk of each element of a whole buffer."""
        found = np.zeros(self.whole, dtype=np.int64)
        chunks, _ = np.nonzero(self.cells >= 0)
        found[self.cells[self.cells >= 0]] = chunks
        return found

    @cached_property
    def whole_inputs(self) -> Ints:
        """Every rank's values for all elements, shape (ranks, elements of a whole buffer)."""
        return np.stack([values(self.whole, self.seed, rank) for rank in range(self.script.devices)])

    @cached_property
    def inputs(self) -> Ints:
        """What each rank starts with, shape (ranks, elements): for an AllGather, its own part."""
        if self.script.goal is not Collective.ALL_GATHER:
            return self.whole_inputs
        found = np.zeros((self.script.devices, self.elements), dtype=np.int64)
        for group in self.script.goal_groups:
            for place, rank in enumerate(group):
                found[rank] = self.whole_inputs[rank, place * self.elements : (place + 1) * self.elements]
        return found

    def wanted(self, number: int) -> Ints:
        """What all elements are at the end in goal group `number`, added zeros left out."""
        group = self.script.goal_groups[number]
        if self.script.goal is Collective.ALL_GATHER:
            return np.concatenate([self.inputs[rank] for rank in group])
        if self.script.goal is Collective.BROADCAST:
            return np.array(self.inputs[self.script.goal_roots[number]])
        return np.array(self.inputs[list(group)].sum(axis=0))

    def part(self, place: int) -> slice:
        """The elements that the rank at this place of its goal group ends with."""
        if self.script.goal is Collective.REDUCE_SCATTER:
            return slice(place * self.elements, (place + 1) * self.elements)
        return slice(0, self.whole)
