"""`pytest -m benchmark -s`: prints the figures of bench_certify.py; what they rest on must hold, whatever they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_certify", Path(__file__).with_name("bench_certify.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.benchmark
def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        rows = loaded().main([])
    assert len(rows) == 6 and all(row["ok"] and row["status"] == "optimal" for row in rows)


def test_a_measurement_runs() -> None:
    row = loaded().measured("two", 5, "2 GiB")
    assert row["ok"] and row["bound"] == 417776266 and row["lemmas"] > 0
    assert 0 < row["packed"] < row["raw proof"] and 2**20 < row["memory"] < 2**40
