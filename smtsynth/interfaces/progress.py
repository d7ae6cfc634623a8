"""Progress on standard error, for what takes longer than two seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock, Timer
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

    from smtsynth.search.loop import Resources

PATIENCE = 2.0  # seconds without a word
EVERY = 1.0  # seconds between lines where there is no terminal


class Progress:
    """Takes progress lines, from any thread: shown beside a spinner on a terminal, else a line a second."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._lock = Lock()
        self._last = "working"
        self._written = -EVERY
        self._shown = self._stopped = False
        self._spinner: Status | None = None
        self._timer = Timer(PATIENCE, self._begin)  # the first words, should none come by themselves
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, line: str) -> None:
        with self._lock:
            self._last = line
            if self._shown and not self._stopped:
                self._show()

    def _begin(self) -> None:
        with self._lock:
            if not self._stopped:
                self._shown = True
                self._show()

    def _show(self) -> None:
        if not sys.stderr.isatty():
            now = perf_counter() - self._start
            if now - self._written >= EVERY:
                self._written = now
                sys.stderr.write(f"[{now:6.1f} s] {self._last}\n")
                sys.stderr.flush()
            return
        text = self._last.replace("[", r"\[")
        if self._spinner is None:
            from rich.console import Console

            self._spinner = Console(stderr=True, emoji=False).status(text, spinner="line")
            self._spinner.start()
        self._spinner.update(text)

    def stop(self) -> None:
        """No more lines, and the spinner goes away; to be called before anything else is printed."""
        self._timer.cancel()
        with self._lock:
            self._stopped = True
            if self._spinner is not None:
                self._spinner.stop()
                self._spinner = None


@contextmanager
def watching(resources: Resources) -> Iterator[Resources]:
    """The resources with progress of their own, which goes away at the end, before something is printed."""
    progress = Progress()
    try:
        yield replace(resources, progress=progress)
    finally:
        progress.stop()
