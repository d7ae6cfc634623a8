"""Programs on a placement as scripts with the goal that they reach, parts dealt out as they end (model, section 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import networkx as nx

from smtsynth.export.mesh import Grid, devices_of_ranks
from smtsynth.export.script import Script, script
from smtsynth.meaning.buffers import Snapshot, Verdict, trace
from smtsynth.model.lowering import Lowering
from smtsynth.model.problem import Problem
from smtsynth.model.program import Collective, Program
from smtsynth.model.schedule import Entry, Goal, Group, Schedule
from smtsynth.verify.placed import lowered


def script_of(problem: Problem, lowering: Lowering, program: Program, order: Sequence[int] | None = None) -> Script:
    """The script of a program on a placement, with the problem's goal.

    order: axes, slowest first, over which ranks count the placement's coordinates row-major; rank r is device r by
    default. By the rules a ReduceScatter may leave any k-th of the chunks at a device, and more beside it. All chunks
    are alike at the start: so the pieces are put where the program brings them to their own device, which then takes
    its part.
    """
    schedule = lowered(problem, lowering, program)
    if order is not None:
        schedule = renumbered(schedule, devices_of_ranks(Grid(lowering.system, lowering.placement), order).tolist())
    return _in_order(script(schedule, program, lowering))


def renumbered(schedule: Schedule, devices: Sequence[int]) -> Schedule:
    """The schedule in other numbers: rank r in place of device devices[r]; the order inside groups stays."""
    rank = {device: number for number, device in enumerate(devices)}

    def numbers(group: Group) -> Group:
        return tuple(rank[device] for device in group)

    def groups(found: tuple[Group, ...]) -> tuple[Group, ...]:
        return tuple(numbers(group) for group in found)

    steps = tuple(
        tuple(Entry(entry.collective, groups(entry.groups), numbers(entry.roots)) for entry in step)
        for step in schedule.steps
    )
    goal = schedule.goal
    new = Goal(goal.collective, groups(schedule.goal_groups), numbers(goal.roots), groups(goal.split))
    return Schedule(schedule.devices, steps, new)


def replica_script(lowering: Lowering, program: Program, collective: Collective = Collective.ALL_REDUCE) -> Script:
    """The script of one replica alone: ranks are the synthesis devices 0 to k - 1, the goal one of them all."""
    steps = tuple((Entry(step.collective, tuple(map(tuple, lowering.groups(step).tolist()))),) for step in program)
    ranks = math.prod(lowering.sizes)
    return _in_order(script(Schedule(ranks, steps, Goal(collective, (tuple(range(ranks)),))), program, lowering))


def _in_order(found: Script) -> Script:
    """The script, a ReduceScatter's with its parts in order."""
    if found.goal is Collective.REDUCE_SCATTER and not (found.proved and found.layout is None):
        return _dealt(found)
    return found


def _dealt(given: Script) -> Script:
    """The script with pieces dealt out so that every device ends with its own part, if that can be; else as it is."""
    *_, end = trace(given.schedule)
    complete: list[dict[int, int]] = []  # of each device: where in its buffer it holds which complete chunk
    for device in range(given.devices):
        group = next(group for group in given.goal_groups if device in group)
        whole = end.sums.of(group)
        cells = end.state.cells(device)
        pairs = zip(end.state.chunks[cells].tolist(), end.state.sums[cells].tolist(), strict=True)
        complete.append({chunk: place for place, (chunk, held) in enumerate(pairs) if held == whole and chunk >= 0})
    parts = _deal(given.split_groups, complete, end)
    if parts is None:
        return given
    arrange = [0] * given.pieces
    for place, chunk in enumerate(chunk for part in parts for chunk in part):
        arrange[chunk] = place
    seat = {device: place for group in given.split_groups for place, device in enumerate(group)}
    take = tuple(tuple(complete[device][chunk] for chunk in parts[seat[device]]) for device in range(given.devices))
    verdict = Verdict("proved", "every part ends complete at its device", layout="identity")
    return replace(given, verdict=verdict, arrange=tuple(arrange), take=take)


def _deal(
    groups: Sequence[Group], complete: Sequence[Mapping[int, int]], end: Snapshot
) -> list[tuple[int, ...]] | None:
    """A part of the chunks for each place in a group, that the devices at that place hold complete in every group."""
    many = len(groups[0])
    share = end.pieces // many
    graph = nx.Graph()  # chunks and, behind them, seats of parts; numbers, whose order never changes
    chunks = range(end.pieces)
    graph.add_nodes_from(chunks)
    for place in range(many):
        held = set.intersection(*(set(complete[group[place]]) for group in groups))
        seats = range(end.pieces + place * share, end.pieces + (place + 1) * share)
        graph.add_edges_from((chunk, seat) for chunk in sorted(held) for seat in seats)
    matched = nx.bipartite.maximum_matching(graph, top_nodes=chunks)
    found: list[list[int]] = [[] for _ in range(many)]
    for chunk in chunks:
        if chunk not in matched:
            return None
        found[(matched[chunk] - end.pieces) // share].append(chunk)
    return [tuple(part) for part in found]
