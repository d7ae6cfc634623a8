"""An interrupt, wherever it comes, ends the work with the best so far, and what was not done is said."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import LONG, PROBLEM, SOLVE_ALL, Cli, environment, fits
from conftest import A100, problem

from smtsynth import Status, solve
from smtsynth.search import compare as comparing
from smtsynth.search import joint
from smtsynth.search import solve as solving

ASKED = problem(A100, (4, 16), (0,), 2**31)  # three placements, three different reductions


def interrupt(*given: object, **more: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("jobs", [1, 2])
def test_while_the_graph_is_built(monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    calls = []

    def once(*given: object) -> None:
        calls.append(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(solving, "class_graph", once)
    found = solve(ASKED, jobs=jobs)
    assert (found.status, found.reason) == (Status.FEASIBLE, "interrupted")
    assert len(calls) == 1  # nothing is built after the interrupt
    assert [one.status for one in found.placements] == [Status.FEASIBLE] * 3
    assert all(one.cost is not None and one.cost <= one.allreduce for one in found.placements)


def test_while_the_cheapest_path_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "cheapest_path", interrupt)
    found = solve(ASKED, [[2, 2], [2, 8]])
    assert (found.status, found.reason) == (Status.FEASIBLE, "interrupted")
    assert found.program and found.lower_bound is not None and found.lower_bound <= (found.cost or 0)


def test_while_the_joint_query_is_built(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "_encode", interrupt)
    ran = cli("solve", cli.put(PROBLEM), "--joint", "--json")
    assert (ran.status, ran.data["status"], ran.data["reason"]) == (3, "feasible", "interrupted")


def test_while_enumerating(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "enumerate_programs", interrupt)
    ran = cli("compare", cli.put(PROBLEM), "--json")
    assert (ran.status, ran.data["agree"]) == (3, None)
    assert [one["agree"] for one in ran.data["placements"]] == [None], "the one it was at, and none after that"
    assert ran.data["placements"][0]["enumerate_seconds"] == 0.0
    assert "interrupted" in cli("compare", cli.put(PROBLEM)).out


@pytest.mark.parametrize("solver", ["z3", "cadical"])
def test_a_memory_limit_beyond_what_a_solver_takes(solver: str) -> None:
    assert solve(ASKED, [[2, 2], [2, 8]], solver=solver, memory_limit=10**30).status is Status.OPTIMAL


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the process is looked into through /proc")
@pytest.mark.parametrize("wait", [0.2, 1.5])
def test_with_several_jobs(tmp_path: Path, wait: float) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(LONG.replace("all: 512", "x: 64, y: 8").replace("[all]", "[x]"))
    child = subprocess.Popen(
        [sys.executable, "-m", "smtsynth", "solve", str(file), "--jobs", "2", "--steps", "9", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    try:
        patience = time.monotonic() + 60
        while "numpy" not in Path(f"/proc/{child.pid}/maps").read_text():  # loaded when the command runs
            assert child.poll() is None and time.monotonic() < patience
            time.sleep(0.02)
        time.sleep(wait)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)  # a hang, not a slow machine, runs into this
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    assert "Traceback" not in err
    if not out:  # it came before the first placement
        assert err == "smtsynth: interrupted\n"
        # Where it came while a string was executed (a dataclass in an import), Python ends itself by the signal anyway.
        assert child.returncode in (3, -signal.SIGINT)
        return
    found = json.loads(out)
    fits(found, SOLVE_ALL)
    assert child.returncode == 3 and found["status"] in ("feasible", "unknown")
    assert found["reason"] == "interrupted"
