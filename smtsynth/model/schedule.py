"""Schedules (model, section 8): steps of collectives over explicit groups of devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import TYPE_CHECKING, Literal

from smtsynth.errors import InputError, LimitReached, VerificationError, check_type
from smtsynth.model.program import Collective

if TYPE_CHECKING:
    from smtsynth.meaning.judge import Verdict

Group = tuple[int, ...]
Groups = Iterable[Iterable[int]]
ROOTED = (Collective.REDUCE, Collective.BROADCAST)


@dataclass(frozen=True, slots=True)
class Entry:
    """One collective over disjoint groups; roots (Reduce, Broadcast) has one device per group, or is empty (firsts)."""

    collective: Collective
    groups: tuple[Group, ...]
    roots: tuple[int, ...] = ()

    def root(self, number: int) -> int:
        """The root of group `number`: the one named, else the group's first device."""
        return self.roots[number] if self.roots else self.groups[number][0]


Step = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a schedule must reach on each of its goal groups (model, section 5, second table).

    split: the groups that a ReduceScatter ends split over, the j-th device of each with the j-th part, where these are
    parts of the goal groups (a mix of goals per axis); by default the goal groups themselves.
    """

    collective: Collective = Collective.ALL_REDUCE
    groups: tuple[Group, ...] = ()
    roots: tuple[int, ...] = ()
    split: tuple[Group, ...] = ()

    def root(self, number: int) -> int:
        """The root of goal group `number`: the one named, else the group's first device (device 0 of them all)."""
        groups = self.groups or ((0,),)
        if number not in range(len(groups)) or not groups[number]:
            raise InputError(f"has no group {number} with a device", where="goal", expected="the number of one")
        return self.roots[number] if self.roots else groups[number][0]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps over `devices` devices; no goal groups means one group of all devices.

    The methods named like collectives add a step and return a new schedule, checked as far as it goes:
    Schedule(devices=4).reduce_scatter([[0, 1], [2, 3]]).all_reduce([[0, 2], [1, 3]]).all_gather([[0, 1], [2, 3]]).
    """

    devices: int
    steps: tuple[Step, ...] = ()
    goal: Goal = Goal()

    @property
    def goal_groups(self) -> tuple[Group, ...]:
        """The groups the goal speaks of."""
        return self.goal.groups or (tuple(range(self.devices)),)

    @property
    def split_groups(self) -> tuple[Group, ...]:
        """The groups whose devices end, or start, with a part of the chunks each, where the goal has parts."""
        return self.goal.split or self.goal_groups

    def all_reduce(self, groups: Groups) -> Schedule:
        """With one more step, an AllReduce on these groups. InputError where they don't fit."""
        return self.at_once(Entry(Collective.ALL_REDUCE, _groups(groups)))

    def reduce_scatter(self, groups: Groups) -> Schedule:
        """With one more step, a ReduceScatter on these groups: the j-th device of each gets the j-th part."""
        return self.at_once(Entry(Collective.REDUCE_SCATTER, _groups(groups)))

    def all_gather(self, groups: Groups) -> Schedule:
        """With one more step, an AllGather on these groups, in their order."""
        return self.at_once(Entry(Collective.ALL_GATHER, _groups(groups)))

    def reduce(self, groups: Groups, roots: Sequence[int] = ()) -> Schedule:
        """With one more step, a Reduce on these groups, each to its root (default: its first device)."""
        return self.at_once(Entry(Collective.REDUCE, _groups(groups), _roots(roots)))

    def broadcast(self, groups: Groups, roots: Sequence[int] = ()) -> Schedule:
        """With one more step, a Broadcast on these groups, each from its root (default: its first device)."""
        return self.at_once(Entry(Collective.BROADCAST, _groups(groups), _roots(roots)))

    def at_once(self, *entries: Entry) -> Schedule:
        """With one more step of entries that run at the same time, over disjoint devices (none: an empty step)."""
        _check_devices(self.devices)
        step = tuple(_entry(entry) for entry in entries)
        _check_step(step, self.devices, f"step {len(self.steps) + 1}")
        return replace(self, steps=(*self.steps, step))

    def with_goal(
        self, collective: Collective | str, groups: Groups = (), roots: Sequence[int] = (), split: Groups = ()
    ) -> Schedule:
        """The same steps with another goal than the AllReduce over all devices (see Goal)."""
        made = _groups(groups, "goal"), _roots(roots), _groups(split, "goal")
        return check_schedule(replace(self, goal=Goal(_collective(collective, "goal"), *made)))

    def verify(self, layout: Literal["any", "identity"] = "any") -> Verdict:
        """The verdict `proved`, by the buffers (model, section 5).

        layout: whether any one order of the chunks at the end will do, or only chunk order. Raises VerificationError
        with the reason where the schedule is refuted, LimitReached where its buffers are too large to follow.
        """
        from smtsynth.meaning.buffers import run  # meaning builds on this module

        verdict = run(check_schedule(self), layout)
        if verdict.verdict == "unknown":
            raise LimitReached(verdict.reason)
        if verdict.verdict == "refuted":
            raise VerificationError(verdict.reason, verdict)
        return verdict


def _collective(name: object, where: str) -> Collective:
    """The collective of this name, or InputError."""
    if name not in list(Collective):
        raise InputError(f"collective {str(name)[:40]!r} is unknown", where=where, expected=", ".join(Collective))
    return Collective(str(name))


def _groups(groups: Groups, where: str = "groups") -> tuple[Group, ...]:
    """Groups as tuples of whole numbers, or InputError."""
    try:
        return tuple(tuple(map(index, group)) for group in groups)
    except TypeError:
        raise InputError("are no groups", where=where, expected="lists of device numbers: [[0, 1], [2, 3]]") from None


def _roots(roots: Sequence[int]) -> tuple[int, ...]:
    """Roots as whole numbers, or InputError."""
    return _groups([roots], "roots")[0]


def _entry(entry: Entry) -> Entry:
    """An entry made by hand, with lists where tuples belong, as it should be."""
    check_type(entry, Entry, "step", "an Entry")
    return Entry(_collective(entry.collective, "collective"), _groups(entry.groups), _roots(entry.roots))


def check_groups(groups: tuple[Group, ...], roots: tuple[int, ...], devices: int, where: str) -> None:
    """InputError unless groups are non-empty, of known devices, disjoint, and each root is in its group."""
    try:
        _check_groups(groups, roots, devices, where)
    except TypeError:
        raise InputError("are no groups", where=where, expected="lists of device numbers: [[0, 1], [2, 3]]") from None


def _check_groups(groups: tuple[Group, ...], roots: tuple[int, ...], devices: int, where: str) -> None:
    seen: set[int] = set()
    for group in groups:
        if not group:
            raise InputError("a group is empty", where=where, expected="at least one device")
        for device in group:
            if not 0 <= device < devices:
                raise InputError(f"there is no device {device}", where=where, expected=f"0 to {devices - 1}")
            if device in seen:
                raise InputError(f"device {device} is there twice", where=where, expected="each device at most once")
            seen.add(device)
    if roots and len(roots) != len(groups):
        raise InputError(f"{len(roots)} roots for {len(groups)} groups", where=where, expected="one root per group")
    for root, group in zip(roots, groups, strict=False):
        if root not in group:
            raise InputError(f"root {root} is not in its group {_short(group)}", where=where, expected="a member")


def _short(group: Group) -> str:
    """A group that stays readable when it is large."""
    return str(list(group)) if len(group) <= 16 else f"[{group[0]}, {group[1]}, … {len(group)} devices]"


def _check_step(step: Step, devices: int, where: str) -> None:
    """InputError unless the entries' groups are disjoint, of known devices, with roots where these may be."""
    check_type(step, (tuple, list), where, "a tuple of Entry")
    for entry in step:
        check_type(entry, Entry, where, "a tuple of Entry")
        _collective(entry.collective, where)
        if entry.roots and entry.collective not in ROOTED:
            raise InputError(f"{entry.collective} has roots", where=where, expected="roots on Reduce or Broadcast")
        check_groups(entry.groups, entry.roots, devices, where)
    if len(step) > 1:
        check_groups(tuple(group for entry in step for group in entry.groups), (), devices, where)


def _check_goal(schedule: Schedule) -> None:
    """InputError unless the goal's groups are disjoint and those it is split over are whole parts of them."""
    goal = schedule.goal
    if goal.roots and goal.collective not in ROOTED:
        raise InputError(f"{goal.collective} has roots", where="goal", expected="roots on Reduce or Broadcast")
    if goal.roots and not goal.groups:
        raise InputError("roots without groups", where="goal", expected="groups, one root per group")
    check_groups(goal.groups, goal.roots, schedule.devices, "goal")
    if not goal.split:
        return
    if goal.collective is not Collective.REDUCE_SCATTER:
        raise InputError(f"{goal.collective} ends split", where="goal", expected="ReduceScatter")
    check_groups(goal.split, (), schedule.devices, "goal: split")
    number = {device: place for place, group in enumerate(schedule.goal_groups) for device in group}
    for group in goal.split:
        if any(number.get(device, -1) != number.get(group[0]) for device in group):
            raise InputError(
                f"{_short(group)} is in no one goal group", where="goal: split", expected="parts of the goal groups"
            )
    if len(number) != sum(map(len, goal.split)):
        raise InputError("a device of the goal is missing", where="goal: split", expected="every device of the goal")


def _check_devices(devices: object) -> None:
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1:
        raise InputError(f"is {str(devices)[:40]}", where="devices", expected="a whole number of at least 1")


def check_schedule(schedule: Schedule) -> Schedule:
    """The schedule, if every step's entries and the goal are over disjoint known devices, else InputError."""
    check_type(schedule, Schedule, "schedule", "a Schedule")
    _check_devices(schedule.devices)
    check_type(schedule.steps, (tuple, list), "steps", "a tuple of steps")
    check_type(schedule.goal, Goal, "goal", "a Goal")
    for number, step in enumerate(schedule.steps, 1):
        _check_step(step, schedule.devices, f"step {number}")
    _check_goal(schedule)
    return schedule
