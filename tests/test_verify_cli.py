"""The command `verify`: what it takes, its JSON, its exit status, and bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import BOTH, INSIDE, PROBLEM, SPLIT, Cli, fits
from msccl_support import SEVEN, data_file, ring_allreduce, tree_allreduce, with_step

from smtsynth.interfaces.verify import LAYOUTS
from smtsynth.msccl.model import StepId
from smtsynth.msccl.verify import verify_msccl
from smtsynth.msccl.writer import write_msccl
from smtsynth.verify import algorithms
from smtsynth.verify.schedules import installed_solvers

SCHEDULE = """\
devices: 8
steps:
  - {collective: ReduceScatter, groups: [[0,1,2,3],[4,5,6,7]]}
  - {collective: AllReduce, groups: [[0,4],[1,5],[2,6],[3,7]]}
  - {collective: AllGather, groups: [[0,1,2,3],[4,5,6,7]]}
"""
WRONG = SCHEDULE.replace("[3,7]", "[7]")
DEVICES = [int]
VERIFY = {
    "verdict": ("proved", "refuted", "unknown"),
    "reason": (str, None),
    "step": (int, None),
    "device": (int, None),
    "chunk": (int, None),
    "missing": (DEVICES, None),
    "duplicated": (DEVICES, None),
    "layout": ("identity", [int], None),
}
PROGRAM = VERIFY | {"sizes": ([[int]], None)}
STEP = {"gpu": int, "tb": int, "step": int, "type": str, "line": (int, None)}
XML = VERIFY | {"kind": (str, None), "mode": (str, None), "witness": ([STEP], None), "warnings": [str]}


# --- Schedules


def test_a_proof_and_a_refutation_as_json(cli: Cli) -> None:
    ran = cli("verify", cli.put(SCHEDULE), "--json")
    assert ran.status == 0 and not ran.err
    assert ran.data == dict.fromkeys(VERIFY) | {"verdict": "proved", "layout": "identity"}
    ran = cli("verify", cli.put(WRONG), "--json")
    assert ran.status == 1 and not ran.err
    fits(ran.data, VERIFY)
    assert ran.data == {
        "verdict": "refuted",
        "reason": "device 0, chunk 3: what devices 4-7 gave is missing; what is missing never came",
        "step": None,
        "device": 0,
        "chunk": 3,
        "missing": [4, 5, 6, 7],
        "duplicated": [],
        "layout": None,
    }


def test_a_report_says_the_verdict_first(cli: Cli) -> None:
    ran = cli("verify", cli.put(SCHEDULE))
    assert ran.status == 0
    assert ran.out.startswith(
        "proved: AllReduce over all 8 devices: every device ends with every chunk, each contribution"
    )
    for name in installed_solvers():
        assert f"{name} (schedule: unsat," in ran.out
    ran = cli("verify", cli.put(WRONG), "--explain", "--solver-check", "off")
    assert ran.status == 1
    assert ran.out == (
        "refuted: device 0, chunk 3: what devices 4-7 gave is missing; what is missing never came\n"
        "Goal: AllReduce over all 8 devices\n"
        "  step     none: something never came\n"
        "  device   0\n"
        "  chunk    3 of 4 (from 0)\n"
        "  missing  4-7\n"
        "At the end, in group [0-7]:\n"
        "    devices 0-3: chunks 0-2 from 0-7; chunk 3 from 0-3\n"
        "    devices 4-7: chunks 0-2 from 0-7; chunk 3 from 4-7\n"
        "Checked: 3 steps on 8 devices, every contribution counted.\n"
        "Solvers: none asked (they are up to 16 devices, or 12 steps of XML).\n"
    )
    assert "--explain shows what the group held" in cli("verify", cli.put(WRONG)).out


def test_unknown_is_neither(cli: Cli) -> None:
    groups, start = [], 0
    for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23):
        groups.append(list(range(start, start + prime)))
        start += prime
    file = cli.put(
        json.dumps({"devices": start, "steps": [{"collective": "ReduceScatter", "groups": groups}]}), "p.json"
    )
    ran = cli("verify", file, "--json")
    assert ran.status == 3 and ran.data["verdict"] == "unknown" and "pieces" in ran.data["reason"]
    assert [ran.data[key] for key in VERIFY if key not in ("verdict", "reason")] == [None] * 6
    assert cli("verify", file).out.startswith("unknown: ")


def test_a_schedule_from_standard_input(cli: Cli) -> None:
    assert cli("verify", "-", "--json", stdin=SCHEDULE).status == 0


# --- With a problem


def test_coordinates_and_the_problems_goal(cli: Cli) -> None:
    given = ["--problem", cli.put(PROBLEM, "problem.yaml"), "--placement", INSIDE]
    inside = "devices: 8\nsteps:\n  - {collective: AllReduce, groups: [[0,1,2,3],[4,5,6,7]]}\n"
    assert cli("verify", cli.put(inside), "--json", *given).status == 0
    assert cli("verify", cli.put(inside), "--json").status == 1
    ran = cli("verify", cli.put(inside + "goal: {collective: AllReduce}\n"), *given)
    assert ran.status == 0  # a goal that says nothing of groups is none
    ran = cli("verify", cli.put(inside.replace("[4,5,6,7]", "[4,5,7]")), *given)
    assert ran.status == 1 and "device   4 (node 1, gpu 0; data 1, shard 0)" in ran.out
    assert "(device 4 is node 1, gpu 0; data 1, shard 0)" in ran.out.replace("\n  ", " ")
    goal = "goal: {collective: AllReduce, groups: [[0,1,2,3,4,5,6,7]]}\n"
    ran = cli("verify", cli.put(inside + goal), "--problem", given[1], "--json")
    assert ran.status == 1 and ran.data["reason"].endswith("(device 0 is node 0, gpu 0)")


def test_a_goal_per_axis(cli: Cli) -> None:
    text = SCHEDULE.rpartition("  - ")[0] + "goal: {collective: {data: AllReduce, shard: ReduceScatter}}\n"
    given = ["--problem", cli.put(PROBLEM, "problem.yaml"), "--placement", INSIDE]
    ran = cli("verify", cli.put(text), *given)
    assert ran.status == 0 and "split over 2 groups of 4" in ran.out
    ran = cli("verify", cli.put(text), *given[:2])
    assert ran.status == 2 and "there are 2 placements" in ran.err
    ran = cli("verify", cli.put(text))
    assert ran.status == 2 and "p.yaml:5: key goal: a goal per axis needs a placement; expected --problem" in ran.err
    ran = cli("verify", cli.put(text.replace("data:", "date:")), *given)
    assert ran.status == 2 and "p.yaml:5: key goal: there is no axis 'date'; expected data, shard" in ran.err
    ran = cli("verify", cli.put(text.replace("AllReduce, shard", "Broadcast, shard")), *given)
    assert ran.status == 2 and "a mix of Broadcast and ReduceScatter; expected a mix of" in ran.err
    ran = cli("verify", cli.put(text.replace("}}", "}, groups: [[0]]}")), *given)
    assert ran.status == 2 and "key goal.groups: is unknown" in ran.err
    ran = cli("simulate", given[1], cli.put(text), "--json")
    assert ran.status == 0 and len(ran.data["steps"]) == 2


def test_the_answer_of_solve(cli: Cli) -> None:
    file = cli.put(PROBLEM, "problem.yaml")
    answer = cli("solve", file, "--json")
    solved = cli.put(answer.out, "answer.json")
    ran = cli("verify", solved, "--problem", file, "--json")
    assert ran.status == 0 and ran.data["verdict"] == "proved"
    ran = cli("verify", solved)
    assert (
        ran.status == 2
        and "an answer of solve doesn't hold the system it is for; expected --problem PROBLEM" in ran.err
    )
    changed = answer.data
    changed["schedule"][0]["groups"] = changed["schedule"][0]["groups"][:-1]
    ran = cli("verify", cli.put(json.dumps(changed), "answer.json"), "--problem", file, "--json")
    assert ran.status == 1 and ran.data["device"] is not None
    changed["schedule"][0]["groups"] = [[0, 99]]
    ran = cli("verify", cli.put(json.dumps(changed), "answer.json"), "--problem", file, "--json")
    assert ran.status == 2 and "there is no device 99" in ran.err


def test_a_program_on_a_placement(cli: Cli) -> None:
    given = ["--problem", cli.put(PROBLEM, "problem.yaml"), "--placement", "[[1,2],[2,2]]"]
    ran = cli("verify", SPLIT, *given, "--json")
    assert ran.status == 0
    fits(ran.data, VERIFY)
    ran = cli("verify", "--program", SPLIT.rpartition(";")[0], *given)
    assert ran.status == 1 and "node 0, gpu 0; data 0, shard 0" in ran.out
    ran = cli("verify", SPLIT, *given, "--hierarchy", "rows", "--json")
    assert ran.status == 1 and ran.data["verdict"] == "refuted"  # there the same words join other devices
    ran = cli("verify", SPLIT, *given, "--hierarchy", "best")
    assert ran.status == 2 and "--hierarchy: 'best' is unknown; expected reduction," in ran.err


# --- Programs


def test_programs_for_every_size(cli: Cli) -> None:
    ran = cli("verify", "--program", SPLIT, "--factors", "2", "--json")
    assert ran.status == 0
    assert ran.data == dict.fromkeys(PROGRAM) | {"verdict": "proved", "layout": "identity"}
    ran = cli("verify", "--program", SPLIT.rpartition(";")[0], "--factors", "node,gpu", "--json")
    assert ran.status == 1
    fits(ran.data, PROGRAM)
    assert ran.data["sizes"] == [[2, 2]] and ran.data["reason"].startswith("on 2·2: device 0, chunk 1: not there")
    ran = cli("verify", "--program", SPLIT, "--factors", "2")
    assert ran.out.startswith("proved: AllReduce on every system with 2 levels (node, d2), whatever their sizes")
    ran = cli(
        "verify",
        "--program",
        "AllReduce(root, InsideGroup); AllReduce(root, InsideGroup)",
        "--factors",
        "1",
        "--explain",
    )
    assert ran.status == 1 and "devices 0, 1: chunk 0 from twice 0, 1" in ran.out


def test_programs_in_every_place(cli: Cli) -> None:
    listed = "program:\n  - {collective: AllReduce, slice: root, form: InsideGroup}\n"
    for words in (
        (SPLIT, "--factors", "2"),
        (SPLIT, "--program", "--factors", "2"),
        ("--program", SPLIT, "--factors", "2"),
        (cli.put(SPLIT, "short.txt"), "--factors", "2"),
        ("--program", cli.put(listed), "--factors", "3"),
    ):
        assert cli("verify", *words, "--json").status == 0


PARTS = "ReduceScatter(node, InsideGroup); ReduceScatter(node, Parallel(root))"


@pytest.mark.parametrize(
    ("goal", "text", "said"),
    [
        (("--collective", "ReduceScatter"), "ReduceScatter(root, InsideGroup)", "ReduceScatter"),
        (("--split", "gpu"), SPLIT.rpartition(";")[0], "AllReduce that ends split over gpu"),
        (("--split", "node,gpu"), "ReduceScatter(root, InsideGroup)", "ReduceScatter"),
        (("--collective", "AllGather"), "AllGather(node, InsideGroup); AllGather(node, Parallel(root))", "AllGather"),
        (("--collective", "Reduce"), "Reduce(node, InsideGroup); Reduce(node, Master(root))", "Reduce"),
        (("--collective", "Broadcast"), "Broadcast(node, Master(root)); Broadcast(node, InsideGroup)", "Broadcast"),
    ],
)
def test_programs_with_every_goal(cli: Cli, goal: tuple[str, str], text: str, said: str) -> None:
    words = ("--program", text, "--factors", "node,gpu", *goal)
    for layout in LAYOUTS:
        ran = cli("verify", *words, "--layout", layout, "--json")
        assert ran.status == 0 and ran.data == dict.fromkeys(PROGRAM) | {"verdict": "proved", "layout": "identity"}
    ran = cli("verify", *words)
    assert ran.out.startswith(f"proved: {said} on every system with 2 levels (node, gpu), whatever their sizes")
    assert "z3 (2·2: unsat," in ran.out and "they agree" in ran.out
    less = text.rpartition(";")[0] or "AllReduce(node, InsideGroup)"
    ran = cli("verify", "--program", less, "--factors", "node,gpu", *goal, "--json")
    assert ran.status == 1
    fits(ran.data, PROGRAM)
    assert ran.data["sizes"] == [[2, 2]] and ran.data["device"] is not None and ran.data["chunk"] is not None
    ran = cli("verify", "--program", less, "--factors", "node,gpu", *goal, "--explain")
    assert f"\nGoal: {said}\n" in ran.out and " in group [" in ran.out.replace(" on group [", " in group [")
    assert "z3 (2·2: sat," in ran.out


def test_parts_that_end_elsewhere(cli: Cli, tmp_path: Path) -> None:
    words = ("--factors", "node,gpu", "--collective", "ReduceScatter")
    ran = cli("verify", "--program", PARTS, *words)
    assert ran.status == 0 and "z3 (2·2: unsat," in ran.out
    assert "Layout: parts go to devices in another assignment, which depends on the sizes: on 2·2 0, 2, 1, 3" in ran.out
    ran = cli("verify", "--program", PARTS, *words, "--layout", "identity", "--explain")
    assert ran.status == 1 and ran.out.startswith("refuted: on 2·2: device 1, chunk 1: ")
    assert "Step 1, ReduceScatter on group [0, 1]:" in ran.out and "z3 (2·2: sat," in ran.out
    ran = cli("verify", "--program", SPLIT.rpartition(";")[0], *words)
    assert ran.status == 0 and "Layout: devices hold more than their part of the chunks" in ran.out
    assert cli("verify", "--program", PARTS, *words, "--dump", str(tmp_path / "q")).status == 0
    assert "program-2x2.smt2" in {path.name for path in (tmp_path / "q").iterdir()}
    apart = ("--program", PARTS + "; AllGather(node, InsideGroup)", "--factors", "node,gpu", "--split", "node")
    ran = cli("verify", *apart)
    assert ran.status == 0 and "Solvers: none asked (some device's chunks don't lie side by side" in ran.out
    ran = cli("verify", *apart, "--dump", str(tmp_path / "r"))
    assert ran.status == 2 and ran.err.startswith("smtsynth: --dump: no question is asked: some device's chunks")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--collective", "Gossip"), "--collective: 'Gossip' is unknown; expected AllReduce, ReduceScatter,"),
        (("--collective", "reduce"), "--collective: 'reduce' is unknown"),
        (("--split", "rack"), "--split: 'rack' names no factor; expected node, gpu"),
        (("--split", ""), "--split: '' names no factor"),
        (("--split", "gpu,gpu"), "--split: a name is there twice"),
        (("--split", "gpu", "--collective", "Reduce"), "--split: doesn't go with Reduce; expected --collective Reduce"),
        (("--split", "gpu", "--collective", "AllReduce"), "--split: doesn't go with AllReduce"),
    ],
)
def test_goals_that_make_no_sense(cli: Cli, words: tuple[str, ...], message: str) -> None:
    ran = cli("verify", "--program", PARTS, "--factors", "node,gpu", *words)
    assert ran.status == 2 and not ran.out and ran.err.count("\n") == 1
    assert ran.err.startswith(f"smtsynth: {message}")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ReduceScatter", PARTS),
        ("ReduceScatter", "AllReduce(root, InsideGroup)"),
        ("AllGather", "AllGather(node, InsideGroup); AllGather(node, Parallel(root))"),
        ("Reduce", "Reduce(node, InsideGroup); Reduce(node, Master(root))"),
        ("Broadcast", "Broadcast(node, Master(root)); Broadcast(node, InsideGroup)"),
    ],
)
def test_the_problems_own_goal(cli: Cli, kind: str, text: str) -> None:
    """On the placement over both levels; the options may say the same, and nothing else."""
    file = cli.put(PROBLEM.replace("GiB}", f"GiB, collective: {kind}}}"), "p.yaml")
    words = ("--program", text, "--problem", file, "--placement", BOTH)
    ran = cli("verify", *words, "--collective", kind)
    assert ran.status == 0 and f"proved: {kind} over 2 groups of 4 devices: " in ran.out
    assert "z3 (schedule: unsat" in ran.out
    assert ran.out.count("in another assignment") == (text == PARTS)
    other = "Reduce" if kind != "Reduce" else "AllReduce"
    ran = cli("verify", *words, "--collective", other)
    assert ran.status == 2 and ran.err.startswith(
        f"smtsynth: --collective: is '{other}'; expected the problem's, {kind}"
    )
    ran = cli("verify", *words, "--split", "gpu")
    assert ran.status == 2 and ran.err.startswith("smtsynth: --split: comes with a problem; expected its own `reduce: ")
    ran = cli("verify", "--program", text.rpartition(";")[0] or "AllReduce(node, InsideGroup)", *words[2:], "--json")
    assert ran.status == 1 and ran.data["device"] is not None and ran.data["chunk"] is not None


def test_the_answer_of_solve_for_a_mix(cli: Cli) -> None:
    """Where a level has factors of both axes, they are factors of their own."""
    mix = "over: [data, shard], bytes: 8 GiB, collective: {data: AllReduce, shard: ReduceScatter}}"
    file = cli.put(PROBLEM.replace("over: [shard], bytes: 8 GiB}", mix), "mix.yaml")
    for placement in (BOTH, INSIDE):
        answer = cli("solve", file, "--placement", placement, "--json")
        assert answer.status == 0
        solved = cli.put(answer.out, "answer.json")
        ran = cli("verify", solved, "--problem", file, "--json")
        assert (ran.status, ran.data["verdict"]) == (0, "proved")
    ran = cli("verify", solved, "--problem", file, "--collective", "ReduceScatter")
    assert ran.status == 2 and "expected the problem's, AllReduce that ends split over shard" in ran.err


def test_unknown_programs(cli: Cli) -> None:
    text = (
        "ReduceScatter(b, InsideGroup); ReduceScatter(b, Parallel(a)); AllGather(b, InsideGroup); "
        "AllGather(b, Master(a)); ReduceScatter(a, Parallel(root)); Broadcast(a, InsideGroup); "
        "AllGather(a, Parallel(root))"
    )
    ran = cli("verify", "--program", text, "--factors", "3", "--json")
    assert ran.status == 1 and ran.data["sizes"] == [[2, 2, 3], [3, 2, 2]] and ran.data["step"] == 6
    ran = cli("verify", "--program", text, "--factors", "3", "--explain")
    assert "On 2·2·3 the rules of the model refuse it" in ran.out and "It holds on 2·2·2 and 2·3·2." in ran.out
    # Overwriting what the root lacks is refused by the rules, and no harm.
    spare = "AllReduce(a, InsideGroup); Broadcast(a, Parallel(root)); AllReduce(a, Parallel(root))"
    assert cli("verify", "--program", spare, "--factors", "2").status == 1
    undone = "AllReduce(a, Master(root)); AllReduce(root, InsideGroup)"
    assert cli("verify", "--program", undone, "--factors", "2").status == 1


@pytest.mark.parametrize(
    ("factors", "text", "message"),
    [
        ("3", SPLIT, "node can stand for several of 3 factors: node,d2,d3 or d1,node,d3, …; expected the names of all"),
        ("1", SPLIT, "node fit in no order over 1 factors"),
        ("1", "AllReduce(x, Parallel(y))", "the program names 2 factors (x, y); expected not 1"),
        ("2", "AllReduce(x, Parallel(x))", "x fit in no order over 2 factors"),
        ("0", SPLIT, "0 factors; expected 1 to 12"),
        ("99999999999", SPLIT, "13 factors; expected 1 to 12"),
        ("node,node", SPLIT, "a name is there twice"),
        ("node,root", SPLIT, "'root' names no factor"),
        ("", SPLIT, "'' names no factor"),
        ("²", SPLIT, ""),
    ],
)
def test_factors_that_make_no_sense(cli: Cli, factors: str, text: str, message: str) -> None:
    ran = cli("verify", "--program", text, "--factors", factors)
    assert ran.status == 2 and not ran.out and ran.err.count("\n") == 1
    assert message in ran.err


def test_names_find_their_factors(cli: Cli) -> None:
    for factors, text in (
        ("3", "AllReduce(2, Parallel(1)); AllReduce(1, Parallel(root)); AllReduce(2, InsideGroup)"),
        ("3", "AllReduce(d2, Parallel(d1)); AllReduce(d1, Parallel(root)); AllReduce(d2, InsideGroup)"),
        ("3", "AllReduce(b, Parallel(a)); AllReduce(a, Parallel(root)); AllReduce(b, InsideGroup)"),
        ("3", "AllReduce(node, Parallel(pod)); AllReduce(pod, Parallel(root)); AllReduce(node, InsideGroup)"),
        ("pod,node,gpu.shard", "AllReduce(node, Parallel(root)); AllReduce(gpu.shard, Parallel(node))"),
    ):
        ran = cli("verify", "--program", text, "--factors", factors, "--json")
        assert (ran.status, ran.err) == (0, ""), text


# --- MSCCL XML


@pytest.mark.parametrize("name", SEVEN)
def test_production_xml(cli: Cli, name: str) -> None:
    ran = cli("verify", str(data_file(name)), "--json")
    assert ran.status == 0
    fits(ran.data, XML)
    assert ran.data["verdict"] == "proved" and ran.data["layout"] == "identity"


def test_xml_with_a_fault(cli: Cli) -> None:
    algo = tree_allreduce(3)
    place = next(at for at, step in algo.steps() if step.type.startswith("rr"))
    wrong = with_step(algo, place, type={"rrc": "r", "rrcs": "rcs", "rrs": "rcs"}[algo.step(place).type])
    file = cli.put(write_msccl(wrong), "wrong.txt")  # told by its first bytes
    ran = cli("verify", file, "--json")
    assert ran.status == 1
    fits(ran.data, XML)
    verdict = verify_msccl(wrong)
    assert ran.data["device"] == verdict.gpu and ran.data["missing"] == list(verdict.missing) != []
    assert ran.data["kind"] == "wrong sum" and ran.data["reason"].startswith(f"at the end o[{verdict.chunk}] of gpu")
    assert [tuple(step[key] for key in ("gpu", "tb", "step")) for step in ran.data["witness"]] == list(verdict.witness)
    report = cli("verify", file).out
    assert report.startswith("refuted: at the end") and "  witness  line " in report


def test_xml_with_bounded_fifos(cli: Cli) -> None:
    file = cli.put(write_msccl(ring_allreduce(3)), "ring.xml")
    assert cli("verify", file).status == 0
    ran = cli("verify", file, "--fifo-slots", "1", "--json")
    assert ran.status == 1 and ran.data["kind"] == "deadlock"
    for slots in ("0", "-1"):
        ran = cli("verify", file, "--fifo-slots", slots)
        assert ran.status == 2 and ran.err.startswith("smtsynth: --fifo-slots: fifo slots is ")


def test_small_xml_is_put_to_solvers(cli: Cli, tmp_path: Path) -> None:
    file = cli.put(write_msccl(ring_allreduce(2)), "ring.xml")
    ran = cli("verify", file, "--dump", str(tmp_path / "q"))
    assert ran.status == 0 and "z3 (order: sat," in ran.out and "z3 (race-in-place: unsat," in ran.out
    assert {path.name for path in (tmp_path / "q").iterdir()} == {
        "order.smt2",
        "race-in-place.smt2",
        "goal-in-place.smt2",
    }
    assert "Solvers: none asked" in cli("verify", file, "--solver-check", "off").out


def test_solvers_agree_on_every_kind_of_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    algo = tree_allreduce(2)
    place = StepId(0, 0, 0)
    seen = set()
    for changed in (
        algo,
        with_step(algo, place, type="nop"),
        with_step(algo, place, srcoff=9),
        *(with_step(algo, at, type="r") for at, step in algo.steps() if step.type == "rrc"),
        *(with_step(algo, at, depid=-1, deps=-1) for at, step in algo.steps() if step.depid >= 0),
    ):
        verdict = verify_msccl(changed)
        asked = algorithms.agree(changed, verdict, 8, ["z3"])
        assert all(one.answer == one.expected for one in asked)
        seen.add((str(verdict.kind), bool(asked)))
    assert ("None", True) in seen and ("wrong sum", True) in seen and ("bounds", False) in seen


# --- Bad input


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to verify; expected a FILE, or --program with its text"),
        (("--program",), "nothing to verify"),
        (("{schedule}", "--program", SPLIT), "--program: comes with another file"),
        (("{schedule}", "--program"), "is a schedule; expected a program"),
        (("{schedule}", "--factors", "2"), "is a schedule; expected a program"),
        (("{schedule}", "--layout", "none"), "--layout: 'none' is unknown; expected any or identity"),
        (("{schedule}", "--solver-check", "maybe"), "--solver-check: 'maybe' is unknown; expected on or off"),
        (("{schedule}", "--placement", "[[1]]"), "--placement: needs a problem; expected --problem PROBLEM beside it"),
        (("{schedule}", "--hierarchy", "rows"), "--hierarchy: needs a problem"),
        (("{schedule}", "--problem", "none.yaml"), "none.yaml: there is no such file"),
        (("{schedule}", "--problem", "{problem}", "--placement", "[[1"), "--placement: '[[1' is no matrix"),
        (
            ("{schedule}", "--problem", "{problem}", "--placement", "[[2,2],[1,4]]"),
            "--placement: the row of axis 'data'",
        ),
        (("{schedule}", "--problem", "{problem}"), "--placement: there are 2 placements"),
        (("{small}", "--problem", "{problem}"), "--problem: the schedule has 2 devices, the problem 8"),
        ((SPLIT,), "over which factors?; expected --factors N, or --problem"),
        (("--program", SPLIT), "--program: over which factors?"),
        (("--program", SPLIT, "--factors", "2", "--problem", "{problem}"), "--factors: comes with a problem"),
        (
            ("--program", "AllReduce(node)", "--factors", "2"),
            "program: step 1: 'AllReduce(node)' is not an instruction",
        ),
        (("{problem}",), "is a problem file; expected a program or a schedule"),
        (("none.yaml",), "none.yaml: there is no such file"),
        (("none.xml",), "none.xml: cannot be read"),
        (("{xml}", "--factors", "2"), "--factors: doesn't go with MSCCL XML"),
        (("{xml}", "--collective", "Reduce"), "--collective: doesn't go with MSCCL XML"),
        (("{schedule}", "--collective", "Reduce"), "--collective: doesn't go with a schedule; expected `goal:` in its"),
        (("{schedule}", "--split", "gpu"), "--split: doesn't go with a schedule"),
        (("{schedule}", "--fifo-slots", "many"), "Invalid value for '--fifo-slots'"),
    ],
)
def test_bad_input_is_one_line(cli: Cli, words: tuple[str, ...], message: str) -> None:
    files = {
        "{schedule}": cli.put(SCHEDULE, "schedule.yaml"),
        "{problem}": cli.put(PROBLEM, "problem.yaml"),
        "{small}": cli.put("devices: 2\nsteps: []\n", "small.yaml"),
        "{xml}": cli.put(write_msccl(ring_allreduce(2)), "ring.xml"),
    }
    ran = cli("verify", *(files.get(word, word) for word in words))
    assert ran.status == 2 and not ran.out
    assert ran.err.startswith("smtsynth: ") and ran.err.count("\n") == 1
    assert message in ran.err


def test_the_help_is_quick_and_has_examples(cli: Cli) -> None:
    ran = cli("verify", "--help")
    assert ran.status == 0 and "smtsynth verify schedule.yaml --explain" in ran.out
