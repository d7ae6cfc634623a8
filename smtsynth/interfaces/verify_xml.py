"""What `verify` does with an MSCCL XML file."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from smtsynth.errors import InputError
from smtsynth.interfaces.answers import Answer, Settings, XmlDetail
from smtsynth.msccl.model import Algorithm, StepId
from smtsynth.msccl.reader import read_msccl
from smtsynth.msccl.verify import verify_msccl
from smtsynth.verify.algorithms import agree, order_questions


def verify_xml(name: str, settings: Settings) -> Answer:
    """Verify an MSCCL XML file over all interleavings. Raises InputError "FILE:LINE: …" for what is wrong in it."""
    for option in ("factors", "collective", "split", "problem", "placement", "hierarchy"):
        if getattr(settings, option) is not None:
            raise InputError("doesn't go with MSCCL XML", where=f"--{option}", expected="a schedule or a program")
    algorithm = read_msccl(name)
    try:
        settings.progress(f"{algorithm.step_count} steps on {algorithm.ngpus} GPUs")
        verdict = verify_msccl(algorithm, settings.fifo_slots)
    except InputError as error:
        raise InputError(error.what, where="--fifo-slots", expected=error.expected) from None
    asked = agree(algorithm, verdict, settings.fifo_slots, settings.solvers)
    refuted = verdict.verdict == "refuted"
    data = {
        "verdict": verdict.verdict,
        "reason": None if verdict.verdict == "proved" else verdict.reason,
        "step": None,
        "device": verdict.gpu,
        "chunk": verdict.chunk,
        "missing": list(verdict.missing) if refuted else None,
        "duplicated": list(verdict.duplicated) if refuted else None,
        "layout": "identity" if verdict.verdict == "proved" else None,
        "kind": None if verdict.kind is None else str(verdict.kind),
        "mode": verdict.mode,
        "witness": [_step_data(algorithm, place) for place in verdict.witness] if refuted else None,
        "warnings": list(verdict.warnings),
    }
    title = f"{algorithm.coll} {algorithm.name!r}, {algorithm.ngpus} GPUs, {algorithm.step_count} steps"
    questions = partial(order_questions, algorithm, settings.fifo_slots)
    return Answer(
        _word(verdict.verdict), data, title, asked, questions, XmlDetail(algorithm, verdict, settings.fifo_slots)
    )


def _word(verdict: str) -> Literal["proved", "refuted", "unknown"]:
    if verdict == "proved":
        return "proved"
    return "refuted" if verdict == "refuted" else "unknown"


def _step_data(algorithm: Algorithm, place: StepId) -> dict[str, Any]:
    """A step of a witness: where it is, counted from 0 as in the file, its type and its line."""
    step = algorithm.step(place)
    return {
        "gpu": place.gpu,
        "tb": place.tb,
        "step": place.step,
        "type": step.type,
        "line": step.line or None,
    }
