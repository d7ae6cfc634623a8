"""Random schedules: interpreter and solvers agree on thousands; damaged files are refused in a line."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from cli_support import PROBLEM, SPLIT, Cli
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_support import ring_allreduce, tree_allreduce
from verify_support import random_schedule

from smtsynth import InputError, LimitReached, VerificationError
from smtsynth.encode.smtlib_questions import HEAD
from smtsynth.interfaces.answers import Settings
from smtsynth.interfaces.programs import program_or_schedule_of, schedule_text
from smtsynth.interfaces.verify_files import verify_yaml
from smtsynth.interfaces.verify_xml import verify_xml
from smtsynth.interfaces.yamltext import parse_data
from smtsynth.meaning.buffers import run
from smtsynth.model.schedule import Schedule, check_schedule
from smtsynth.msccl.writer import write_msccl
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.smt import run_smtlib
from smtsynth.verify.schedules import installed_solvers, obligation

Layout = Literal["any", "identity"]


def agree(schedules: Sequence[Schedule], layout: Layout, solver: str) -> Counter[str]:
    """Assert that a solver, asked about all schedules in one script, says what the interpreter does; the verdicts.

    The few that are too large for solvers are left out.
    """
    questions = [(schedule, obligation(schedule, layout)) for schedule in schedules]
    asked = [(schedule, question) for schedule, question in questions if question is not None]
    assert len(asked) > 0.9 * len(schedules)
    text, verdicts = HEAD, []
    for schedule, question in asked:
        assert question.startswith(HEAD)
        text += f"(push 1)\n{question.removeprefix(HEAD)}(pop 1)\n"
        verdicts.append(run(schedule, layout).verdict)
    said = run_smtlib(text, solver, 300)
    assert said.reason is None
    expected = [{"proved": Answer.UNSAT, "refuted": Answer.SAT}[verdict] for verdict in verdicts]
    wrong = [schedule for schedule, one, two in zip(asked, said.answers, expected, strict=True) if one is not two]
    assert not wrong, wrong[0]
    return Counter(verdicts)


def some(seed: int, count: int, most: int) -> list[Schedule]:
    rng = random.Random(seed)
    return [random_schedule(rng, most) for _ in range(count)]


THOUSANDS = [("any", 1, 2400), ("identity", 2, 800)]


@pytest.mark.parametrize(
    ("layout", "seed", "count"),
    [("any", 11, 800), ("identity", 12, 400), *(pytest.param(*one, marks=pytest.mark.full) for one in THOUSANDS)],
)
def test_interpreter_and_z3_agree_on_thousands(layout: Layout, seed: int, count: int) -> None:
    seen = agree(some(seed, count, 4), layout, "z3")
    assert min(seen["proved"], seen["refuted"]) > count // 4


def test_interpreter_and_cvc5_agree(seed: int = 3) -> None:
    if "cvc5" not in installed_solvers():
        pytest.skip("cvc5 isn't installed")
    assert len(agree(some(seed, 100, 4), "any", "cvc5")) == 2


@pytest.mark.full
@pytest.mark.parametrize("layout", ["any", "identity"])
@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_they_agree_on_larger_ones(layout: Layout, solver: str) -> None:
    if solver not in installed_solvers():
        pytest.skip("cvc5 isn't installed")
    for seed in range(10, 14):
        assert len(agree(some(seed, 500, 7), layout, solver)) == 2


# --- Hypothesis makes schedules


@st.composite
def wild(draw: st.DrawFn) -> Schedule:
    """Any well-formed schedule, sensible or not."""
    devices = draw(st.integers(1, 6))
    schedule = Schedule(devices)
    for _ in range(draw(st.integers(0, 4))):
        order = draw(st.permutations(range(devices)))
        cuts = sorted(draw(st.sets(st.integers(1, devices - 1), max_size=3))) if devices > 1 else []
        groups = [order[a:b] for a, b in zip([0, *cuts], [*cuts, devices], strict=True)]
        chosen = draw(st.lists(st.sampled_from(groups), unique_by=tuple, min_size=1))
        name = draw(st.sampled_from(("all_reduce", "reduce_scatter", "all_gather", "reduce", "broadcast")))
        schedule = getattr(schedule, name)(chosen)
    if draw(st.booleans()):
        kind = draw(st.sampled_from(("AllReduce", "ReduceScatter", "AllGather", "Reduce", "Broadcast")))
        schedule = schedule.with_goal(kind, [draw(st.permutations(range(devices)))])
    return schedule


@settings(max_examples=250, deadline=None, derandomize=True)
@given(wild(), st.sampled_from(["any", "identity"]))
def test_any_schedule_gets_a_verdict(schedule: Schedule, layout: Layout) -> None:
    verdict = run(check_schedule(schedule), layout)
    if verdict.verdict == "proved":
        assert schedule.verify(layout) == verdict
        assert verdict.layout == "identity" or (layout == "any" and sorted(verdict.layout or ()) is not None)
    else:
        with pytest.raises(VerificationError) as caught:
            schedule.verify(layout)
        assert str(caught.value) == verdict.reason and "\n" not in verdict.reason
    text = schedule_text(schedule)
    assert program_or_schedule_of(parse_data(text, "here"), "here") == schedule


# --- Damaged files


def gently(rng: random.Random, text: str) -> str:
    """Lines dropped or doubled, numbers of a line swapped, one collective for another: it mostly stays readable."""
    lines = text.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    how = rng.randrange(4)
    if how == 0 and len(lines) > 3:
        del lines[rng.randrange(2, len(lines))]
    elif how == 1:
        lines.insert(place, lines[place])
    elif how == 2:
        digits = [i for i, char in enumerate(lines[place]) if char.isdigit()]
        if len(digits) > 1:
            i, j = sorted(rng.sample(digits, 2))
            line = lines[place]
            lines[place] = line[:i] + line[j] + line[i + 1 : j] + line[i] + line[j + 1 :]
    else:
        old, new = rng.sample(("AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Reduce,", "rrc", "cpy", "s"), 2)
        lines[place] = lines[place].replace(old, new)
    return "".join(lines)


def damaged(rng: random.Random, text: str) -> bytes:
    """The text with other digits, or some of it cut out, doubled, swapped for something else, or made unreadable."""
    if rng.random() < 0.6:
        return gently(rng, text).encode()
    data = bytearray(text.encode())
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        length = rng.choice((1, 1, 2, 5, 20))
        how = rng.randrange(5)
        if how == 0:
            del data[place : place + length]
        elif how == 1:
            data[place:place] = data[place : place + length]
        elif how == 2:
            data[place : place + 1] = rng.choice(
                (
                    b"-1",
                    b"9",
                    b"[",
                    b"]",
                    b"{",
                    b"}",
                    b":",
                    b",",
                    b"\n",
                    b"\t",
                    b"null",
                    b"1e9",
                    b"'",
                    b"&a",
                    b"\xff",
                    b"\x00",
                )
            )
        elif how == 3:
            data[place : place + length] = bytes(rng.randrange(256) for _ in range(length))
        else:
            words = (
                b"AllReduce",
                b"Broadcast",
                b"roots: [0]",
                b"goal",
                b"split: [[0]]",
                b"99999999999",
                b"true",
                b"0.5",
            )
            data[place:place] = rng.choice(words)
    return bytes(data)


def texts() -> list[str]:
    schedules = [schedule_text(one) for one in some(5, 12, 6)]
    listed = "program:\n  - {collective: AllReduce, slice: a, form: Parallel, ancestor: root}\n"
    return [
        *schedules,
        SPLIT,
        listed,
        "devices: 8\nsteps: []\ngoal: {collective: {data: AllReduce, shard: ReduceScatter}}\n",
    ]


def settings_for(rng: random.Random, problem: str) -> Settings:
    given = rng.random() < 0.2
    return Settings(
        layout=rng.choice(("any", "identity")),
        solvers=(),
        factors=None if given else rng.choice((None, None, None, None, "2", "node,gpu")),
        problem=problem if given else None,
        placement="[[2,1],[1,4]]" if given else None,
        hierarchy=None,
        fifo_slots=8,
        progress=lambda line: None,
    )


def test_damaged_files_are_refused_or_verified(tmp_path: Path) -> None:
    rng, seen = random.Random(7), Counter[str]()
    problem = tmp_path / "problem.yaml"
    problem.write_text(PROBLEM)
    file, known = tmp_path / "damaged.yaml", texts()
    for _ in range(1500):
        file.write_bytes(damaged(rng, rng.choice(known)))
        try:
            answer = verify_yaml(str(file), rng.random() < 0.1, settings_for(rng, str(problem)))
        except (InputError, LimitReached) as error:
            assert "\n" not in str(error) and len(str(error)) < 1500
            seen["refused"] += 1
        else:
            assert answer.verdict == answer.data["verdict"]
            seen[answer.verdict] += 1
    assert seen["refused"] > 700 and seen["refuted"] > 50 and seen["proved"] > 20, seen


def test_damaged_xml_is_refused_or_verified(tmp_path: Path) -> None:
    rng, seen = random.Random(8), Counter[str]()
    file = tmp_path / "damaged.xml"
    known = [write_msccl(ring_allreduce(2)), write_msccl(tree_allreduce(3))]
    words = Settings("any", (), None, None, None, None, 8, lambda line: None)
    for _ in range(500):
        file.write_bytes(damaged(rng, rng.choice(known)))
        try:
            seen[verify_xml(str(file), words).verdict] += 1
        except InputError as error:
            assert "\n" not in str(error)
            seen["refused"] += 1
    assert seen["refused"] > 200 and seen["refuted"] + seen["proved"] > 20, seen


def test_damaged_files_end_the_command_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cli, rng, known, seen = Cli(tmp_path, monkeypatch, capfd), random.Random(9), texts(), Counter[int]()
    for _ in range(150):
        file = cli.put(damaged(rng, rng.choice(known)), "damaged.yaml")
        ran = cli("verify", file, "--solver-check", "off", "--explain", *(["--json"] if rng.random() < 0.5 else []))
        seen[ran.status] += 1
        assert "Traceback" not in ran.err + ran.out
        if ran.status == 2:
            assert not ran.out and ran.err.startswith("smtsynth: ") and ran.err.count("\n") == 1
        else:
            assert ran.status in (0, 1, 3) and not ran.err and ran.out
    assert seen[2] > 50 and seen[1] > 5, seen
