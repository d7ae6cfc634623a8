"""The same programs over gloo and in JAX, and the examples for both."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from run_support import SPLIT, all_programs, assert_right, hierarchy_scripts, need, one_script, plain, scripts, whole

from smtsynth.execute.run import run_scripts
from smtsynth.export.goals import script_of
from smtsynth.export.jax_program import jax_text
from smtsynth.export.torch_program import torch_text
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Entry

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PAIRS, ACROSS = ((0, 1), (2, 3)), ((0, 2), (1, 3))
BACKENDS = ("gloo", "jax")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sample_of_two_factor_programs_runs_right(backend: str) -> None:
    need(backend)
    p2, full = scripts((2, 4), "p2", sample=8), scripts((2, 4), sample=6)
    turned = [
        one
        for some in hierarchy_scripts().values()
        for one in some
        if any(list(group) != sorted(group) for move in one.moves for group in move.groups)
    ]
    assert turned  # groups that torch sorts
    assert_right(run_scripts([*p2, *full, *turned[:4]], backend, patience=120))


@pytest.mark.full
@pytest.mark.parametrize("sizes", [(2, 4), (4, 2)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_all_two_factor_programs_run_right(backend: str, sizes: tuple[int, int]) -> None:
    need(backend)
    found = scripts(sizes, "p2")
    assert len(found) == 47
    assert_right(run_scripts(found, backend, patience=120))
    assert_right(run_scripts(scripts(sizes), backend, patience=120))


@pytest.mark.parametrize("backend", BACKENDS)
def test_uneven_counts_other_goals_and_wrong_schedules(backend: str) -> None:
    need(backend)
    found = []
    for collective in ("ReduceScatter", "AllGather", "Reduce", "Broadcast"):
        problem, lowering = whole(2, 2, collective=collective)
        programs = all_programs(problem, lowering)
        found += [
            script_of(problem, lowering, program)
            for program in random.Random(collective).sample(programs, min(2, len(programs)))
        ]
    turned = ((3, 1), (2, 0))  # not in the order of the ranks
    steps = [Entry(Collective.REDUCE_SCATTER, turned), Entry(Collective.ALL_REDUCE, ((0, 1), (2, 3)))]
    found.append(plain(4, *steps, Entry(Collective.ALL_GATHER, turned)))
    assert all(one.proved for one in found)
    wrong = [
        plain(4, Entry(Collective.ALL_REDUCE, PAIRS), Entry(Collective.ALL_REDUCE, ((0, 1),))),
        plain(4, Entry(Collective.REDUCE, PAIRS), Entry(Collective.ALL_REDUCE, ACROSS)),
        plain(4, Entry(Collective.ALL_REDUCE, PAIRS), Entry(Collective.BROADCAST, PAIRS, (1, 3))),
    ]
    ran = run_scripts([*found, *wrong], backend, elements=7, patience=120)
    assert_right(ran[: len(found)])
    for one in ran[len(found) :]:
        assert one.outcome == "wrong" and one.agrees, one.reason
        assert (one.rank, one.chunk) == (one.script.verdict.device, one.script.verdict.chunk)


def test_a_hang_over_gloo_is_ended_and_the_waiting_ranks_are_named() -> None:
    need("gloo")
    found = plain(4, Entry(Collective.ALL_REDUCE, PAIRS), Entry(Collective.ALL_REDUCE, ACROSS))
    left = torch_text(found).replace(
        "    # 2. AllReduce", "    if dist.get_rank() == 2:\n        return\n    # 2. AllReduce"
    )
    (ran,) = run_scripts([found], "gloo", texts=[left], patience=3)
    assert ran.outcome == "hang"
    assert dict(ran.waiting) == {0: "in step 2 (AllReduce step_2)"}
    assert "ranks 1-3: finished" in ran.reason


@pytest.mark.parametrize(
    ("dies", "words"),
    [
        ("os._exit(7)", "rank 2: ended early, with exit code 7"),
        ("os.kill(os.getpid(), 11)", "rank 2: was ended by signal 11 (SIGSEGV, Segmentation fault)"),
        ("raise ValueError('no memory' + chr(10) + 'at all')", "rank 2: ValueError: no memory (line "),
    ],
)
def test_over_gloo_the_rank_that_died_is_named_and_no_consequence(dies: str, words: str) -> None:
    need("gloo")
    found = plain(4, Entry(Collective.ALL_REDUCE, PAIRS), Entry(Collective.ALL_REDUCE, ACROSS))
    text = torch_text(found).replace(
        "    # 2. AllReduce", f"    import os\n    if dist.get_rank() == 2:\n        {dies}\n    # 2. AllReduce"
    )
    (ran,) = run_scripts([found], "gloo", texts=[text], patience=10)
    assert (ran.outcome, ran.rank) == ("error", 2)
    assert ran.reason.startswith(words) and "onnection" not in ran.reason


def test_an_error_in_jax_is_its_own_line() -> None:
    need("jax")
    found = plain(4, Entry(Collective.ALL_REDUCE, PAIRS), Entry(Collective.ALL_REDUCE, ACROSS))
    text = jax_text(found)
    broken = text.replace("    # 2. AllReduce", "    buffer = buffer.reshape(2, -1)\n    # 2. AllReduce")
    (ran,) = run_scripts([found], "jax", texts=[broken], elements=7)
    assert (ran.outcome, ran.rank) == ("error", None)
    assert ran.reason.startswith("TypeError: cannot reshape array") and "of the module)" in ran.reason
    odd = text.replace("    return jax.jit(", "    return lambda values: 5\n    return jax.jit(")
    (ran,) = run_scripts([found], "jax", texts=[odd], elements=7)
    assert (ran.outcome, ran.rank) == ("wrong", None)
    assert ran.reason == "over returned 5 (of type int); expected an array of integers in one row"


def test_groups_made_in_another_order_on_one_rank_hang_or_fail() -> None:
    # The commonest fault of hand-written process groups: only members make them.
    need("gloo")
    found = one_script(SPLIT, 2, 2)
    text = torch_text(found)
    members = text.replace(
        "            group = dist.new_group(ranks)\n            if dist.get_rank() in ranks:\n",
        "            if dist.get_rank() in ranks:\n                group = dist.new_group(ranks)\n",
    )
    assert members != text
    (ran,) = run_scripts([found], "gloo", texts=[members], patience=3)
    assert ran.outcome in ("hang", "error", "wrong")


def example(name: str) -> str:
    """What an example prints."""
    root = str(EXAMPLES.parent)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    return ran.stdout


def test_the_gradient_hook_trains_as_plain_all_reduce_does() -> None:
    need("gloo")
    out = example("torch_gradient_hook.py")
    assert "optimal: ReduceScatter(node, InsideGroup)" in out
    assert "parameters equal those of plain all_reduce" in out


def test_the_jax_step_is_that_of_plain_psum() -> None:
    need("jax")
    out = example("jax_train_step.py")
    assert "optimal: ReduceScatter(node, InsideGroup)" in out
    assert "all weights equal those of plain psum" in out


@pytest.mark.parametrize(("name", "extra"), [("torch_gradient_hook.py", "torch"), ("jax_train_step.py", "jax")])
def test_an_example_without_its_extra_is_one_line(name: str, extra: str, tmp_path: Path) -> None:
    (tmp_path / extra).mkdir()
    (tmp_path / extra / "__init__.py").write_text("raise ImportError\n")
    path = os.pathsep.join([str(tmp_path), str(EXAMPLES.parent)])
    command = [sys.executable, str(EXAMPLES / name)]
    ran = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr == f"this example needs {extra}: pip install 'smtsynth[{extra}]'\n"
