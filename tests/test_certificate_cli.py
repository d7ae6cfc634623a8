"""`solve --certificate` and `check` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from certificate_support import copy, manifest_of, reseal, worked, write_manifest
from cli_support import BOTH, PROBLEM, SOLVE, SOLVE_ALL, WHOLE, Cli, fits

CERTIFICATE = {"certificate": {"folder": str, "claim": str, "rests_on": [str], "sha256": str}}
CHECK = {
    "verdict": ("ok", "wrong"),
    "claim": (str, None),
    "rests_on": [str],
    "sha256": str,
    "parts": [{"part": str, "ok": bool, "said": str, "seconds": float}],
}


def test_one_placement(cli: Cli) -> None:
    place = str(cli.folder / "c")
    words = ["solve", cli.put(PROBLEM), "--placement", BOTH, "--certificate", place]
    answer = cli(*words, "--json")
    fits(answer.data, SOLVE | CERTIFICATE)
    assert answer.status == 0
    written = answer.data["certificate"]
    found = cli("check", place, "--json", "--digest", written["sha256"])
    fits(found.data, CHECK)
    assert found.status == 0 and found.data["verdict"] == "ok"
    assert (found.data["claim"], found.data["sha256"]) == (written["claim"], written["sha256"])
    assert f"{round(answer.data['cost_seconds'] * 1e9)} ns" in written["claim"]
    said = cli(*words)
    assert said.status == 0 and f"Certificate: {place}" in said.out and written["sha256"] in said.out
    assert written["claim"] in said.out
    shown = cli("check", place)
    assert shown.status == 0 and f"The claim holds: {written['claim']}" in shown.out and "WRONG" not in shown.out


def test_all_placements(cli: Cli) -> None:
    place = str(cli.folder / "c")
    answer = cli("solve", cli.put(PROBLEM), "--certificate", place, "--with-cnf", "--json")
    fits(answer.data, SOLVE_ALL | CERTIFICATE)
    assert answer.status == 0 and "with any placement" in answer.data["certificate"]["claim"]
    assert (Path(place) / "placements.cnf").is_file()
    assert cli("check", place).status == 0


@pytest.mark.parametrize("words", [["--joint"], ["--encoding", "concrete"], ["--solver", "cadical", "--bounds", "off"]])
def test_whatever_found_the_answer(cli: Cli, words: list[str]) -> None:
    place = str(cli.folder / "c")
    answer = cli("solve", cli.put(PROBLEM), "--certificate", place, "--json", *words)
    assert answer.status == 0 and cli("check", place).status == 0
    assert f"{round(answer.data['cost_seconds'] * 1e9)} ns" in answer.data["certificate"]["claim"]


@pytest.mark.parametrize("words", [["--cost-model", "paper"], ["--algorithm", "auto"], ["--instruction-set", "p2"]])
def test_options_are_part_of_the_claim(cli: Cli, words: list[str]) -> None:
    place = str(cli.folder / "c")
    answer = cli("solve", cli.put(PROBLEM), "--placement", BOTH, "--certificate", place, "--json", *words)
    assert answer.status == 0 and cli("check", place).status == 0
    claim = answer.data["certificate"]["claim"]
    assert f"cost model {answer.data['cost_model']};" in claim
    assert f"instruction set {answer.data['instruction_set']} " in claim


def test_tampering_is_told(cli: Cli) -> None:
    folder = copy(worked()[0], cli.folder)
    reseal(folder, lambda data: data.update(bound_nanoseconds=417776265))
    found = cli("check", str(folder))
    assert found.status == 1 and "WRONG  witness" in found.out and "Nothing is claimed" in found.out and not found.err
    assert cli("check", str(folder), "--json").data["verdict"] == "wrong"
    write_manifest(folder, manifest_of(worked()[0]))
    assert cli("check", str(folder)).status == 0
    assert cli("check", str(folder), "--digest", "0" * 64).status == 1


def test_what_is_no_certificate(cli: Cli) -> None:
    file, empty = cli.put(PROBLEM), cli.folder / "empty"
    empty.mkdir()
    (empty / "manifest.json").write_text(json.dumps({"format": "x"}))
    for name in (file, str(empty), str(cli.folder), str(cli.folder / "none")):
        found = cli("check", name)
        assert found.status == 2 and found.err.count("\n") == 1 and not found.out
        assert "expected a folder that solve --certificate wrote" in found.err


def test_bad_orders(cli: Cli) -> None:
    problem, full = cli.put(PROBLEM), cli.folder / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("years of work")
    workload = cli.put(PROBLEM.replace("reduce:", "reductions:\n  -").replace("{over", "{name: r, over"), "w.yaml")
    for words, said in (
        (["solve", problem, "--certificate", str(full)], "holds other files"),
        (["solve", problem, "--certificate", problem], "no folder"),
        (["solve", problem, "--certificate", str(cli.folder / "no" / "c")], "isn't there"),
        (["solve", problem, "--with-cnf"], "--with-cnf: comes without a certificate"),
        (["solve", workload, "--with-cnf"], "--with-cnf: comes without a certificate"),
        (["solve", workload, "--certificate", str(full)], "holds other files"),
    ):
        found = cli(*words)
        assert found.status == 2 and found.err.count("\n") == 1 and said in found.err and not found.out
    assert (full / "thesis.txt").read_text() == "years of work"
    assert sorted(path.name for path in cli.folder.iterdir()) == ["full", "p.yaml", "w.yaml"]


def test_without_the_solver_of_proofs(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = cli("solve", cli.put(PROBLEM), "--certificate", str(cli.folder / "c"))
    assert found.status == 2 and "pip install 'smtsynth[certify]'" in found.err


def test_no_certificate_of_what_is_not_proved(cli: Cli) -> None:
    """The answer is shown all the same."""
    place = cli.folder / "c"
    answer = cli("solve", cli.put(WHOLE), "--certificate", str(place), "--time-limit", "0.001", "--json")
    assert answer.status == 3 and answer.data["status"] == "feasible" and answer.data["certificate"] is None
    assert answer.err.count("\n") == 1 and "no certificate, as the answer is only feasible" in answer.err
    assert not place.exists() and len(list(cli.folder.iterdir())) == 1


def test_a_limit_reached_while_certifying(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from smtsynth import LimitReached
    from smtsynth.certify import produce

    def slow(*_: object, **__: object) -> None:
        raise LimitReached("it takes too long")

    monkeypatch.setattr(produce, "refute", slow)
    monkeypatch.setattr(produce, "make_labels", slow)
    answer = cli("solve", cli.put(WHOLE), "--certificate", str(cli.folder / "c"), "--json")
    assert answer.status == 3 and answer.data["status"] == "optimal" and answer.data["certificate"] is None
    assert "it takes too long" in answer.err and len(list(cli.folder.iterdir())) == 1


def test_a_certificate_is_replaced_and_kept_where_that_fails(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    place = cli.folder / "c"
    problem = cli.put(PROBLEM)
    cli("solve", problem, "--placement", BOTH, "--certificate", str(place))
    before = (place / "manifest.json").read_bytes()
    cli("solve", problem, "--placement", BOTH, "--certificate", str(place), "--instruction-set", "p2")
    after = (place / "manifest.json").read_bytes()
    assert before != after and cli("check", str(place)).status == 0
    from smtsynth.certify import produce

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(produce, "refute", interrupted)
    found = cli("solve", problem, "--placement", BOTH, "--certificate", str(place))
    assert found.status == 3 and "no certificate: interrupted" in found.err
    assert (place / "manifest.json").read_bytes() == after
    assert sorted(path.name for path in cli.folder.iterdir()) == ["c", "p.yaml"]


def test_a_workload_s_certificate(cli: Cli) -> None:
    workload = cli.put(PROBLEM.replace("reduce:", "reductions:\n  -").replace("{over", "{name: r, over"), "w.yaml")
    folder = str(cli.folder / "c")
    found = cli("solve", workload, "--certificate", folder)
    assert found.status == 0 and "LRAT proof over all placements" in found.out
    told = found.out.split("SHA-256 of its manifest: ")[1].split()[0]
    again = cli("check", folder, "--digest", told)
    assert again.status == 0 and "The claim holds: For axes data 2, shard 4" in again.out
    data = json.loads(cli("solve", workload, "--certificate", folder, "--json").out)
    assert data["certificate"]["sha256"] == told and data["status"] == "optimal"
    other = cli("solve", workload, "--certificate", folder, "--steps", "1")
    assert other.status == 0 and "within 1 step," in other.out
    assert cli("check", folder, "--digest", told).status == 1
    late = cli("solve", workload, "--certificate", folder, "--time-limit", "1e-9")
    assert late.status == 3 and "no certificate, as the answer is only" in late.err
    assert cli("check", folder).status == 0
