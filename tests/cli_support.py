"""What the tests of the command line share: running it, problem files, and the shapes of its JSON."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from smtsynth.interfaces.cli import main

ROOT = Path(__file__).resolve().parents[1]

PROBLEM = """\
system:
  levels:
    - {name: node, size: 2, bandwidth: 8 GB/s, latency: 20 us}
    - {name: gpu, size: 4, bandwidth: 270 GB/s, latency: 3 us}
axes: {data: 2, shard: 4}
reduce: {over: [shard], bytes: 8 GiB}
"""
WHOLE = """\
system:
  levels:
    - {name: node, size: 4, bandwidth: 8 GB/s, latency: 20 us}
    - {name: gpu, size: 16, bandwidth: 270 GB/s, latency: 3 us}
axes: {all: 64}
reduce: {over: [all], bytes: 2 GiB}
"""
LONG = """\
system:
  levels:
    - {name: a, size: 2, bandwidth: 50 GB/s, latency: 40 us}
    - {name: b, size: 4, bandwidth: 100 GB/s, latency: 30 us}
    - {name: c, size: 4, bandwidth: 200 GB/s, latency: 12 us, per_device: 25 GB/s}
    - {name: d, size: 2, bandwidth: 400 GB/s, latency: 8 us, per_device: 50 GB/s}
    - {name: e, size: 8, bandwidth: 450 GB/s, latency: 2 us}
axes: {all: 512}
reduce: {over: [all], bytes: 64 KiB}
"""
BOTH, INSIDE = "[[1,2],[2,2]]", "[[2,1],[1,4]]"  # the two placements of PROBLEM
SPLIT = "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)"


class Ran(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one JSON object on standard output, which holds nothing else."""
        assert self.out.count("\n") == 1 and self.out.endswith("\n")
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


class Cli:
    """Runs commands in this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self.monkeypatch, self.capfd = folder, monkeypatch, capfd

    def put(self, text: str | bytes, name: str = "p.yaml") -> str:
        """A file's name, after writing it."""
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def __call__(self, *words: str, stdin: str = "") -> Ran:
        """Run a command."""
        self.monkeypatch.setattr(sys, "argv", ["smtsynth", *words])
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        self.capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = self.capfd.readouterr()
        assert isinstance(end.value.code, int)
        return Ran(end.value.code, out, err)


def environment(**more: str) -> dict[str, str]:
    """The environment for child processes: this checkout first."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def spawn(*words: str, stdin: str = "", **more: str) -> Ran:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "smtsynth", *words],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=120,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def fits(value: object, shape: object, where: str = "$") -> None:
    """Assert that JSON data has a shape: a type, a tuple of shapes, [shape of items], or {key: shape} with these keys.

    None stands for null; in a tuple any of the shapes will do.
    """
    if shape is None:
        assert value is None, f"{where} is {value!r}"
    elif isinstance(shape, type):
        assert type(value) is shape, f"{where} is {value!r}, no {shape.__name__}"
    elif isinstance(shape, tuple):
        faults = []
        for one in shape:
            try:
                return fits(value, one, where)
            except AssertionError as fault:
                faults.append(str(fault))
        raise AssertionError(f"{where} has none of its shapes: {faults}")
    elif isinstance(shape, Mapping):
        assert isinstance(value, dict), f"{where} is {value!r}"
        assert sorted(value) == sorted(shape), f"{where} has the keys {sorted(value)}"
        for key, one in shape.items():
            fits(value[key], one, f"{where}.{key}")
    elif isinstance(shape, str):
        assert value == shape, f"{where} is {value!r}, not {shape!r}"
    else:
        assert isinstance(shape, Sequence) and len(shape) == 1
        assert isinstance(value, list), f"{where} is {value!r}"
        for number, item in enumerate(value):
            fits(item, shape[0], f"{where}[{number}]")
    return None


SECONDS = (float, None)
COLLECTIVE = ("AllReduce", "ReduceScatter", "AllGather", "Reduce", "Broadcast")
MATRIX = [[int]]
PROGRAM = [
    {
        "collective": COLLECTIVE,
        "slice": str,
        "form": ("InsideGroup", "Parallel", "Master"),
        "ancestor": (str, None),
    }
]
STATUS = ("optimal", "feasible", "infeasible", "unknown")
SOLVE = {
    "status": STATUS,
    "cost_seconds": SECONDS,
    "lower_bound_seconds": SECONDS,
    "allreduce_seconds": SECONDS,
    "placement": {"axes": [str], "matrix": MATRIX},
    "program": (PROGRAM, None),
    "schedule": ([{"collective": COLLECTIVE, "groups": [[int]]}], None),
    "steps_limit": int,
    "instruction_set": ("p2", "full"),
    "hierarchy": ("reduction", "reduction-factors", "rows", "columns", "system"),
    "cost_model": str,
    "layout": ("identity", [int], None),
    "reason": (str, None),
    "blocked": [PROGRAM],
    "any_schedule_bound_seconds": SECONDS,
    "loop": [{"bound_seconds": SECONDS, "answer": ("sat", "unsat", "unknown"), "seconds": float}],
    "solve_seconds": float,
}
SOLVE_ALL = SOLVE | {
    "placements": [
        {
            "matrix": MATRIX,
            "status": STATUS,
            "cost_seconds": SECONDS,
            "lower_bound_seconds": SECONDS,
            "allreduce_seconds": SECONDS,
        }
    ]
}
COMPARE = {
    "placements": [
        {
            "matrix": MATRIX,
            "programs": int,
            "programs_by_length": [int],
            "enumerated_cost_seconds": SECONDS,
            "solved_cost_seconds": SECONDS,
            "agree": (bool, None),
            "enumerate_seconds": float,
            "solve_seconds": float,
        }
    ],
    "agree": (bool, None),
}
SIMULATE = {
    "seconds": float,
    "steps": [
        {
            "collectives": [COLLECTIVE],
            "seconds": float,
            "latency_seconds": float,
            "transfer_seconds": float,
            "bottleneck": ({"level": str, "unit": int, "direction": ("up", "down")}, None),
        }
    ],
}
