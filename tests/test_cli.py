"""The command line (model, section 9): placements and solve as JSON, how they end, and what the options do."""

from __future__ import annotations

import json

import pytest
from cli_support import (
    BOTH,
    LONG,
    PROBLEM,
    SOLVE,
    SOLVE_ALL,
    WHOLE,
    Cli,
    fits,
)

# placements


def test_placements(cli: Cli) -> None:
    ran = cli("placements", cli.put(PROBLEM), "--json")
    assert ran.status == 0
    assert ran.data == {"count": 2, "placements": [{"matrix": [[1, 2], [2, 2]]}, {"matrix": [[2, 1], [1, 4]]}]}
    assert ran.err == ""


def test_placements_are_counted_where_they_are_too_many_to_list(cli: Cli) -> None:
    levels = ", ".join(f"{{name: l{n}, size: 64, bandwidth: 1 GB/s, latency: 1 us}}" for n in range(6))
    axes = ", ".join(f"a{n}: 64" for n in range(6))
    file = cli.put(f"system: {{levels: [{levels}]}}\naxes: {{{axes}}}\nreduce: {{over: [a0], bytes: 1}}\n")
    counted, listed = cli("placements", file), cli("placements", file, "--json")
    assert (counted.status, listed.status) == (0, 3)
    count = int(counted.out.split()[0])
    assert count > 10**11
    assert listed.err == f"smtsynth: there are {count} placements, too many to list\n"
    assert listed.out == ""


# solve


def test_solve_on_one_placement(cli: Cli) -> None:
    ran = cli("solve", cli.put(WHOLE), "--placement", "[[4,16]]", "--json")
    assert (ran.status, ran.err) == (0, "")
    fits(ran.data, SOLVE)
    found = ran.data
    assert (found["status"], found["reason"], found["blocked"]) == ("optimal", None, [])
    assert found["cost_seconds"] == found["lower_bound_seconds"] == 0.417776266
    assert found["allreduce_seconds"] == 0.528994179
    assert found["any_schedule_bound_seconds"] <= 0.417776266
    assert found["placement"] == {"axes": ["all"], "matrix": [[4, 16]]}
    assert [step["collective"] for step in found["program"]] == ["ReduceScatter", "AllReduce", "AllGather"]
    assert found["program"][1] == {
        "collective": "AllReduce",
        "slice": "node",
        "form": "Parallel",
        "ancestor": "root",
    }
    assert found["program"][0]["ancestor"] is None
    assert found["schedule"][0] == {
        "collective": "ReduceScatter",
        "groups": [list(range(16 * node, 16 * node + 16)) for node in range(4)],
    }
    assert found["schedule"][1]["groups"][3] == [3, 19, 35, 51]
    assert (found["steps_limit"], found["instruction_set"], found["hierarchy"]) == (5, "full", "reduction")
    assert (found["cost_model"], found["layout"]) == ("alpha-beta", "identity")
    assert (found["loop"][-1]["bound_seconds"], found["loop"][-1]["answer"]) == (0.417776266, "unsat")


def test_solve_over_all_placements(cli: Cli) -> None:
    ran = cli("solve", cli.put(PROBLEM), "--json")
    assert (ran.status, ran.err) == (0, "")
    found = ran.data
    fits(found, SOLVE_ALL)
    assert [one["matrix"] for one in found["placements"]] == [[[1, 2], [2, 2]], [[2, 1], [1, 4]]]
    best = min(found["placements"], key=lambda one: one["cost_seconds"])
    assert best == {
        "matrix": found["placement"]["matrix"],
        "status": "optimal",
        "cost_seconds": found["cost_seconds"],
        "lower_bound_seconds": found["lower_bound_seconds"],
        "allreduce_seconds": found["allreduce_seconds"],
    }
    for one in found["placements"]:
        alone = cli("solve", cli.put(PROBLEM), "--placement", json.dumps(one["matrix"]), "--json").data
        assert {key: alone[key] for key in one if key != "matrix"} == {k: v for k, v in one.items() if k != "matrix"}


def test_solve_where_nothing_is_reduced(cli: Cli) -> None:
    file = cli.put(PROBLEM.replace("data: 2, shard: 4", "data: 8, shard: 1"))
    ran = cli("solve", file, "--json")
    assert ran.status == 0
    fits(ran.data, SOLVE_ALL)
    found = ran.data
    assert (found["status"], found["cost_seconds"], found["program"], found["schedule"]) == ("optimal", 0.0, [], [])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--hierarchy", "system"], "in part only"),
        (["--hierarchy", "columns", "--steps", "1"], None),
    ],
)
def test_solve_where_no_program_exists(cli: Cli, words: list[str], reason: str | None) -> None:
    ran = cli("solve", cli.put(PROBLEM), "--placement", BOTH, *words, "--json")
    assert ran.status == 1
    fits(ran.data, SOLVE)
    found = ran.data
    assert found["status"] == "infeasible"
    for key in ("cost_seconds", "lower_bound_seconds", "program", "schedule", "layout"):
        assert found[key] is None
    assert found["allreduce_seconds"] == 3.221294472
    assert reason is None or reason in found["reason"]
    assert cli("solve", cli.put(PROBLEM), "--placement", BOTH, *words).status == 1


def test_a_time_limit_leaves_what_was_found(cli: Cli) -> None:
    ran = cli("solve", cli.put(PROBLEM), "--time-limit", "0.01", "--json")
    assert ran.status == 3
    fits(ran.data, SOLVE_ALL)
    assert ran.data["status"] in ("feasible", "unknown")
    assert "time limit" in ran.data["reason"]
    for one in ran.data["placements"]:
        assert one["status"] != "infeasible"
        assert one["lower_bound_seconds"] is None or one["lower_bound_seconds"] <= one["cost_seconds"]
    text = cli("solve", cli.put(PROBLEM), "--time-limit", "0.01")
    assert text.status == 3
    assert "Not proved optimal" in text.out and "time limit" in text.out


@pytest.mark.parametrize("limit", ["0.01", "1 ns"])
def test_a_time_limit_is_never_read_as_infeasible(cli: Cli, limit: str) -> None:
    words = ("solve", cli.put(PROBLEM), "--placement", BOTH, "--hierarchy", "columns", "--steps", "1", "--json")
    ran = cli(*words, "--time-limit", limit)
    assert ran.status == 3
    fits(ran.data, SOLVE)
    assert ran.data["status"] == "unknown"
    assert "time limit" in ran.data["reason"]
    assert ran.data["cost_seconds"] is None and ran.data["program"] is None


@pytest.mark.parametrize("solver", ["z3", "cadical"])
def test_a_memory_limit_is_said(cli: Cli, solver: str) -> None:
    levels = PROBLEM.replace("size: 2", "size: 16").replace("size: 4", "size: 16")
    file = cli.put(levels.replace("data: 2, shard: 4", "x: 256").replace("[shard]", "[x]"))
    ran = cli("solve", file, "--steps", "8", "--memory-limit", "1 MB", "--solver", solver, "--json")
    assert ran.status == 3
    fits(ran.data, SOLVE_ALL)
    assert (ran.data["status"], ran.data["reason"]) == ("feasible", f"{solver} reached the memory limit")


# Options


def test_options_that_must_not_change_the_optimum(cli: Cli) -> None:
    file = cli.put(PROBLEM)
    expected = cli("solve", file, "--json").data
    for words in (
        ["--solver", "cadical"],
        ["--bounds", "off"],
        ["--bounds", "off", "--solver", "cadical"],
        ["--encoding", "concrete"],
        ["--jobs", "2"],
        ["--time-limit", "60"],
        ["--time-limit", "60 s", "--memory-limit", "2 GiB"],
        ["--memory-limit", "2e9"],
        ["--steps", "3"],
        ["--instruction-set", "p2"],
    ):
        ran = cli("solve", file, *words, "--json")
        assert ran.status == 0, words
        fits(ran.data, SOLVE_ALL)
        assert ran.data["cost_seconds"] == expected["cost_seconds"], words
        assert ran.data["placements"] == expected["placements"], words
    joint = cli("solve", file, "--joint", "--json")
    assert joint.status == 0
    fits(joint.data, SOLVE)
    assert (joint.data["status"], joint.data["placement"]) == ("optimal", expected["placement"])
    assert joint.data["cost_seconds"] == joint.data["lower_bound_seconds"] == expected["cost_seconds"]


def test_options_are_said_in_the_answer(cli: Cli) -> None:
    words = ("--placement", BOTH, "--instruction-set", "p2", "--steps", "1", "--hierarchy", "reduction-factors")
    found = cli("solve", cli.put(PROBLEM), *words, "--json").data
    assert (found["instruction_set"], found["steps_limit"]) == ("p2", 1)
    assert found["hierarchy"] == "reduction-factors"
    assert len(found["program"]) == 1 and found["cost_seconds"] == found["allreduce_seconds"]


def test_without_bounds_the_loop_starts_from_the_schemes(cli: Cli) -> None:
    """On: one refutation suffices where the graph's path is the optimum. Off: as good a start must be found first."""
    outermost = "    - {name: a, size: 2, bandwidth: 50 GB/s, latency: 40 us}\n"
    words = ("solve", cli.put(LONG.replace(outermost, "").replace("512", "256")), "--steps", "3", "--json")
    on, off = cli(*words).data, cli(*words, "--bounds", "off").data
    assert (on["status"], off["status"]) == ("optimal", "optimal")
    assert on["cost_seconds"] == off["cost_seconds"]
    assert [query["answer"] for query in on["loop"]] == ["unsat"]
    assert off["loop"][-1]["answer"] == "unsat"


def test_the_problems_own_limits_hold_unless_overridden(cli: Cli) -> None:
    file = cli.put(PROBLEM + "limits: {steps: 2, time: 1 ns}\n")
    own = cli("solve", file, "--placement", BOTH, "--json")
    assert (own.status, own.data["steps_limit"]) == (3, 2)
    assert "time limit" in own.data["reason"]
    other = cli("solve", file, "--placement", BOTH, "--steps", "3", "--time-limit", "60", "--json")
    assert (other.status, other.data["steps_limit"]) == (0, 3)
    limited = cli.put(PROBLEM + "limits: {steps: 2}\n")
    assert cli("enumerate", limited, "--placement", BOTH, "--json").data["programs_by_length"] == [1, 4]


def test_a_schedule_too_long_to_write_down_is_left_out(cli: Cli) -> None:
    big = PROBLEM.replace("size: 2", "size: 65536").replace("size: 4", "size: 65536")
    file = cli.put(big.replace("data: 2, shard: 4", "x: 4294967296").replace("[shard]", "[x]"))
    ran = cli("solve", file, "--json")
    assert ran.status == 0
    fits(ran.data, SOLVE_ALL)
    assert ran.data["schedule"] is None and ran.data["layout"] is None
    assert [step["collective"] for step in ran.data["program"]] == ["ReduceScatter", "AllReduce", "AllGather"]
    text = cli("solve", file).out
    assert "65536 groups of 65536" in text and "Replayed symbolically" in text


def test_help_of_every_command(cli: Cli) -> None:
    top = cli("--help")
    assert top.status == 0 and top.err == ""
    names = [line.split()[0] for line in top.out.split("Commands:")[1].splitlines() if line.strip()]
    assert {"placements", "solve", "compare", "simulate", "presets"} <= set(names)
    for name in names:
        ran = cli(name, "--help")
        assert ran.status == 0 and ran.out.startswith(f"Usage: smtsynth {name}")
        if name in ("solve", "compare", "simulate"):
            for option in (
                "--placement",
                "--instruction-set",
                "--steps",
                "--hierarchy",
                "--time-limit",
                "--memory-limit",
                "--jobs",
                "--json",
            ):
                assert option in ran.out, (name, option)
    version = cli("--version")
    assert version.status == 0 and version.out.startswith("smtsynth ")
