"""Proving a program for all sizes of its factors at once (model, section 5): words of cuts, read as buffers.

Rows and contributors are those of smtsynth.meaning.words, one state per class of devices (those whose digits are zero
in the same factors). Two things are allowed that the rules refuse, as they change nothing that is defined: collectives
among devices that all hold nothing, and a broadcast to devices that hold the same as the root.

For the buffers the order of pieces matters too, so a class also has its trail: the scatters and gathers its buffer
went through. A device's buffer is a function of its trail and of its digits in the factors that are cut, so devices
of equal trails that agree in these hold the same pieces in the same order, whatever the sizes; and over the digits of
the cut factors such buffers are disjoint and cover all chunks, since a scatter cuts each in disjoint parts and a
gather joins all of them. So where only devices of equal trails meet, sums add equal chunks, and a program that ends
with one trail and nothing cut leaves every chunk once, in one order, on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from smtsynth.meaning import words
from smtsynth.meaning.classes import shape
from smtsynth.model.program import Collective, Instruction

CUTTING = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)
Trail = tuple[tuple[Collective, int], ...]
"""The scatters and gathers that made a buffer, each with the mask of the factors its groups joined."""


class Content(NamedTuple):
    """What a class's devices hold (None: a buffer of undefined pieces), how long the buffer is (the mask of the factors
    whose sizes its length is a multiple of), and its trail."""

    held: words.Held | None
    length: int
    trail: Trail


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof for all sizes of at least 2. layout: `identity` if the chunks surely end in chunk order, else unknown."""

    layout: Literal["identity"] | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no proof, and at which step (None: after the last); it says nothing about any size."""

    step: int | None
    reason: str


def _on_group(collective: Collective, joined: int, before: Sequence[Content], every: int) -> list[Content] | str:
    """What the collective makes of one kind of group, given by its members' classes, root first; or why not."""
    root = before[0]
    if all(one.held is None for one in before):
        return _on_nothing(collective, joined, before)
    if collective is Collective.BROADCAST and all(one == root for one in before) and _alike(root, joined):
        return list(before)
    result = words.on_group(collective, joined, [one.held for one in before])
    if isinstance(result, str):
        return result
    if collective is not Collective.BROADCAST and any(one.trail != root.trail for one in before):
        return "members of a group may hold their chunks in different orders"
    trail = (*root.trail, (collective, joined)) if collective in CUTTING else root.trail
    assert root.held is not None
    lengths = [every & ~words.cuts((held or root.held).rows) for held in result]
    return [Content(held, length, trail) for held, length in zip(result, lengths, strict=True)]


def _alike(content: Content, joined: int) -> bool:
    """Whether devices of this content that differ in the joined factors only hold the same."""
    held = content.held
    return held is not None and not joined & words.cuts(held.rows) and not joined & ~held.contributors


def _on_nothing(collective: Collective, joined: int, before: Sequence[Content]) -> list[Content] | str:
    """What the collective makes of a group that holds nothing: only lengths change."""
    length = before[0].length
    if collective is not Collective.BROADCAST and any(one.length != length for one in before):
        return "members of a group may hold buffers of unequal lengths"
    if collective in CUTTING:
        if (length if collective is Collective.ALL_GATHER else ~length) & joined:
            return "members of a group cut or join what they don't hold"
        length ^= joined
    return [Content(None, length, ())] * len(before)


def prove(depth: int, program: Sequence[Instruction]) -> Proof | Refusal:
    """A proof that the program all-reduces by the buffers, for all factor sizes of at least 2, or why there is none."""
    every = (1 << depth) - 1
    state = [Content(held, every, ()) for held in words.initial(depth)]
    for number, instruction in enumerate(program, 1):
        groups, after = shape(instruction, depth), list(state)
        for root in groups.roots:
            members = groups.members(root)
            result = _on_group(instruction.collective, groups.joined, [state[member] for member in members], every)
            if isinstance(result, str):
                return Refusal(number, f"step {number}: {instruction.collective}: {result}")
            for member, new in zip(members, result, strict=True):
                after[member] = new
        state = after
    if tuple(one.held for one in state) != words.complete(depth):
        return Refusal(None, "after the last step the goal is not reached")
    if any(one.trail != state[0].trail for one in state):
        return Refusal(None, "devices may end with their chunks in different orders")
    return Proof("identity" if _nested(state[0].trail, depth) else None)


def _nested(trail: Trail, depth: int) -> bool:
    """Whether each gather undoes the last cuts left, outermost factor first: then chunks are in order again."""
    cut: list[int] = []
    for collective, joined in trail:
        factors = [factor for factor in range(depth) if joined >> factor & 1]
        if collective is Collective.REDUCE_SCATTER:
            cut += factors
        elif cut[-len(factors) :] == factors:
            del cut[-len(factors) :]
        else:
            return False
    return not cut
