"""Columns of text for terminals: one line a row where they fit, else the long columns below the others."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, ConsoleOptions
from rich.text import Text

PIPE_WIDTH = 160
GAP = 2  # blanks between columns
INDENT = 4  # blanks before what stands below its row


class Output(Console):
    """Standard output; a reader that has gone is no exit status of ours."""

    def on_broken_pipe(self) -> None:
        """Leave it to the command line's end."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output for tables; of one width wherever it is no terminal."""
    return Output(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, emoji=False)


class Table:
    """Rows under headings.

    right: columns of numbers; below: columns that go below their row where it is too narrow, with the words that
    then stand before them.
    """

    def __init__(
        self, columns: Sequence[str], right: Sequence[str] = (), below: Mapping[str, str] | None = None
    ) -> None:
        self.columns, self.right, self.below = columns, right, below or {}
        self.rows: list[tuple[Sequence[str], str]] = []

    def add_row(self, *cells: str, style: str = "") -> None:
        """A row, a cell for every column; style: how it is shown on a terminal."""
        assert len(cells) == len(self.columns)
        self.rows.append((cells, style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        columns = zip(self.columns, *(cells for cells, _ in self.rows), strict=True)
        widths = [max(map(len, column)) for column in columns]
        top = list(range(len(widths)))
        if sum(widths) + GAP * (len(widths) - 1) > options.max_width:
            top = [number for number in top if self.columns[number] not in self.below]
        yield Text(self._line(self.columns, top, widths), style="bold")
        for cells, style in self.rows:
            yield Text(self._line(cells, top, widths), style=style)
            for number, cell in enumerate(cells):
                if number not in top:
                    for line in wrapped(self.below[self.columns[number]] + cell, options.max_width - INDENT):
                        yield Text(" " * INDENT + line, style=style)

    def _line(self, cells: Sequence[str], shown: Sequence[int], widths: Sequence[int]) -> str:
        """The cells numbered `shown`, each as wide as its column."""
        padded = [
            cells[number].rjust(widths[number])
            if self.columns[number] in self.right
            else cells[number].ljust(widths[number])
            for number in shown
        ]
        return (" " * GAP).join(padded).rstrip()


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters, broken between words, or between the steps of a program."""
    words = re.split(r"(?<=;) ", text) if "; " in text else text.split(" ")
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
