"""Programs run for real on MPI: every element compared, wrong ones wrong where `verify` says, hangs ended and told."""

from __future__ import annotations

import random
import time
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


def test_programs_of_eight_ranks_run_right_on_mpi() -> None:
    """All two-factor programs, a sample of three-factor ones, replicas and other hierarchies, in one launch."""
    need("mpi")
    two, other, three = scripts((2, 4)), scripts((4, 2)), scripts((2, 2, 2), sample=100)
    assert (len(two), len(other)) == (93, 93)
    more = [one for some in hierarchy_scripts().values() for one in some]
    assert len(more) >= 30
    assert any(len(one.goal_groups) > 1 for one in more)
    assert_right(run_scripts([*two, *other, *three, *more]))


@pytest.mark.full
@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 2, 3), (3, 2, 2), (2, 2, 4)])
def test_all_three_factor_programs_run_right_on_mpi(sizes: tuple[int, ...]) -> None:
    need("mpi")
    found = scripts(sizes)
    assert len(found) == 1635
    assert_right(run_scripts(found, patience=120))


def test_other_goals_and_fewer_elements_than_pieces_run_right() -> None:
    need("mpi")
    found = scripts((2, 3), sample=12)
    assert max(one.pieces for one in found) == 6
    for collective in ("ReduceScatter", "AllGather", "Reduce", "Broadcast"):
        problem, lowering = whole(2, 3, collective=collective)
        programs = all_programs(problem, lowering)
        chosen = random.Random(collective).sample(programs, min(12, len(programs)))
        found += [script_of(problem, lowering, program) for program in chosen]
    assert {one.goal for one in found} == set(Collective)
    assert_right(run_scripts(found, elements=5))


@pytest.mark.full
@pytest.mark.parametrize("elements", [1, 2, 37, 1024])
def test_any_count_runs_right(elements: int) -> None:
    need("mpi")
    assert_right(run_scripts(scripts((2, 3)), elements=elements, seed=elements))


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


@pytest.mark.parametrize(
    ("ranks", "wrong"),
    [(4, 9), (8, 3), *(pytest.param(*one, marks=pytest.mark.full) for one in ((3, 0), (6, 1), (7, 1)))],
)
def test_what_goes_wrong_in_the_field_goes_wrong_for_real_where_verify_says(ranks: int, wrong: int) -> None:
    need("mpi")
    outcomes = []
    for ran in run_scripts([one for one in field_scripts() if one.devices == ranks], elements=101):
        said = ran.script.verdict
        assert ran.outcome == ("right" if ran.script.proved else "wrong"), ran.reason
        assert ran.agrees
        if ran.outcome == "wrong":
            assert (ran.rank, ran.chunk) == (said.device, said.chunk)
        outcomes.append(ran.outcome)
    assert outcomes.count("wrong") == wrong and outcomes.count("right") >= 1


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


def test_random_schedules_run_as_verify_says() -> None:
    need("mpi")
    mean = plain(
        4,
        Entry(Collective.REDUCE_SCATTER, ((2, 1, 3, 0),)),
        Entry(Collective.ALL_REDUCE, PAIRS),
        goal=Goal(Collective.REDUCE_SCATTER, ((2, 1, 3, 0),)),
    )
    partial = plain(4, Entry(Collective.ALL_REDUCE, ((0, 1, 3),)), goal=Goal(groups=((0, 1, 3),)))
    one, two, *ran = run_scripts([mean, partial, *random_scripts(100, 4)], elements=37)
    assert (one.outcome, one.rank, one.chunk, one.agrees) == ("wrong", 0, 3, True)  # no sum of two is the one between
    assert_right([two])  # rank 2, outside the goal, keeps what it had
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
    assert (one.outcome, one.rank, one.chunk, one.agrees) == ("wrong", 0, 0, None)  # no proof speaks of it
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
    first, hung, after = run_scripts([found] * 3, texts=[None, left, None], patience=3, elements=50_000 // 4)
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
    number = broken[: broken.index("'no memory'")].count("\n") + 1
    assert ran.reason == f"rank 3: ValueError: no memory (line {number} of the module)"


@pytest.mark.parametrize(
    ("dies", "words"),
    [
        ("os._exit(7)", "rank 2: ended early, with exit code 7"),
        ("os._exit(0)", "rank 2: ended early, with exit code 0"),
        ("os.kill(os.getpid(), 11)", "rank 2: was ended by signal 11 (SIGSEGV, Segmentation fault)"),
        ("os.kill(os.getpid(), 9)", "rank 2: was ended by signal 9 (SIGKILL, Killed)"),
    ],
)
def test_a_rank_that_dies_is_named_with_its_end(dies: str, words: str) -> None:
    need("mpi")
    found = plain(4, Entry(Collective.ALL_REDUCE, EVERYONE))
    text = mpi4py_text(found).replace(
        "    # 1.", f"    import os\n    if MPI.COMM_WORLD.rank == 2:\n        {dies}\n    # 1."
    )
    (ran,) = run_scripts([found], texts=[text])
    assert (ran.outcome, ran.rank, ran.reason) == ("error", 2, words)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("5", "returned 5 (of type int)"),
        ("'abc'", "returned 'abc' (of type str)"),
        ("object()", "returned <object object at "),
        ("values.astype(float)", "returned an array of float64"),
        ("values.reshape(1, -1)", "returned an array of shape (1, 7)"),
        ("np.array(values[:5])", "rank 1 ends with 5 elements instead of 7"),
    ],
)
def test_a_module_that_returns_what_it_should_not(value: str, words: str) -> None:
    need("mpi")
    found = plain(2, Entry(Collective.ALL_REDUCE, ((0, 1),)))
    text = mpi4py_text(found) + f"    if MPI.COMM_WORLD.rank == 1:\n        return {value}\n"
    ran, after = run_scripts([found] * 2, texts=[text, None], elements=7)
    assert (ran.outcome, ran.rank, after.outcome) == ("wrong", 1, "right")
    assert words in ran.reason
    if "returned" in words:
        assert ran.reason.endswith("on rank 1; expected None or an array of integers in one row")


def write(folder: Path, files: dict[str, str]) -> launch.Stop:
    """Why a launch of four ranks that left these files ended."""
    for name, text in files.items():
        (folder / name).write_text(text)
    return launch._broken(launch.Watch(folder, 4))


def test_the_first_cause_comes_before_its_consequences(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch.time, "sleep", lambda seconds: None)
    reset = "RuntimeError: [pair.cc:537] Read error [127.0.0.1]:7059: Connection reset by peer"
    noise = "===\n=   BAD TERMINATION\n=   EXIT CODE: 9\n===\nPlease see the FAQ page for debugging suggestions\n"
    files = {"output": f"no such host\n{noise}"}
    assert write(tmp_path, files).ranks == ((None, "no such host"),)
    assert write(tmp_path, {"error_0": reset}).ranks == ((0, reset),)
    assert write(tmp_path, {"exit_3": "-9\n"}).ranks == ((3, "was ended by signal 9 (SIGKILL, Killed)"),)
    assert write(tmp_path, {"exit_1": "-11\n"}).ranks[0][0] == 1
    assert write(tmp_path, {"error_1": "ValueError: x"}).ranks == ((1, "ValueError: x"),)


def test_an_interrupt_keeps_what_was_done_and_ends_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    need("mpi")
    found = plain(4, Entry(Collective.ALL_REDUCE, EVERYONE))
    sleeps = mpi4py_text(found).replace("    # 1.", "    import time\n    time.sleep(100)\n    # 1.")
    seen: list[int] = []
    look = launch.Watch.look

    def interrupted(watch: launch.Watch) -> int:
        events = look(watch)
        if watch.current == 1:
            seen[:] = watch.pids
            raise KeyboardInterrupt
        return events

    monkeypatch.setattr(launch.Watch, "look", interrupted)
    first, *others = run_scripts([found] * 3, texts=[None, sleeps, None])
    assert first.outcome == "right"
    assert [(one.outcome, one.reason) for one in others] == [("not run", "interrupted")] * 2
    assert len(seen) == 4
    for _ in range(100):
        alive = [pid for pid in seen if is_alive(pid)]
        if not alive:
            break
        time.sleep(0.1)
    assert not alive


def is_alive(pid: int) -> bool:
    """Whether a process runs: it is there, and no zombie that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# --- bad input ---


def test_a_sane_number_of_processes() -> None:
    need("mpi")
    everyone = (tuple(range(MAX_RANKS + 1)),)
    with pytest.raises(InputError, match="17 processes; expected 2 to 16 on one machine"):
        run_scripts([plain(MAX_RANKS + 1, Entry(Collective.ALL_REDUCE, everyone))])
    with pytest.raises(InputError, match="1 process; expected 2 to 16"):
        run_scripts([plain(1)])


def test_arguments_that_make_no_sense() -> None:
    need("mpi")
    one = plain(4, Entry(Collective.ALL_REDUCE, EVERYONE))
    with pytest.raises(InputError, match="elements: is 0; expected 1 to"):
        run_scripts([one], elements=0)
    with pytest.raises(InputError, match="elements: is 1000000000; expected 1 to"):
        run_scripts([one], elements=10**9)
    with pytest.raises(InputError, match="time limit: is 0 s"):
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


def test_an_mpiexec_of_another_mpi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("mpi")
    other = tmp_path / "mpiexec"
    other.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')  # starts ranks that know of no others
    other.chmod(0o755)
    monkeypatch.setattr(launch, "find_mpiexec", lambda: str(other))
    with pytest.raises(InputError, match="no MPI library that goes with this mpiexec; expected pip install .*run"):
        run_scripts([plain(2, Entry(Collective.ALL_REDUCE, ((0, 1),)))])


def test_an_mpiexec_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(launch, "find_mpiexec", lambda: None)
    with pytest.raises(InputError, match="there is no mpiexec; expected pip install 'smtsynth\\[run\\]'"):
        launch.check_backend("mpi")
