"""`pytest -m benchmark -s`: prints the figures of bench_solve.py; what they rest on must hold, whatever they are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_solve", Path(__file__).with_name("bench_solve.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.benchmark
def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        rows = loaded().main(["--quick"])
    assert all(row["status"] in ("optimal", ["optimal"]) for row in rows if "status" in row)
    costs = [row["cost"] for row in rows if row.get("cost") is not None]
    assert len(set(costs)) == 3  # z3, CaDiCaL and both enumerations agree on each of the three reductions


def test_each_measurement_runs() -> None:
    bench = loaded()
    alone = bench.measured(bench.one_solve, "two", "1 GiB", "z3", True, 60)
    merged = bench.measured(bench.one_enumeration, "two", "1 GiB", True, 60)
    walked = bench.measured(bench.one_enumeration, "two", "1 GiB", False, 60)
    assert alone["status"] == "optimal"
    assert alone["cost"] == merged["cost"] == walked["cost"]
    assert bench.measured(bench.one_count)["count"] == 2008  # 4 by 4 tables whose rows and columns all sum to 3
    assert bench.measured(bench.one_search, "z3")["placements"] == 5
    assert 2**20 < alone["memory"] < 2**40
    assert sys.modules.get("bench_solve") is None
