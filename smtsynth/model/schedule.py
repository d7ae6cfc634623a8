"""Schedules (model, section 8): steps of collectives over explicit groups of devices."""

from __future__ import annotations

from dataclasses import dataclass

from smtsynth.errors import InputError
from smtsynth.model.program import Collective

Group = tuple[int, ...]


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
    """What a schedule must reach on each of its goal groups (model, section 5, second table)."""

    collective: Collective = Collective.ALL_REDUCE
    groups: tuple[Group, ...] = ()
    roots: tuple[int, ...] = ()

    def root(self, number: int) -> int:
        """The root of goal group `number`: the one named, else the group's first device."""
        return self.roots[number] if self.roots else self.groups[number][0]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps over `devices` devices; no goal groups means one group of all devices."""

    devices: int
    steps: tuple[Step, ...]
    goal: Goal = Goal()

    @property
    def goal_groups(self) -> tuple[Group, ...]:
        """The groups the goal speaks of."""
        return self.goal.groups or (tuple(range(self.devices)),)


def check_groups(groups: tuple[Group, ...], roots: tuple[int, ...], devices: int, where: str) -> None:
    """InputError unless groups are non-empty, of known devices, disjoint, and each root is in its group."""
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
            raise InputError(f"root {root} is not in its group {list(group)}", where=where, expected="a member")


def check_schedule(schedule: Schedule) -> Schedule:
    """The schedule, if every step's entries and the goal are over disjoint known devices, else InputError."""
    for number, step in enumerate(schedule.steps, 1):
        for entry in step:
            if entry.roots and entry.collective not in (Collective.REDUCE, Collective.BROADCAST):
                raise InputError(
                    f"{entry.collective} has roots", where=f"step {number}", expected="roots on Reduce or Broadcast"
                )
            check_groups(entry.groups, entry.roots, schedule.devices, f"step {number}")
        together = tuple(group for entry in step for group in entry.groups)
        check_groups(together, (), schedule.devices, f"step {number}")
    check_groups(schedule.goal.groups, schedule.goal.roots, schedule.devices, "goal")
    return schedule
