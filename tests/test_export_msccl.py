"""MSCCL XML of programs: proved in every interleaving before it is written, and right in random executions."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from msccl_support import execute
from run_support import LEADERS, SPLIT, SWAPPED, all_programs, one_script, plain, scripts, whole

import smtsynth.export.msccl as target
from smtsynth import InputError, InternalError, lower, parse_program, placements
from smtsynth.export.goals import replica_script
from smtsynth.export.msccl import MAX_COUNT, NAMES, msccl_algorithm, msccl_note, msccl_text, runs
from smtsynth.export.script import Script
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Entry, Goal
from smtsynth.msccl.model import Algorithm
from smtsynth.msccl.reader import parse_msccl
from smtsynth.msccl.verdict import MscclVerdict
from smtsynth.msccl.verify import verify_msccl
from smtsynth.msccl.writer import write_msccl


def sent(algorithm: Algorithm) -> int:
    """Chunks that all GPUs send."""
    return sum(step.cnt for _, step in algorithm.steps() if step.traits.sends)


@pytest.mark.parametrize("sizes", [(2, 4), (4, 2), (2, 3), (3, 3)])
def test_every_two_factor_program_is_proved(sizes: tuple[int, int]) -> None:
    found = scripts(sizes)
    assert len(found) == 93
    for number, one in enumerate(found):
        algorithm = msccl_algorithm(one)
        assert verify_msccl(algorithm).verdict == "proved"
        if number % 10 == 0:
            for outcome in execute(algorithm, number):
                assert outcome.finished and outcome.right, one.wording


def test_three_factor_programs_are_proved() -> None:
    for one in scripts((2, 2, 3), sample=60):
        assert msccl_algorithm(one).ngpus == 12


def test_the_text_is_read_back_as_it_was() -> None:
    for text in (SPLIT, SWAPPED, LEADERS):
        one = one_script(text, 2, 4)
        assert parse_msccl(msccl_text(one, "mine").encode(), "mine.xml") == msccl_algorithm(one, "mine")


def test_each_collective_sends_what_a_ring_sends() -> None:
    def alone(collective: Collective, goal: Collective) -> Algorithm:
        everyone = (tuple(range(6)),)
        return msccl_algorithm(plain(6, Entry(collective, everyone), goal=Goal(goal, everyone)))

    for collective, share in (
        (Collective.ALL_REDUCE, 2 * 5),  # 2 (m - 1) / m of a buffer per device, on m devices
        (Collective.REDUCE_SCATTER, 5),
        (Collective.ALL_GATHER, 5),
        (Collective.REDUCE, 5),
        (Collective.BROADCAST, 5),
    ):
        algorithm = alone(collective, collective)
        assert sent(algorithm) == share * algorithm.nchunksperloop
        peers = {(g, block.send) for g, gpu in enumerate(algorithm.gpus) for block in gpu.blocks if block.send >= 0}
        ring = {(g, (g + 1) % 6) for g in range(6)}
        if collective is Collective.REDUCE:
            assert peers == {(g, g - 1) for g in range(1, 6)}
        else:
            assert peers == (ring - {(5, 0)} if collective is Collective.BROADCAST else ring)


def test_the_largest_sizes() -> None:
    problem, lowering = whole(8, 8)
    for program in all_programs(problem, lowering)[:4]:
        algorithm = msccl_algorithm(replica_script(lowering, program))
        assert algorithm.ngpus == 64
    everyone = (tuple(range(65)),)
    with pytest.raises(InputError, match="65 ranks; expected at most 64"):
        msccl_algorithm(plain(65, Entry(Collective.ALL_REDUCE, everyone)))


def test_a_schedule_over_part_of_the_ranks_is_refused() -> None:
    pairs = ((0, 1), (2, 3))
    with pytest.raises(InputError, match="collectives of all their ranks, in order"):
        msccl_algorithm(plain(4, Entry(Collective.ALL_REDUCE, pairs), goal=Goal(groups=pairs)))
    with pytest.raises(InputError, match="the schedule is refuted"):
        msccl_algorithm(plain(4, Entry(Collective.ALL_REDUCE, pairs)))


def test_roots_that_are_not_first() -> None:
    entry = Entry(Collective.REDUCE, ((0, 1, 2),), (1,))
    algorithm = msccl_algorithm(plain(3, entry, goal=Goal(Collective.REDUCE, ((0, 1, 2),), (1,))))
    assert algorithm.root == 1 and algorithm.coll == "reduce"
    assert parse_msccl(write_msccl(algorithm).encode(), "x.xml").root == 1


def test_groups_in_any_order() -> None:
    turned = ((2, 0), (3, 1))
    steps = [Entry(Collective.REDUCE_SCATTER, turned), Entry(Collective.ALL_REDUCE, ((0, 1), (2, 3)))]
    one = plain(4, *steps, Entry(Collective.ALL_GATHER, turned))
    for seed in range(5):
        assert all(outcome.right for outcome in execute(msccl_algorithm(one), seed))


def test_one_replica_of_a_placement_is_written() -> None:
    problem, _ = whole(2, 4)
    system = problem.system
    axes = placements(system, {"data": 4, "tensor": 2})[1]
    from smtsynth import Problem, Reduction

    problem = Problem(system, {"data": 4, "tensor": 2}, Reduction(["data"], "1 MiB"))
    lowering = lower(problem, axes)
    algorithm = msccl_algorithm(replica_script(lowering, parse_program(SPLIT, lowering.names)))
    assert algorithm.ngpus == 4


@pytest.mark.parametrize("collective", ["AllGather", "Reduce", "Broadcast", "ReduceScatter"])
def test_other_goals_are_proved_too(collective: str) -> None:
    problem, lowering = whole(2, 3, collective=collective)
    found = [replica_script(lowering, one, Collective(collective)) for one in all_programs(problem, lowering)[:20]]
    for one in found:
        assert all(outcome.right for outcome in execute(msccl_algorithm(one), 1))
        assert NAMES[one.goal] in (msccl_note(one) or "")
    # by the rules, a ReduceScatter's parts may end at other ranks than their own: then its pieces are dealt out anew
    assert (collective == "ReduceScatter") == any(one.arrange is not None for one in found)


def test_what_is_not_proved_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "verify_msccl", lambda algorithm: MscclVerdict("refuted", "a race"))
    with pytest.raises(InternalError, match="the MSCCL algorithm of a proved schedule is refuted: a race"):
        msccl_text(one_script(SPLIT, 2, 4))


def test_a_wrong_ring_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    right = target._ring

    def wrong(blocks: object, channel: int, collective: Collective, group: object, before: object) -> None:
        if collective is Collective.ALL_REDUCE:
            collective = Collective.REDUCE_SCATTER
        right(blocks, channel, collective, group, before)  # type: ignore[arg-type]

    monkeypatch.setattr(target, "_ring", wrong)
    with pytest.raises(InternalError, match="is refuted"):
        msccl_text(one_script(SPLIT, 2, 4))


def test_a_wait_that_is_dropped_would_not_be_proved() -> None:
    algorithm = msccl_algorithm(one_script(SPLIT, 2, 4))
    dropped = 0
    for g, gpu in enumerate(algorithm.gpus):
        for t, block in enumerate(gpu.blocks):
            first = block.steps[0]
            if first.depid < 0:
                continue
            steps = (replace(first, depid=-1, deps=-1), *block.steps[1:])
            blocks = (*gpu.blocks[:t], replace(block, steps=steps), *gpu.blocks[t + 1 :])
            gpus = (*algorithm.gpus[:g], replace(gpu, blocks=blocks), *algorithm.gpus[g + 1 :])
            assert verify_msccl(replace(algorithm, gpus=gpus)).verdict == "refuted"
            dropped += 1
    assert dropped == 16


def test_runs_of_chunks_are_no_longer_than_a_step_moves() -> None:
    rng = random.Random(1)
    for _ in range(50):
        chunks = tuple(rng.sample(range(200), rng.randint(1, 150)))
        found = list(runs(chunks))
        assert [first + i for first, count in found for i in range(count)] == list(chunks)
        assert all(count <= MAX_COUNT for _, count in found)
    assert list(runs(tuple(range(100)))) == [(0, 71), (71, 29)]


def test_chunks_are_cut_for_the_rings_of_an_allreduce() -> None:
    one: Script = one_script(SPLIT, 2, 4)
    assert one.pieces == 4
    assert msccl_algorithm(one).nchunksperloop == 8  # the quarter that two devices sum has a part for each
