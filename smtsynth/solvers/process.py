"""Run a solver as a child process that a time limit can kill, and read what it prints."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from time import perf_counter

from smtsynth.solvers.outcome import Answer, Outcome


@dataclass(frozen=True, slots=True)
class Finished:
    """A child's output and exit status; `late` where the time limit ended it."""

    output: str
    errors: str
    status: int
    late: bool
    seconds: float


POLL = 0.1  # seconds between looks at `stop`


def run(
    command: Sequence[str],
    seconds: float | None,
    stop: Event | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Finished:
    """Run `command` to its end, or kill it after `seconds`, when `stop` is set, or when this process is interrupted.

    `tick` is called every now and then meanwhile, to look at what the child has written.
    """
    start = perf_counter()
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    late = False
    try:
        while True:
            left = None if seconds is None else seconds - (perf_counter() - start)
            try:
                output, errors = child.communicate(timeout=POLL if left is None else max(0.0, min(POLL, left)))
                break
            except subprocess.TimeoutExpired:
                tick()
                late = left is not None and left <= POLL
                if late or (stop is not None and stop.is_set()):
                    child.kill()
                    output, errors = child.communicate()
                    break
    except BaseException:  # an interrupt leaves no child behind
        child.kill()
        child.communicate()
        raise
    return Finished(output, errors, child.returncode, late, perf_counter() - start)


def outcome_of(finished: Finished, solver: str) -> Outcome:
    """Read the result lines of the SAT competition format ("s SATISFIABLE", "v 1 -2 … 0")."""
    lines = finished.output.splitlines()
    result = next((line for line in lines if line.startswith("s ")), "")
    if not finished.late and result == "s UNSATISFIABLE":
        return Outcome(Answer.UNSAT, seconds=finished.seconds)
    if not finished.late and result == "s SATISFIABLE":
        values = [int(word) for line in lines if line.startswith("v ") for word in line.split()[1:]]
        return Outcome(Answer.SAT, frozenset(v for v in values if v > 0), seconds=finished.seconds)
    text = " ".join((finished.output[:200] + " " + finished.errors[-200:]).split())
    if finished.late or "timeout" in text:
        reason = f"{solver} reached the time limit"
    elif "memory" in text.lower() or "bad_alloc" in text:
        reason = f"{solver} reached the memory limit"
    else:
        reason = f"{solver} ended with status {finished.status}: {text or 'no output'}"
    return Outcome(Answer.UNKNOWN, reason=reason, seconds=finished.seconds)
