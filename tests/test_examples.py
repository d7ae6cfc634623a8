"""The examples run, and say what the model says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import ROOT, environment
from conftest import A100, problem

from smtsynth import lower, parse_program, read_problem, simulate, solve

EXAMPLES = ROOT / "examples"


def ran(name: str, *words: str) -> str:
    """What an example prints; run from another folder, as a stranger would."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *words],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=EXAMPLES.parent.parent,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_quickstart() -> None:
    out = ran("quickstart.py")
    asked = problem(A100, (16, 4), (0,), "2 GiB")
    for one in solve(asked).placements:
        (line,) = [line for line in out.splitlines() if line.startswith(str(one.placement))]
        assert line.split()[1:] == [f"{one.allreduce / 1e6:.3f}", "ms", f"{one.cost / 1e6:.3f}", "ms", "optimal"]
    assert "On [[2,8],[2,2]], 1.83x faster" in out
    names = lower(asked, [[2, 8], [2, 2]]).names
    mine = parse_program(
        "Reduce(node, InsideGroup); AllReduce(node, Master(root)); Broadcast(node, InsideGroup)", names
    )
    cost = sum(step.nanoseconds for step in simulate(asked, mine, [[2, 8], [2, 2]]))
    assert f"{cost / 1e6:.3f} ms" in out.splitlines()[-1]


def test_the_headlines() -> None:
    found = json.loads(ran("p2_headlines.py", "--json"))
    assert found["bytes"] == "2 GiB"
    assert len(found["why_they_differ"]) == 3
    rows = {(row["system"], *row["axes"], tuple(row["over"])): row for row in found["cases"]}
    assert all(row["proved"] for row in rows.values())
    assert {key[1:-1] for key in rows} >= {(4, 16), (8, 2, 4), (2, 2, 16), (16, 2, 2)}
    first = rows["a100-4x16", 4, 16, (0,)]
    # 4 GPUs inside a node: 6 hops of 3 us and 2·3/4 of 2 GiB over 270 GB/s; four nodes with 16 rings over each NIC.
    inside, across = 18e-6 + 1.5 * 2**31 / 270e9, 120e-6 + 16 * 1.5 * 2**31 / 8e9
    assert first["allreduce_seconds"] == pytest.approx(
        {"[[1,4],[4,4]]": inside, "[[2,2],[2,8]]": across / 2, "[[4,1],[1,16]]": across}, rel=1e-3
    )
    assert first["spread"] == pytest.approx(across / inside, rel=1e-6)
    assert 448 in first["paper_spread"]
    assert max(row["gain"] for row in rows.values()) < 2  # over n nodes at most n/(n-1)
    assert [row["paper_gain"][0] for row in rows.values() if row["system"] == "v100-4x8"] == [2.04]
    shown = ran("p2_headlines.py")
    assert "539.2x" in shown and "374 / 448" in shown and "2.04" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_the_headlines_take_another_payload() -> None:
    small = json.loads(ran("p2_headlines.py", "--json", "--bytes", "8 B"))
    assert small["bytes"] == "8 B"
    # Latency alone: 6 hops of 20 us against 6 of 3 us.
    assert small["cases"][0]["spread"] == pytest.approx(20 / 3, rel=1e-3)


LONG = ("h100-pod", "tpu-v4")  # other systems of switches, and of a torus, are among the rest
FILES = [
    pytest.param(file, marks=[pytest.mark.full] if file.stem in LONG else [], id=file.stem)
    for file in sorted(EXAMPLES.glob("*.yaml"))
]


@pytest.mark.parametrize("file", FILES)
def test_the_problem_files(file: Path) -> None:
    asked = read_problem(file)
    found = solve(asked, time_limit=60)
    assert found.status == "optimal"
    assert found.placements and found.cost == min(one.cost or 0 for one in found.placements)
