"""Running schedules and programs for real: many in one launch, every element compared with the goal."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from smtsynth.errors import InputError
from smtsynth.execute.judge import judge, waiting_text
from smtsynth.execute.launch import FINISHED, Stop, check_backend, launch
from smtsynth.execute.values import MAX_ELEMENTS, Ints, Trial
from smtsynth.export.jax_program import jax_text
from smtsynth.export.mpi4py_program import mpi4py_text
from smtsynth.export.script import FUNCTION, Script
from smtsynth.export.torch_program import torch_text
from smtsynth.model.program import Collective

MAX_RANKS = 16
ELEMENTS = 1021
"""How many elements by default: a prime, so that nothing divides it."""
PATIENCE = 60.0
INTERRUPTED = "interrupted"

WRITERS: dict[str, Callable[[Script, bool], str]] = {"mpi": mpi4py_text, "gloo": torch_text, "jax": jax_text}


@dataclass(frozen=True, slots=True)
class Ran:
    """What one program did: right, wrong (rank and chunk: the first), a hang (which ranks wait), an error, or not run.

    reason: one line, empty where it ran right. by_hand: whether other text than the exporter's ran, of which no proof
    speaks. agrees: whether that is what the buffers meaning says of the schedule (None where either gave no verdict);
    where both say that it is wrong, rank and chunk have to be the same.
    """

    script: Script
    outcome: Literal["right", "wrong", "hang", "error", "not run"]
    reason: str = ""
    rank: int | None = None
    chunk: int | None = None
    waiting: tuple[tuple[int, str], ...] = ()
    by_hand: bool = False

    @property
    def agrees(self) -> bool | None:
        """Whether run and proof say the same."""
        said = self.script.verdict
        if self.by_hand or self.outcome not in ("right", "wrong") or said.verdict == "unknown":
            return None
        if self.outcome == "right" or said.verdict == "proved":
            return (self.outcome == "right") == (said.verdict == "proved")
        return (self.rank, self.chunk) == (said.device, said.chunk)


def run_scripts(
    scripts: Sequence[Script],
    backend: str = "mpi",
    *,
    elements: int = ELEMENTS,
    seed: int = 0,
    patience: float = PATIENCE,
    texts: Sequence[str | None] | None = None,
) -> list[Ran]:
    """Run programs of one number of ranks (2 to 16), one after the other in one launch, and judge each.

    What runs is the text that the exporter writes (texts: other text in its place, or None, for each script). elements:
    of the buffer, or of one rank's part for ReduceScatter and AllGather. patience: seconds that may pass without any
    rank's getting on; the launch ends there, or on an interrupt, and programs after that one are not run. Raises
    InputError for what can't be run: a library that is missing, too many ranks or elements, a script that the backend
    can't take.
    """
    check_backend(backend)
    if not scripts:
        return []
    ranks = scripts[0].devices
    for script in scripts:
        if script.devices != ranks:
            raise InputError(f"programs for {ranks} and {script.devices} ranks", expected="one number in a launch")
    check_ranks(ranks)
    if not 1 <= elements <= MAX_ELEMENTS // ranks:
        raise InputError(f"is {elements}", where="elements", expected=f"1 to {MAX_ELEMENTS // ranks}")
    if not 0 < patience < float("inf"):
        raise InputError(f"is {patience:g} s", where="time limit", expected="a positive time")
    trials = [Trial(script, elements, seed) for script in scripts]
    given = texts if texts is not None else [None] * len(scripts)
    written = [
        WRITERS[backend](script, True) if text is None else text for script, text in zip(scripts, given, strict=True)
    ]
    alone = [text is not None for text in given]
    with tempfile.TemporaryDirectory(prefix="smtsynth-run-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _write_job(folder, backend, trials, written, alone, patience)
        stop = launch(folder, backend, ranks, len(trials), patience)
        ran = [_ran(folder, backend, number, trial, stop) for number, trial in enumerate(trials)]
    return [replace(one, by_hand=by_hand) for one, by_hand in zip(ran, alone, strict=True)]


def check_ranks(ranks: int) -> None:
    """InputError unless so many processes are sane on one machine."""
    if not 2 <= ranks <= MAX_RANKS:
        raise InputError(f"{ranks} process{'es' * (ranks != 1)}", expected=f"2 to {MAX_RANKS} on one machine")


def _write_job(
    folder: Path, backend: str, trials: Sequence[Trial], texts: Sequence[str], alone: Sequence[bool], patience: float
) -> None:
    """What the workers read: modules, inputs (each once), job.json."""
    known: dict[bytes, str] = {}
    programs = []
    for number, (trial, text) in enumerate(zip(trials, texts, strict=True)):
        module = f"program_{number}"
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
        inputs = trial.inputs
        name = known.setdefault(inputs.tobytes(), f"inputs_{number}.npy")
        if name == f"inputs_{number}.npy":
            np.save(folder / name, inputs)
        function = FUNCTION[trial.script.goal]
        programs.append({"module": module, "function": function, "inputs": name, "alone": alone[number]})
    job = {
        "backend": backend,
        "ranks": trials[0].script.devices,
        "launcher": os.getpid(),
        "patience": max(600.0, 4 * patience),
        "programs": programs,
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def _ran(folder: Path, backend: str, number: int, trial: Trial, stop: Stop | None) -> Ran:
    """What became of one program."""
    if stop is not None and (stop.program is None or number >= stop.program):
        if stop.how == "interrupt":
            return Ran(trial.script, "not run", INTERRUPTED)
        if number > (stop.program or 0):
            return Ran(trial.script, "not run", "the launch ended before it")
        text = waiting_text(stop.ranks)
        if stop.how == "hang":
            waiting = tuple((rank, place) for rank, place in stop.ranks if rank is not None and place != FINISHED)
            return Ran(trial.script, "hang", f"stopped by the time limit; {text}", waiting=waiting)
        return Ran(trial.script, "error", text, rank=stop.ranks[0][0])
    odd = _odd(folder, backend, number, trial)
    if odd is not None:
        return odd
    fault = judge(trial, _results(folder, backend, number, trial))
    if fault is None:
        return Ran(trial.script, "right")
    return Ran(trial.script, "wrong", fault.reason, fault.rank, fault.chunk)


def _odd(folder: Path, backend: str, number: int, trial: Trial) -> Ran | None:
    """The outcome where a module changed by hand returned what can't be compared."""
    one, ranks = backend == "jax", trial.script.devices
    expected = "an array of integers in one row"
    for rank in range(1 if one else ranks):
        path = folder / f"odd_{number}_{rank}"
        text = path.read_text(encoding="utf-8") if path.exists() else None
        if one and text is None:
            size = np.load(folder / f"out_{number}_{rank}.npy", mmap_mode="r").size
            if size % ranks:
                text, expected = f"{size} elements", f"equally many of each of the {ranks} devices"
        if text is not None:
            known = "" if one or trial.script.goal in (Collective.REDUCE_SCATTER, Collective.ALL_GATHER) else "None or "
            what = f"{FUNCTION[trial.script.goal]} returned {text} on rank {rank}; expected {known}{expected}"
            if one:
                what = f"over returned {text}; expected {expected}"
            return Ran(trial.script, "wrong", what, None if one else rank)
    return None


def _results(folder: Path, backend: str, number: int, trial: Trial) -> list[Ints]:
    """An array per rank."""
    if backend != "jax":
        return [np.load(folder / f"out_{number}_{rank}.npy") for rank in range(trial.script.devices)]
    rows = list(np.load(folder / f"out_{number}_0.npy").reshape(trial.script.devices, -1))
    if trial.script.proved or trial.script.goal is Collective.REDUCE_SCATTER:
        return rows
    held = trial.script.counts(len(trial.script.schedule.steps))
    return [row[: count * trial.piece] for row, count in zip(rows, held, strict=True)]
