"""Schedules: built in code, verified by interpreter and solvers, on placements, of unusual shapes, and explained."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import ROOT, Cli, environment
from conftest import problem
from verify_support import AG, AR, REDUCE, RS, random_schedule

from smtsynth import Entry, Goal, Level, Schedule, System, VerificationError
from smtsynth.errors import InputError, InternalError, LimitReached
from smtsynth.interfaces.programs import program_or_schedule_of, schedule_data, schedule_text
from smtsynth.meaning.buffers import run, trace
from smtsynth.model.lowering import lower
from smtsynth.model.placement import Placement, check_placement
from smtsynth.model.problem import Problem, Reduction
from smtsynth.model.program import parse_program
from smtsynth.model.schedule import check_schedule
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import SmtAnswers
from smtsynth.verify import schedules as checks
from smtsynth.verify.explain import buffer_text, explain
from smtsynth.verify.placed import describe_device, goal_on, goal_per_axis, lowered, verify_lowered
from smtsynth.verify.schedules import installed_solvers, obligation, verify_schedule

IN, ACROSS, ALL = [[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 1, 2, 3]]
FOUR = Schedule(devices=4)


# --- Built in code


def test_steps_are_added_to_a_new_schedule() -> None:
    start = Schedule(devices=4)
    built = start.reduce_scatter(IN).all_reduce(ACROSS).all_gather(IN)
    assert start == Schedule(4) and start.steps == ()
    assert built == Schedule(
        4, ((Entry(RS, ((0, 1), (2, 3))),), (Entry(AR, ((0, 2), (1, 3))),), (Entry(AG, ((0, 1), (2, 3))),))
    )
    assert hash(built) is not None
    assert built.verify().layout == built.verify("identity").layout == "identity"


def test_roots_goals_and_entries_at_once() -> None:
    built = FOUR.reduce(IN, roots=[1, 3]).all_reduce([[1, 3]]).broadcast(IN, roots=(1, 3))
    assert built.steps[0] == (Entry(REDUCE, ((0, 1), (2, 3)), (1, 3)),)
    assert built.verify().verdict == "proved"
    both = FOUR.at_once(Entry(AR, [[0, 1]]), Entry(REDUCE, [[2, 3]], [3])).at_once()  # type: ignore[arg-type]
    assert both.steps == ((Entry(AR, ((0, 1),)), Entry(REDUCE, ((2, 3),), (3,))), ())
    assert both.with_goal("Reduce", [[0, 1], [2, 3]], roots=[1, 3]).verify().layout == "identity"
    assert FOUR.reduce_scatter(ALL).with_goal("ReduceScatter").verify().verdict == "proved"
    assert FOUR.all_gather(ALL).with_goal("AllGather").verify().verdict == "proved"
    assert FOUR.broadcast(ALL, roots=[2]).with_goal("Broadcast", ALL, roots=[2]).verify().verdict == "proved"


def test_what_is_wrong_is_raised_in_one_line() -> None:
    with pytest.raises(VerificationError) as caught:
        FOUR.all_reduce(IN).all_reduce(IN).verify()
    assert str(caught.value) == run(FOUR.all_reduce(IN).all_reduce(IN)).reason
    assert "\n" not in str(caught.value) and "step 2 (AllReduce)" in str(caught.value)
    assert getattr(caught.value.verdict, "duplicated", None) == (0, 1)
    permuted = FOUR.reduce_scatter(ALL).all_gather(ACROSS).all_gather(IN)
    assert permuted.verify().layout == (0, 2, 1, 3)
    with pytest.raises(VerificationError, match="not in chunk order since step 3"):
        permuted.verify("identity")
    with pytest.raises(InputError, match="layout 'x' is unknown"):
        permuted.verify("x")  # type: ignore[arg-type]


def test_too_large_is_no_verdict() -> None:
    primes = (2, 3, 5, 7, 11, 13, 17, 19, 23)
    groups = [list(range(sum(primes[:i]), sum(primes[: i + 1]))) for i in range(len(primes))]
    with pytest.raises(LimitReached, match="pieces"):
        Schedule(sum(primes)).reduce_scatter(groups).verify()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FOUR.all_reduce([[0, 1], [1, 2]]), "step 1: device 1 is there twice; expected each"),
        (lambda: FOUR.all_reduce(IN).all_gather([[0, 4]]), "step 2: there is no device 4; expected 0 to 3"),
        (lambda: FOUR.all_reduce([[0], []]), "step 1: a group is empty; expected at least one device"),
        (lambda: FOUR.broadcast(IN, roots=[0, 0]), "step 1: root 0 is not in its group [2, 3]; expected a member"),
        (lambda: FOUR.reduce(IN, roots=[0]), "step 1: 1 roots for 2 groups; expected one root per group"),
        (lambda: FOUR.at_once(Entry(AR, ((0, 1),), (0,))), "step 1: AllReduce has roots; expected roots on Reduce or"),
        (lambda: FOUR.at_once(Entry(AR, ((0, 1),)), Entry(AG, ((1, 2),))), "step 1: device 1 is there twice"),
        (lambda: FOUR.at_once(Entry("Sum", ((0, 1),))), "collective: collective 'Sum' is unknown; expected AllReduce,"),  # type: ignore[arg-type]
        (lambda: FOUR.all_reduce(3), "groups: are no groups; expected lists of device numbers"),  # type: ignore[arg-type]
        (lambda: FOUR.all_reduce([[0.5]]), "groups: are no groups"),  # type: ignore[list-item]
        (lambda: FOUR.reduce(IN, roots="ab"), "roots: are no groups"),  # type: ignore[arg-type]
        (lambda: Schedule(0).verify(), "devices: is 0; expected a whole number of at least 1"),
        (lambda: FOUR.with_goal("Gather"), "goal: collective 'Gather' is unknown"),
        (lambda: FOUR.with_goal("AllReduce", [[0, 9]]), "goal: there is no device 9"),
        (lambda: FOUR.with_goal("AllReduce", ALL, roots=[0]), "goal: AllReduce has roots"),
        (lambda: FOUR.with_goal("Reduce", roots=[0]), "goal: roots without groups"),
        (lambda: FOUR.with_goal("AllReduce", ALL, split=IN), "goal: AllReduce ends split; expected ReduceScatter"),
        (lambda: FOUR.with_goal("ReduceScatter", IN, split=ACROSS), "goal: split: [0, 2] is in no one goal group"),
        (lambda: FOUR.with_goal("ReduceScatter", ALL, split=[[0, 1]]), "goal: split: a device of the goal is missing"),
    ],
)
def test_what_cannot_be_built_is_refused(build: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        build()  # type: ignore[operator]
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


# --- Unusual shapes


@pytest.mark.parametrize(
    ("schedule", "verdict", "words"),
    [
        (
            Schedule(7).reduce([[0, 1, 2, 3], [4, 5, 6]]).all_reduce([[0, 4]]).broadcast([[0, 1, 2, 3], [4, 5, 6]]),
            "proved",
            "",
        ),
        (
            Schedule(7)
            .reduce_scatter([[0, 1, 2, 3], [4, 5, 6]])
            .all_gather([[0, 1, 2, 3], [4, 5, 6]])
            .all_reduce([[0, 4], [1, 5], [2, 6]])
            .broadcast([[6, 3]]),
            "proved",
            "",
        ),
        (
            Schedule(7).reduce_scatter([[0, 1, 2, 3], [4, 5, 6]]).all_reduce([[0, 4], [1, 5], [2, 6]]),
            "refuted",
            "step 2: AllReduce on group [0, 4]: devices 0 and 4 hold buffers of unequal lengths (1/4 of the",
        ),
        (
            Schedule(6)
            .reduce_scatter([[0, 1, 2], [3, 4, 5]])
            .all_reduce([[0, 3], [1, 4], [2, 5]])
            .all_gather([[0, 1, 2], [3, 4, 5]]),
            "proved",
            "",
        ),
        (Schedule(5).reduce_scatter([[4, 2, 0, 1, 3]]).all_gather([[4, 2, 0, 1, 3]]), "proved", ""),
        (Schedule(3).reduce_scatter([[2, 1, 0]]).all_gather([[0, 1, 2]]), "proved", "permuted"),
        (Schedule(2).all_reduce([[0], [1]]).all_reduce([[1, 0]]).all_reduce([[0]]), "proved", ""),
        (Schedule(2).at_once().all_reduce([[0, 1]]).at_once(), "proved", ""),
        (Schedule(1), "proved", ""),
        (Schedule(2), "refuted", "what device 1 gave is missing; what is missing never came"),
        (
            Schedule(4)
            .at_once(Entry(AR, ((0, 1),)), Entry(REDUCE, ((3, 2),)))
            .reduce([[0, 3]])
            .broadcast([[0, 1, 2, 3]]),
            "proved",
            "",
        ),
        (Schedule(2).all_gather([[0, 1]]), "refuted", "what device 1 gave is missing"),
    ],
)
def test_unusual_schedules(schedule: Schedule, verdict: str, words: str) -> None:
    found = verify_schedule(check_schedule(schedule), solvers=installed_solvers())
    assert found.verdict.verdict == verdict
    if words == "permuted":
        assert found.verdict.layout == (2, 1, 0)
    else:
        assert words in found.verdict.reason and (verdict == "refuted" or found.verdict.layout == "identity")
    expected = Answer.UNSAT if verdict == "proved" else Answer.SAT
    assert [(one.solver, one.answer) for one in found.asked] == [(name, expected) for name in installed_solvers()]


def test_a_thousand_devices(cli: Cli) -> None:
    """Three steps on 1024 devices, on the command line."""
    inside = [list(range(n, n + 8)) for n in range(0, 1024, 8)]
    across = [list(range(place, 1024, 8)) for place in range(8)]
    built = Schedule(1024).reduce_scatter(inside).all_reduce(across).all_gather(inside)
    ran = cli("verify", cli.put(schedule_text(built)), "--json")
    assert ran.status == 0 and ran.data["layout"] == "identity"
    wrong = Schedule(1024).reduce_scatter(inside).all_reduce(across[:7]).all_gather(inside)
    ran = cli("verify", cli.put(schedule_text(wrong)), "--explain")
    assert ran.status == 1 and "missing  8-1023" in ran.out
    assert "Solvers: none asked" in ran.out and len(ran.out) < 4000


# --- Solvers and interpreter


def test_a_disagreement_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    said = SmtAnswers((Answer.SAT,))
    monkeypatch.setattr(checks, "run_smtlib", lambda text, solver, seconds: said)
    with pytest.raises(InternalError, match=r"^z3 says sat where the interpreter's verdict makes it unsat"):
        verify_schedule(FOUR.all_reduce(ALL), solvers=["z3"])
    ran = cli("verify", cli.put(schedule_text(FOUR.all_reduce(ALL))), "--json")
    assert ran.status == 4 and not ran.out
    assert ran.err.startswith("smtsynth: internal error, please report: z3 says sat")
    assert verify_schedule(FOUR.all_reduce(IN), solvers=["z3"]).asked[0].answer is Answer.SAT


def test_no_answer_of_a_solver_is_said(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    said = SmtAnswers((Answer.UNKNOWN,), reason="z3 reached the time limit")
    monkeypatch.setattr(checks, "run_smtlib", lambda text, solver, seconds: said)
    ran = cli("verify", cli.put(schedule_text(FOUR.all_reduce(ALL))))
    assert ran.status == 0 and "z3 has no answer (schedule): z3 reached the time limit" in ran.out


def test_solvers_are_asked_up_to_sixteen_devices() -> None:
    assert obligation(Schedule(16).all_reduce([list(range(16))])) is not None
    assert obligation(Schedule(17).all_reduce([list(range(17))])) is None
    checked = verify_schedule(Schedule(17).all_reduce([list(range(17))]), solvers=installed_solvers())
    assert checked.verdict.verdict == "proved" and checked.asked == ()
    assert verify_schedule(Schedule(16).all_reduce([list(range(16))])).asked == ()


@pytest.mark.parametrize("layout", ["any", "identity"])
def test_the_order_of_chunks_is_asked_for_too(layout: str) -> None:
    permuted = FOUR.reduce_scatter(ALL).all_gather(ACROSS).all_gather(IN)
    found = verify_schedule(permuted, layout, installed_solvers())  # type: ignore[arg-type]
    assert found.verdict.verdict == {"any": "proved", "identity": "refuted"}[layout]
    assert len(found.asked) == len(installed_solvers())


def test_dumped_questions_are_what_the_solvers_get(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "questions" / "here"
    file = cli.put(schedule_text(FOUR.all_reduce(ALL)))
    ran = cli("verify", file, "--dump", str(folder))
    assert ran.status == 0 and f"Written to {folder}: schedule.smt2" in ran.out.replace("\n  ", " ")
    assert (folder / "schedule.smt2").read_text() == obligation(FOUR.all_reduce(ALL))
    ran = cli("verify", "--program", "AllReduce(root, InsideGroup)", "--factors", "2", "--dump", str(folder), "--json")
    assert ran.status == 0
    written = {path.name for path in folder.iterdir()}
    assert {"program-2x2.smt2", "program-2x3.smt2", "program-4x4.smt2"} <= written
    large = cli.put(schedule_text(Schedule(40).all_reduce([list(range(40))])), "large.yaml")
    ran = cli("verify", large, "--dump", str(folder))
    assert ran.status == 2 and not ran.out
    assert ran.err == "smtsynth: --dump: this is too large for a solver's question; expected a smaller case\n"
    ran = cli("verify", file, "--dump", file)
    assert ran.status == 2 and "cannot be made" in ran.err and ran.err.count("\n") == 1


# --- Examples


@pytest.mark.parametrize(("name", "status"), [("hierarchical", 0), ("hierarchical-wrong", 1), ("hybrid-shard", 0)])
def test_the_schedules_among_the_examples(cli: Cli, name: str, status: int) -> None:
    folder = ROOT / "examples" / "schedules"
    more = ["--problem", str(folder / "hybrid-shard-system.yaml"), "--placement", "[[2,1],[1,4]]"]
    ran = cli("verify", str(folder / f"{name}.yaml"), "--json", *(more if name == "hybrid-shard" else []))
    assert ran.status == status
    if status:
        assert (ran.data["step"], ran.data["device"], ran.data["chunk"]) == (2, 0, 0)


def test_the_example_test_file_passes() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "examples/test_my_allreduce.py"]
    done = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "270 passed" in done.stdout


# --- Placements


SYSTEM = System([Level("node", 2, "25 GB/s"), Level("gpu", 4, "300 GB/s")])
PLACED = problem(SYSTEM, (2, 4), (0, 1), 1024)
STRAIGHT = check_placement([[2, 1], [1, 4]], PLACED.axes, SYSTEM)
MIXED = check_placement([[1, 2], [2, 2]], PLACED.axes, SYSTEM)
KINDS = {"a0": AR, "a1": RS}


@pytest.mark.parametrize("placement", [STRAIGHT, MIXED])
def test_a_goal_per_axis(placement: Placement) -> None:
    """Contributors complete over both axes, and chunks split over the second alone, wherever the placement puts it."""
    goal = goal_per_axis(SYSTEM, placement, KINDS)
    shards = lower(SYSTEM, placement, [1]).replica_groups
    replicas = lower(SYSTEM, placement, [0]).replica_groups
    assert goal == Goal(RS, lower(SYSTEM, placement, [0, 1]).replica_groups, (), shards)
    right = check_schedule(Schedule(8, ((Entry(RS, shards),), (Entry(AR, replicas),)), goal))
    assert verify_schedule(right, "identity", installed_solvers()).verdict.layout == "identity"
    for wrong in (right.steps[:1], right.steps[1:], (*right.steps, (Entry(AG, shards),)), right.steps[::-1]):
        found = verify_schedule(Schedule(8, wrong, goal), solvers=installed_solvers())
        assert (found.verdict.verdict == "proved") == (wrong == right.steps[::-1])
    for device, place in ((shard[place], place) for shard in shards for place in range(4)):
        assert f"a1 {place}" in describe_device(device, SYSTEM, placement)


def test_other_mixes_and_axes_are_refused() -> None:
    for kinds, message in (
        ({"a0": AR, "a1": AG}, "a mix of AllGather and AllReduce; expected a mix of AllReduce and ReduceScatter"),
        ({"a0": AR, "zz": RS}, "there is no axis 'zz'; expected a0, a1"),
    ):
        with pytest.raises(InputError) as caught:
            goal_per_axis(SYSTEM, STRAIGHT, kinds)
        assert str(caught.value) == message
    assert goal_per_axis(SYSTEM, STRAIGHT, {"a1": RS}) == Goal(RS, ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert goal_per_axis(SYSTEM, STRAIGHT, {"a1": AR}) == Goal(AR, ((0, 1, 2, 3), (4, 5, 6, 7)))


def test_a_split_goal_survives_a_file() -> None:
    built = FOUR.reduce_scatter(IN).all_reduce(ACROSS).with_goal("ReduceScatter", ALL, split=IN)
    assert program_or_schedule_of(json.loads(json.dumps(schedule_data(built))), "here") == built
    assert "split: [[0, 1], [2, 3]]" in schedule_text(built)


def test_devices_are_described_by_level_and_axis() -> None:
    assert describe_device(5, SYSTEM, None) == "node 1, gpu 1"
    assert describe_device(5, SYSTEM, STRAIGHT) == "node 1, gpu 1; a0 1, a1 1"
    seen = {describe_device(device, SYSTEM, MIXED).split("; ")[1] for device in range(8)}
    assert seen == {f"a0 {a}, a1 {b}" for a in range(2) for b in range(4)}
    worked = System([Level(name, size, 1) for name, size in (("rack", 1), ("server", 2), ("cpu", 2), ("gpu", 4))])
    placed = check_placement([[1, 1, 2, 2], [1, 2, 1, 2]], problem(worked, (4, 4), (0,), 1).axes, worked)
    places = [describe_device(device, worked, placed).split("; ")[1] for device in range(4)]
    assert places == ["a0 0, a1 0", "a0 0, a1 1", "a0 1, a1 0", "a0 1, a1 1"]


def test_programs_on_a_placement_reach_the_problems_goal() -> None:
    names = lower(SYSTEM, STRAIGHT, [0, 1]).names
    text = "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root))"
    lowering = lower(SYSTEM, STRAIGHT, [0, 1])
    for collective, extra, verdict in (
        ("AllReduce", "; AllGather(node, InsideGroup)", "proved"),
        ("AllReduce", "", "refuted"),
        ({"a0": "AllReduce", "a1": "ReduceScatter"}, "", "proved"),
        ({"a0": "ReduceScatter", "a1": "AllReduce"}, "", "refuted"),
    ):
        given = Problem(SYSTEM, {"a0": 2, "a1": 4}, Reduction(["a0", "a1"], 1, collective))
        found = verify_lowered(given, lowering, parse_program(text + extra, names))
        assert found.verdict == verdict, (collective, extra)


def test_parts_may_go_to_other_devices_by_the_rules() -> None:
    given = Problem(SYSTEM, {"a0": 2, "a1": 4}, Reduction(["a0", "a1"], 1, "ReduceScatter"))
    lowering = lower(SYSTEM, STRAIGHT, [0, 1])
    program = parse_program("ReduceScatter(node, InsideGroup); ReduceScatter(node, Parallel(root))", lowering.names)
    assert run(lowered(given, lowering, program)).verdict == "refuted"
    found = verify_lowered(given, lowering, program)
    assert found.verdict == "proved" and found.layout == (0, 2, 4, 6, 1, 3, 5, 7)
    assert verify_lowered(given, lowering, program, "identity").verdict == "refuted"
    assert verify_lowered(given, lowering, program[:1]).verdict == "refuted"
    assert goal_on(given, STRAIGHT) == Goal(RS, (tuple(range(8)),))


def test_a_placement_too_large_for_buffers_is_proved_for_all_sizes() -> None:
    system = System([Level("node", 512, "25 GB/s"), Level("gpu", 16, "300 GB/s")])
    given = problem(system, (512 * 16,), (0,), 1024)
    placement = check_placement([[512, 16]], given.axes, system)
    lowering = lower(system, placement, [0])
    text = "ReduceScatter(root, InsideGroup); AllGather(root, InsideGroup)"
    found = verify_lowered(given, lowering, parse_program(text, lowering.names))
    assert found.verdict == "proved" and "any sizes" in found.reason
    scattered = parse_program(text.partition(";")[0], lowering.names)
    assert verify_lowered(given, lowering, scattered).verdict in ("unknown", "refuted")


# --- Explanations


def test_the_group_at_fault_is_shown() -> None:
    schedule = FOUR.reduce_scatter(IN).all_gather([[0, 1], [3, 2]]).all_reduce(ACROSS)
    scene = explain(schedule, run(schedule))
    assert scene is not None and (scene.step, scene.collective, scene.group, scene.pieces) == (3, AR, (0, 2), 2)
    assert scene.before == (((0,), "chunks 0, 1 from 0, 1"), ((2,), "chunks 1, 0 from 2, 3"))
    assert scene.after == (((0, 2), "2 undefined pieces"),)


def test_a_step_that_cannot_run_and_what_never_came() -> None:
    uneven = Schedule(5).reduce_scatter([[0, 1, 2], [3, 4]]).all_reduce([[0, 3]])
    scene = explain(uneven, run(uneven))
    assert scene is not None and scene.after is None and scene.group == (0, 3)
    assert scene.before == (((0,), "chunks 0, 1 from 0-2"), ((3,), "chunks 0-2 from 3, 4"))
    never = FOUR.all_reduce(IN)
    scene = explain(never, run(never))
    assert scene is not None and scene.step is None and scene.before is None and scene.group == (0, 1, 2, 3)
    assert scene.after == (((0, 1), "chunk 0 from 0, 1"), ((2, 3), "chunk 0 from 2, 3"))
    assert explain(FOUR.all_reduce(ALL), run(FOUR.all_reduce(ALL))) is None


def test_the_group_is_the_one_that_made_the_fault_not_the_devices_own() -> None:
    """Device 0 ends with what went wrong between 2 and 3, two steps before it came."""
    schedule = FOUR.all_reduce(IN).all_reduce([[2, 3]]).broadcast([[2, 0], [3, 1]])
    scene = explain(schedule, run(schedule))
    assert scene is not None and (scene.step, scene.group) == (2, (2, 3))
    assert scene.after == (((2, 3), "chunk 0 from twice 2, 3"),)


def test_long_buffers_are_cut_short() -> None:
    gathered = Schedule(8).all_gather([range(8)]).with_goal("AllGather")
    *_, end = trace(gathered)
    assert buffer_text(end, 0, 7) == "chunk 7 from 7; … 8 pieces in all"
    *_, end = trace(Schedule(8).all_gather([range(8)]))
    text = "; ".join(f"chunk 0 from {device}" for device in range(6))
    assert buffer_text(end, 0, 0) == buffer_text(end, 0, 5) == f"{text}; … 8 pieces in all"
    *_, end = trace(FOUR.reduce(ALL))
    assert [buffer_text(end, device) for device in (0, 1)] == ["chunk 0 from 0-3", "1 undefined piece"]
    *_, end = trace(Schedule(3).all_reduce([[0, 1]]).all_reduce([[0, 1]]).reduce([[1, 2]]).all_gather([[1, 2]]))
    assert buffer_text(end, 1) == "chunk 0 from 2, twice 0, 1; 1 undefined piece"
    empty = FOUR.with_goal("AllGather", [[0, 1]])
    assert buffer_text(next(trace(empty)), 3) == "nothing"


def test_every_refutation_can_be_explained() -> None:
    rng, seen = random.Random(17), 0
    for _ in range(150):
        schedule = random_schedule(rng)
        verdict = run(schedule)
        scene = explain(schedule, verdict)
        assert (scene is not None) == (verdict.verdict == "refuted" and verdict.device is not None)
        if scene is not None:
            seen += 1
            assert scene.step == verdict.step and scene.collective == verdict.collective
            if scene.step is not None:
                entries = [e for e in schedule.steps[scene.step - 1] if e.collective is scene.collective]
                assert scene.group in [group for entry in entries for group in entry.groups]
    assert seen > 50
