"""solve() works wherever Python runs: -c, a script without a main guard, standard input, a thread, an event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_support import environment
from conftest import A100, problem

from smtsynth import Solution, Status, solve

CODE = """\
from smtsynth import Level, Problem, Reduction, System, solve

system = System([Level("node", 4, "8 GB/s", "20 us"), Level("gpu", 16, "270 GB/s", "3 us")])
problem = Problem(system, {"all": 64}, Reduction(["all"], "2 GiB"))
solution = solve(problem, jobs=JOBS)
print(solution.status, solution.cost)
"""
EXPECTED = "optimal 417776266\n"
ASKED = problem(A100, (64,), (0,), "2 GiB")


def ran(words: list[str], text: str = "", folder: Path | None = None) -> str:
    """What a Python process prints; it must end well and say nothing else."""
    done = subprocess.run(
        [sys.executable, *words],
        input=text,
        capture_output=True,
        text=True,
        env=environment(),
        cwd=folder,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_in_a_process_of_its_own(tmp_path: Path, jobs: str) -> None:
    code = CODE.replace("JOBS", jobs)
    script = tmp_path / "without_a_main_guard.py"
    script.write_text(code)
    assert ran(["-c", code], folder=tmp_path) == EXPECTED
    assert ran([str(script)], folder=tmp_path) == EXPECTED
    assert ran(["-"], text=code, folder=tmp_path) == EXPECTED


def right(solution: Solution) -> bool:
    return (solution.status, solution.cost) == (Status.OPTIMAL, 417776266)


def test_in_threads() -> None:
    found: list[Solution] = []
    threads = [threading.Thread(target=lambda: found.append(solve(ASKED, jobs=2))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(found) == 2 and all(map(right, found))


def test_in_a_running_event_loop() -> None:
    """As in a notebook's cell: called straight from a coroutine, and beside other coroutines."""

    async def cell() -> tuple[Solution, Solution, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        here = solve(ASKED)
        beside = asyncio.ensure_future(tick())
        there = await asyncio.to_thread(solve, ASKED, jobs=2)
        beside.cancel()
        return here, there, ticks

    here, there, ticks = asyncio.run(cell())
    assert right(here) and right(there)
    assert ticks > 1


def test_the_solver_is_a_child_that_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert right(solve(ASKED))
    assert list(tmp_path.iterdir()) == []
