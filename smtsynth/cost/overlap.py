"""The two bounds between which a library that overlaps the steps of a program lies.

Without overlap a program takes the sum of its steps. With perfect overlap every lane is busy from the first byte to
the last, so that the program takes as long as its busiest lane is in all steps together, after the first piece has
come through: every step's latency, overhead and copy are still paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from smtsynth.cost.interface import GroupLoad
from smtsynth.cost.patterns import nanoseconds
from smtsynth.cost.wired import Loads, algorithms_of, entry_groups, step_loads
from smtsynth.cost.wiring import Lane
from smtsynth.model.system import System


def overlapped(system: System, steps: Sequence[Sequence[GroupLoad]], algorithm: str = "ring") -> int:
    """Nanoseconds that a program or schedule takes with perfect overlap; steps: the groups of each."""
    fixed, busy = Fraction(0), dict[Lane, Fraction]()
    for entries in steps:
        groups, held = entry_groups(system, entries)
        if not groups:
            continue
        ways = algorithms_of([group.collective for group in groups], algorithm)
        loads: Loads = min(
            (step_loads(system, groups, len(held), way) for way in ways), key=lambda one: one.price(held)
        )
        fixed += system.overhead + loads.latency + loads.filled + loads.copying(held)
        for lane, seconds in loads.seconds(held).items():
            busy[lane] = busy.get(lane, Fraction(0)) + seconds
    return nanoseconds(fixed + max(busy.values(), default=Fraction(0)))
