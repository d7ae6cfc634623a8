"""Programs as text: what is in it, which schedules are refused, and that a numpy stand-in for MPI runs it right.

The real libraries run the same text in test_run and test_run_backends.
"""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_support import LEADERS, SPLIT, SWAPPED, all_programs, one_script, plain, scripts, whole

from smtsynth import InputError, Problem, Reduction, Schedule, lower, parse_program, placements
from smtsynth.execute.judge import judge
from smtsynth.execute.values import BITS, Trial, elements_of, values
from smtsynth.export.goals import renumbered, replica_script, script_of
from smtsynth.export.jax_program import jax_text
from smtsynth.export.mpi4py_program import mpi4py_text
from smtsynth.export.script import FUNCTION, Script, group_name, script, show_groups
from smtsynth.export.torch_program import torch_text
from smtsynth.export.writing import NOTHING
from smtsynth.meaning.buffers import run
from smtsynth.model.program import Collective, instruction_set
from smtsynth.model.schedule import Entry, Goal
from smtsynth.model.system import Level, System

WRITERS: dict[str, Callable[[Script], str]] = {"mpi4py": mpi4py_text, "torch": torch_text, "jax": jax_text}
EVERYONE = ((0, 1, 2, 3),)
PAIRS, ACROSS = ((0, 1), (2, 3)), ((0, 2), (1, 3))


# --- what is in the text ---


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("text", [SPLIT, SWAPPED, LEADERS])
def test_the_text_is_python_that_says_what_it_does(write: Callable[[Script], str], text: str) -> None:
    found = one_script(text, 2, 4)
    tree = ast.parse(write(found))
    doc = ast.get_docstring(tree) or ""
    assert text.replace("; ", ";") in doc.replace("\n", " ").replace("; ", ";")
    assert "Proved by counting contributions" in doc
    assert "every rank ends with the sum over its group, each rank's contribution counted exactly once" in (
        doc.replace("\n", " ")
    )
    assert "inside_l0: [0-3] [4-7]" in doc
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "all_reduce" in names
    assert max(map(len, write(found).splitlines())) <= 160


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_the_order_is_undone_exactly_where_it_has_to_be(write: Callable[[Script], str]) -> None:
    assert "UNDO = [0, 4, 1, 5, 2, 6, 3, 7]" in write(one_script(SWAPPED, 2, 4))
    assert "UNDO" not in write(one_script(SPLIT, 2, 4))


def test_undo_is_the_inverse_of_the_layout() -> None:
    found = one_script(SWAPPED, 2, 4)
    assert found.layout is not None and found.undo is not None
    assert [found.layout[place] for place in found.undo] == list(range(8))


def test_zeros_are_added_only_where_a_buffer_is_cut() -> None:
    assert "PIECES" not in torch_text(one_script(LEADERS, 2, 4))
    assert "PIECES = 4" in torch_text(one_script(SPLIT, 2, 4))


def test_process_groups_are_made_by_every_rank_in_one_order() -> None:
    found = torch_text(one_script(SPLIT, 2, 4))
    assert found.index('"inside_l0": [[0, 1, 2, 3], [4, 5, 6, 7]]') < found.index(
        '"across_l0_in_root": [[0, 4], [1, 5], [2, 6], [3, 7]]'
    )
    make = found[found.index("def make_groups") : found.index("def all_reduce")]
    # new_group is outside every condition on the rank
    lines = make.splitlines()
    call = next(line for line in lines if "dist.new_group(ranks)" in line)
    test = next(line for line in lines if "if dist.get_rank() in ranks" in line)
    assert lines.index(call) < lines.index(test)
    assert len(call) - len(call.lstrip()) == len(test) - len(test.lstrip())


def test_roots_are_global_ranks_for_torch_and_places_for_mpi() -> None:
    steps = (Entry(Collective.REDUCE, PAIRS, (1, 2)), Entry(Collective.ALL_REDUCE, ((1, 2),)))
    found = plain(4, *steps, Entry(Collective.BROADCAST, PAIRS, (1, 2)))
    assert found.proved
    assert "root = {0: 1, 2: 2}[ranks[0]]\n    dist.reduce(buffer, dst=root, group=group)" in torch_text(found)
    assert "root = ranks.index({0: 1, 2: 2}[ranks[0]])" in mpi4py_text(found)


def test_the_sorted_groups_of_torch_are_put_in_order() -> None:
    turned = plain(
        4, Entry(Collective.REDUCE_SCATTER, ((3, 1), (2, 0))), Entry(Collective.ALL_GATHER, ((3, 1), (2, 0)))
    )
    text = torch_text(
        script(
            Schedule(
                4,
                tuple((entry,) for step in turned.schedule.steps for entry in step),
                Goal(groups=((1, 3), (0, 2))),
            )
        )
    )
    assert text.count("torch sorts the ranks of a group") == 2
    assert "torch sorts" not in torch_text(one_script(SPLIT, 2, 4))


def test_jax_says_what_it_emulates() -> None:
    text = jax_text(one_script(LEADERS, 2, 4))
    assert "JAX has no Reduce" in text and "A Broadcast is a sum in which all but the root add zeros" in text
    assert text.count("and costs as much") == 2
    assert "JAX wants every rank in some group" in text
    assert "JAX has no Reduce" not in jax_text(one_script(SPLIT, 2, 4))


def test_jax_groups_cover_all_ranks() -> None:
    for found in scripts((2, 4)):
        tree = ast.parse(jax_text(found))
        groups = next(
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "GROUPS"
        )
        for rows in groups.values():
            assert sorted(rank for row in rows for rank in row) == list(range(8))


def test_what_jax_cannot_take_is_said() -> None:
    odd = plain(
        4,
        Entry(Collective.REDUCE_SCATTER, ((0, 1, 2),)),
        Entry(Collective.ALL_GATHER, ((0, 1, 2),)),
        goal=Goal(groups=((0, 1, 2),)),
    )
    assert odd.proved
    with pytest.raises(InputError, match="JAX wants groups of equal size that cover all ranks"):
        jax_text(odd)
    assert "OUTSIDE = [3]" in torch_text(odd)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_what_is_not_proved_is_refused(write: Callable[[Script], str]) -> None:
    wrong = plain(4, Entry(Collective.ALL_REDUCE, PAIRS))
    with pytest.raises(InputError, match="the schedule is refuted: device 0, chunk 0"):
        write(wrong)


def test_unequal_lengths_cannot_be_written() -> None:
    with pytest.raises(InputError, match="cannot be run: step 2"):
        plain(4, Entry(Collective.REDUCE_SCATTER, ((0, 1),)), Entry(Collective.ALL_REDUCE, EVERYONE))


def test_too_many_ranks_are_refused() -> None:
    many = plain(5000, Entry(Collective.ALL_REDUCE, (tuple(range(5000)),)))
    with pytest.raises(InputError, match="5000 ranks are too many to write out"):
        torch_text(many)


def test_jagged_groups_are_flagged() -> None:
    jagged = plain(
        5,
        Entry(Collective.REDUCE, ((0, 1), (2, 3, 4))),
        Entry(Collective.ALL_REDUCE, ((0, 2),)),
        Entry(Collective.BROADCAST, ((0, 1), (2, 3, 4))),
    )
    assert jagged.proved and jagged.jagged
    assert "floating-point sums may differ in the last bit" in torch_text(jagged)
    assert "last bit" not in torch_text(one_script(SPLIT, 2, 4))


def test_every_set_of_groups_has_a_name_of_its_own() -> None:
    names = ("root", "rack", "node", "gpu.a-b")
    found = [group_name(step, names) for step in instruction_set(3) if step.collective is Collective.ALL_REDUCE]
    assert len(set(found)) == len(found)
    assert all(name.isidentifier() for name in found)


def test_groups_in_words() -> None:
    assert show_groups([(0, 1, 2), (5, 3)]) == "[0-2] [5, 3]"
    assert show_groups([(n,) for n in range(9)]) == "[0] [1] [2] [3] … 9 in all"


DEALT = """
from run_support import all_programs, whole
from smtsynth.export.goals import script_of
problem, lowering = whole(2, 3, collective="ReduceScatter")
found = [script_of(problem, lowering, program) for program in all_programs(problem, lowering)[:30]]
assert any(one.arrange for one in found)
print([(one.arrange, one.take) for one in found])
"""


def test_the_same_program_comes_out_every_time() -> None:
    texts = set()
    for seed in "12":
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        given = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        ran = subprocess.run([sys.executable, "-c", DEALT], env=given, capture_output=True, text=True, check=True)
        texts.add(ran.stdout)
    assert len(texts) == 1


# --- other numbers for the ranks ---


def test_ranks_can_be_numbered_by_the_axes() -> None:
    system = System([Level("node", 2, "8 GB/s"), Level("gpu", 4, "80 GB/s")])
    problem = Problem(system, {"data": 4, "tensor": 2}, Reduction(["data"], "1 MiB"))
    placement = next(p for p in placements(system, problem.axes) if p.matrix == ((2, 2), (1, 2)))
    lowering = lower(problem, placement)
    program = parse_program(
        "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)",
        lowering.names,
    )
    by_device, by_mesh = script_of(problem, lowering, program), script_of(problem, lowering, program, (1, 0))
    assert by_device.goal_groups == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert by_mesh.goal_groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert by_mesh.proved


def test_renumbering_back_and_forth_changes_nothing() -> None:
    rng = random.Random(5)
    for found in scripts((2, 3), sample=20):
        devices = list(range(6))
        rng.shuffle(devices)
        there = renumbered(found.schedule, devices)
        back = renumbered(there, [devices.index(rank) for rank in range(6)])
        assert back == Schedule(6, found.schedule.steps, Goal(groups=found.goal_groups))
        assert run(there).verdict == "proved"


def test_one_replica_alone() -> None:
    system = System([Level("node", 2, "8 GB/s"), Level("gpu", 4, "80 GB/s")])
    problem = Problem(system, {"data": 4, "tensor": 2}, Reduction(["data"], "1 MiB"))
    lowering = lower(problem, [[2, 2], [1, 2]])
    found = replica_script(lowering, parse_program("AllReduce(root, InsideGroup)", lowering.names))
    assert (found.devices, found.goal_groups, found.proved) == (4, EVERYONE, True)


# --- the text runs right on a stand-in for MPI: a thread a rank, numpy in between ---


class Net:
    """Where the ranks of one communicator meet."""

    def __init__(self, size: int) -> None:
        self.size, self.slots = size, [None] * size
        self.barrier = threading.Barrier(size)


class Comm:
    """As much of an mpi4py communicator as the programs use."""

    def __init__(self, net: Net, rank: int, nets: dict[Any, Net], lock: threading.Lock) -> None:
        self.net, self.rank, self.size, self.nets, self.lock = net, rank, net.size, nets, lock
        self.calls = 0

    def share(self, value: Any) -> list[Any]:
        self.net.slots[self.rank] = value
        self.net.barrier.wait(20)
        found = list(self.net.slots)
        self.net.barrier.wait(20)
        return found

    def Split(self, color: int, key: int) -> Comm | None:
        asked = self.share((color, key, self.rank))
        self.calls += 1
        if color < 0:
            return None
        members = sorted((k, r) for c, k, r in asked if c == color)
        with self.lock:
            net = self.nets.setdefault((id(self.net), self.calls, color), Net(len(members)))
        return Comm(net, [r for _, r in members].index(self.rank), self.nets, self.lock)

    def Allreduce(self, _: Any, buffer: Any) -> None:
        buffer[:] = sum(self.share(buffer.copy()))

    def Reduce_scatter_block(self, buffer: Any, part: Any) -> None:
        part[:] = sum(self.share(buffer.copy())).reshape(self.size, -1)[self.rank]

    def Allgather(self, buffer: Any, whole: Any) -> None:
        whole[:] = np.concatenate(self.share(buffer.copy()))

    def Reduce(self, send: Any, receive: Any, root: int) -> None:
        total = sum(self.share((receive if send is None else send).copy()))
        if self.rank == root:
            receive[:] = total

    def Bcast(self, buffer: Any, root: int) -> None:
        buffer[:] = self.share(buffer.copy())[root]


class Mpi:
    """As much of the module MPI as the programs use; IN_PLACE stands for nothing sent."""

    UNDEFINED, IN_PLACE = -1, None

    def __init__(self, world: Comm) -> None:
        self.COMM_WORLD = world


def simulate(given: Script, elements: int) -> str:
    """Run a script's mpi4py text on the stand-in; what is wrong, or nothing."""
    trial = Trial(given, elements, 3)
    text = mpi4py_text(given, True).replace("from mpi4py import MPI", "").replace("comm=MPI.COMM_WORLD", "comm=None")
    code = compile(text, "program", "exec")
    world, nets, lock = Net(given.devices), {}, threading.Lock()
    results: list[Any] = [None] * given.devices

    def work(rank: int) -> None:
        comm = Comm(world, rank, nets, lock)
        names: dict[str, Any] = {"MPI": Mpi(comm)}
        exec(code, names)
        values = trial.inputs[rank].copy()
        more = {"comm": comm} if "comm=None" in text[text.index(f"def {FUNCTION[given.goal]}") :][:80] else {}
        result = names[FUNCTION[given.goal]](values, names["make_groups"](comm), **more)
        results[rank] = values if result is None else result

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(given.devices)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert all(result is not None for result in results)
    fault = judge(trial, results)
    return "" if fault is None else fault.reason


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2)])
def test_programs_run_right_on_the_stand_in(sizes: tuple[int, int]) -> None:
    for found in scripts(sizes, sample=25):
        assert simulate(found, 13) == "", found.wording  # 13: nothing divides


@pytest.mark.parametrize("collective", ["ReduceScatter", "Reduce", "AllGather", "Broadcast"])
def test_other_goals_run_right_on_the_stand_in(collective: str) -> None:
    problem, lowering = whole(2, 2, collective=collective)
    programs = all_programs(problem, lowering)
    chosen = random.Random(collective).sample(programs, min(8, len(programs)))
    for program in chosen:
        found = script_of(problem, lowering, program)
        assert found.proved, found.wording
        assert simulate(found, 7) == "", found.wording


def test_a_mix_of_goals_runs_right_on_the_stand_in() -> None:
    system = System([Level("node", 2, "8 GB/s"), Level("gpu", 4, "80 GB/s")])
    kinds = {"shard": "ReduceScatter", "replicate": "AllReduce"}
    problem = Problem(system, {"shard": 4, "replicate": 2}, Reduction(list(kinds), "1 MiB", kinds))
    for placement in placements(system, problem.axes):
        lowering = lower(problem, placement)
        programs = all_programs(problem, lowering)
        for program in random.Random(7).sample(programs, 6):
            found = script_of(problem, lowering, program)
            assert found.proved, found.wording
            assert simulate(found, 7) == "", found.wording


def test_the_stand_in_shows_what_is_wrong() -> None:
    wrong = plain(4, Entry(Collective.ALL_REDUCE, PAIRS), Entry(Collective.ALL_REDUCE, PAIRS))
    assert "rank 0, chunk 0" in simulate(wrong, 5)


# --- trial values ---


def test_a_sum_of_trial_values_tells_its_element() -> None:
    numbers = np.arange(50)
    total = sum(values(50, 1, rank) for rank in range(16))
    assert np.array_equal(elements_of(total, 50), numbers)
    assert np.array_equal(elements_of(values(50, 1, 0) * 127, 50), numbers)
    for shift in range(1, 50):  # different elements added, among them those whose numbers have a third one's as mean
        mixed = values(50, 1, 0) + np.roll(values(50, 1, 1), shift)
        assert (elements_of(mixed, 50) == -1).all()
    assert (elements_of(np.zeros(3, dtype=np.int64), 50) == -1).all()
    assert int(total.max()) < 2**BITS <= 2**59


def test_use_of_what_a_reduce_leaves_is_never_taken_for_a_sum() -> None:
    largest = np.array([2**BITS - 1])
    for many in range(1, 32):
        for sums in (np.zeros(1, dtype=np.int64), largest, *(values(100, 0, rank) for rank in range(4))):
            with np.errstate(over="ignore"):
                poisoned = sums + np.int64(NOTHING) * np.int64(many)
            assert (elements_of(poisoned, 100) == -1).all()


def test_parts_of_uneven_size_are_cut_as_the_plain_collective_cuts_them() -> None:
    nested = plain(
        4,
        Entry(Collective.ALL_GATHER, ACROSS),
        Entry(Collective.ALL_GATHER, PAIRS),
        goal=Goal(Collective.ALL_GATHER, EVERYONE),
    )
    assert nested.layout is not None  # nested gathers and one flat gather order parts differently
    assert simulate(nested, 3) == ""
    assert nested.goal_groups == EVERYONE
