"""What must happen before what: thread-block order, dependencies, messages, and the waits that can deadlock.

Two relations over steps, both of direct predecessors. `before` is what every interleaving keeps, whatever the depth
of the FIFOs: it orders accesses. `waits` adds what can only delay: free slots, and flags that are posted late.
A step that receives and sends is one event: it holds its incoming slot until its outgoing message has one, as the
runtimes do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from smtsynth.msccl.model import Algorithm, StepId, XmlStep
from smtsynth.msccl.verdict import Kind, MscclVerdict, describe, refuted

Graph = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Steps numbered by GPU, thread block and position, with their direct predecessors.

    `sender[n]` is the step whose message step n receives (-1: none).
    """

    ids: tuple[StepId, ...]
    steps: tuple[XmlStep, ...]
    sender: tuple[int, ...]
    before: Graph
    waits: Graph


@dataclass(frozen=True, slots=True)
class Fifo:
    """One FIFO: source and destination GPU, channel; the steps that send and receive on it, in order."""

    source: int
    destination: int
    chan: int
    sends: tuple[int, ...]
    receives: tuple[int, ...]

    def __str__(self) -> str:
        return f"the FIFO from gpu {self.source} to gpu {self.destination} on channel {self.chan}"


def fifos(algorithm: Algorithm) -> tuple[Fifo, ...]:
    """Every FIFO in use, with step numbers as in Order; order across thread blocks that share one is arbitrary."""
    sends: dict[tuple[int, int, int], list[int]] = {}
    receives: dict[tuple[int, int, int], list[int]] = {}
    number = 0
    for g, gpu in enumerate(algorithm.gpus):
        for block in gpu.blocks:
            for step in block.steps:
                if step.traits.sends:
                    sends.setdefault((g, block.send, block.chan), []).append(number)
                if step.traits.receives:
                    receives.setdefault((block.recv, g, block.chan), []).append(number)
                number += 1
    return tuple(
        Fifo(*key, tuple(sends.get(key, ())), tuple(receives.get(key, ()))) for key in sorted({**sends, **receives})
    )


def find_fifo_fault(algorithm: Algorithm, ids: Sequence[StepId], queues: Sequence[Fifo]) -> MscclVerdict | None:
    """The first FIFO that thread blocks share, that is left with an unmatched end, or whose message sizes differ."""
    for fifo in queues:
        for numbers, verb in ((fifo.sends, "send on"), (fifo.receives, "receive from")):
            second = next((n for n in numbers if ids[n][:2] != ids[numbers[0]][:2]), None)
            if second is not None:
                pair = [ids[numbers[0]], ids[second]]
                both = " and ".join(describe(algorithm, place) for place in pair)
                reason = f"two thread blocks {verb} {fifo}: {both}; give each a channel of its own"
                return refuted(Kind.SHARED, reason, pair)
    for fifo in queues:
        sends, receives = len(fifo.sends), len(fifo.receives)
        if sends != receives:
            count = min(sends, receives)
            end, other = ("send", "receive") if sends > receives else ("receive", "send")
            place = ids[max(fifo.sends, fifo.receives, key=len)[count]]
            only = f"only {count} {other}{'s' * (count != 1)}" if count else f"no {other}"
            reason = f"{describe(algorithm, place)} is {end} number {count + 1} on {fifo}, which has {only}"
            return refuted(Kind.UNMATCHED, reason, [place])
    for fifo in queues:
        for source, target in zip(fifo.sends, fifo.receives, strict=True):
            ends = [ids[source], ids[target]]
            sizes = [algorithm.step(place).cnt for place in ends]
            if sizes[0] != sizes[1]:
                names = [describe(algorithm, place) for place in ends]
                reason = f"{names[0]} sends {sizes[0]} chunks and {names[1]} takes that message as {sizes[1]}"
                return refuted(Kind.SIZE, reason, ends)
    return None


def poster(steps: Sequence[XmlStep], number: int) -> int | None:
    """The step whose flag a wait for step `number` of this thread block sees: the first from there on that posts.

    The runtimes keep one flag per thread block, raised by steps with hasdep 1 that aren't nops.
    """
    for later in range(number, len(steps)):
        if steps[later].hasdep and steps[later].type != "nop":
            return later
    return None


def find_unposted(algorithm: Algorithm) -> MscclVerdict | None:
    """The first step that waits for a flag that is never raised."""
    for place, step in algorithm.steps():
        if step.depid < 0:
            continue
        if poster(algorithm.gpus[place.gpu].blocks[step.depid].steps, step.deps) is None:
            target = StepId(place.gpu, step.depid, step.deps)
            reason = (
                f"{describe(algorithm, place)} waits for {describe(algorithm, target)}, and neither that step nor "
                f"a later one of its thread block posts its completion; hasdep must be 1 there"
            )
            return refuted(Kind.UNPOSTED, reason, [place, target])
    return None


def build_order(algorithm: Algorithm, queues: Sequence[Fifo], slots: int) -> Order:
    """The order of an algorithm whose FIFOs match up and hold `slots` messages each."""
    ids, steps = zip(*algorithm.steps(), strict=True) if algorithm.step_count else ((), ())
    number = {place: n for n, place in enumerate(ids)}
    sender = [-1] * len(ids)
    before: list[list[int]] = [[] for _ in ids]
    waits: list[list[int]] = [[] for _ in ids]
    for n, (place, step) in enumerate(zip(ids, steps, strict=True)):
        if place.step:
            before[n].append(n - 1)
        if step.depid >= 0:
            target = number[StepId(place.gpu, step.depid, step.deps)]
            before[n].append(target)
            flag = poster(algorithm.gpus[place.gpu].blocks[step.depid].steps, step.deps)
            if flag is not None and flag != step.deps:
                waits[n].append(target - step.deps + flag)
    for fifo in queues:
        for k, (source, goal) in enumerate(zip(fifo.sends, fifo.receives, strict=True)):
            sender[goal] = source
            before[goal].append(source)
            if k >= slots:
                waits[source].append(fifo.receives[k - slots])
    both = tuple(tuple(b + w) for b, w in zip(before, waits, strict=True))
    return Order(ids, steps, tuple(sender), tuple(map(tuple, before)), both)


def topological(graph: Graph) -> list[int]:
    """Nodes, each after all its predecessors; those on a cycle or behind one are left out."""
    followers: list[list[int]] = [[] for _ in graph]
    open_count = [len(predecessors) for predecessors in graph]
    for node, predecessors in enumerate(graph):
        for p in predecessors:
            followers[p].append(node)
    ready = deque(node for node, count in enumerate(open_count) if not count)
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for f in followers[node]:
            open_count[f] -= 1
            if not open_count[f]:
                ready.append(f)
    return order


def find_cycle(graph: Graph, done: Sequence[int]) -> list[int]:
    """A short cycle among the nodes missing from `done`: each waits for (has as predecessor) the next."""
    stuck = set(range(len(graph))).difference(done)
    node, seen = min(stuck), set[int]()
    while node not in seen:
        seen.add(node)
        # A stuck node always has a stuck predecessor, so this walk comes round.
        node = next(p for p in graph[node] if p in stuck)
    came_from: dict[int, int] = {}
    queue = deque([node])
    while queue:
        current = queue.popleft()
        for p in graph[current]:
            if p == node:
                path = [current]
                while path[-1] != node:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if p in stuck and p not in came_from:
                came_from[p] = current
                queue.append(p)
    raise AssertionError("a node found by walking back twice lies on a cycle")


def wait_reason(order: Order, waiting: int, waited: int) -> str:
    """What one step directly waits for, and which step gives it, in a few words."""
    here, there = order.ids[waiting], order.ids[waited]
    step = order.steps[waiting]
    if order.sender[waiting] == waited:
        return f"the message of {there}"
    if here[:2] == there[:2] and there.step == here.step - 1:
        return f"{there}, which comes before it"
    if here.gpu == there.gpu and step.depid == there.tb and step.deps <= there.step:
        late = "" if step.deps == there.step else f" (for step {step.deps}, which doesn't post)"
        return f"its dependency {there}{late}"
    return f"the slot that {there} frees"


def find_deadlock(algorithm: Algorithm, order: Order) -> MscclVerdict | None:
    """A cycle of waits, if there is one; then no interleaving gets through."""
    done = topological(order.waits)
    if len(done) == len(order.ids):
        return None
    cycle = find_cycle(order.waits, done)
    pairs = list(zip(cycle, cycle[1:] + cycle[:1], strict=True))
    parts = [f"{describe(algorithm, order.ids[w])} waits for {wait_reason(order, w, other)}" for w, other in pairs[:5]]
    tail = f", … ({len(cycle)} steps in all)" if len(cycle) > len(parts) else ""
    reason = f"deadlock: {', '.join(parts)}{tail}"
    return refuted(Kind.DEADLOCK, reason, [order.ids[n] for n in cycle])


def ancestor_sets(graph: Graph, line: Sequence[int]) -> tuple[list[int], list[int]]:
    """Per node of an acyclic graph: its position in `line`, a topological order, and the positions of all before it.

    Those positions are a bitset; together they take at most about len(graph)**2 / 16 bytes.
    """
    position = [0] * len(graph)
    for place, node in enumerate(line):
        position[node] = place
    ancestors = [0] * len(graph)
    for node in line:
        bits = 0
        for p in graph[node]:
            bits |= ancestors[p] | 1 << position[p]
        ancestors[node] = bits
    return position, ancestors
