"""Bad input: one line on standard error that says where, what and what was expected, and exit status 2."""

from __future__ import annotations

import pytest
from cli_support import BOTH, PROBLEM, SPLIT, Cli, Ran


def refused(ran: Ran, *words: str) -> None:
    """One line, status 2, nothing on standard output, and the message has all the words."""
    assert ran.status == 2
    assert ran.out == ""
    assert ran.err.startswith("smtsynth: ")
    assert ran.err.endswith("\n") and ran.err.count("\n") == 1
    assert len(ran.err) < 1000
    assert "Traceback" not in ran.err
    for word in words:
        assert word in ran.err, (word, ran.err)


FILES = {
    "unknown key": (PROBLEM + "limit: {steps: 3}\n", ["p.yaml:7", "limit"]),
    "missing key": (PROBLEM.replace("axes: {data: 2, shard: 4}\n", ""), ["p.yaml", "axes", "is missing"]),
    "missing unit": (PROBLEM.replace("8 GB/s", "8"), ["p.yaml:3", "bandwidth", "no unit", "GB/s"]),
    "impossible unit": (PROBLEM.replace("8 GB/s", "8 GB"), ["p.yaml:3", "bandwidth", "'GB'", "GB/s"]),
    "unknown unit": (PROBLEM.replace("20 us", "20 fortnights"), ["p.yaml:3", "latency", "fortnights", "us"]),
    "sizes that don't multiply up": (PROBLEM.replace("shard: 4", "shard: 5"), ["2 * 5 = 10", "2 * 4 = 8"]),
    "axis of size 0": (PROBLEM.replace("data: 2", "data: 0"), ["p.yaml:5", "data", "0", "whole number"]),
    "negative bandwidth": (PROBLEM.replace("8 GB/s", "-8 GB/s"), ["p.yaml:3", "bandwidth", "negative"]),
    "zero bandwidth": (PROBLEM.replace("8 GB/s", "0 GB/s"), ["p.yaml:3", "bandwidth", "zero"]),
    "empty over": (PROBLEM.replace("[shard]", "[]"), ["p.yaml:6", "over", "at least one axis"]),
    "unknown axis": (PROBLEM.replace("[shard]", "[expert]"), ["p.yaml:6", "over", "'expert'", "data, shard"]),
    "unknown collective": (
        PROBLEM.replace("bytes:", "collective: Gossip, bytes:"),
        ["p.yaml:6", "Gossip", "AllReduce"],
    ),
    "unknown preset": (
        "system: {preset: abacus}\naxes: {a: 8}\nreduce: {over: [a], bytes: 1}\n",
        ["abacus", "dgx-h100"],
    ),
    "no steps": (PROBLEM + "limits: {steps: 0}\n", ["p.yaml:7", "steps", "0", "1 to 64"]),
    "no levels": ("system: {levels: []}\naxes: {a: 1}\nreduce: {over: [a], bytes: 1}\n", ["p.yaml:1", "levels"]),
    "a list": ("- 1\n- 2\n", ["p.yaml:1"]),
    "empty": ("", ["p.yaml", "empty"]),
    "bad YAML": ("system: {levels: [\n", ["p.yaml", "YAML"]),
    "nested lists": ("[" * 2_000_000, ["p.yaml:1", "nest"]),
    "nested and closed lists": ("a: " + "[" * 1_000_000 + "]" * 1_000_000, ["p.yaml:1", "nest"]),
    "alias bomb": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{two}: &{two} [{','.join([f'*{one}'] * 9)}]\n" for one, two in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        ["p.yaml:1", "anchor"],
    ),
    "object tag": ("!!python/object/apply:os.system ['true']\n", ["p.yaml:1", "tag"]),
    "binary": (bytes(range(256)) * 100, ["p.yaml", "is not text"]),
    "not UTF-8": (PROBLEM.replace("data", "dat\u00e9").encode("latin-1"), ["p.yaml", "is not text"]),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["solve", "placements"])
def test_problem_files(cli: Cli, name: str, command: str) -> None:
    text, words = FILES[name]
    refused(cli(command, cli.put(text), "--json"), *words)


@pytest.mark.parametrize("command", ["placements", "solve", "compare", "enumerate", "hierarchies"])
def test_a_missing_file(cli: Cli, command: str) -> None:
    refused(cli(command, "nowhere.yaml"), "nowhere.yaml", "no such file")
    refused(cli(command, str(cli.folder)), str(cli.folder), "folder")


def test_standard_input(cli: Cli) -> None:
    refused(cli("solve", "-"), "standard input", "empty")
    refused(cli("solve", "-", stdin="axes: 3\n"), "standard input:1", "system")


OPTIONS = [
    (["--placement", "[[1,2],[2,3]]"], ["--placement", "row of axis 'shard'", "6", "4"]),
    (["--placement", "[[2,1],[2,2]]"], ["--placement", "column of level 'node'", "4", "2"]),
    (["--placement", "[[2,1]]"], ["--placement", "2 rows (axes) of 2 entries (levels)"]),
    (["--placement", "[[2],[1]]"], ["--placement", "2 rows (axes) of 2 entries (levels)"]),
    (["--placement", "[[0,2],[2,2]]"], ["--placement", "0", "whole number"]),
    (["--placement", "[[-1,-2],[2,2]]"], ["--placement", "-1"]),
    (["--placement", "[[1,2],[2,2.0]]"], ["--placement", "2.0", "whole number"]),
    (["--placement", "[[1,true],[2,2]]"], ["--placement", "True", "whole number"]),
    (["--placement", '[[1,"2"],[2,2]]'], ["--placement", "whole number"]),
    (["--placement", "[[1,2],[2,2"], ["--placement", "is no matrix", "[[1,4],[4,4]]"]),
    (["--placement", "[" * 100_000], ["--placement", "is no matrix"]),
    (["--placement", ""], ["--placement", "is no matrix"]),
    (["--placement", "7"], ["--placement"]),
    (["--placement", "{}"], ["--placement"]),
    (["--steps", "0"], ["--steps", "0", "1 to 64"]),
    (["--steps", "-3"], ["--steps", "-3", "1 to 64"]),
    (["--steps", "65"], ["--steps", "65", "1 to 64"]),
    (["--steps", "many"], ["--steps", "'many'"]),
    (["--instruction-set", "p3"], ["--instruction-set", "'p3'", "full or p2"]),
    (["--hierarchy", "diagonal"], ["--hierarchy", "'diagonal'", "reduction", "columns"]),
    (["--jobs", "0"], ["--jobs", "0", "whole number"]),
    (["--time-limit", "0"], ["--time-limit", "0", "positive"]),
    (["--time-limit", "-1"], ["--time-limit", "negative"]),
    (["--time-limit", "soon"], ["--time-limit", "'soon'"]),
    (["--time-limit", "nan"], ["--time-limit", "'nan'"]),
    (["--time-limit", "5 GB"], ["--time-limit", "'GB'", "s ms us ns"]),
    (["--memory-limit", "0"], ["--memory-limit", "0", "positive"]),
    (["--memory-limit", "1 GB/s"], ["--memory-limit", "'GB/s'", "GiB"]),
    (["--what"], ["No such option", "--what"]),
]


@pytest.mark.parametrize(("words", "said"), OPTIONS, ids=[" ".join(words)[:40] for words, _ in OPTIONS])
@pytest.mark.parametrize("command", ["solve", "compare", "simulate"])
def test_options(cli: Cli, command: str, words: list[str], said: list[str]) -> None:
    file = [SPLIT] if command == "simulate" else []
    refused(cli(command, cli.put(PROBLEM), *file, *words, "--json"), *said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--solver", "oracle"], ["--solver", "'oracle'", "z3 or cadical"]),
        (["--encoding", "morse"], ["--encoding", "'morse'", "reduced"]),
        (["--bounds", "maybe"], ["--bounds", "'maybe'", "on, off"]),
        (["--joint", "--placement", BOTH], ["--joint"]),
        (["--joint", "--hierarchy", "rows"], ["'rows'", "reduction"]),
    ],
)
def test_options_of_solve(cli: Cli, words: list[str], said: list[str]) -> None:
    refused(cli("solve", cli.put(PROBLEM), *words), *said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dissolve"], ["No such command", "dissolve"]),
        (["sol\nve"], ["No such command"]),
        (["--loud"], ["No such option", "--loud"]),
        (["solve"], ["Missing argument", "PROBLEM"]),
        (["simulate", "p.yaml"], ["Missing argument", "FILE"]),
        (["solve", "a", "b"], ["unexpected extra argument"]),
        (["presets", "abacus"], ["abacus", "dgx-h100"]),
        (["enumerate", "p.yaml", "--cheapest", "0"], ["--cheapest", "0"]),
    ],
)
def test_usage(cli: Cli, words: list[str], said: list[str]) -> None:
    refused(cli(*words), *said)


def test_no_command_at_all(cli: Cli) -> None:
    ran = cli()
    assert ran.status == 2
    assert ran.out == "" and ran.err.startswith("Usage: smtsynth")


PROGRAMS = {
    "a problem": (PROBLEM, ["is a problem file"]),
    "unknown collective": ("Gossip(node, InsideGroup)", ["step 1", "Gossip", "AllReduce"]),
    "unknown level": ("AllReduce(rack, InsideGroup)", ["step 1", "'rack'", "root, node, gpu"]),
    "unknown form": ("AllReduce(node, Sideways)", ["step 1", "Sideways", "Parallel"]),
    "no ancestor": ("AllReduce(node, Parallel)", ["step 1", "ancestor"]),
    "ancestor inside": ("AllReduce(node, Parallel(gpu))", ["step 1", "'gpu'", "'node'"]),
    "second step": ("AllReduce(node, InsideGroup); AllReduce", ["step 2"]),
    "another number of devices": ("devices: 4\nsteps: []\n", ["4", "8"]),
    "device twice": (
        "devices: 8\nsteps:\n  - {collective: AllReduce, groups: [[0,1],[1,2]]}\n",
        ["f.yaml:3", "device 1", "twice"],
    ),
    "unknown device": (
        "devices: 8\nsteps:\n  - {collective: AllReduce, groups: [[0,8]]}\n",
        ["f.yaml:3", "no device 8", "0 to 7"],
    ),
    "an answer without a program": ('{"status": "infeasible", "program": null}', ["program", "infeasible"]),
    "an answer for another placement": (
        '{"status": "optimal", "program": "AllReduce(root, InsideGroup)", "placement": {"matrix": [[4,1],[1,2]]}}',
        ["f.yaml", "row of axis 'data'", "2"],
    ),
    "an answer of another hierarchy": (
        '{"status": "optimal", "program": "AllReduce(root, InsideGroup)", "hierarchy": "ladder", '
        '"placement": {"matrix": [[1,2],[2,2]]}}',
        ["f.yaml", "ladder", "reduction"],
    ),
    "nested lists": ("[" * 2_000_000, ["f.yaml:1", "nest"]),
    "binary": (b"\x00\xff" * 1000, ["f.yaml", "is not text"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_schedules(cli: Cli, name: str) -> None:
    text, words = PROGRAMS[name]
    options = [] if name.startswith("an answer") else ["--placement", BOTH]
    refused(cli("simulate", cli.put(PROBLEM), cli.put(text, "f.yaml"), *options, "--json"), *words)


def test_a_program_wants_one_placement(cli: Cli) -> None:
    refused(cli("simulate", cli.put(PROBLEM), SPLIT), "--placement", "2 placements")
    refused(cli("enumerate", cli.put(PROBLEM)), "--placement", "2 placements")
    refused(cli("hierarchies", cli.put(PROBLEM)), "--placement", "2 placements")
