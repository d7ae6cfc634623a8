"""Verification of MSCCL algorithms: what is proved, each kind of fault with its witness, bounded FIFOs, large files."""

from __future__ import annotations

import random
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_support import (
    SEVEN,
    algorithm,
    chain,
    data_file,
    direct,
    execute,
    move,
    on,
    pairs_allreduce,
    pairs_reduce_scatter,
    ring_allreduce,
    small_algorithms,
    tree_allreduce,
    with_step,
)

from smtsynth.errors import InputError
from smtsynth.msccl.memory import IN_PLACE, OUT_OF_PLACE
from smtsynth.msccl.model import Algorithm, Gpu, StepId, ThreadBlock, XmlStep
from smtsynth.msccl.order import ancestor_sets, topological
from smtsynth.msccl.reader import parse_msccl, read_msccl
from smtsynth.msccl.values import add, contribution
from smtsynth.msccl.verdict import Kind
from smtsynth.msccl.verify import verify_msccl
from smtsynth.msccl.writer import write_msccl


def put(algo: Algorithm, gpu: int, tb: int, steps: list[XmlStep]) -> Algorithm:
    """The algorithm with other steps in one thread block."""
    blocks = list(algo.gpus[gpu].blocks)
    blocks[tb] = replace(blocks[tb], steps=tuple(steps))
    gpus = list(algo.gpus)
    gpus[gpu] = replace(gpus[gpu], blocks=tuple(blocks))
    return replace(algo, gpus=tuple(gpus))


def local(steps: list[list[XmlStep]], chunks: int = 4, scratch: int = 4, **more: object) -> Algorithm:
    """One GPU, custom collective, a thread block per list of steps."""
    blocks = tuple(ThreadBlock(-1, -1, 0, tuple(block)) for block in steps)
    return algorithm("custom", chunks, [Gpu(chunks, chunks, scratch, blocks)], **more)


# ---------------------------------------------------------------------------------------------- proofs


@pytest.mark.parametrize("name", SEVEN)
def test_production_files_are_proved(name: str) -> None:
    algo = read_msccl(data_file(name))
    verdict = verify_msccl(algo)
    assert (verdict.verdict, verdict.reason, verdict.kind, verdict.warnings) == ("proved", "", None, ())
    assert all(outcome.right for seed in range(3) for outcome in execute(algo, seed))


@pytest.mark.parametrize("name", small_algorithms())
def test_small_algorithms_are_proved_and_run_right(name: str) -> None:
    algo = small_algorithms()[name]
    assert verify_msccl(algo).verdict == "proved"
    for seed in range(20):
        for outcome in execute(algo, seed):
            assert outcome.right and not outcome.undefined_read


def test_large_file_is_proved_and_its_mutant_refuted() -> None:
    algo = ring_allreduce(16, channels=6, rounds=4)
    text = write_msccl(algo)
    assert algo.step_count == 11904 and len(text) > 1_400_000
    again = parse_msccl(text.encode(), "large.xml")
    assert verify_msccl(again).verdict == "proved"
    place = StepId(9, 3, 40)
    broken = with_step(again, place, type={"rrs": "rcs", "rrcs": "rcs"}[again.step(place).type])
    assert verify_msccl(broken).kind == Kind.WRONG_SUM


def test_more_steps_than_fit_are_unknown() -> None:
    block = ThreadBlock(-1, -1, 0, (on("nop", "i", 0),) * 256)
    algo = algorithm("allreduce", 1, [Gpu(1, 0, 0, (block,) * 400)], inplace=True)
    verdict = verify_msccl(algo)
    assert verdict.verdict == "unknown" and "102400 steps" in verdict.reason


# ---------------------------------------------------------------------------------------------- wrong sums


def test_missing_contribution_names_chunk_and_gpu() -> None:
    algo = ring_allreduce(3)
    place = StepId(1, 0, 1)
    assert algo.step(place) == on("rrs", "i", 0)
    verdict = verify_msccl(with_step(algo, place, type="rcs"))
    assert (verdict.verdict, verdict.kind, verdict.mode) == ("refuted", Kind.WRONG_SUM, IN_PLACE)
    assert (verdict.gpu, verdict.chunk, verdict.missing, verdict.duplicated) == (0, 0, (1,), ())
    assert verdict.contributors == (0, 2)
    assert verdict.reason == (
        "at the end o[0] of gpu 0 lacks chunk 0 of gpu 1 (it has gpus 0, 2) (last written by gpu 0 tb 0 step 3 (rcs))"
    )
    assert verdict.witness == (StepId(0, 0, 3),)


def test_duplicated_contribution() -> None:
    algo = pairs_allreduce(3)
    place = next(p for p, step in algo.steps() if step.type == "re" and p.gpu == 1)
    assert algo.step(place).srcoff == 0
    verdict = verify_msccl(with_step(algo, place, srcoff=1))
    assert (verdict.kind, verdict.gpu, verdict.chunk) == (Kind.WRONG_SUM, 0, 1)
    assert (verdict.missing, verdict.duplicated) == ((0,), (2,))
    assert "lacks chunk 1 of gpu 0 (it has gpus 1, 2), has chunk 1 of gpu 2 more than once" in verdict.reason


def test_foreign_chunk_and_foreign_gpu() -> None:
    swapped = verify_msccl(with_step(direct("alltoall", 3), StepId(1, 1, 0), srcoff=2))
    assert (swapped.kind, swapped.gpu, swapped.chunk, swapped.missing) == (Kind.WRONG_SUM, 0, 1, (1,))
    assert "lacks chunk 0 of gpu 1, has chunk 2 of gpu 1 mixed in" in swapped.reason
    algo = put(chain("broadcast", 2), 1, 0, [move("rrc", ("i", 0), ("o", 0))])
    extra = verify_msccl(replace(algo, inplace=False))
    assert (extra.kind, extra.gpu, extra.missing) == (Kind.WRONG_SUM, 1, ())
    assert "has chunk 0 of gpu 1 too" in extra.reason


def test_output_never_written() -> None:
    verdict = verify_msccl(put(chain("broadcast", 2), 0, 0, [move("s", ("i", 0), ("o", 0))]))
    assert (verdict.kind, verdict.mode, verdict.gpu, verdict.missing) == (Kind.WRONG_SUM, OUT_OF_PLACE, 0, (0,))
    assert verdict.reason == "at the end o[0] of gpu 0 is undefined (no step writes it)"


def test_root_decides_reduce_and_broadcast() -> None:
    for coll in ("broadcast", "reduce"):
        algo = chain(coll, 3)
        assert verify_msccl(algo).verdict == "proved"
        assert verify_msccl(replace(algo, root=1)).kind == Kind.WRONG_SUM


def test_custom_has_no_goal_but_faults() -> None:
    fine = verify_msccl(local([[move("cpy", ("i", 0), ("o", 1))]]))
    assert (fine.verdict, fine.kind) == ("unknown", None)
    assert "no goal" in fine.reason
    assert verify_msccl(local([[move("cpy", ("s", 0), ("o", 1))]])).kind == Kind.UNWRITTEN


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_sums_count_to_more_than_once(parts: list[tuple[int, int]], rng: random.Random) -> None:
    """Adding in any bracketing counts every contribution 0, 1, or more times."""
    values = [contribution(gpu, chunk) for gpu, chunk in parts]
    while len(values) > 1:
        first = values.pop(rng.randrange(len(values)))
        second = values.pop(rng.randrange(len(values)))
        values.append(add(first, second))
    assert [chunk for chunk, _, _ in values[0]] == sorted({chunk for _, chunk in parts})
    for chunk, once, many in values[0]:
        for gpu in range(4):
            count = parts.count((gpu, chunk))
            assert (once >> gpu & 1, many >> gpu & 1) == (int(count == 1), int(count > 1))


# ---------------------------------------------------------------------------------------------- modes


def test_in_place_aliases_per_collective() -> None:
    """Each writes its own part where only the alias makes it right, or wrong."""
    gather = direct("allgather", 2)
    bare = [replace(gpu, blocks=gpu.blocks[1:]) for gpu in gather.gpus]
    without_copy = replace(gather, gpus=tuple(bare))
    assert verify_msccl(replace(without_copy, outofplace=False)).verdict == "proved"
    assert verify_msccl(without_copy).mode == OUT_OF_PLACE
    scatter = pairs_reduce_scatter(2)
    last = StepId(1, 1, 0)
    assert scatter.step(last).type == "cpy"
    no_copy = with_step(with_step(scatter, last, type="nop"), StepId(0, 1, 0), type="nop")
    assert verify_msccl(replace(no_copy, outofplace=False)).verdict == "proved"
    assert verify_msccl(no_copy).kind == Kind.UNWRITTEN
    ring = replace(ring_allreduce(2), outofplace=True)
    both = verify_msccl(ring)
    assert (both.kind, both.mode) == (Kind.WRONG_SUM, OUT_OF_PLACE)


def test_each_claimed_mode_is_judged() -> None:
    """Gpu 0 gets back what gpu 1 holds as input: out of place that is gpu 1's own, in place what gpu 0 sent."""
    there = [move("cpy", ("i", 0), ("o", 0)), move("s", ("i", 0), ("o", 0)), move("r", ("i", 0), ("o", 0))]
    back = [move("r", ("i", 0), ("o", 0)), move("s", ("i", 0), ("o", 0))]
    gpus = [Gpu(1, 1, 0, (ThreadBlock(1 - g, 1 - g, 0, tuple(steps)),)) for g, steps in enumerate((there, back))]
    algo = algorithm("broadcast", 1, gpus, inplace=True)
    verdict = verify_msccl(algo)
    assert (verdict.kind, verdict.mode, verdict.gpu, verdict.missing) == (Kind.WRONG_SUM, OUT_OF_PLACE, 0, (0,))
    assert verify_msccl(replace(algo, outofplace=False)).verdict == "proved"
    assert [outcome.right for outcome in execute(algo, 1)] == [False, True]


def test_a_race_of_in_place_only() -> None:
    """Two thread blocks, one reading the input, one writing the output."""
    algo = put(direct("alltoall", 2), 0, 0, [move("cpy", ("i", 0), ("o", 0))])
    assert verify_msccl(replace(algo, inplace=True)).verdict == "proved"
    blocks = algo.gpus[0].blocks
    split = (
        ThreadBlock(1, -1, 0, blocks[1].steps[:1]),
        ThreadBlock(-1, 1, 0, (blocks[1].steps[1],)),
    )
    apart = replace(algo, gpus=(replace(algo.gpus[0], blocks=(blocks[0], *split)), algo.gpus[1]))
    assert verify_msccl(apart).verdict == "proved"
    verdict = verify_msccl(replace(apart, inplace=True))
    assert (verdict.kind, verdict.mode) == (Kind.RACE, IN_PLACE)
    assert verdict.witness == (StepId(0, 1, 0), StepId(0, 2, 0))


def test_copy_onto_itself_is_no_race() -> None:
    algo = replace(direct("allgather", 2), outofplace=False)
    assert algo.step(StepId(0, 0, 0)).type == "cpy"
    assert verify_msccl(algo).verdict == "proved"
    elsewhere = with_step(algo, StepId(0, 0, 0), dstoff=1)
    assert verify_msccl(elsewhere).kind == Kind.RACE


# ---------------------------------------------------------------------------------------------- races


def test_race_names_the_two_steps() -> None:
    algo = pairs_allreduce(3)
    place = next(p for p, step in algo.steps() if step.depid >= 0 and step.type == "re")
    verdict = verify_msccl(with_step(algo, place, depid=-1, deps=-1))
    assert (verdict.verdict, verdict.kind, verdict.gpu, verdict.chunk) == ("refuted", Kind.RACE, 0, 1)
    assert verdict.witness == (StepId(0, 1, 1), StepId(0, 0, 3))
    assert verdict.reason == (
        "race on s[1] of gpu 0: gpu 0 tb 1 step 1 (r) writes it and gpu 0 tb 0 step 3 (re) reads it, "
        "and nothing orders the two"
    )


@pytest.mark.parametrize(
    ("first", "second", "race"),
    [
        (move("cpy", ("i", 0), ("s", 0)), move("cpy", ("i", 1), ("s", 0)), True),
        (move("cpy", ("i", 0), ("s", 0)), move("cpy", ("i", 0), ("s", 1)), False),
        (move("cpy", ("i", 0), ("s", 0)), move("re", ("i", 1), ("i", 0)), True),
        (move("cpy", ("i", 0), ("s", 0), 2), move("cpy", ("i", 2), ("s", 1), 2), True),
        (move("cpy", ("i", 0), ("s", 0), 2), move("cpy", ("i", 2), ("s", 2), 2), False),
        (move("cpy", ("i", 0), ("s", 0)), move("nop", ("s", 0), ("s", 0)), False),
    ],
)
def test_conflicts_of_two_unordered_steps(first: XmlStep, second: XmlStep, race: bool) -> None:
    assert (verify_msccl(local([[first], [second]])).kind == Kind.RACE) == race
    ordered = [replace(first, hasdep=True)], [replace(second, depid=0, deps=0)]
    assert verify_msccl(local(list(ordered))).kind is None
    through_nop = [on("nop", "s", 0, 0, depid=0, deps=0), second]
    assert verify_msccl(local([ordered[0], through_nop])).kind is None


def test_step_that_overwrites_what_it_reads() -> None:
    verdict = verify_msccl(local([[move("cpy", ("i", 0), ("i", 1), 2)]]))
    assert (verdict.kind, verdict.chunk) == (Kind.RACE, 1)
    assert verdict.witness == (StepId(0, 0, 0), StepId(0, 0, 0))
    assert verify_msccl(local([[move("cpy", ("i", 0), ("i", 2), 2)]])).kind is None
    assert verify_msccl(local([[move("re", ("i", 0), ("i", 0), 2)]])).kind is None


def test_message_order_counts_as_order() -> None:
    """The broadcast half of the tree needs its dependency only at the root: the others' order comes by messages."""
    algo = tree_allreduce(3)
    for gpu in (1, 2):
        free = with_step(algo, StepId(gpu, 1, 0), depid=-1, deps=-1)
        assert verify_msccl(free).verdict == "proved"
    assert verify_msccl(with_step(algo, StepId(0, 1, 0), depid=-1, deps=-1)).kind == Kind.RACE


def test_free_slots_do_not_order_accesses() -> None:
    """With one slot the second send comes after the first receive, but deeper FIFOs must not turn it into a race."""
    zero = [[move("s", ("i", 0), ("s", 0)), move("s", ("i", 0), ("s", 1))], [move("r", ("i", 0), ("i", 1))]]
    one = [[move("r", ("i", 0), ("s", 0)), move("r", ("i", 0), ("s", 1))], [on("s", "i", 0)]]
    zero[1].insert(0, on("nop", "i", 0))
    gpus = []
    for g, lists in enumerate((zero, one)):
        first = ThreadBlock(1 if g == 0 else -1, -1 if g == 0 else 0, 0, tuple(lists[0]))
        second = ThreadBlock(-1 if g == 0 else 0, 1 if g == 0 else -1, 1, tuple(lists[1]))
        gpus.append(Gpu(2, 2, 2, (first, second)))
    algo = algorithm("custom", 2, gpus)
    assert verify_msccl(algo, 1).kind is None
    # Now gpu 0's second send reads what its other block receives; only a full FIFO could order the two.
    raced = with_step(algo, StepId(0, 0, 1), srcoff=1)
    assert verify_msccl(raced, 1).kind == Kind.RACE
    assert verify_msccl(raced, 8).kind == Kind.RACE


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 14).flatmap(lambda n: st.lists(st.sets(st.integers(0, n - 1)), min_size=n, max_size=n)))
def test_happens_before_is_the_transitive_closure(backward: list[set[int]]) -> None:
    """Bitsets against networkx, on random graphs (edges from smaller numbers only, so acyclic)."""
    graph = tuple(tuple(sorted(p for p in before if p < n)) for n, before in enumerate(backward))
    line = topological(graph)
    position, ancestors = ancestor_sets(graph, line)
    reference = nx.DiGraph((p, n) for n, before in enumerate(graph) for p in before)
    reference.add_nodes_from(range(len(graph)))
    assert sorted(line) == list(range(len(graph)))
    for node in range(len(graph)):
        found = {other for other in range(len(graph)) if ancestors[node] >> position[other] & 1}
        assert found == nx.ancestors(reference, node)


# ---------------------------------------------------------------------------------------------- messages, deadlock


def test_unmatched_shared_and_uneven_messages() -> None:
    algo = direct("allgather", 2)
    lost = verify_msccl(put(algo, 1, 1, [algo.step(StepId(1, 1, 0))]))
    assert (lost.kind, lost.witness) == (Kind.UNMATCHED, (StepId(0, 1, 0),))
    assert "is send number 1 on the FIFO from gpu 0 to gpu 1 on channel 0, which has no receive" in lost.reason
    waiting = verify_msccl(put(algo, 1, 1, [algo.step(StepId(1, 1, 1))]))
    assert (waiting.kind, waiting.witness) == (Kind.UNMATCHED, (StepId(0, 1, 1),))
    assert "is receive number 1 on the FIFO from gpu 1 to gpu 0" in waiting.reason
    uneven = verify_msccl(with_step(direct("allgather", 2, 2), StepId(1, 1, 1), cnt=1))
    assert (uneven.kind, uneven.witness) == (Kind.SIZE, (StepId(0, 1, 0), StepId(1, 1, 1)))
    block = algo.gpus[0].blocks[1]
    shared = replace(algo.gpus[0], blocks=(*algo.gpus[0].blocks, block))
    twice = verify_msccl(replace(algo, gpus=(shared, algo.gpus[1])))
    assert (twice.kind, twice.witness) == (Kind.SHARED, (StepId(0, 1, 0), StepId(0, 2, 0)))


def test_channels_are_separate_fifos() -> None:
    algo = ring_allreduce(3, channels=2)
    block = algo.gpus[0].blocks[1]
    moved = replace(algo.gpus[0], blocks=(algo.gpus[0].blocks[0], replace(block, chan=0)))
    assert verify_msccl(algo).verdict == "proved"
    assert verify_msccl(replace(algo, gpus=(moved, *algo.gpus[1:]))).kind == Kind.SHARED


def exchange(part: int) -> Algorithm:
    """Allgather on two GPUs that send all their `part` chunks one by one before they receive any."""
    gpus = []
    for g in range(2):
        steps = [move("s", ("i", c), ("o", 0)) for c in range(part)]
        steps += [move("r", ("i", 0), ("o", (1 - g) * part + c)) for c in range(part)]
        gpus.append(Gpu(part, 2 * part, 0, (ThreadBlock(1 - g, 1 - g, 0, tuple(steps)),)))
    return algorithm("allgather", 2 * part, gpus, inplace=True, outofplace=False)


@pytest.mark.parametrize(("part", "slots"), [(1, 1), (3, 2), (3, 3), (8, 8), (9, 8), (5, 1)])
def test_bounded_fifos_deadlock(part: int, slots: int) -> None:
    verdict = verify_msccl(exchange(part), slots)
    outcomes = [execute(exchange(part), seed, slots)[0] for seed in range(5)]
    if part <= slots:
        assert verdict.verdict == "proved" and all(outcome.right for outcome in outcomes)
        return
    assert verdict.kind == Kind.DEADLOCK and not any(outcome.finished for outcome in outcomes)
    assert "waits for the slot that gpu 1 tb 0 step" in verdict.reason and verdict.reason.startswith("deadlock: ")


def test_default_is_eight_slots() -> None:
    assert verify_msccl(exchange(8)).verdict == "proved"
    assert verify_msccl(exchange(9)).kind == Kind.DEADLOCK
    for bad in (0, -1, True, 2.0, None):
        with pytest.raises(InputError, match="expected a whole number of at least 1"):
            verify_msccl(exchange(1), bad)  # type: ignore[arg-type]


def test_fused_steps_hold_their_slot_until_the_message_is_on_its_way() -> None:
    """In a ring of receive-and-forward steps with one slot every GPU waits for the next one's."""
    algo = ring_allreduce(4)
    verdict = verify_msccl(algo, 1)
    assert verdict.kind == Kind.DEADLOCK and len(verdict.witness) == 4
    assert {place.gpu for place in verdict.witness} == {0, 1, 2, 3}
    assert not any(execute(algo, seed, 1)[0].finished for seed in range(5))
    assert verify_msccl(algo, 2).verdict == "proved"
    assert all(execute(algo, seed, 2)[0].right for seed in range(5))


def test_cycle_of_dependencies_and_messages() -> None:
    steps = [[on("nop", "i", 0, 0, depid=1, deps=0), on("cpy", "i", 0, hasdep=True)]]
    steps.append([on("cpy", "i", 1, hasdep=True, depid=0, deps=1)])
    verdict = verify_msccl(local(steps))
    assert verdict.kind == Kind.DEADLOCK
    assert set(verdict.witness) == {StepId(0, 0, 0), StepId(0, 0, 1), StepId(0, 1, 0)}
    follows = dict(zip(verdict.witness, verdict.witness[1:] + verdict.witness[:1], strict=True))
    assert follows[StepId(0, 0, 0)] == StepId(0, 1, 0) and follows[StepId(0, 1, 0)] == StepId(0, 0, 1)
    receives_first = put(exchange(1), 0, 0, list(exchange(1).gpus[0].blocks[0].steps[::-1]))
    assert verify_msccl(receives_first).verdict == "proved"
    both = put(receives_first, 1, 0, list(exchange(1).gpus[1].blocks[0].steps[::-1]))
    assert verify_msccl(both).kind == Kind.DEADLOCK


def test_waits_for_flags_that_are_never_or_late_posted() -> None:
    copy = move("cpy", ("i", 0), ("s", 0))
    waiting = move("cpy", ("s", 0), ("o", 0), depid=0, deps=0)
    never = verify_msccl(local([[copy], [waiting]]))
    assert (never.kind, never.witness) == (Kind.UNPOSTED, (StepId(0, 1, 0), StepId(0, 0, 0)))
    assert "hasdep must be 1" in never.reason
    late = [copy, on("cpy", "i", 1, hasdep=True)]
    assert verify_msccl(local([late, [waiting]])).kind is None
    by_nop = verify_msccl(local([[copy, on("nop", "i", 0, hasdep=True)], [waiting]]))
    assert by_nop.kind == Kind.UNPOSTED
    # The flag comes only after a step that itself waits for the waiter.
    circle = [copy, on("cpy", "i", 1, hasdep=True, depid=1, deps=0)]
    stuck = verify_msccl(local([circle, [replace(waiting, hasdep=True)]]))
    assert stuck.kind == Kind.DEADLOCK and "(for step 0, which doesn't post)" in stuck.reason


def test_nops_that_the_runtimes_do_not_fold_are_warned_of() -> None:
    lone = on("nop", "i", 0, 0)
    post = move("cpy", ("i", 0), ("s", 0), hasdep=True)
    waits = on("nop", "i", 0, 0, depid=0, deps=0)
    verdict = verify_msccl(local([[post], [lone, waits, move("cpy", ("s", 0), ("o", 0))]]))
    assert verdict.verdict == "unknown"
    assert [text.split(":")[0] for text in verdict.warnings] == [
        "gpu 0 tb 1 step 0 is a nop without a dependency",
        "gpu 0 tb 1 step 1 is a nop before a step without a dependency",
    ]
    assert verify_msccl(pairs_allreduce(4)).warnings == ()


def test_offsets_outside_the_buffers() -> None:
    algo = ring_allreduce(2)
    beyond = verify_msccl(with_step(algo, StepId(1, 0, 2), dstoff=2))
    assert (beyond.kind, beyond.gpu, beyond.chunk, beyond.witness) == (Kind.BOUNDS, 1, 2, (StepId(1, 0, 2),))
    assert "writes i[2], but gpu 1 has 2 chunks there" in beyond.reason
    wide = replace(algo, gpus=tuple(replace(gpu, i_chunks=9) for gpu in algo.gpus))
    assert verify_msccl(wide).verdict == "proved"
    assert "9 declared, nchunksperloop gives 2" in verify_msccl(with_step(wide, StepId(1, 0, 2), dstoff=2)).reason
    assert verify_msccl(with_step(algo, StepId(0, 0, 0), dstoff=99)).verdict == "proved"  # nobody reads a sender's dst
    assert verify_msccl(with_step(algo, StepId(0, 0, 0), cnt=3)).kind == Kind.BOUNDS


def test_reason_names_the_line() -> None:
    text = write_msccl(ring_allreduce(3))
    algo = parse_msccl(text.encode(), "ring.xml")
    verdict = verify_msccl(with_step(algo, StepId(1, 0, 1), type="rcs"))
    line = int(verdict.reason.split("line ")[1].split(")")[0])
    assert 'type="rcs" srcbuf="i" srcoff="0"' in text.splitlines()[line - 1]
