"""The command line as a process: streams, signals, start-up, and terminals of several widths."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import BOTH, LONG, PROBLEM, SOLVE, SOLVE_ALL, SPLIT, WHOLE, environment, fits, spawn

HEAVY = ("numpy", "z3", "yaml", "rich", "networkx", "pysat", "cvc5")
PROC = Path("/proc/self/stat")
needs_proc = pytest.mark.skipif(not PROC.exists(), reason="processes are looked up in /proc")


def put(folder: Path, text: str, name: str = "p.yaml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_streams_and_statuses(tmp_path: Path) -> None:
    problem = put(tmp_path, PROBLEM)
    solved = spawn("solve", problem, "--placement", BOTH, "--json")
    assert (solved.status, solved.err) == (0, "")
    fits(solved.data, SOLVE)
    infeasible = spawn("solve", problem, "--placement", BOTH, "--hierarchy", "system")
    assert (infeasible.status, infeasible.err) == (1, "")
    late = spawn("solve", problem, "--time-limit", "0.01", "--json")
    assert late.status == 3 and late.data["status"] in ("feasible", "unknown")
    wrong = spawn("solve", "nowhere.yaml", "--json")
    assert (wrong.status, wrong.out) == (2, "")
    assert wrong.err == "smtsynth: nowhere.yaml: there is no such file; expected a file\n"
    piped = spawn("simulate", problem, "-", "--json", stdin=solved.out)
    assert (piped.status, piped.data["seconds"]) == (0, solved.data["cost_seconds"])


def test_help_and_import_load_nothing_heavy() -> None:
    code = f"""
import sys
sys.argv = ["smtsynth", "--help"]
from smtsynth.interfaces.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
import smtsynth
print("loaded:", [name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60)
    assert done.stdout.startswith("Usage: smtsynth")
    assert done.stdout.endswith("loaded: []\n"), done.stdout[-200:] + done.stderr


def solver_in(session: int) -> list[str]:
    """The names of the processes in a session."""
    names = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it has just ended
                name, _, rest = (folder / "stat").read_text().rpartition(")")
                if int(rest.split()[3]) == session and rest.split()[0] != "Z":
                    names.append(name.split("(")[1])
    return names


@needs_proc
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGINT, ["--placement", "[[2,4,4,2,8]]", "--bounds", "off"]),
        (signal.SIGTERM, ["--solver", "z3", "--bounds", "off"]),
    ],
)
def test_an_interrupt_ends_a_long_solve_with_the_best_so_far(
    tmp_path: Path, number: signal.Signals, words: list[str]
) -> None:
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "smtsynth",
            "solve",
            put(tmp_path, LONG),
            "--steps",
            "9",
            "--bounds",
            "off",
            "--json",
            *words,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    try:
        patience = time.monotonic() + 60
        while "z3" not in solver_in(child.pid):
            assert child.poll() is None and time.monotonic() < patience
            time.sleep(0.05)
        child.send_signal(number)
        out, err = child.communicate(timeout=20)  # a hang, not a slow machine, runs into this
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == 3
    found = json.loads(out)
    fits(found, SOLVE if "--placement" in words else SOLVE_ALL)
    assert (found["status"], found["reason"]) == ("feasible", "interrupted")
    assert found["lower_bound_seconds"] <= found["cost_seconds"] <= found["allreduce_seconds"]
    assert found["loop"][-1]["answer"] != "unsat" if found["loop"] else True
    assert "Traceback" not in err
    assert solver_in(child.pid) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_is_no_verdict(tmp_path: Path, more: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "smtsynth", "placements", put(tmp_path, PROBLEM), *more],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("smtsynth: the answer cannot be written") and done.stderr.count("\n") == 1


def test_closed_streams_and_closed_pipes(tmp_path: Path) -> None:
    problem = put(tmp_path, PROBLEM)
    run = f"{sys.executable} -m smtsynth"
    for line, status in (
        (f"{run} placements {problem} >&-", 0),
        (f"{run} solve nowhere.yaml 2>&-", 2),
        (f"{run} solve - <&-", 2),
        (f"{run} enumerate {problem} --placement '{BOTH}' --all --json | true; exit ${{PIPESTATUS[0]}}", 0),
        (f"{run} export jax {problem} --placement '{BOTH}' | true; exit ${{PIPESTATUS[0]}}", 0),
        (f"{run} solve {problem} --json | true; exit ${{PIPESTATUS[0]}}", 0),
    ):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment(), timeout=60)
        assert done.returncode == status, line
        assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr


def test_a_terminal_without_the_characters(tmp_path: Path) -> None:
    ran = spawn("solve", put(tmp_path, PROBLEM), PYTHONIOENCODING="ascii")
    assert ran.status == 0 and ran.out.isascii()
    assert SPLIT in ran.out


def in_a_terminal(columns: int, *words: str) -> str:
    """What a command shows on a terminal of so many columns, without the control sequences."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    variables = environment(TERM="xterm")
    variables.pop("COLUMNS", None)
    child = subprocess.Popen(
        [sys.executable, "-m", "smtsynth", *words], stdin=slave, stdout=slave, stderr=slave, env=variables
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(master, 65536):
            shown += piece
    os.close(master)
    assert child.wait(timeout=60) in (0, 3)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(
    ("columns", "commands"), [(80, ("solve", "compare", "simulate", "presets")), (120, ("solve",))]
)
def test_tables_fit_the_terminal(tmp_path: Path, columns: int, commands: tuple[str, ...]) -> None:
    problem, answer = put(tmp_path, WHOLE), put(tmp_path, f"program: {SPLIT}\n", "program.yaml")
    given = {"solve": [problem], "compare": [problem], "simulate": [problem, answer], "presets": []}
    for words in ([name, *given[name]] for name in commands):
        shown = in_a_terminal(columns, *words)
        lines = shown.splitlines()
        assert max(map(len, lines)) <= columns, words
        assert len(lines) > 3 and "\r" not in shown, words
        if words[0] in ("solve", "simulate"):
            assert "ReduceScatter(node, InsideGroup)" in shown  # no step is broken
