"""Programs run for real on MPI: every element compared, wrong ones wrong where `verify` says, hangs ended and told."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from run_support import SPLIT, all_programs, assert_right, hierarchy_scripts, need, one_script, plain, scripts, whole
from verify_support import random_schedule

from smtsynth import InputError
from smtsynth.execute import launch
from smtsynth.execute.run import MAX_RANKS, run_scripts
from smtsynth.export.goals import script_of
from smtsynth.export.mpi4py_program import mpi4py_text
from smtsynth.export.script import Script, script
from smtsynth.interfaces.programs import read_program_or_schedule
from smtsynth.model.program import Collective
from smtsynth.model.schedule import Entry, Goal, Schedule

FIELD = Path(__file__).parent / "verify"
PAIRS, ACROSS = ((0, 1), (2, 3)), ((0, 2), (1, 3))
EVERYONE = ((0, 1, 2, 3),)


def test_all_two_factor_programs_and_a_sample_of_three_factor_ones_run_right_on_mpi() -> None:
    need("mpi")
    two, other, three = scripts((2, 4)), scripts((4, 2)), scripts((2, 2, 2), sample=100)
    assert (len(two), len(other)) == (93, 93)
    assert_right(run_scripts([*two, *other, *three]))  # eight ranks each: one launch


@pytest.mark.full
@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 2, 3), (3, 2, 2), (2, 2, 4)])
def test_all_three_factor_programs_run_right_on_mpi(sizes: tuple[int, ...]) -> None:
    need("mpi")
    found = scripts(sizes)
    assert len(found) == 1635
    assert_right(run_scripts(found, patience=120))


def test_uneven_counts_run_right() -> None:
    need("mpi")
    found = scripts((2, 3), sample=12)
    for elements in (1, 37):  # fewer than pieces, and a prime
        assert_right(run_scripts(found, elements=elements, seed=elements))


def test_replicas_and_other_hierarchies_run_right() -> None:
    need("mpi")
    found = [one for some in hierarchy_scripts().values() for one in some]
    assert len(found) >= 50
    assert any(len(one.goal_groups) > 1 for one in found)
    assert_right(run_scripts(found, elements=101))


def test_other_goals_run_right() -> None:
    need("mpi")
    found = []
    for collective in ("ReduceScatter", "AllGather", "Reduce", "Broadcast"):
        problem, lowering = whole(2, 3, collective=collective)
        programs = all_programs(problem, lowering)
        chosen = random.Random(collective).sample(programs, min(12, len(programs)))
        found += [script_of(problem, lowering, program) for program in chosen]
    assert {one.goal for one in found} == set(Collective) - {Collective.ALL_REDUCE}
    assert_right(run_scripts(found, elements=7))


# --- wrong ones ---


def field_scripts() -> list[Script]:
    """The hand-written schedules that go wrong in the field, and their repaired twins, as far as they can be run."""
    found = []
    for file in sorted(FIELD.glob("*.yaml")):
        if "problem" in file.stem:
            continue
        try:
            schedule = read_program_or_schedule(file)
            assert isinstance(schedule, Schedule)
            found.append(script(schedule))
        except InputError:
            continue  # a root outside its group, unequal lengths: refused before anything runs
    return found


def test_what_goes_wrong_in_the_field_goes_wrong_for_real_where_verify_says() -> None:
    need("mpi")
    by_ranks: dict[int, list[Script]] = {}
    for one in field_scripts():
        by_ranks.setdefault(one.devices, []).append(one)
    wrong = 0
    for some in by_ranks.values():
        for ran in run_scripts(some, elements=101):
            said = ran.script.verdict
            assert ran.outcome == ("right" if ran.script.proved else "wrong"), ran.reason
            assert ran.agrees
            if ran.outcome == "wrong":
                assert (ran.rank, ran.chunk) == (said.device, said.chunk)
                wrong += 1
    assert wrong >= 10


def random_scripts(count: int, seed: int) -> list[Script]:
    """Random schedules of four devices that can be run, mostly wrong ones."""
    rng = random.Random(seed)
    found: list[Script] = []
    while len(found) < count:
        schedule = random_schedule(rng)
        if schedule.devices != 4:
            continue
        try:
            one = script(schedule)
            mpi4py_text(one, True)
        except InputError:
            continue
        found.append(one)
    return found


def test_a_sum_of_two_chunks_is_not_taken_for_the_one_between() -> None:
    need("mpi")
    mean = plain(
        4,
        Entry(Collective.REDUCE_SCATTER, ((2, 1, 3, 0),)),
        Entry(Collective.ALL_REDUCE, PAIRS),
        goal=Goal(Collective.REDUCE_SCATTER, ((2, 1, 3, 0),)),
    )
    (ran,) = run_scripts([mean], elements=37)
    assert (ran.outcome, ran.rank, ran.chunk, ran.agrees) == ("wrong", 0, 3, True)


def test_random_schedules_run_as_verify_says() -> None:
    need("mpi")
    ran = run_scripts(random_scripts(150, 4), elements=37)
    assert all(one.agrees for one in ran), [(one.script.schedule, one.reason) for one in ran if not one.agrees][:1]
    assert {one.outcome for one in ran} == {"right", "wrong"}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_many_random_schedules_run_as_verify_says(seed: int) -> None:
    need("mpi")
    ran = run_scripts(random_scripts(1000, 100 + seed), elements=37)
    assert all(one.agrees for one in ran)


def test_a_program_changed_by_hand_is_found_wrong() -> None:
    need("mpi")
    right = one_script(SPLIT, 2, 2)
    text = mpi4py_text(right)
    twice = text.replace(
        "    group.Allreduce(MPI.IN_PLACE, buffer)\n", "    group.Allreduce(MPI.IN_PLACE, buffer)\n" * 2
    )
    rooted = text.replace(
        "    values[...] =", "    if groups['inside_l0'][0].rank == 1:\n        return\n    values[...] ="
    )
    assert twice != text and rooted != text
    one, two, three = run_scripts([right] * 3, texts=[twice, rooted, None])
    assert (one.outcome, one.rank, one.chunk, one.agrees) == ("wrong", 0, 0, False)
    assert (two.outcome, two.rank, two.chunk) == ("wrong", 1, 0)
    assert three.outcome == "right"


# --- hangs and errors ---


def test_a_hang_is_ended_and_the_waiting_ranks_are_named() -> None:
    need("mpi")
    steps = [Entry(Collective.ALL_REDUCE, PAIRS), Entry(Collective.ALL_REDUCE, ACROSS)]
    found = plain(4, *steps)
    text = mpi4py_text(found)
    # rank 2 leaves before the second step, which rank 0 shares with it
    left = text.replace(
        "    # 2. AllReduce",
        "    if groups['step_1'][1] == [2, 3] and groups['step_1'][0].rank == 0:\n        return\n    # 2. AllReduce",
    )
    assert left != text
    first, hung, after = run_scripts([found] * 3, texts=[None, left, None], patience=5, elements=50_000 // 4)
    assert first.outcome == "right"
    assert hung.outcome == "hang"
    waiting = dict(hung.waiting)
    assert waiting[0] == "in step 2 (AllReduce step_2)"
    assert set(waiting) == {0}
    assert "stopped by the time limit" in hung.reason and "rank" in hung.reason
    assert after.outcome == "not run" and after.agrees is None


def test_an_error_on_a_rank_is_told() -> None:
    need("mpi")
    found = plain(4, Entry(Collective.ALL_REDUCE, EVERYONE))
    text = mpi4py_text(found)
    broken = text.replace(
        "    # 1.", "    if groups['step_1'][0].rank == 3:\n        raise ValueError('no memory')\n    # 1."
    )
    (ran,) = run_scripts([found], texts=[broken])
    assert (ran.outcome, ran.rank) == ("error", 3)
    assert "ValueError: no memory" in ran.reason


# --- bad input ---


def test_a_sane_number_of_processes() -> None:
    need("mpi")
    everyone = (tuple(range(MAX_RANKS + 1)),)
    with pytest.raises(InputError, match="17 processes; expected 2 to 16 on one machine"):
        run_scripts([plain(MAX_RANKS + 1, Entry(Collective.ALL_REDUCE, everyone))])
    with pytest.raises(InputError, match="1 processes"):
        run_scripts([plain(1)])


def test_arguments_that_make_no_sense() -> None:
    need("mpi")
    one = plain(4, Entry(Collective.ALL_REDUCE, EVERYONE))
    with pytest.raises(InputError, match="0 elements"):
        run_scripts([one], elements=0)
    with pytest.raises(InputError, match="elements; expected 1 to"):
        run_scripts([one], elements=10**9)
    with pytest.raises(InputError, match="time limit"):
        run_scripts([one], patience=0)
    with pytest.raises(InputError, match="one number in a launch"):
        run_scripts([one, plain(2, Entry(Collective.ALL_REDUCE, ((0, 1),)))])
    with pytest.raises(InputError, match="backend 'nccl' is unknown; expected mpi, gloo, jax"):
        run_scripts([one], "nccl")
    assert run_scripts([]) == []


@pytest.mark.parametrize(
    ("backend", "module", "extra"), [("mpi", "mpi4py", "run"), ("gloo", "torch", "torch"), ("jax", "jax", "jax")]
)
def test_a_library_that_is_missing_and_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, backend: str, module: str, extra: str
) -> None:
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError) as caught:
        launch.check_backend(backend)
    assert (
        str(caught.value) == f"backend {backend}: {module} is not installed; expected pip install 'smtsynth[{extra}]'"
    )


def test_an_mpiexec_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(launch, "find_mpiexec", lambda: None)
    with pytest.raises(InputError, match="there is no mpiexec; expected pip install 'smtsynth\\[run\\]'"):
        launch.check_backend("mpi")


def test_goals_that_leave_ranks_out() -> None:
    need("mpi")
    goal = Goal(groups=((0, 1, 3),))
    ran = run_scripts([plain(4, Entry(Collective.ALL_REDUCE, ((0, 1, 3),)), goal=goal)], elements=9)
    assert_right(ran)  # rank 2 keeps what it had
