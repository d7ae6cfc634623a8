"""`solve` of a workload on the command line: its JSON, its report, --why, and refusals."""

from __future__ import annotations

import pytest
from cli_support import Cli

STEP = """\
system:
  levels:
    - {name: node, size: 2, bandwidth: 8 GB/s, latency: 20 us}
    - {name: gpu, size: 4, bandwidth: 270 GB/s, latency: 3 us}
axes: {data: 2, tensor: 4}
reductions:
  - {name: grads, over: [data], bytes: 1 GiB}
  - {name: acts, over: [tensor], collective: ReduceScatter, bytes: 64 MiB, count: 8}
traffic:
  - {name: stages, axis: data, pattern: point-to-point, bytes: 1 MiB, count: 2}
"""
PINNED = STEP + "constraints: [{axis: tensor, inside: node}, {axis: tensor, level: node, factor: 2}]\n"


def test_json(cli: Cli) -> None:
    ran = cli("solve", cli.put(STEP), "--json")
    found = ran.data
    assert ran.status == 0 and found["status"] == "optimal"
    assert set(found["placement"]) == {"axes", "matrix"} and found["placement"]["axes"] == ["data", "tensor"]
    assert [one["name"] for one in found["reductions"]] == ["grads", "acts"]
    for one in found["reductions"]:
        assert {"name", "cost_seconds", "allreduce_seconds", "program", "schedule"} <= set(one)
        assert {"collective", "groups"} == set(one["schedule"][0])
    total = sum(one["count"] * one["cost_seconds"] for one in [*found["reductions"], *found["traffic"]])
    assert found["cost_seconds"] == pytest.approx(total, abs=1e-12)
    assert found["lower_bound_seconds"] == found["cost_seconds"] <= found["allreduce_seconds"]
    assert found["loop"][-1]["answer"] == "unsat" and found["conflict"] == []


def test_report_and_why(cli: Cli) -> None:
    ran = cli("solve", cli.put(STEP), "--why")
    assert ran.status == 0
    for words in (
        "faster than with plain collectives",
        "Optimal:",
        "instruction set full, at most 5 steps, alpha-beta",
        "grads (AllReduce over data, 1 GiB)",
        "given traffic, point-to-point",
        "runner-up 1",
        "first axis outermost",
        "tensor innermost (4 at gpu)",
        "the best placement for plain collectives",
        "Where the answer changes",
        "modelled, not measured",
    ):
        assert words in ran.out


def test_why_for_scripts(cli: Cli) -> None:
    found = cli("solve", cli.put(STEP), "--why", "--json").data
    why = found["why"]
    assert set(why) == {"placements", "common_defaults", "which_axis_innermost", "placement_alone", "changes"}
    first = why["placements"][0]
    assert (first["matrix"], first["cost_seconds"]) == (found["placement"]["matrix"], found["cost_seconds"])
    for one in (*why["placements"], *why["which_axis_innermost"]):
        assert one["cost_seconds"] >= found["cost_seconds"] or one["breaks"]
    assert why["changes"][0]["from_factor"] == 1 / 1024 and set(why["changes"][0]["programs"]) == {"grads", "acts"}


def test_constraints_that_cannot_hold(cli: Cli) -> None:
    ran = cli("solve", cli.put(PINNED))
    assert ran.status == 1 and "tensor inside node; tensor 2 at node" in ran.out
    found = cli("solve", cli.put(PINNED), "--json").data
    assert found["status"] == "infeasible" and found["conflict"] == ["tensor inside node", "tensor 2 at node"]
    assert found["placement"] is None and found["reductions"] == [] and found["cost_seconds"] is None


@pytest.mark.parametrize(
    "words", [["--placement", "[[2,1],[1,4]]"], ["--joint"], ["--hierarchy", "rows"], ["--encoding", "concrete"]]
)
def test_options_that_do_not_fit(cli: Cli, words: list[str]) -> None:
    ran = cli("solve", cli.put(STEP), *words)
    assert ran.status == 2 and ran.err.count("\n") == 1 and "a workload takes no" in ran.err and not ran.out


def test_why_is_for_workloads(cli: Cli) -> None:
    single = STEP.split("reductions:")[0] + "reduce: {over: [data], bytes: 1 GiB}\n"
    ran = cli("solve", cli.put(single), "--why")
    assert ran.status == 2 and "--why" in ran.err and ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("over: [data]", "over: [model]", "model"),
        ("collective: ReduceScatter", "collective: Gossip", "Gossip"),
        (", bytes: 1 GiB", "", "bytes"),
        ("count: 8", "count: -8", "-8"),
        ("name: acts", "name: grads", "grads"),
    ],
)
def test_bad_workloads(cli: Cli, old: str, new: str, match: str) -> None:
    assert old in STEP
    ran = cli("solve", cli.put(STEP.replace(old, new, 1)), "--json")
    assert ran.status == 2 and not ran.out and ran.err.count("\n") == 1 and match in ran.err


def test_a_step_that_costs_nothing(cli: Cli) -> None:
    system = "system: {levels: [{name: a, size: 1, bandwidth: 1 GB/s, latency: 1 us}]}\naxes: {d: 1}\n"
    ran = cli("solve", cli.put(system + "reductions: [{name: r, over: [d], bytes: 8 MiB}]\n"), "--why")
    assert ran.status == 0 and "A step of 1 reduction;" in ran.out and "this answer" in ran.out


def test_what_a_workload_does_not_take_is_one_line(cli: Cli) -> None:
    paper = cli.put(STEP + "cost_model: paper\n", "paper.yaml")
    both = cli.put(STEP + "reduce: {over: [data], bytes: 1 GiB}\n", "both.yaml")
    measured = cli.put(STEP + "cost_model: measured\n", "measured.yaml")
    for words, said in (
        ([cli.put(STEP), "--overlap", "full"], "overlap full: is for one reduction"),
        ([cli.put(STEP), "--cost-model", "paper"], "--cost-model: paper doesn't price given traffic"),
        ([paper], "paper doesn't price given traffic"),
        ([both], "has `reductions` beside `reduce`"),
        ([measured], "measured needs `curves`"),
    ):
        ran = cli("solve", *words)
        assert ran.status == 2 and ran.err.count("\n") == 1 and said in ran.err and not ran.out
        assert words[0].startswith("-") or len(words) > 1 or words[0] in ran.err or "cost-model" in ran.err


def test_without_bounds_a_step_is_proved_too(cli: Cli) -> None:
    found = cli("solve", cli.put(STEP), "--json").data
    again = cli("solve", cli.put(STEP), "--json", "--bounds", "off").data
    assert again["status"] == "optimal" and again["cost_seconds"] == found["cost_seconds"]
    assert all(one["steps_limit"] >= 5 for one in found["reductions"])
