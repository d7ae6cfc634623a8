"""What people read: tables at every width, groups in words, and progress that keeps out of the answer's way."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace

import pytest
from conftest import A100, problem
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from smtsynth import Level, Limits, Problem, Reduction, System, lower, parse_program, solve
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.interfaces import progress, report
from smtsynth.interfaces.layout import INDENT, Table, wrapped
from smtsynth.search.solution import Solution

SPLIT = "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)"


def shown(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    return out.getvalue().splitlines()


def test_a_table_that_fits_is_one_line_a_row() -> None:
    table = Table(("name", "time", "program"), right=("time",), below={"program": ""})
    table.add_row("a", "1 s", SPLIT)
    table.add_row("[[1,2]]", "10.5 ms", "x")
    assert shown(table, 160) == [
        "name        time  program",
        f"a            1 s  {SPLIT}",
        "[[1,2]]  10.5 ms  x",
    ]


def test_a_table_that_does_not_fit_puts_long_columns_below() -> None:
    table = Table(("name", "time", "program"), right=("time",), below={"program": "by "})
    table.add_row("a", "1 s", SPLIT)
    assert shown(table, 80) == [
        "name  time",
        "a      1 s",
        "    by ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root));",
        "    AllGather(node, InsideGroup)",
    ]


words = st.lists(st.text(alphabet="abc(),", min_size=1, max_size=12), min_size=1, max_size=8)


@given(words, st.integers(12, 60), st.sampled_from([" ", "; "]))
@example(["AllReduce(node, Parallel(root))"], 12, "; ")
def test_wrapping_loses_nothing(parts: list[str], width: int, joint: str) -> None:
    text = joint.join(parts)
    lines = wrapped(text, width)
    assert " ".join(lines) == text
    longest = max(map(len, parts)) + len(joint.strip())
    assert all(len(line) <= max(width, longest) for line in lines)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=4), st.integers(30, 120))
def test_no_line_is_wider_than_the_terminal_and_none_ends_in_blanks(
    rows: list[tuple[list[str], list[str]]], width: int
) -> None:
    table = Table(("n", "long"), right=("n",), below={"long": ""})
    for number, (one, two) in enumerate(rows):
        table.add_row(str(number), " ".join(one + two))
    lines = shown(table, width)
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    texts = "\n".join(lines)
    for one, two in rows:
        for word in one + two:
            assert word in texts
    assert INDENT < 30


def test_programs_can_be_pasted_from_a_wide_table(capsys: pytest.CaptureFixture[str]) -> None:
    asked = problem(A100, (4, 16), (0,), 2**31)
    report.solve_report(solve(asked), asked, AlphaBeta())
    out = capsys.readouterr().out
    lowering = lower(asked, [[2, 2], [2, 8]])
    found = [line for line in out.splitlines() if line.startswith("[[2,2]")]
    (program,) = re.findall(r"proved +(.*)", found[0])
    assert len(parse_program(program, lowering.names)) == 3
    assert "The placement alone makes plain AllReduce take" in out
    assert out.rstrip().endswith("no compute.")


def an_answer(payload: int = 2**31) -> tuple[Solution, Problem]:
    asked = problem(A100, (64,), (0,), payload)
    return solve(asked, [[4, 16]]), asked


def test_the_report_says_how_much_faster_and_why_it_is_believed(capsys: pytest.CaptureFixture[str]) -> None:
    solution, asked = an_answer()
    report.solve_report(solution, asked, AlphaBeta())
    out = capsys.readouterr().out
    assert "1.27x faster than plain AllReduce: 417.776 ms instead of 528.994 ms on placement [[4,16]]" in out
    assert "Optimal: z3 refuted any program below 417.776 ms" in out
    assert "instruction set full, at most 5 steps, hierarchy reduction, cost model alpha-beta" in out
    assert "16 groups of 4: [0,16,32,48] [1,17,33,49] …" in out and "4 groups of 16: [0-15] [16-31] …" in out
    assert "node 0 uplink, up, 8 GB/s" in out
    assert "permuted" not in out
    assert "modelled, not measured" in out


def test_the_report_says_what_is_not_proved(capsys: pytest.CaptureFixture[str]) -> None:
    solution, asked = an_answer()
    assert solution.cost is not None and solution.program is not None
    open_ = replace(
        solution,
        status=solution.status.FEASIBLE,
        lower_bound=solution.cost // 2,
        reason="interrupted",
        layout=tuple(reversed(range(64))),
        placements=tuple(replace(solution, cost=solution.cost + n) for n in range(report.MAX_ROWS + 2)),
    )
    report.solve_report(open_, asked, AlphaBeta())
    out = capsys.readouterr().out
    assert "Not proved optimal (interrupted): gap 50.0 %" in out
    assert "Optimal:" not in out
    assert "permuted order" in out
    assert "2 more (--json lists all)" in out
    met = replace(open_, lower_bound=open_.cost, placements=())
    report.solve_report(met, asked, AlphaBeta())
    assert "Not proved optimal (interrupted): bound met, not refuted" in capsys.readouterr().out
    nothing = replace(solution, status=solution.status.UNKNOWN, cost=None, program=None, reason="the time limit")
    report.solve_report(nothing, asked, AlphaBeta())
    out = capsys.readouterr().out
    assert "Unknown on placement [[4,16]]: the time limit" in out
    assert "nfeasible" not in out and "faster" not in out


def test_a_limit_of_one_device_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    rails = System([Level("node", 10, "400 GB/s", "8 us", "25 GB/s"), Level("gpu", 8, "450 GB/s", "2 us")])
    asked = Problem(rails, {"all": 80}, Reduction(["all"], "32 MiB"), Limits(steps=3))
    report.solve_report(solve(asked, [[10, 8]]), asked, AlphaBeta())
    out = capsys.readouterr().out
    assert re.search(r"node uplink, (up|down), 25 GB/s that device \d+ can drive", out)


def test_groups_in_words() -> None:
    assert report.group_text(range(16)) == "0-15"
    assert report.group_text([0, 16, 32, 48]) == "0,16,32,48"
    assert report.group_text(range(0, 256, 16)) == "0,16,…,240"
    assert report.group_text([0, 1]) == "0,1"
    assert report.group_text([3, 1, 4, 15, 9, 2, 6, 5, 35]) == "3,1,4,15,9,2,6,5,… (9 in all)"


def wait_for(capsys: pytest.CaptureFixture[str], word: str) -> str:
    said = ""
    for _ in range(200):
        said += capsys.readouterr().err
        if word in said:
            return said
        time.sleep(0.02)
    raise AssertionError(f"{word!r} was not said: {said!r}")


def test_progress_keeps_quiet_at_first(capsys: pytest.CaptureFixture[str]) -> None:
    quick = progress.Progress()
    quick("one")
    quick("two")
    quick.stop()
    quick("three")
    assert capsys.readouterr() == ("", "")


def test_progress_speaks_up_when_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    slow = progress.Progress()
    slow("placement [[1,2]]")
    said = wait_for(capsys, "placement [[1,2]]\n").splitlines()
    assert re.fullmatch(r"\[ +\d+\.\d s\] placement \[\[1,2\]\]", said[-1])
    monkeypatch.setattr(progress, "EVERY", 1000.0)
    slow("asked")
    slow("asked at once")  # one line a while where there is no terminal
    monkeypatch.setattr(progress, "EVERY", 0.0)
    slow("and later")
    assert "asked" not in wait_for(capsys, "and later")
    slow.stop()
    slow("too late")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("collective", ["AllReduce", "ReduceScatter", "AllGather", "Reduce", "Broadcast"])
def test_the_steps_shown_take_what_the_answer_takes(collective: str, capsys: pytest.CaptureFixture[str]) -> None:
    system = System([Level("node", 2, "10 GB/s", "9 us"), Level("gpu", 4, "100 GB/s", "2 us")])
    asked = Problem(system, {"data": 8}, Reduction(["data"], "64 MiB", collective))
    found = solve(asked)
    assert found.cost is not None
    report.solve_report(found, asked, AlphaBeta())
    said = capsys.readouterr().out
    times = [
        float(words[1]) * {"us": 1, "ms": 1000}[words[2]]
        for words in (line.split() for line in said[said.index("\nstep") :].splitlines()[2:])
        if words and words[0].isdigit()
    ]
    assert len(times) == len(found.program or ()) and sum(times) == pytest.approx(found.cost / 1000, rel=1e-4)
    assert "Replayed symbolically" not in said
