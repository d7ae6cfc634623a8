"""The commands `export` and `run`: what they print, their JSON, exit statuses, and one line for bad input."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from cli_support import PROBLEM, SPLIT, Cli
from run_support import need

from smtsynth.execute import launch
from smtsynth.msccl.reader import parse_msccl

BOTH, INSIDE = "[[1,2],[2,2]]", "[[2,1],[1,4]]"  # axes data 2, shard 4 on node 2, gpu 4
SCHEDULE = """\
devices: 4
steps:
  - {collective: AllReduce, groups: [[0,1],[2,3]]}
  - {collective: AllReduce, groups: [[0,2],[1,3]]}
"""
WRONG = SCHEDULE.replace("[[0,2],[1,3]]", "[[0,2]]")
WORKLOAD = """\
system: {preset: dgx-h100, sizes: {node: 2}}
axes: {data: 4, tensor: 4}
reductions:
  - {name: gradients, over: [data], bytes: 2 GiB}
"""
PLACED = ["jax", "torch", "deepspeed", "groups", "hostfile", "rankfile", "slurm"]
PROGRAMS = ["torch-program", "jax-program", "mpi4py-program", "msccl"]


@pytest.fixture
def problem(tmp_path: Path) -> str:
    path = tmp_path / "p.yaml"
    path.write_text(PROBLEM)
    return str(path)


@pytest.fixture
def schedule(tmp_path: Path) -> str:
    path = tmp_path / "s.yaml"
    path.write_text(SCHEDULE)
    return str(path)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "w.yaml"
    path.write_text(WRONG)
    return str(path)


def answer(cli: Cli, problem: str, folder: Path, placement: str = BOTH) -> str:
    path = folder / "a.json"
    path.write_text(cli("solve", problem, "--placement", placement, "--json").out)
    return str(path)


# --- placements ---


@pytest.mark.parametrize("target", PLACED)
def test_every_target_of_a_placement(cli: Cli, problem: str, target: str) -> None:
    ran = cli("export", target, problem, "--placement", INSIDE)
    assert ran.status == 0 and ran.out.endswith("\n")
    found = cli("export", target, problem, "--placement", INSIDE, "--json")
    assert found.status == 0
    assert found.data["text"] == ran.out
    assert (found.data["target"], found.data["axes"], found.data["matrix"]) == (
        target,
        ["data", "shard"],
        [[2, 1], [1, 4]],
    )
    assert ("ranks" in found.data) == (target in ("hostfile", "rankfile", "slurm"))


def test_the_placement_of_an_answer(cli: Cli, problem: str, tmp_path: Path) -> None:
    ran = cli("export", "groups", problem, answer(cli, problem, tmp_path))
    assert json.loads(ran.out)["axes"]["data"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    same = cli("export", "groups", problem, answer(cli, problem, tmp_path), "--placement", BOTH)
    assert same.out == ran.out
    for target in ("groups", "torch-program"):
        other = cli("export", target, problem, answer(cli, problem, tmp_path), "--placement", INSIDE)
        assert other.status == 2 and "a.json is for [[1,2],[2,2]]; expected one of the two" in other.err


def test_a_workload_has_placements_too(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "step.yaml"
    path.write_text(WORKLOAD)
    ran = cli("export", "megatron", str(path), "--placement", "[[2,2],[1,4]]")
    assert ran.status == 0
    assert ran.out.splitlines()[-1] == "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 1"


def test_a_workload_s_constraints_are_kept(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "step.yaml"
    path.write_text(WORKLOAD + "constraints: [{axis: tensor, inside: node}]\n")
    only = cli("export", "groups", str(path))
    given = cli("export", "groups", str(path), "--placement", "[[2,2],[1,4]]")
    assert only.status == given.status == 0 and only.out == given.out
    broken = cli("export", "groups", str(path), "--placement", "[[1,4],[2,2]]")
    assert broken.status == 2 and broken.err.count("\n") == 1 and not broken.out
    assert "--placement: breaks the constraint tensor inside node" in broken.err
    twice = cli("export", "megatron", str(path), "--as", "data=dp", "--as", "data=cp")
    assert twice.status == 2 and "--as: names data twice" in twice.err


def test_an_answer_s_reduction_without_a_program_is_no_silence(cli: Cli, tmp_path: Path) -> None:
    path, answer = tmp_path / "step.yaml", tmp_path / "answer.json"
    path.write_text(WORKLOAD)
    found = cli("solve", str(path), "--json").data
    name = found["reductions"][0]["name"]
    found["reductions"][0]["program"] = None
    answer.write_text(json.dumps(found))
    ran = cli("export", "torch-program", str(path), str(answer))
    assert ran.status == 2 and f"holds no program for {name}" in ran.err and ran.err.count("\n") == 1


def test_output_goes_to_a_file(cli: Cli, problem: str, tmp_path: Path) -> None:
    target = tmp_path / "mesh.py"
    ran = cli("export", "jax", problem, "--placement", INSIDE, "--output", str(target))
    assert ran.status == 0 and not ran.out
    ast.parse(target.read_text())


def test_hosts_from_a_list_and_from_a_file(cli: Cli, problem: str, tmp_path: Path) -> None:
    ran = cli("export", "slurm", problem, "--placement", BOTH, "--hosts", "n[07-08]", "--order", "shard,data")
    assert ran.out.split() == ["n07"] * 4 + ["n08"] * 4
    assert "srun --distribution=arbitrary --nodes=2 --ntasks=8" in ran.err
    path = tmp_path / "hosts"
    path.write_text("a slots=4\nb slots=4\n")
    found = cli("export", "rankfile", problem, "--placement", BOTH, "--hosts", str(path), "--json")
    assert [one["host"] for one in found.data["ranks"]] == ["a"] * 2 + ["b"] * 2 + ["a"] * 2 + ["b"] * 2
    assert set(found.data["ranks"][0]) == {"rank", "device", "host", "local_rank", "local_device"}
    assert found.data["hint"] is None
    many = cli("export", "hostfile", problem, "--placement", BOTH, "--hosts", "n[1-4]")
    assert many.status == 0 and many.err == "n3, n4 are left out: the placement has 2 hosts\n"


# --- programs ---


@pytest.mark.parametrize("target", PROGRAMS)
def test_every_target_of_a_program(cli: Cli, problem: str, schedule: str, tmp_path: Path, target: str) -> None:
    solved = answer(cli, problem, tmp_path)
    for words in ((problem, solved), (problem, SPLIT, "--placement", BOTH), (schedule,)):
        ran = cli("export", target, *words)
        assert ran.status == 0, ran.err
        if target == "msccl":
            assert parse_msccl(ran.out.encode(), "x.xml").ngpus == 4
        else:
            doc = ast.get_docstring(ast.parse(ran.out)) or ""
            assert "Proved by counting contributions" in doc
            assert ("Optimal by the alpha-beta cost model" in doc) == (words == (problem, solved))


def test_msccl_of_another_goal_says_how_it_is_called(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(PROBLEM.replace("bytes: 8 GiB", "bytes: 8 GiB, collective: ReduceScatter"))
    split = "ReduceScatter(node, InsideGroup); ReduceScatter(node, Parallel(root))"
    ran = cli("export", "msccl", str(path), split, "--placement", BOTH)
    assert ran.status == 0 and parse_msccl(ran.out.encode(), "x.xml").coll == "reduce_scatter"
    assert ran.err == (
        "for each communicator of [0, 1, 4, 5] [2, 3, 6, 7], its ranks in this order\n"
        'registered as "reduce_scatter": the j-th rank ends with the j-th part of the sum, at its place in the input '
        "buffer\n"
    )
    assert cli("export", "msccl", str(path), split, "--placement", BOTH, "--json").data["hint"] == ran.err.rstrip()


def test_ranks_in_the_order_of_the_axes(cli: Cli, problem: str) -> None:
    ran = cli("export", "torch-program", problem, SPLIT, "--placement", BOTH, "--order", "data,shard")
    assert "GOAL = [[0, 1, 2, 3], [4, 5, 6, 7]]" in ran.out


# --- run ---


@pytest.fixture
def small(tmp_path: Path) -> str:
    """One axis on 2 x 2: one placement."""
    path = tmp_path / "small.yaml"
    path.write_text(PROBLEM.replace("size: 4", "size: 2").replace("{data: 2, shard: 4}", "{shard: 4}"))
    return str(path)


def test_run_says_right(cli: Cli, small: str, schedule: str, tmp_path: Path) -> None:
    need("mpi")
    ran = cli("run", small, answer(cli, small, tmp_path, "[[2,2]]"), SPLIT, "--json")
    assert ran.status == 0
    assert (ran.data["backend"], ran.data["processes"], ran.data["elements"]) == ("mpi", 4, 1021)
    assert [one["outcome"] for one in ran.data["programs"]] == ["right", "right"]
    assert ran.data["programs"][0]["file"].endswith("a.json")
    assert ran.data["programs"][1] == {
        "file": None,
        "reduction": None,
        "program": SPLIT,
        "outcome": "right",
        "reason": None,
        "rank": None,
        "chunk": None,
        "waiting": [],
        "verify": {"verdict": "proved", "device": None, "chunk": None},
        "agree": True,
    }
    text = cli("run", schedule)
    assert text.status == 0
    assert text.out == (
        "1 right: the schedule on 4 processes by MPI (mpi4py), 1021 elements each, every one compared\n"
    )


def test_run_says_wrong_where_verify_does(cli: Cli, wrong: str) -> None:
    need("mpi")
    said = cli("verify", wrong, "--json").data
    ran = cli("run", wrong, "--json")
    assert ran.status == 1
    (one,) = ran.data["programs"]
    assert (one["outcome"], one["rank"], one["chunk"]) == ("wrong", said["device"], said["chunk"]) == ("wrong", 1, 0)
    assert one["agree"] is True
    text = cli("run", wrong)
    assert "rank 1, chunk 0" in text.out and "verify says the same: device 1, chunk 0" in text.out


def test_run_all_and_a_sample(cli: Cli, small: str) -> None:
    need("mpi")
    ran = cli("run", small, "--all", "--steps", "3", "--json")
    assert ran.status == 0
    assert len(ran.data["programs"]) == 29 and all(one["outcome"] == "right" for one in ran.data["programs"])
    few = cli("run", small, "--all", "--sample", "4", "--seed", "1")
    assert few.status == 0 and few.out.startswith("4 right: 4 programs on 4 processes")


def test_a_module_changed_by_hand_runs_as_it_is(cli: Cli, small: str, tmp_path: Path) -> None:
    need("mpi")
    path = tmp_path / "mine.py"
    right = cli("export", "mpi4py-program", small, SPLIT).out
    path.write_text(right.replace("    # 2. AllReduce", "    return\n    # 2. AllReduce"))
    ran = cli("run", str(path), "--json")
    assert ran.status == 1 and ran.data["programs"][0]["rank"] == 0
    assert ran.data["programs"][0]["verify"] is None and ran.data["programs"][0]["agree"] is None
    text = cli("run", str(path), "--elements", "1")
    assert text.status == 1 and "verify can't judge a module, as it may be changed by hand." in text.out
    assert "bug" not in text.out and "1 element each" in text.out


def test_of_many_files_the_wrong_one_is_named(cli: Cli, schedule: str, wrong: str) -> None:
    need("mpi")
    ran = cli("run", schedule, wrong)
    assert ran.status == 1 and "w.yaml: the schedule" in ran.out and "s.yaml" not in ran.out
    found = cli("run", schedule, wrong, "--json").data["programs"]
    assert [(one["file"], one["outcome"]) for one in found] == [(schedule, "right"), (wrong, "wrong")]


def test_an_error_compares_nothing(cli: Cli, small: str, tmp_path: Path) -> None:
    need("mpi")
    path = tmp_path / "mine.py"
    path.write_text(cli("export", "mpi4py-program", small, SPLIT).out.replace("    # 2.", "    1 / 0\n    # 2."))
    ran = cli("run", str(path))
    assert ran.status == 3 and ": ZeroDivisionError: division by zero (line" in ran.out
    assert "compared" not in ran.out


@pytest.mark.parametrize(("target", "backend"), [("torch-program", "gloo"), ("jax-program", "jax")])
def test_a_module_runs_on_what_it_imports(cli: Cli, schedule: str, tmp_path: Path, target: str, backend: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(cli("export", target, schedule).out)
    other = cli("run", str(path), "--backend", "mpi")
    assert other.status == 2 and f"mine.py: is written for backend {backend}; expected --backend {backend}" in other.err
    need(backend)
    assert cli("run", str(path), "--json").data["backend"] == backend


STEP = """\
system:
  levels:
    - {name: node, size: 2, bandwidth: 8 GB/s, latency: 20 us}
    - {name: gpu, size: 2, bandwidth: 270 GB/s, latency: 3 us}
axes: {data: 2, tensor: 2}
reductions:
  - {name: gradients, over: [data], bytes: 2 GiB}
  - {name: activations, over: [data, tensor], bytes: 64 MiB}
"""


def test_the_programs_of_a_training_step(cli: Cli, problem: str, tmp_path: Path) -> None:
    step = cli.put(STEP, "step.yaml")
    solved = cli.put(cli("solve", step, "--json").out, "step.json")
    for target in PROGRAMS:
        ran = cli("export", target, step, solved, "--reduction", "activations")
        assert ran.status == 0, ran.err
        assert target == "msccl" or "counted exactly once" in " ".join(ran.out.split())
    names = "expected one of gradients, activations"
    cases = [
        ((step, solved), f"step.json holds 2 programs; {names}"),
        ((step, solved, "--reduction", "x"), f"'x' is not in {solved}; {names}"),
        ((step, SPLIT), f"--reduction: the workload has 2 reductions; {names}"),
        ((step, SPLIT, "--reduction", "x"), f"--reduction: there is no 'x'; {names}"),
        ((solved,), "an answer of solve doesn't hold the system it is for; expected its workload file first"),
        ((solved, "--reduction", "gradients"), "--reduction: needs a problem"),
        ((problem, solved), "step.json: is the answer of a workload; expected its workload file first"),
        ((problem, SPLIT, "--reduction", "x"), "--reduction: the problem has one reduction; expected a workload"),
    ]
    for words, line in cases:
        ran = cli("export", "torch-program", *words)
        assert ran.status == 2 and ran.err.count("\n") == 1 and line in ran.err, ran.err
    assert "is the answer of a workload; expected a program of one reduction" in cli("verify", solved).err
    need("mpi")
    found = cli("run", step, solved, "--json").data["programs"]
    assert [(one["reduction"], one["outcome"]) for one in found] == [("gradients", "right"), ("activations", "right")]
    one = cli("run", step, solved, "--reduction", "gradients")
    assert one.status == 0 and one.out.startswith("1 right: gradients: ")
    every = ("--all", "--steps", "1", "--placement", "[[2,1],[1,2]]")
    assert cli("run", step, "--reduction", "activations", *every).status == 0


def test_an_interrupt_is_told(cli: Cli, schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need("mpi")

    def interrupted(watch: launch.Watch) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(launch.Watch, "look", interrupted)
    ran = cli("run", schedule)
    assert ran.status == 3 and not ran.err
    assert ran.out.startswith("1 not run: the schedule") and "Interrupted: what had not ended" in ran.out


# --- bad input: one line each ---


BAD: list[tuple[list[str], str]] = [
    (["export", "pytorch", "P"], "target 'pytorch' is unknown, did you mean 'torch'?; expected jax, torch,"),
    (["export", "torch"], "nothing to work on; expected a problem file"),
    (["export", "torch", "P"], "--placement: there are 2 placements; expected one of them"),
    (["export", "torch", "P", "--placement", "[[2,1]]"], "--placement: the placement has the wrong number of rows"),
    (["export", "torch", "P", "--placement", "x"], "--placement: 'x' is no matrix"),
    (["export", "torch", "S"], "s.yaml:1: key devices: is unknown"),
    (["export", "torch", "missing.yaml"], "missing.yaml: there is no such file"),
    (["export", "torch", "P", "S"], "holds no placement; expected an answer of solve --json"),
    (["export", "torch", "P", "S", "S"], "2 files beside the problem"),
    (["export", "torch", "P", "--placement", BOTH, "--hosts", "a"], "--hosts: target torch takes none"),
    (
        ["export", "deepspeed", "P", "--placement", BOTH, "--order", "data,shard"],
        "--order: target deepspeed takes none",
    ),
    (["export", "jax", "P", "--placement", BOTH, "--order", "data"], "--order: 'data' does not name each axis once"),
    (["export", "deepspeed", "P", "--placement", BOTH], "no order of them gives this placement (shard is split across"),
    (["export", "megatron", "P", "--placement", BOTH], "(data and shard together are dp); start rank r on device d[r]"),
    (["export", "megatron", "P", "--placement", BOTH, "--as", "shard=xp"], "--as: 'shard=xp' does not fit"),
    (
        ["export", "megatron", "P", "--placement", BOTH, "--as", "shard=tp"],
        "neither order of Megatron-LM's command line gives this placement; start rank r on device d[r], "
        "d = [0,1,4,5,2,3,6,7]",
    ),
    (["export", "hostfile", "P", "--placement", BOTH, "--hosts", "n1"], "--hosts: names 1 host; expected 2, one for"),
    (
        ["export", "hostfile", "P", "--placement", BOTH, "--hosts", "FEW"],
        "names 1 host; expected 2, one for each node",
    ),
    (["export", "hostfile", "P", "--placement", BOTH, "--hosts", "a:2,b"], "host 'a' has 2 slots; expected 4"),
    (["export", "hostfile", "P", "--placement", BOTH, "--host-level", "x"], "--host-level: there is no level 'x'"),
    (["export", "torch-program", "P"], "no program to write; expected one program or schedule FILE beside"),
    (
        ["export", "msccl", "P", "--placement", BOTH],
        "no program to write; expected one program or schedule FILE beside",
    ),
    (["export", "msccl", "P", "S", "S"], "2 programs to write; expected one program"),
    (["export", "jax", "gone.yaml", "--placement", BOTH], "gone.yaml: there is no such file"),
    (["export", "jax", "BROKEN", "--placement", BOTH], "broken.yaml:"),
    (["export", "slurm", "P", "--placement", BOTH, "--hosts", "no.txt"], "--hosts no.txt: there is no such file"),
    (["export", "slurm", "P", "--placement", BOTH, "--hosts", "./no"], "--hosts ./no: there is no such file"),
    (["export", "torch", "P", "--placement", BOTH, "--reduction", "x"], "--reduction: target torch takes none"),
    (["export", "torch-program", "W"], "the schedule is refuted: device 1, chunk 0"),
    (["export", "torch-program", SPLIT], "a program needs a problem"),
    (["export", "torch-program", "P", "AllReduce(x, InsideGroup)", "--placement", BOTH], "slice 'x' is no level"),
    (["export", "torch-program", "P", "missing.yaml"], "there is no such file"),
    (["export", "torch-program", "S", "--order", "a"], "--order: a schedule has its own numbers"),
    (["export", "torch-program", "S", "--placement", BOTH], "--placement: needs a problem"),
    (["export", "jax-program", "P", SPLIT, "--placement", BOTH, "--hierarchy", "x"], "--hierarchy: 'x' is unknown"),
    (["export", "jax", "P", "--placement", BOTH, "--output", "/nowhere/x"], "cannot be written"),
    (["run"], "nothing to work on"),
    (["run", "P"], "no program to run"),
    (["run", "P", "--all"], "there are 2 placements"),
    (["run", "P", SPLIT, "--all", "--placement", BOTH], "--all: comes with files"),
    (["run", "S", "--steps", "3"], "--steps: comes without --all"),
    (["run", "P", "--all", "--placement", BOTH, "--steps", "0"], "--steps: is 0"),
    (["run", "P", "--all", "--placement", BOTH, "--instruction-set", "x"], "--instruction-set: instruction set 'x'"),
    (["run", "S", "--elements", "0"], "--elements: is 0; expected 1 to"),
    (["run", "S", "--time-limit", "0"], "--time-limit: is 0 s; expected a positive time"),
    (["run", "S", "--backend", "nccl"], "backend 'nccl' is unknown"),
    (["run", "LARGE", "AllReduce(root, InsideGroup)"], "64 processes; expected 2 to 16 on one machine"),
    (["run", "LARGE", "--all"], "64 processes; expected 2 to 16 on one machine"),
    (["run", "PY"], "is no module that export wrote"),
    (["run", "RANKS"], "RANKS is '8'; expected RANKS = N"),
    (["run", "SYNTAX"], "syntax.py:2: is no Python (invalid syntax); expected a module"),
    (["run", "XML"], "x.xml: is XML, which isn't run; expected a program or schedule, or `smtsynth verify "),
    (["run", "TXT"], "module.txt: is Python by the look of it; expected a name that ends in .py"),
    (["run", "gone.py"], "gone.py: there is no such file"),
]


@pytest.mark.parametrize(("words", "line"), BAD, ids=[" ".join(words)[:60] for words, _ in BAD])
def test_bad_input_is_one_line(
    cli: Cli, problem: str, schedule: str, wrong: str, tmp_path: Path, words: list[str], line: str
) -> None:
    if words[0] == "run" and "nccl" not in words:
        need("mpi")
    large = PROBLEM.replace("size: 2", "size: 16").replace("{data: 2, shard: 4}", "{shard: 64}")
    texts = {
        "LARGE": ("large.yaml", large),
        "FEW": ("few", "only\n"),
        "PY": ("m.py", "RANKS = x\n"),
        "RANKS": ("ranks.py", 'RANKS = "8"\n\n\ndef all_reduce(values, groups):\n    return\n'),
        "SYNTAX": ("syntax.py", "RANKS = 8\ndef all_reduce(:\n"),
        "XML": ("x.xml", '<algo name="a"/>\n'),
        "TXT": ("module.txt", "import numpy as np\n\nRANKS = 8\n"),
        "BROKEN": ("broken.yaml", "system: [\n"),
    }
    files = {"P": problem, "S": schedule, "W": wrong}
    files |= {word: cli.put(text, name) for word, (name, text) in texts.items()}
    ran = cli(*(files.get(word, word) for word in words))
    assert ran.status == 2, ran
    assert ran.err.startswith("smtsynth: ") and ran.err.count("\n") == 1, ran.err
    assert line in ran.err
    assert not ran.out


def test_a_missing_library_is_one_line(cli: Cli, schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    for backend, extra in (("mpi", "run"), ("gloo", "torch"), ("jax", "jax")):
        ran = cli("run", schedule, "--backend", backend)
        assert ran.status == 2 and ran.err.count("\n") == 1
        assert f"is not installed; expected pip install 'smtsynth[{extra}]'" in ran.err
