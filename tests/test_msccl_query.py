"""The verification's verdicts against the same question put to a solver, on small algorithms and their mutants."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import z3
from msccl_support import (
    algorithm,
    chain,
    direct,
    move,
    mutants,
    pairs_allreduce,
    pairs_reduce_scatter,
    ring_allreduce,
    tree_allreduce,
    with_step,
)

from smtsynth.errors import InputError
from smtsynth.msccl.memory import modes
from smtsynth.msccl.model import Algorithm, Gpu, StepId, ThreadBlock
from smtsynth.msccl.query import order_query
from smtsynth.msccl.verdict import Kind
from smtsynth.msccl.verify import verify_msccl

TINY = {
    "ring 2": ring_allreduce(2),
    "pairs 2": pairs_allreduce(2),
    "tree 2": tree_allreduce(2),
    "tree 3": tree_allreduce(3),
    "broadcast 3": chain("broadcast", 3, 2),
    "reduce 3": chain("reduce", 3),
    "reduce_scatter 2": pairs_reduce_scatter(2),
    "allgather 2": direct("allgather", 2, 2),
    "alltoall 2": direct("alltoall", 2),
}
STATIC = (Kind.BOUNDS, Kind.SHARED, Kind.UNMATCHED, Kind.SIZE, Kind.UNPOSTED)


def ask(algo: Algorithm, question: str, mode: str | None = None, slots: int = 8) -> bool:
    """Whether some order answers the question with yes."""
    solver = z3.Solver()
    solver.from_string(order_query(algo, question, mode, slots))
    answer = solver.check()
    assert answer in (z3.sat, z3.unsat)
    return bool(answer == z3.sat)


def agree(algo: Algorithm, slots: int = 8) -> str:
    """Assert that solver and verification agree; what the verdict was."""
    verdict = verify_msccl(algo, slots)
    if verdict.kind in STATIC:
        return str(verdict.kind)
    assert ask(algo, "order", slots=slots) == (verdict.kind != Kind.DEADLOCK)
    if verdict.kind == Kind.DEADLOCK:
        return "deadlock"
    if verdict.kind is None:
        for mode in modes(algo):
            assert not ask(algo, "race", mode)
            assert not ask(algo, "goal", mode)
        return verdict.verdict
    assert verdict.mode is not None
    assert ask(algo, "race", verdict.mode) == (verdict.kind == Kind.RACE)
    broken = ask(algo, "goal", verdict.mode)
    assert broken or verdict.kind == Kind.RACE
    return f"{verdict.kind}{'' if broken else ', harmless'}"


@pytest.mark.parametrize("name", TINY)
def test_right_algorithms_have_no_bad_order(name: str) -> None:
    assert TINY[name].step_count <= 12
    assert agree(TINY[name]) == "proved"


def test_mutants_agree() -> None:
    seen: dict[str, int] = {}
    for algo in TINY.values():
        for mutant in mutants(algo):
            kind = agree(mutant.algorithm)
            seen[kind] = seen.get(kind, 0) + 1
    print(f"\nverdicts the solver agrees with: {seen}")
    assert seen["race"] >= 10
    assert seen["wrong sum"] >= 10
    assert seen["proved"] >= 1


def test_double_mutants_agree() -> None:
    """Two changes at once meet each other: a fault may hide another, or a change undo one."""
    rng = random.Random(7)
    seen: set[str] = set()
    firsts = [mutant for algo in TINY.values() for mutant in mutants(algo, every_offset=True)]
    for first in rng.sample(firsts, min(len(firsts), 80)):
        second = rng.choice(list(mutants(first.algorithm, every_offset=True)) or [first])
        seen.add(agree(second.algorithm))
    assert {"race", "wrong sum"} <= seen


def test_random_local_programs_agree() -> None:
    """Copies and sums on one GPU in two thread blocks with random waits; scratch starts undefined."""
    rng = random.Random(11)
    seen: dict[str, int] = {}
    for _ in range(200):
        sizes = [rng.randint(1, 3) for _ in range(2)]
        blocks = []
        for size in sizes:
            steps = []
            for _ in range(size):
                buffers = [(rng.choice(kinds), rng.randrange(2)) for kinds in ("iis", "is")]
                step = move(rng.choice(("cpy", "re")), buffers[0], buffers[1], hasdep=True)
                if rng.random() < 0.35:
                    depid = rng.randrange(len(sizes))
                    step = replace(step, depid=depid, deps=rng.randrange(sizes[depid]))
                steps.append(step)
            blocks.append(ThreadBlock(-1, -1, 0, tuple(steps)))
        kind = agree(algorithm("custom", 2, [Gpu(2, 2, 2, tuple(blocks))]))
        seen[kind] = seen.get(kind, 0) + 1
    print(f"\nlocal programs: {seen}")
    assert min(seen[kind] for kind in ("unknown", "race", "unwritten", "deadlock")) >= 3


def test_dropped_dependency_breaks_the_sum_in_some_order() -> None:
    """The race that verification reports is one by which an order really ends with a wrong sum."""
    algo = pairs_reduce_scatter(2)
    place = next(p for p, step in algo.steps() if step.depid >= 0)
    broken = with_step(algo, place, depid=-1, deps=-1)
    assert verify_msccl(broken).kind == Kind.RACE
    assert agree(broken) == "race"
    assert not ask(algo, "goal")


def test_deadlock_has_no_order() -> None:
    algo = ring_allreduce(3)
    assert agree(algo, slots=1) == "deadlock"
    assert agree(algo, slots=2) == "proved"
    place = StepId(0, 0, 0)
    waits = with_step(pairs_allreduce(2), place, depid=0, deps=4)
    assert agree(with_step(waits, StepId(0, 0, 4), hasdep=True)) == "deadlock"


def test_queries_that_cannot_be_asked() -> None:
    algo = ring_allreduce(2)
    with pytest.raises(InputError, match="cannot be asked; expected order or race or goal"):
        order_query(algo, "why")
    with pytest.raises(InputError, match="cannot be asked; expected in place"):
        order_query(algo, "goal", "out of place")
    with pytest.raises(InputError, match="which has only 1 receive; expected messages that match up"):
        order_query(with_step(algo, StepId(1, 0, 1), type="nop"), "goal")
