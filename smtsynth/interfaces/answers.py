"""An answer of `verify`: its settings, what scripts read, and what a report shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from smtsynth.meaning.buffers import Verdict
from smtsynth.meaning.goals import Aim
from smtsynth.model.program import Program
from smtsynth.model.schedule import Schedule
from smtsynth.msccl.model import Algorithm
from smtsynth.msccl.verdict import MscclVerdict
from smtsynth.verify.programs import ProgramVerdict
from smtsynth.verify.schedules import Asked, Layout


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line asks for: options as they were given, and where progress goes."""

    layout: Layout
    solvers: tuple[str, ...]
    factors: str | None
    problem: str | None
    placement: str | None
    hierarchy: str | None
    fifo_slots: int
    progress: Callable[[str], None]
    collective: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its JSON data, the solvers' part, its questions as {file name: text}, and what a report shows.

    `title` says what was verified; `unasked` why solvers weren't asked, where it isn't for size.
    """

    verdict: Literal["proved", "refuted", "unknown"]
    data: dict[str, Any]
    title: str
    asked: tuple[Asked, ...]
    questions: Callable[[], dict[str, str]]
    detail: ScheduleDetail | ProgramDetail | XmlDetail
    unasked: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleDetail:
    """A schedule, its verdict, and how devices are described (None: by their number)."""

    schedule: Schedule
    verdict: Verdict
    where: Callable[[int], str] | None


@dataclass(frozen=True, slots=True)
class ProgramDetail:
    """A program over factors of any sizes, and what is asked of it; `names` are the depth names, 'root' first."""

    program: Program
    names: tuple[str, ...]
    verdict: ProgramVerdict
    aim: Aim
    layout: Layout

    @property
    def goal(self) -> str:
        """The goal in a few words."""
        split = [name for factor, name in enumerate(self.names[1:]) if not self.aim.whole >> factor & 1]
        if split and self.aim.whole:
            return f"AllReduce that ends split over {', '.join(split)}"
        return str(self.aim.collective)


@dataclass(frozen=True, slots=True)
class XmlDetail:
    """An MSCCL algorithm."""

    algorithm: Algorithm
    verdict: MscclVerdict
    fifo_slots: int


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """A schedule's verdict as JSON data (model, section 9)."""
    refuted = verdict.verdict == "refuted"
    return {
        "verdict": verdict.verdict,
        "reason": None if verdict.verdict == "proved" else verdict.reason,
        "step": verdict.step,
        "device": verdict.device,
        "chunk": verdict.chunk,
        "missing": list(verdict.missing) if refuted else None,
        "duplicated": list(verdict.duplicated) if refuted else None,
        "layout": list(verdict.layout) if isinstance(verdict.layout, tuple) else verdict.layout,
    }


def goal_text(schedule: Schedule) -> str:
    """The goal in a few words."""
    groups = schedule.goal_groups
    sizes = sorted({len(group) for group in groups})
    size = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    text = f"{schedule.goal.collective} over {len(groups)} groups of {size} devices"
    if len(groups) == 1:
        every = "all " if sizes[0] == schedule.devices else ""
        text = f"{schedule.goal.collective} over {every}{size} device{'s' * (sizes[0] != 1)}"
    if schedule.goal.split:
        text += f", split over {len(schedule.goal.split)} groups of {len(schedule.goal.split[0])}"
    return text
