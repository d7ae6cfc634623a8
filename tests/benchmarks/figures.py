"""What the benchmarks share: the systems, measurements in processes of their own, and tables of figures.

Imported before smtsynth, it makes this checkout found where none is installed.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if importlib.util.find_spec("smtsynth") is None:
    sys.path.insert(0, str(ROOT))

TWO = [("node", 4, "8 GB/s", "20 us", None), ("gpu", 16, "270 GB/s", "3 us", None)]
THREE = [
    ("su", 2, "800 GB/s", "12 us", "25 GB/s"),
    ("node", 4, "400 GB/s", "8 us", "50 GB/s"),
    ("gpu", 8, "450 GB/s", "2 us", None),
]
FOUR = [
    ("a", 4, "100 GB/s", "30 us", None),
    ("b", 4, "200 GB/s", "12 us", "25 GB/s"),
    ("c", 2, "400 GB/s", "8 us", "50 GB/s"),
    ("d", 8, "450 GB/s", "2 us", None),
]
SYSTEMS = {"two": TWO, "three": THREE, "four": FOUR}  # levels: name, size, bandwidth, latency, per_device

Row = dict[str, Any]


def peak_memory() -> int:
    """The most bytes that this process, or one that it waited for, has held."""
    scale = 1 if sys.platform == "darwin" else 1024
    return scale * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def in_child(script: str, job: Sequence[object]) -> Row:
    """The one JSON object that `script --job` prints in a process of its own. RuntimeError with what went wrong."""
    command = [sys.executable, str(Path(script).resolve()), "--job", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    row: Row = json.loads(done.stdout)
    return row


class Table:
    """Lines of a label and cells in columns of given widths, to the right; the heads are printed at once."""

    def __init__(self, label: str, columns: Sequence[tuple[str, int]], width: int = 32) -> None:
        self.widths, self.width = [wide for _, wide in columns], width
        self.line(label, *(head for head, _ in columns))

    def line(self, label: str, *cells: str) -> None:
        """Print one line."""
        print(f"{label:{self.width}}", *map(str.rjust, cells, self.widths), sep="", flush=True)
