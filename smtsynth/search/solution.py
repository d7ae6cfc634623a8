"""An answer of solve (model, sections 7 and 9)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from smtsynth.model.lowering import Lowering
from smtsynth.model.placement import Placement
from smtsynth.model.program import Program
from smtsynth.model.schedule import Schedule
from smtsynth.search.loop import Query, Status
from smtsynth.search.replay import Layout


@dataclass(frozen=True)
class Solution:
    """The best program found for a placement, what it costs (nanoseconds), and what is claimed of it.

    `placements` lists the answers for all placements, where the placement was not given; the rest is then that
    of the best one. What doesn't exist is None.
    """

    status: Status
    lowering: Lowering
    program: Program | None
    cost: int | None
    lower_bound: int | None
    allreduce: int
    any_schedule_bound: int | None
    steps_limit: int
    instruction_set: str
    cost_model: str
    solver: str
    encoding: str
    layout: Layout | None
    reason: str | None
    blocked: tuple[Program, ...]
    loop: tuple[Query, ...]
    seconds: float
    placements: tuple[Solution, ...] = ()

    @property
    def placement(self) -> Placement:
        """The placement this answer is for."""
        return self.lowering.placement

    @property
    def hierarchy(self) -> str:
        """The synthesis hierarchy."""
        return self.lowering.hierarchy

    @cached_property
    def schedule(self) -> Schedule | None:
        """The program on the system's devices."""
        return None if self.program is None else self.lowering.schedule(self.program)

    @property
    def speedup(self) -> float | None:
        """How many times faster the program is than plain AllReduce on this placement; None without a program."""
        if self.cost is None:
            return None
        return self.allreduce / self.cost if self.cost else 1.0
