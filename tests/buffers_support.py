"""Schedules in short, and a plain interpreter of buffers, written from the model's text."""

from __future__ import annotations

from collections import Counter

from smtsynth.model.program import Collective
from smtsynth.model.schedule import Entry, Goal, Schedule, check_schedule

AR, RS, AG = Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER
REDUCE, BROADCAST = Collective.REDUCE, Collective.BROADCAST

IN, ACROSS, ALL = ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 1, 2, 3),)


def schedule(*steps: tuple, devices: int = 4, goal: Goal | None = None) -> Schedule:
    """A schedule of steps (collective, groups) or (collective, groups, roots), or lists of these."""
    made = tuple(tuple(Entry(*e) for e in step) if isinstance(step, list) else (Entry(*step),) for step in steps)
    return check_schedule(Schedule(devices, made, goal or Goal()))


# --- A plain interpreter, written from the model's text: lists of (chunk, Counter) or None, one device at a time.


class Unequal(Exception):
    pass


def plain_run(plan: Schedule) -> tuple[int, list[list[list]]]:
    """K, and all devices' buffers at the start and after each step; raises Unequal(step)."""
    goal, groups = plan.goal.collective, plan.goal_groups

    def start(device: int, k: int) -> list:
        if goal is not AG:
            return [(chunk, Counter([device])) for chunk in range(k)]
        part = [(g.index(device), len(g)) for g in groups if device in g]
        return [(chunk, Counter([device])) for j, m in part for chunk in range(j * k // m, (j + 1) * k // m)]

    def attempt(k: int) -> list[list[list]] | None:
        """All buffers with k pieces, or None where a scatter doesn't divide."""
        now = [start(device, k) for device in range(plan.devices)]
        states = [now]
        for number, step in enumerate(plan.steps, 1):
            new = list(now)
            for entry in step:
                for place, group in enumerate(entry.groups):
                    held = [now[device] for device in group]
                    root = entry.roots[place] if entry.roots else group[0]
                    if entry.collective is BROADCAST:
                        for device in group:
                            new[device] = now[root]
                        continue
                    if len({len(buffer) for buffer in held}) > 1:
                        raise Unequal(number)
                    if entry.collective is AG:
                        for device in group:
                            new[device] = [piece for buffer in held for piece in buffer]
                        continue
                    total = []
                    for column in zip(*held, strict=True):
                        same = None not in column and len({piece[0] for piece in column}) == 1
                        total.append((column[0][0], sum((p[1] for p in column), Counter())) if same else None)
                    if entry.collective is RS and len(total) % len(group):
                        return None
                    share = len(total) // len(group)
                    for j, device in enumerate(group):
                        if entry.collective is AR:
                            new[device] = total
                        elif entry.collective is RS:
                            new[device] = total[j * share : (j + 1) * share]
                        else:
                            new[device] = total if device == root else [None] * len(total)
            now = new
            states.append(now)
        return states

    for k in range(1, 10**4):
        if goal in (RS, AG) and any(k % len(group) for group in groups):
            continue
        states = attempt(k)
        if states is not None:
            return k, states
    raise AssertionError("no number of pieces divides")


def plain_flaws(plan: Schedule, k: int, end: list[list]) -> list[tuple[int, int | None]]:
    """All (device, chunk) that are wrong at the end, the goal's second table read off; order of chunks aside."""
    flaws: list[tuple[int, int | None]] = []
    for number, group in enumerate(plan.goal_groups):
        root = plan.goal.roots[number] if plan.goal.roots else group[0]
        for j, device in enumerate(group):
            if plan.goal.collective is REDUCE and device != root:
                continue
            part = range(k)
            if plan.goal.collective is RS:
                part = range(j * k // len(group), (j + 1) * k // len(group))
            for chunk in range(k):
                wanted = Counter(group)
                if plan.goal.collective is AG:
                    wanted = Counter([group[chunk * len(group) // k]])
                if plan.goal.collective is BROADCAST:
                    wanted = Counter([root])
                there = [piece[1] for piece in end[device] if piece is not None and piece[0] == chunk]
                if there != ([wanted] if chunk in part else []):
                    flaws.append((device, chunk))
            if not any(d == device for d, _ in flaws) and len(end[device]) != len(part):
                flaws.append((device, None))
    return sorted(flaws, key=lambda flaw: (flaw[0], -1 if flaw[1] is None else flaw[1]))
