"""Progress on standard error, for what takes longer than two seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

PATIENCE = 2.0  # seconds without a word


def progress() -> Callable[[str], None]:
    """A function that takes progress lines: a spinner on a terminal, else lines once the work takes long."""
    start = perf_counter()
    if sys.stderr.isatty():
        return _spinner()

    def say(line: str) -> None:
        seconds = perf_counter() - start
        if seconds > PATIENCE:
            print(f"[{seconds:6.1f} s] {line}", file=sys.stderr, flush=True)

    return say


def _spinner() -> Callable[[str], None]:
    import atexit

    from rich.console import Console

    status = Console(stderr=True, emoji=False).status("working", spinner="line")
    status.start()
    atexit.register(status.stop)

    def say(line: str) -> None:
        status.update(line.replace("[", r"\["))

    return say
