"""What the tests share: systems of the model's examples, the command line, and where data outside the project is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_support import Cli

from smtsynth import Level, Problem, Reduction, System

A100 = System([Level("node", 4, "8 GB/s", "20 us"), Level("gpu", 16, "270 GB/s", "3 us")])
THREE = System(
    [
        Level("su", 2, "800 GB/s", "12 us", "25 GB/s"),
        Level("node", 4, "400 GB/s", "8 us", "50 GB/s"),
        Level("gpu", 8, "450 GB/s", "2 us"),
    ]
)


def axes(*sizes: int) -> dict[str, int]:
    """Axes a0, a1, … of these sizes."""
    return {f"a{number}": size for number, size in enumerate(sizes)}


def problem(system: System, sizes: tuple[int, ...], over: tuple[int, ...], payload: int | str) -> Problem:
    """A reduction over the axes number `over`."""
    return Problem(system, axes(*sizes), Reduction([f"a{number}" for number in over], payload))


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """The command line in this process."""
    return Cli(tmp_path, monkeypatch, capfd)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public measurements and files; tests that need it skip without it."""
    folder = os.environ.get("SMTSYNTH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SMTSYNTH_DATA names no folder of data")
    return Path(folder)
