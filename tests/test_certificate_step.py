"""Certificates of training steps: written, checked, and caught when they are tampered with."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from certificate_support import check, copy, manifest_of, pack_lines, packed_lines, reseal, wrong
from conftest import A100

from smtsynth import InputError, Level, Limits, Reduction, Status, System
from smtsynth.certify.produce import Made
from smtsynth.certify.step_produce import produce_step
from smtsynth.certify.step_scope import StepScope
from smtsynth.errors import InternalError
from smtsynth.interfaces.workloads import workload_text
from smtsynth.model.choice import CostChoice
from smtsynth.model.workload import Constraint, NamedReduction, Pattern, Traffic, Workload
from smtsynth.search.loop import Resources
from smtsynth.search.solve import Options
from smtsynth.search.workload import WorkloadSolution, solve_workload

pytest.importorskip("pysat", reason="needs the extra 'certify'")
MIB = 2**20
RING = System([Level("node", 2, "10 GB/s", "9 us"), Level("gpu", 4, "50 GB/s", "2 us", kind="ring")])


def step(constraints: list[Constraint] | None = None, grads: int = 3, steps: int = 5) -> Workload:
    """A step on four nodes of sixteen: hybrid sharding, tensor parallel, stages."""
    mix = {"data": "AllReduce", "shard": "ReduceScatter"}
    reductions = [
        NamedReduction("grads", Reduction(["data", "shard"], 64 * MIB, mix), grads),
        NamedReduction("gather", Reduction(["shard"], MIB, "AllGather"), 7),
        NamedReduction("single", Reduction(["one"], MIB)),
    ]
    axes = {"data": 4, "shard": 4, "one": 1, "stage": 4}
    traffic = [Traffic("stages", "stage", Pattern.POINT_TO_POINT, MIB, 2)]
    kept = [Constraint("shard", inside="node")] if constraints is None else constraints
    return Workload(A100, axes, reductions, traffic, kept, Limits(steps=steps))


def wired() -> Workload:
    """A step on rings, where it matters which GPUs are neighbours."""
    reductions = [NamedReduction("a", Reduction(["x"], 4 * MIB)), NamedReduction("b", Reduction(["y"], MIB), 3)]
    traffic = [Traffic("t", "x", Pattern.ALL_TO_ALL, MIB)]
    return Workload(RING, {"x": 2, "y": 4}, reductions, traffic, [], Limits(steps=3), CostChoice(algorithm="auto"))


def certify(workload: Workload, folder: Path, with_cnf: bool = False) -> tuple[WorkloadSolution, Made]:
    """Solve and write the certificate into an empty folder."""
    scope = StepScope(workload, "full", None)
    found = solve_workload(workload, Options(cost_model=scope.model), Resources())
    assert found.status in (Status.OPTIMAL, Status.INFEASIBLE)
    witness, lows, looked = None, list[Any](), [list[Any]() for _ in workload.traffic]
    if found.placement is not None and found.tables is not None:
        witness = found.placement, [one.solution.program or () for one in found.reductions]
        lows = [table.looked_at for table in found.tables.tables]
        looked = [list(flow.looked_at) for flow in found.tables.flows]
    scope = StepScope(workload, "full", found.cost)
    text = workload_text(workload)
    return found, produce_step(scope, witness, lows, looked, text, folder, Resources(), with_cnf)


@cache
def worked() -> tuple[Path, WorkloadSolution, Made]:
    folder = Path(tempfile.mkdtemp(prefix="smtsynth-test-"))
    return folder, *certify(step(), folder, with_cnf=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy(worked()[0], tmp_path)


def test_a_step_is_certified() -> None:
    folder, found, made = worked()
    report = check(folder, made.sha256)
    assert report.ok and report.claim == made.claim
    for words in (f"less than {found.cost} ns a step", "obeys shard inside node", "grads, gather, single, stages (giv"):
        assert words in made.claim
    assert made.claim.endswith("nor does any with longer programs.")
    assert report.rests_on[0] == "LRAT proof over all placements"
    assert any("labels" in one for one in report.rests_on)
    assert not check(folder, "0" * 64).ok


def test_a_step_on_other_wiring_is_certified(tmp_path: Path) -> None:
    found, made = certify(wired(), tmp_path)
    report = check(tmp_path, made.sha256)
    assert report.ok and f"less than {found.cost} ns" in made.claim and "alpha-beta (auto)" in made.claim
    manifest = manifest_of(tmp_path)
    assert manifest["traffic"][0], "rows of the given traffic that were priced"
    assert all(one["row"]["strides"][1] for one in manifest["rows"])
    reseal(tmp_path, lambda data: data["traffic"][0].pop())
    assert "all placements" in wrong(tmp_path)


def test_constraints_that_cant_hold_are_certified(tmp_path: Path) -> None:
    both = [Constraint("data", level="node", factor=4), Constraint("shard", level="node", factor=2)]
    found, made = certify(step(both), tmp_path)
    assert found.status is Status.INFEASIBLE and check(tmp_path, made.sha256).ok
    assert "no placement obeys the constraints data 4 at node; shard 2 at node" in made.claim
    text = (tmp_path / "problem.yaml").read_text()
    (tmp_path / "problem.yaml").write_text(text.replace("factor: 2", "factor: 1"))
    reseal(tmp_path)
    assert "all placements" in wrong(tmp_path)


def test_a_cheaper_or_dearer_claim_is_not_written(tmp_path: Path) -> None:
    workload, (_, found, _) = step(), worked()
    assert found.cost is not None and found.placement is not None and found.tables is not None
    programs = [one.solution.program or () for one in found.reductions]
    lows = [table.looked_at for table in found.tables.tables]
    for cost in (found.cost - 1, found.cost + 1):
        scope = StepScope(workload, "full", cost)
        with pytest.raises(InternalError, match=f"the witness takes {found.cost} ns, not {cost}"):
            produce_step(scope, (found.placement, programs), lows, [()], "", tmp_path, Resources())


def test_one_byte(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        data, rng = path.read_bytes(), random.Random(path.name)
        place = rng.randrange(len(data))
        value = rng.choice([byte for byte in range(256) if byte != data[place]])
        path.write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
        try:
            assert wrong(folder), f"byte {place} of {path.name} as {value}"
        except InputError as error:
            assert "\n" not in str(error)
        path.write_bytes(data)
    assert check(folder).ok


def change_row(change: Callable[[Any], None]) -> Callable[[Any], None]:
    def on(data: Any) -> None:
        change(next(one for one in data["rows"] if one["evidence"]["labels"]))

    return on


def raise_row(row: Any) -> None:
    row["nanoseconds"] += 1


def lower_row(row: Any) -> None:
    row["nanoseconds"] -= 1


def move_row(row: Any) -> None:
    row["row"]["factors"] = row["row"]["factors"][::-1]


FORGERIES: dict[str, tuple[Callable[[Any], None], str]] = {
    "a row's bound is raised": (change_row(raise_row), "case-"),
    "a row's bound is lowered": (change_row(lower_row), "case-"),
    "a row is another": (change_row(move_row), ""),
    "a row is gone": (lambda data: data["rows"].pop(), ""),
    "a row is there twice": (lambda data: data["rows"].append(data["rows"][0]), "rows"),
    "no row": (lambda data: data["rows"].clear(), "all placements"),
    "rows are nothing": (lambda data: data.update(rows=None), "rows"),
    "a smaller bound": (lambda data: data.update(bound_nanoseconds=data["bound_nanoseconds"] - 1), "witness"),
    "no bound": (lambda data: data.update(bound_nanoseconds=None), ""),
    "another instruction set": (lambda data: data["options"].update(instruction_set="p2"), ""),
    "a claim of more": (lambda data: data.update(claim=data["claim"].replace("data 4", "data 8")), "claim"),
    "other grounds": (lambda data: data["rests_on"].append("more"), "claim"),
    "traffic that isn't there": (lambda data: data["traffic"].append([]), "all placements"),
    "no traffic": (lambda data: data.update(traffic=[]), "all placements"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_manifest(folder: Path, name: str) -> None:
    change, part = FORGERIES[name]
    reseal(folder, change)
    assert any(one.startswith(part) for one in wrong(folder))


def witness(folder: Path, change: Callable[[Any], None]) -> None:
    data = json.loads((folder / "witness.json").read_text())
    change(data)
    (folder / "witness.json").write_text(json.dumps(data, sort_keys=True) + "\n")
    reseal(folder)


def test_a_forged_witness(folder: Path) -> None:
    original = (folder / "witness.json").read_bytes()

    def swapped(data: Any) -> None:
        program = max((one["program"] for one in data["reductions"]), key=len)
        assert len(program) > 1
        program[0], program[1] = program[1], program[0]

    for change in (
        swapped,
        lambda data: data.update(nanoseconds=data["nanoseconds"] - 1),
        lambda data: data["reductions"].pop(),
        lambda data: data["reductions"][0].update(count=1),
        lambda data: data["traffic"][0].update(nanoseconds=1),
        lambda data: data["placement"].reverse(),
        lambda data: data.update(placement=None),
        lambda data: data.update(reductions=[None] * 3),
    ):
        witness(folder, change)
        assert set(wrong(folder)) == {"witness"}
        (folder / "witness.json").write_bytes(original)
    reseal(folder)
    assert check(folder).ok


def test_another_problem(folder: Path) -> None:
    path = folder / "problem.yaml"
    text = path.read_text()
    for one, two in (
        ("count: 7", "count: 6"),
        ("64 MiB", "32 MiB"),
        ("inside: node", "inside: gpu"),
        ("steps: 5", "steps: 4"),
    ):
        assert one in text
        path.write_text(text.replace(one, two))
        reseal(folder)
        assert wrong(folder), f"{two} instead of {one}"
    path.write_text("reduce: 1\n")
    reseal(folder)
    assert set(wrong(folder)) == {"problem"}


def test_a_lemma_of_the_proof_over_placements_is_dropped(folder: Path) -> None:
    path, rng = folder / "placements.lrat.gz", random.Random(4)
    lines = packed_lines(path)
    for place in {0, len(lines) - 1, rng.randrange(len(lines))}:
        pack_lines(path, [*lines[:place], *lines[place + 1 :]])
        reseal(folder)
        assert set(wrong(folder)) == {"all placements"}
    for data in (b"", path.read_bytes()[:-9]):
        path.write_bytes(data)
        reseal(folder)
        assert set(wrong(folder)) == {"all placements"}


def test_a_proof_of_a_neighbour(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    certify(step(grads=4), other)
    for name in ("placements.lrat.gz", "witness.json"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes((other / name).read_bytes())
        reseal(folder)
        assert wrong(folder)
        (folder / name).write_bytes(kept)
