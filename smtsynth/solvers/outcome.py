"""What a solver said. `unknown` is an answer of its own and never read as unsatisfiable."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """The three answers of a solver."""

    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer; the true variables of the model where satisfiable; the reason where unknown; the time it took."""

    answer: Answer
    true: frozenset[int] = frozenset()
    reason: str | None = None
    seconds: float = 0.0
