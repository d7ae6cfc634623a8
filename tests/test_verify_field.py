"""What goes wrong in hand-written reductions, each kind as a small file under tests/verify with its repaired twin.

Two kinds are no matter of a schedule, which has steps that begin and end for all: groups of which collectives overlap
in time, and what sums are divided by. Order among ranks is one of MSCCL XML.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cli_support import Cli

FOLDER = Path(__file__).parent / "verify"
HYBRID = ("--problem", str(FOLDER / "hybrid-problem.yaml"), "--placement", "[[2,1],[1,4]]")


class Fault(NamedTuple):
    """What the verdict must name, and words of its reason."""

    step: int | None
    device: int
    chunk: int | None
    missing: list[int]
    duplicated: list[int]
    words: str


EVERYONE = [0, 1, 2, 3]
FAULTS = {
    "cross-talk": Fault(1, 0, 0, [2], [], "what device 3 gave does not belong there; step 1 (AllReduce)"),
    "overlap-across": Fault(2, 0, 0, [2, 3], [0, 1], "step 2 (AllReduce) counted contributions again"),
    "overlap-pairs": Fault(3, 0, 0, [], [2, 3], "what devices 2, 3 gave is there more than once; step 3 (AllReduce)"),
    "bucket-order": Fault(3, 0, 0, EVERYONE, [], "undefined; step 3 (AllReduce) added different chunks"),
    "root-own": Fault(1, 0, 0, EVERYONE, [], "undefined; step 1 (Reduce) left nothing there"),
    "root-no-broadcast": Fault(None, 1, 0, [2, 3], [], "what is missing never came"),
    "lost-unreduced": Fault(1, 0, 0, [1, 2, 3], [], "step 1 (Broadcast) lost contributions"),
    "lost-second-node": Fault(1, 2, 0, EVERYONE, [], "undefined; step 1 (Reduce) left nothing there"),
    "lost-replicate": Fault(None, 0, 0, [4, 5, 6, 7], [], "node 0, gpu 0; replicate 0, shard 0"),
    "uneven-shards": Fault(2, 4, None, [], [], "AllReduce on group [0, 4]: devices 0 and 4 hold buffers of unequal"),
    "uneven-tail": Fault(None, 0, 0, [6], [], "what device 6 gave is missing"),
    "layout-nested": Fault(3, 0, 1, [], [], "not in chunk order since step 3 (AllGather)"),
    "layout-mixed": Fault(3, 2, 0, [], [], "not where device 0 has it since step 3 (AllGather)"),
    "size-power-of-two": Fault(None, 2, 0, [4, 5], [], "what devices 4, 5 gave is missing"),
    "size-four-of-eight": Fault(None, 0, 0, [4, 5, 6, 7], [], "what devices 4-7 gave is missing"),
}
MORE = {"lost-replicate": HYBRID, "layout-nested": ("--layout", "identity")}
PROVED: dict[str, Any] = {
    "verdict": "proved",
    **dict.fromkeys(("reason", "step", "device", "chunk", "missing", "duplicated")),
    "layout": "identity",
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_is_refuted_where_it_is_wrong(cli: Cli, name: str) -> None:
    ran = cli("verify", str(FOLDER / f"{name}.yaml"), "--json", *MORE.get(name, ()))
    found, fault = ran.data, FAULTS[name]
    assert ran.status == 1 and not ran.err
    assert found["verdict"] == "refuted" and found["layout"] is None
    assert [found[key] for key in Fault._fields[:5]] == list(fault[:5])
    assert fault.words in found["reason"]
    assert f"device {fault.device}" in found["reason"] or f"devices 0 and {fault.device}" in found["reason"]
    assert fault.chunk is None or f"chunk {fault.chunk}" in found["reason"]


@pytest.mark.parametrize("name", FAULTS)
def test_each_repaired_twin_is_proved(cli: Cli, name: str) -> None:
    ran = cli("verify", str(FOLDER / f"{name}-fixed.yaml"), "--json", *MORE.get(name, ()))
    assert ran.status == 0 and ran.data == PROVED


@pytest.mark.parametrize("name", FAULTS)
def test_each_explanation_shows_the_group(cli: Cli, name: str) -> None:
    ran = cli("verify", str(FOLDER / f"{name}.yaml"), "--explain", "--solver-check", "off", *MORE.get(name, ()))
    assert ran.status == 1 and ran.out.startswith("refuted: ")
    fault = FAULTS[name]
    if fault.step is None:
        assert "At the end, in group [" in ran.out
    else:
        assert f"Step {fault.step}, " in ran.out and "\n  before\n" in ran.out
    assert len(ran.out.splitlines()) <= 30


def test_a_root_outside_its_group_is_bad_input(cli: Cli) -> None:
    ran = cli("verify", str(FOLDER / "root-local-index.yaml"))
    assert ran.status == 2 and not ran.out
    assert ran.err.endswith("index.yaml:7: key steps[2]: root 0 is not in its group [2, 3]; expected a member\n")
    assert cli("verify", str(FOLDER / "root-local-index-fixed.yaml"), "--json").data == PROVED


def test_sums_in_permuted_order_are_right_and_the_order_is_shown(cli: Cli) -> None:
    ran = cli("verify", str(FOLDER / "layout-nested.yaml"), "--json")
    assert ran.status == 0 and ran.data == PROVED | {"layout": [0, 2, 1, 3]}
    assert "the chunks are 0, 2, 1, 3" in cli("verify", str(FOLDER / "layout-nested.yaml")).out


def test_groups_of_one_change_nothing(cli: Cli) -> None:
    assert cli("verify", str(FOLDER / "scale-group-of-one.yaml"), "--json").data == PROVED


def test_the_order_of_ranks_is_a_cycle_of_waits(cli: Cli) -> None:
    ran = cli("verify", str(FOLDER / "order-deadlock.xml"), "--json")
    assert ran.status == 1 and ran.data["kind"] == "deadlock"
    assert {step["gpu"] for step in ran.data["witness"]} == {0, 1, 2, 3}
    assert ran.data["reason"].startswith("deadlock: gpu 0 tb 0 step 1 (rrc, line 6) waits for the message of gpu 1")
    fixed = cli("verify", str(FOLDER / "order-deadlock-fixed.xml"), "--json")
    assert fixed.status == 0 and fixed.data["verdict"] == "proved" and fixed.data["layout"] == "identity"


def test_every_file_is_in_a_test() -> None:
    told = {f"{name}{twin}" for name in FAULTS for twin in ("", "-fixed")}
    others = {"root-local-index", "root-local-index-fixed", "scale-group-of-one", "hybrid-problem"}
    assert {path.stem for path in FOLDER.glob("*.yaml")} == told | others
