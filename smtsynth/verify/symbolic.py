"""Proving a program for all sizes of its factors at once (model, section 5): words of cuts, read as buffers.

Rows and contributors are those of smtsynth.meaning.words, one state per class of devices (those whose digits are zero
in the same factors). Two things are allowed that the rules refuse, as they change nothing that is defined: collectives
among devices that all hold nothing, and a broadcast to devices that hold the same as the root.

For the buffers the order of pieces matters too, so a class also has its trail: the scatters and gathers its buffer
went through. A device's buffer is a function of its trail and of its digits in the factors that are cut, so devices
of equal trails that agree in these hold the same pieces in the same order, whatever the sizes; and over the digits of
the cut factors such buffers are disjoint and cover all chunks, since a scatter cuts each in disjoint parts and a
gather joins all of them. So where only devices of equal trails meet, sums add equal chunks, and a program that ends
with one trail and nothing cut leaves every chunk once, in one order, on every device. With one trail and cuts in some
of the factors that a goal ends split over, devices that agree in these hold the same, and parts can be assigned.

Where a goal starts changes the start only. For an AllGather the j-th device holds the j-th part, as after a scatter
over all factors: that is the trail it starts with. For a Broadcast all but the root hold nothing (what they hold by the
buffers is as good as undefined). A Reduce is judged at its root, device 0, which is a class of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from smtsynth.meaning import words
from smtsynth.meaning.classes import shape
from smtsynth.meaning.goals import Aim, target
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


State = tuple[Content, ...]
"""What the devices of each class hold."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof for all sizes of at least 2. layout: `identity` if the chunks surely end in chunk order, else unknown.

    Where chunks end split, `identity` says that the j-th device surely ends with the j-th part and no more.
    """

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


def start_of(aim: Aim) -> State:
    """What each class holds where the goal starts."""
    every = (1 << aim.depth) - 1
    trail: Trail = ((Collective.REDUCE_SCATTER, every),) if aim.collective is Collective.ALL_GATHER else ()
    length = 0 if aim.collective is Collective.ALL_GATHER else every
    return tuple(Content(held, length, trail) for held in words.start_of(aim))


def step(state: State, instruction: Instruction, depth: int) -> State | str:
    """What the classes hold after one instruction, or why it is refused."""
    groups, after, every = shape(instruction, depth), list(state), (1 << depth) - 1
    for root in groups.roots:
        members = groups.members(root)
        result = _on_group(instruction.collective, groups.joined, [state[member] for member in members], every)
        if isinstance(result, str):
            return f"{instruction.collective}: {result}"
        for member, new in zip(members, result, strict=True):
            after[member] = new
    return tuple(after)


def prove(depth: int, program: Sequence[Instruction], aim: Aim | None = None) -> Proof | Refusal:
    """A proof that the program reaches the goal by the buffers, for all factor sizes of at least 2, or why there is
    none.

    aim: any goal over `depth` factors, all reduced (default: the AllReduce). Where chunks may end split, any assignment
    of parts to devices will do, and holding more than one's part.
    """
    aim = aim or target((2,) * depth).aim
    state = start_of(aim)
    for number, instruction in enumerate(program, 1):
        after = step(state, instruction, depth)
        if isinstance(after, str):
            return Refusal(number, f"step {number}: {after}")
        state = after
    return judge(state, aim)


def judge(state: State, aim: Aim) -> Proof | Refusal:
    """Whether a state is what the goal demands at the end."""
    if not words.reached(tuple(one.held for one in state), aim):
        return Refusal(None, "after the last step the goal is not reached")
    trail = state[0].trail
    if any(state[kind].trail != trail for kind in aim.kinds):
        return Refusal(None, "devices may end with their chunks in different orders")
    split = [factor for factor in range(aim.depth) if not aim.whole >> factor & 1]
    return Proof("identity" if _left(trail, aim.depth) == split else None)


def _left(trail: Trail, depth: int) -> list[int] | None:
    """The cuts left, in their order, where each gather undoes the last ones, outermost factor first: then what a device
    holds is in chunk order, cut by these factors' digits, first most significant. None where a gather undoes others."""
    cut: list[int] = []
    for collective, joined in trail:
        factors = [factor for factor in range(depth) if joined >> factor & 1]
        if collective is Collective.REDUCE_SCATTER:
            cut += factors
        elif cut[-len(factors) :] == factors:
            del cut[-len(factors) :]
        else:
            return None
    return cut
