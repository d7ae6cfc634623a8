"""Random schedules, and programs over factors of any sizes, for the tests of `verify`."""

from __future__ import annotations

import random
from functools import cache

from smtsynth.meaning import classes
from smtsynth.model.program import Collective, Program, instruction_set
from smtsynth.model.schedule import Entry, Goal, Group, Schedule, check_schedule

AR, RS, AG = Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER
REDUCE, BROADCAST = Collective.REDUCE, Collective.BROADCAST


def random_groups(rng: random.Random, devices: int, every: bool = False) -> tuple[Group, ...]:
    """Disjoint groups, mostly of one size, of all devices or of some."""
    order = list(range(devices))
    if rng.random() < 0.4:
        rng.shuffle(order)
    sizes = [size for size in range(1, devices + 1) if devices % size == 0]
    if every or rng.random() < 0.75:
        size = rng.choice(sizes[1:] or sizes)
        groups = [tuple(order[i : i + size]) for i in range(0, devices, size)]
        if rng.random() < 0.4:
            groups = [tuple(order[i :: devices // size]) for i in range(devices // size)]
    else:
        cuts = sorted(rng.sample(range(1, devices), rng.randint(0, min(2, devices - 1))))
        groups = [tuple(order[a:b]) for a, b in zip([0, *cuts], [*cuts, devices], strict=True)]
    return tuple(groups if every or rng.random() < 0.85 else groups[: rng.randint(1, len(groups))])


def hierarchical(rng: random.Random, most: int) -> Schedule:
    """A right hierarchical reduction over a few nodes whose devices are numbered anyhow."""
    nodes, each = rng.choice([(a, b) for a in range(1, most + 1) for b in range(1, most + 1) if 1 < a * b <= most])
    order = list(range(nodes * each))
    if rng.random() < 0.5:
        rng.shuffle(order)
    inside = tuple(tuple(order[n * each : (n + 1) * each]) for n in range(nodes))
    across = tuple(tuple(order[place::each]) for place in range(each))
    leaders = (tuple(group[0] for group in inside),)
    pairs = {
        "parts": [(RS, inside), (AR, across), (AG, inside)],
        "deep": [(RS, inside), (RS, across), (AG, across), (AG, inside)],
        "turned": [(RS, inside), (RS, across), (AG, inside), (AG, across)],
        "leaders": [(REDUCE, inside), (AR, leaders), (BROADCAST, inside)],
        "twice": [(AR, inside), (AR, across)],
        "tree": [(REDUCE, inside), (REDUCE, leaders), (BROADCAST, leaders), (BROADCAST, inside)],
        "scattered": [(RS, inside), (AR, across)],
    }
    name = rng.choice(list(pairs))
    goal = Goal(RS, (tuple(order),), (), inside) if name == "scattered" else Goal()
    return Schedule(nodes * each, tuple((Entry(kind, groups),) for kind, groups in pairs[name]), goal)


def changed(rng: random.Random, schedule: Schedule) -> Schedule:
    """The schedule with a step left out, doubled, moved, of another kind or over other groups."""
    steps = list(schedule.steps)
    place = rng.randrange(len(steps))
    how = rng.choice(("drop", "double", "swap", "kind", "groups"))
    if how == "drop":
        del steps[place]
    elif how == "double":
        steps.insert(place, steps[place])
    elif how == "swap":
        steps.append(steps.pop(place))
    elif how == "kind":
        steps[place] = (Entry(rng.choice(list(Collective)), steps[place][0].groups),)
    else:
        steps[place] = (Entry(steps[place][0].collective, random_groups(rng, schedule.devices)),)
    return check_schedule(Schedule(schedule.devices, tuple(steps), schedule.goal))


def random_schedule(rng: random.Random, most: int = 5) -> Schedule:
    """A small schedule: right, right but for one change, or anything."""
    how = rng.random()
    if how < 0.6:
        schedule = hierarchical(rng, most)
        return schedule if how < 0.3 else changed(rng, schedule)
    devices = rng.randint(2, most)
    steps: list[tuple[Entry, ...]] = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
        groups = random_groups(rng, devices)
        kind = rng.choice((AR, AR, RS, RS, AG, REDUCE, BROADCAST))
        rooted = kind in (REDUCE, BROADCAST) and rng.random() < 0.4
        entry = Entry(kind, groups, tuple(rng.choice(group) for group in groups) if rooted else ())
        if rng.random() < 0.15 and len(groups) > 1:
            steps.append((Entry(kind, groups[:1], entry.roots[:1]), Entry(rng.choice((AR, AG, REDUCE)), groups[1:])))
        else:
            steps.append((entry,))
        after = {RS: AG, REDUCE: BROADCAST}.get(kind)
        if after is not None and rng.random() < 0.6:
            steps.append((Entry(after, groups, entry.roots),))
    kind = rng.choice((AR, AR, AR, AR, RS, AG, REDUCE, BROADCAST))
    goal_groups = random_groups(rng, devices, every=True) if rng.random() < 0.6 else ()
    roots = tuple(group[-1] for group in goal_groups) if kind in (REDUCE, BROADCAST) and rng.random() < 0.5 else ()
    goal = Goal(kind, goal_groups, roots)
    if kind is RS and goal_groups and rng.random() < 0.3:
        goal = Goal(kind, (), (), goal_groups)
    if goal_groups and steps and rng.random() < 0.4:
        steps.append((Entry(AR, goal_groups),))
    return check_schedule(Schedule(devices, tuple(steps), goal))


@cache
def class_programs(depth: int, limit: int, name: str = "full") -> tuple[Program, ...]:
    """All programs of at most `limit` steps that the class meaning accepts: those that the rules do, and some more."""
    instructions = [(one, classes.shape(one, depth)) for one in instruction_set(depth, name)]
    goal, found = classes.complete(depth), []
    hopeful: dict[tuple[classes.States, int], bool] = {}

    def reaches(states: classes.States, left: int) -> bool:
        if states == goal or not left:
            return states == goal
        if (states, left) not in hopeful:
            after = (classes.step(states, one.collective, shape) for one, shape in instructions)
            hopeful[states, left] = any(new is not None and reaches(new, left - 1) for new in after)
        return hopeful[states, left]

    def walk(states: classes.States, program: Program) -> None:
        if states == goal:
            found.append(program)
            return
        for one, shape in instructions:
            new = classes.step(states, one.collective, shape)
            if new is not None and len(program) < limit and reaches(new, limit - len(program) - 1):
                walk(new, (*program, one))

    walk(classes.initial(depth), ())
    return tuple(found)
