"""What compare, simulate, enumerate, hierarchies and presets print as JSON, and how they end (model, section 9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_support import (
    BOTH,
    COMPARE,
    INSIDE,
    LONG,
    PROBLEM,
    SIMULATE,
    SOLVE,
    SPLIT,
    WHOLE,
    Cli,
    fits,
)

from smtsynth.search import compare as comparing

# compare


def test_compare(cli: Cli) -> None:
    ran = cli("compare", cli.put(PROBLEM), "--json")
    assert (ran.status, ran.err) == (0, "")
    fits(ran.data, COMPARE)
    both, inside = ran.data["placements"]
    assert ran.data["agree"] is both["agree"] is inside["agree"] is True
    assert (both["matrix"], both["programs"]) == ([[1, 2], [2, 2]], 93)
    assert both["programs_by_length"] == [1, 4, 24, 42, 22]
    assert (inside["programs"], inside["programs_by_length"]) == (3, [1, 2, 0, 0, 0])
    assert both["enumerated_cost_seconds"] == both["solved_cost_seconds"] == 2.179344222


@pytest.mark.parametrize("more", [[], ["--no-merge"], ["--solver", "cadical"]])
def test_compare_by_the_papers_instruction_set(cli: Cli, more: list[str]) -> None:
    ran = cli("compare", cli.put(PROBLEM), "--placement", BOTH, "--instruction-set", "p2", *more, "--json")
    assert ran.status == 0
    (one,) = ran.data["placements"]
    assert (one["programs"], one["programs_by_length"]) == (47, [1, 4, 20, 22, 0])


def test_compare_that_does_not_finish(cli: Cli) -> None:
    ran = cli("compare", cli.put(PROBLEM), "--time-limit", "0.001", "--json")
    assert ran.status == 3
    fits(ran.data, COMPARE)
    assert ran.data["agree"] is None
    assert all(one["agree"] is None for one in ran.data["placements"])
    assert cli("compare", cli.put(PROBLEM), "--time-limit", "0.001").status == 3


def test_compare_that_disagrees(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = comparing.enumerate_programs

    def wrong(*given: Any) -> Any:
        found = real(*given)
        object.__setattr__(found, "cost", found.cost - 1)
        return found

    monkeypatch.setattr(comparing, "enumerate_programs", wrong)
    ran = cli("compare", cli.put(PROBLEM), "--json")
    assert ran.status == 1
    fits(ran.data, COMPARE)
    assert ran.data["agree"] is False
    assert "DISAGREE" in cli("compare", cli.put(PROBLEM)).out


# simulate

SCHEDULE = """\
devices: 8
steps:
  - {collective: ReduceScatter, groups: [[0,1],[2,3],[4,5],[6,7]]}
  - [{collective: AllReduce, groups: [[0,4],[1,5]]}, {collective: AllReduce, groups: [[2,6],[3,7]]}]
  - {collective: AllGather, groups: [[0,1],[2,3],[4,5],[6,7]]}
"""


def test_simulate_takes_whatever_names_a_program(cli: Cli, tmp_path: Path) -> None:
    problem = cli.put(WHOLE)
    answer = cli("solve", problem, "--json")
    steps = answer.data["program"]
    given = [
        SPLIT,
        cli.put(answer.out, "answer.json"),
        cli.put(f"program: {SPLIT}\n", "short.yaml"),
        cli.put(json.dumps({"program": steps}), "steps.json"),
        cli.put(SPLIT.replace("; ", "\n"), "short.txt"),
        cli.put(json.dumps({"devices": 64, "steps": answer.data["schedule"]}), "schedule.json"),
    ]
    for file in given:
        ran = cli("simulate", problem, file, "--json")
        assert (ran.status, ran.err) == (0, ""), file
        fits(ran.data, SIMULATE)
        assert ran.data["seconds"] == 0.417776266, file
        assert [step["collectives"] for step in ran.data["steps"]] == [["ReduceScatter"], ["AllReduce"], ["AllGather"]]
        middle = ran.data["steps"][1]
        assert middle["bottleneck"] == {"level": "node", "unit": 0, "direction": "up"}
        # 16 groups of 4 nodes that hold a sixteenth each: 6/4 of 2 GiB over 8 GB/s; 6 hops of 20 us.
        assert middle["transfer_seconds"] == pytest.approx(1.5 * 2**31 / 8e9)
        assert middle["latency_seconds"] == pytest.approx(120e-6)
        assert sum(step["seconds"] for step in ran.data["steps"]) == pytest.approx(0.417776266, abs=1e-12)


def test_simulate_from_standard_input(cli: Cli) -> None:
    problem = cli.put(WHOLE)
    answer = cli("solve", "-", "--json", stdin=WHOLE)
    assert answer.data["cost_seconds"] == 0.417776266
    assert cli("simulate", problem, "-", "--json", stdin=answer.out).data["seconds"] == 0.417776266
    assert cli("simulate", "-", SPLIT, "--json", stdin=WHOLE).data["seconds"] == 0.417776266
    assert cli("placements", "-", "--json", stdin=WHOLE).data["count"] == 1


@pytest.mark.parametrize("hierarchy", ["reduction", "columns", "rows", "reduction-factors"])
@pytest.mark.parametrize("placement", [BOTH, INSIDE])
def test_an_answer_simulates_to_its_cost(cli: Cli, placement: str, hierarchy: str) -> None:
    problem = cli.put(PROBLEM)
    answer = cli("solve", problem, "--placement", placement, "--hierarchy", hierarchy, "--json")
    fits(answer.data, SOLVE)
    file = cli.put(answer.out, "answer.json")
    assert cli("simulate", problem, file, "--json").data["seconds"] == answer.data["cost_seconds"]
    schedule = cli.put(json.dumps({"devices": 8, "steps": answer.data["schedule"]}), "s.json")
    assert cli("simulate", problem, schedule, "--json").data["seconds"] == answer.data["cost_seconds"]


def test_the_command_line_goes_before_the_answers_placement_and_hierarchy(cli: Cli) -> None:
    problem = cli.put(PROBLEM)
    text = "AllReduce(root, InsideGroup)"
    at = {one: cli("simulate", problem, text, "--placement", one, "--json").data["seconds"] for one in (BOTH, INSIDE)}
    answer = cli("solve", problem, "--placement", INSIDE, "--json")
    file = cli.put(answer.out, "answer.json")
    assert answer.data["program"][0]["slice"] == "root" and len(answer.data["program"]) == 1
    assert cli("simulate", problem, file, "--json").data["seconds"] == at[INSIDE]
    assert cli("simulate", problem, file, "--placement", BOTH, "--json").data["seconds"] == at[BOTH] != at[INSIDE]
    # Over the system's own hierarchy, one group of all devices: dearer than two groups inside their nodes.
    flat = cli("simulate", problem, file, "--hierarchy", "system", "--json").data["seconds"]
    assert flat > at[INSIDE]


def test_a_mixed_steps_loads_are_added(cli: Cli) -> None:
    problem, schedule = cli.put(PROBLEM), cli.put(SCHEDULE, "schedule.yaml")
    ran = cli("simulate", problem, schedule, "--json")
    assert ran.status == 0
    fits(ran.data, SIMULATE)
    middle = ran.data["steps"][1]
    assert middle["collectives"] == ["AllReduce", "AllReduce"]
    # Four groups of 2 over one uplink of 8 GB/s, each with half of 8 GiB.
    assert middle["transfer_seconds"] == pytest.approx(4 * 2**32 / 8e9)


def test_a_step_that_moves_nothing_has_no_bottleneck(cli: Cli) -> None:
    schedule = cli.put("devices: 8\nsteps:\n  - {collective: AllReduce, groups: [[3]]}\n  - []\n", "s.yaml")
    ran = cli("simulate", cli.put(PROBLEM), schedule, "--json")
    assert ran.status == 0
    fits(ran.data, SIMULATE)
    assert [step["bottleneck"] for step in ran.data["steps"]] == [None, None]
    assert ran.data["seconds"] == 0.0


# enumerate, hierarchies, presets

ENUMERATE = {
    "matrix": [[int]],
    "steps_limit": int,
    "instruction_set": str,
    "finished": bool,
    "reason": (str, None),
    "count": int,
    "programs_by_length": [int],
    "programs": [{"cost_seconds": float, "program": list, "text": str}],
}


def test_enumerate(cli: Cli) -> None:
    ran = cli("enumerate", cli.put(PROBLEM), "--placement", BOTH, "--all", "--json")
    assert ran.status == 0
    fits(ran.data, ENUMERATE)
    costs = [one["cost_seconds"] for one in ran.data["programs"]]
    assert len(costs) == ran.data["count"] == 93 and costs == sorted(costs)
    assert (ran.data["programs"][0]["text"], costs[0]) == (SPLIT, 2.179344222)
    fewer = cli("enumerate", cli.put(PROBLEM), "--placement", BOTH, "--cheapest", "3", "--json")
    assert [one["cost_seconds"] for one in fewer.data["programs"]] == costs[:3]
    late = cli("enumerate", cli.put(LONG), "--time-limit", "0.01", "--json")
    assert late.status == 3
    fits(late.data, ENUMERATE)
    assert late.data["finished"] is False and "time limit" in late.data["reason"]


def test_hierarchies(cli: Cli) -> None:
    ran = cli("hierarchies", cli.put(PROBLEM), "--placement", BOTH, "--instruction-set", "p2", "--json")
    assert ran.status == 0
    assert ran.data["programs"]["reduction"] == 47
    assert ran.data["lacks"]["reduction"]["columns"] == 0


def test_presets(cli: Cli) -> None:
    listed = cli("presets", "--json").data["presets"]
    names = [one["name"] for one in listed]
    assert "a100-4x16" in names and "dgx-h100" in names
    assert cli("presets", "dgx-h100", "--json").data["presets"] == [one for one in listed if one["name"] == "dgx-h100"]
    printed = cli("presets", "a100-4x16")
    assert printed.status == 0
    assert cli("placements", cli.put(printed.out), "--json").data["count"] == 3
