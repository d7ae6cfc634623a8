"""What a verification answers: proved, refuted with a witness, or unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from smtsynth.msccl.model import Algorithm, StepId


class Kind(StrEnum):
    """The kinds of faults, in the order in which they are looked for."""

    BOUNDS = "bounds"
    SHARED = "shared fifo"
    UNMATCHED = "unmatched"
    SIZE = "size"
    UNPOSTED = "unposted"
    DEADLOCK = "deadlock"
    RACE = "race"
    UNWRITTEN = "unwritten"
    WRONG_SUM = "wrong sum"


@dataclass(frozen=True, slots=True)
class MscclVerdict:
    """`verdict` is proved, refuted or unknown; the rest says why.

    `reason` is one line (empty when proved). `gpu` and `chunk` are the first that are wrong. Of a wrong sum,
    `contributors` are the GPUs whose chunk is in it, `missing` and `duplicated` those whose chunk is lacking or there
    more than once. `witness`: the two steps of a race (one that races with itself is there twice), the steps of a
    cycle (each waits for the next, the last for the first), the last writer of a wrong sum (if any), else the step or
    steps at fault. `mode` is "in place" or "out of place" where the fault shows in that one. `warnings` hold whatever
    the verdict.
    """

    verdict: str
    reason: str = ""
    kind: Kind | None = None
    gpu: int | None = None
    chunk: int | None = None
    missing: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    contributors: tuple[int, ...] = ()
    witness: tuple[StepId, ...] = ()
    mode: str | None = None
    warnings: tuple[str, ...] = ()


def refuted(kind: Kind, reason: str, witness: Iterable[StepId], chunk: int | None = None) -> MscclVerdict:
    """A refutation at the first step of `witness`."""
    steps = tuple(witness)
    return MscclVerdict("refuted", reason, kind, steps[0].gpu, chunk, witness=steps)


def describe(algorithm: Algorithm, place: StepId) -> str:
    """The step in words: where it is, its type, its line in the file."""
    step = algorithm.step(place)
    return f"{place} ({step.type}" + (f", line {step.line})" if step.line else ")")
