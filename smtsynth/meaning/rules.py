"""The rules (model, section 5; paper, section 4.2): what each collective needs and gives on Boolean states.

A device's state is a k x k Boolean matrix, row = chunk, column = contributor. It is written here as blocks: rows
with the same contributors are kept together, as (rows, contributors), two bit sets. Equal matrices are equal tuples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_

from smtsynth.model.lowering import span_groups
from smtsynth.model.program import Collective, Instruction, Program
from smtsynth.model.schedule import Group

Block = tuple[int, int]
DeviceState = tuple[Block, ...]
State = tuple[DeviceState, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a collective cannot run: the need that failed, on which group, for which devices and chunk."""

    need: str
    group: Group
    devices: tuple[int, ...]
    chunk: int | None = None
    step: int | None = None
    collective: Collective | None = None

    def __str__(self) -> str:
        where = f"step {self.step}: " if self.step is not None else ""
        what = f"{self.collective} on group {_short(self.group)}" if self.collective else f"group {_short(self.group)}"
        chunk = f", chunk {self.chunk}" if self.chunk is not None else ""
        return f"{where}{what}: {self.need} (device{'s' * (len(self.devices) > 1)} {_short(self.devices)}{chunk})"


def _short(devices: Sequence[int], most: int = 8) -> str:
    """A list of devices that stays readable when it is long."""
    shown = ", ".join(map(str, devices[:most]))
    return f"[{shown}, … {len(devices)} in all]" if len(devices) > most else f"[{shown}]"


def lowest(bits: int) -> int:
    """The number of the lowest set bit."""
    return (bits & -bits).bit_length() - 1


def members(bits: int) -> list[int]:
    """The numbers of the set bits, ascending."""
    return [i for i, bit in enumerate(reversed(bin(bits)[2:])) if bit == "1"]


def rows_of(state: DeviceState) -> int:
    """The non-empty rows of a device, as a bit set."""
    return reduce(or_, (rows for rows, _ in state), 0)


def blocks(parts: Iterable[Block]) -> DeviceState:
    """The normal form: parts with the same contributors joined, sorted."""
    joined: dict[int, int] = {}
    for rows, contributors in parts:
        joined[contributors] = joined.get(contributors, 0) | rows
    return tuple(sorted((rows, contributors) for contributors, rows in joined.items()))


@lru_cache(maxsize=65536)
def cut(rows: int, parts: int) -> tuple[int, ...]:
    """The set bits of `rows`, in order, in `parts` consecutive sets of the same number."""
    numbers = members(rows)
    size = len(numbers) // parts
    return tuple(sum(1 << n for n in numbers[i * size : (i + 1) * size]) for i in range(parts))


def _sum(group: Group, states: Sequence[DeviceState]) -> DeviceState | Failure:
    """Row by row sum of the members' states, if rows are equal and contributors disjoint."""
    rows = rows_of(states[0])
    for device, state in zip(group, states, strict=True):
        if not state:
            return Failure("holds nothing to reduce", group, (device,))
        if rows_of(state) != rows:
            return Failure("hold different chunks", group, (group[0], device), lowest(rows_of(state) ^ rows))
    total: list[Block] = list(states[0])
    for number, state in enumerate(states[1:], 1):
        parts = []
        for rows1, from1 in total:
            for rows2, from2 in state:
                both = rows1 & rows2
                if both and from1 & from2:
                    twice = from1 & from2
                    earlier = next(
                        d for d, s in zip(group, states, strict=True) if any(r & both and f & twice for r, f in s)
                    )
                    need = f"the contribution of device {lowest(twice)} would be counted twice"
                    return Failure(need, group, (earlier, group[number]), lowest(both))
                if both:
                    parts.append((both, from1 | from2))
        total = parts
    return blocks(total)


def on_group(collective: Collective, group: Group, states: Sequence[DeviceState]) -> list[DeviceState] | Failure:
    """What the collective makes of a group's states (in group order, root first), or the need that fails."""
    if collective is Collective.BROADCAST:
        return _broadcast(group, states)
    if collective is Collective.ALL_GATHER:
        return _gather(group, states)
    total = _sum(group, states)
    if isinstance(total, Failure):
        return total
    if collective is Collective.ALL_REDUCE:
        return [total] * len(group)
    if collective is Collective.REDUCE:
        return [total] + [()] * (len(group) - 1)
    rows = rows_of(total)
    if rows.bit_count() % len(group):
        need = f"{rows.bit_count()} chunks do not divide into {len(group)} parts"
        return Failure(need, group, (group[0],))
    return [blocks((r & part, c) for r, c in total if r & part) for part in cut(rows, len(group))]


def _gather(group: Group, states: Sequence[DeviceState]) -> list[DeviceState] | Failure:
    held = 0
    for device, state in zip(group, states, strict=True):
        rows = rows_of(state)
        if not rows:
            return Failure("holds nothing to gather", group, (device,))
        if rows.bit_count() != rows_of(states[0]).bit_count():
            return Failure("hold different numbers of chunks", group, (group[0], device))
        if held & rows:
            chunk = lowest(held & rows)
            other = next(d for d, s in zip(group, states, strict=True) if rows_of(s) >> chunk & 1)
            return Failure("hold the same chunk", group, (other, device), chunk)
        held |= rows
    union = blocks(block for state in states for block in state)
    return [union] * len(group)


def _broadcast(group: Group, states: Sequence[DeviceState]) -> list[DeviceState] | Failure:
    root = states[0]
    if not root:
        return Failure("the root holds nothing to broadcast", group, (group[0],))
    less = False
    for device, state in zip(group[1:], states[1:], strict=True):
        covered = 0
        for rows, contributors in state:
            for rows0, contributors0 in root:
                if contributors & ~contributors0 == 0:
                    covered |= rows & rows0
            if rows & ~covered:
                return Failure("has what the root lacks", group, (device, group[0]), lowest(rows & ~covered))
        less = less or state != root
    if not less:
        return Failure("everyone already holds what the root holds", group, group)
    return [root] * len(group)


def apply(state: State, collective: Collective, groups: Iterable[Group]) -> State | Failure:
    """The state after the collective ran on all `groups` (disjoint), or the first failure; others keep theirs."""
    after = list(state)
    for group in groups:
        result = on_group(collective, group, [state[device] for device in group])
        if isinstance(result, Failure):
            return Failure(result.need, group, result.devices, result.chunk, collective=collective)
        for device, new in zip(group, result, strict=True):
            after[device] = new
    return tuple(after)


def initial(size: int) -> State:
    """Every device holds every chunk with its own contribution only."""
    return tuple((((1 << size) - 1, 1 << device),) for device in range(size))


def complete(sizes: Sequence[int], reduced: Sequence[bool] | None = None) -> State:
    """The goal: every device all chunks, from all devices that differ from it in `reduced` factors only."""
    size = math.prod(sizes)
    own = [0] * size
    digits = []
    for device in range(size):
        key, rest = [], device
        for factor, n in reversed(list(enumerate(sizes))):
            rest, digit = divmod(rest, n)
            if reduced is not None and not reduced[factor]:
                key.append(digit)
        digits.append(tuple(key))
    together: dict[tuple[int, ...], int] = {}
    for device in range(size):
        together[digits[device]] = together.get(digits[device], 0) | 1 << device
    own = [together[digits[device]] for device in range(size)]
    return tuple((((1 << size) - 1, contributors),) for contributors in own)


@lru_cache(maxsize=4096)
def instruction_groups(sizes: tuple[int, ...], instruction: Instruction) -> tuple[Group, ...]:
    """The instruction's groups over synthesis devices 0..k-1 (model, section 4)."""
    return tuple(map(tuple, span_groups(sizes, instruction).tolist()))


def step(state: State, sizes: tuple[int, ...], instruction: Instruction) -> State | Failure:
    """The state after one instruction over factors of these sizes, or why it cannot run."""
    return apply(state, instruction.collective, instruction_groups(sizes, instruction))


def run(program: Program, sizes: tuple[int, ...], start: State, reached: Callable[[State], bool]) -> State | Failure:
    """The state after the program, which must not reach the goal before its last step; or the first failure."""
    state = start
    for number, instruction in enumerate(program, 1):
        if reached(state):
            return Failure("the goal holds already", (), (), step=number, collective=instruction.collective)
        after = step(state, sizes, instruction)
        if isinstance(after, Failure):
            return Failure(after.need, after.group, after.devices, after.chunk, number, instruction.collective)
        state = after
    return state


def shortfall(state: State, goal: State) -> Failure | None:
    """The first device and chunk at which a state is not the goal; None where it is."""
    for device, (have, want) in enumerate(zip(state, goal, strict=True)):
        if have != want:
            complete = 0
            for rows, contributors in want:
                complete |= rows & next((held for held, of in have if of == contributors), 0)
            return Failure("the goal is not reached", (), (device,), lowest(rows_of(want) & ~complete))
    return None


def replay(program: Program, sizes: Sequence[int], reduced: Sequence[bool] | None = None) -> Failure | None:
    """None if the program reaches the AllReduce goal exactly with its last step, else the failure and its step.

    `reduced` (default all) says which factors the reduction runs over. For other goals see smtsynth.meaning.goals.
    """
    goal = complete(sizes, reduced)
    state = run(program, tuple(sizes), initial(math.prod(sizes)), lambda state: state == goal)
    return state if isinstance(state, Failure) else shortfall(state, goal)
