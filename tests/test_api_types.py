"""Arguments of wrong types are refused in one line that names them, as bad files are; never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from conftest import A100, problem

from smtsynth import (
    Axis,
    Collective,
    Entry,
    Form,
    Goal,
    InputError,
    Instruction,
    Level,
    Limits,
    NamedReduction,
    Problem,
    Reduction,
    Schedule,
    System,
    Workload,
    compare,
    count_placements,
    enumerate_programs,
    lower,
    parse_program,
    placements,
    read_problem,
    simulate,
    solve,
    solve_workload,
)

GIVEN = problem(A100, (64,), (0,), "1 GiB")
MATRIX = [[4, 16]]
STEP = Workload(A100, {"a": 64}, [NamedReduction("r", Reduction(["a"], 8))])
TWICE = Entry(Collective.ALL_REDUCE, ((0, 1),))
WRONG: list[tuple[str, Callable[[], object]]] = [
    ("time_limit: is '5 s'; expected a positive number of seconds", lambda: solve(GIVEN, time_limit="5 s")),
    ("time_limit: is nan", lambda: solve(GIVEN, time_limit=float("nan"))),
    ("time_limit: is inf", lambda: compare(GIVEN, time_limit=float("inf"))),
    ("time_limit: is True", lambda: solve(GIVEN, time_limit=True)),
    ("memory_limit: is '2 GiB'; expected a positive whole number of bytes", lambda: solve(GIVEN, memory_limit="2 GiB")),
    ("memory_limit: is 4000000000.0", lambda: solve(GIVEN, memory_limit=4e9)),
    ("time: is '60 s'", lambda: Limits(seconds="60 s")),
    ("memory: is 2.5", lambda: Limits(memory=2.5)),
    ("steps: is '5'", lambda: solve(GIVEN, steps="5")),
    ("jobs: is '2'", lambda: solve(GIVEN, jobs="2")),
    ("instruction set [] is unknown", lambda: solve(GIVEN, instruction_set=[])),
    ("hierarchy 5 is unknown", lambda: lower(GIVEN, MATRIX, 5)),
    ("encoding [] is unknown", lambda: solve(GIVEN, encoding=[])),
    ("cost_model: is 'paper'; expected a cost model", lambda: solve(GIVEN, cost_model="paper")),
    ("cost_model: is 5", lambda: enumerate_programs(GIVEN, MATRIX, cost_model=5)),
    ("progress: is 5", lambda: solve(GIVEN, progress=5)),
    ("wrong number of rows", lambda: solve(GIVEN, "[[4,16]]")),
    ("entry of the placement is '16'", lambda: solve(GIVEN, [[4, "16"]])),
    ("problem: is None; expected a Problem", lambda: solve(None)),
    ("problem: is 5", lambda: compare(5)),
    ("problem: is 5", lambda: simulate(5, "", MATRIX)),
    ("problem: is 5", lambda: enumerate_programs(5, MATRIX)),
    ("problem: is 5", lambda: lower(5, MATRIX)),
    ("program: is None; expected a list of Instruction, or text", lambda: simulate(GIVEN, None, MATRIX)),
    ("step 1: is 'AllReduce'; expected an Instruction", lambda: simulate(GIVEN, ["AllReduce"], MATRIX)),
    ("steps: is 5", lambda: simulate(GIVEN, Schedule(64, 5))),
    ("step 1: is Entry", lambda: simulate(GIVEN, Schedule(64, (TWICE,)))),
    ("step 1: is 5; expected a tuple of Entry", lambda: simulate(GIVEN, Schedule(64, ((5,),)))),
    ("collective 'Gossip'", lambda: simulate(GIVEN, Schedule(64, ((Entry("Gossip", ((0, 1),)),),)))),
    ("step 1: are no groups", lambda: Schedule(4, ((Entry(Collective.REDUCE, (("a", "b"),)),),)).verify()),
    ("goal: is 5; expected a Goal", lambda: Schedule(4, goal=5).verify()),
    ("devices: is 4; expected a whole number", lambda: Schedule("4").all_reduce([[0, 1]])),
    ("step: is 5; expected an Entry", lambda: Schedule(4).at_once(5)),
    ("roots: are no groups", lambda: Schedule(4).reduce([[0, 1]], 5)),
    ("roots: are no groups", lambda: Schedule(4).with_goal("Reduce", roots=5)),
    ("system: is 5; expected a System", lambda: placements(5, {"a": 64})),
    ("axes: is 5; expected {name: size} or a list of Axis", lambda: placements(A100, 5)),
    ("axes: is 'a'", lambda: count_placements(["a"], A100)),
    ("size of axis 'a' is '64'", lambda: placements(A100, {"a": "64"})),
    ("levels: is 1; expected a list of Level", lambda: System([1])),
    ("levels: is 5", lambda: System(5)),
    ("levels: is 'ab'", lambda: System("ab")),
    ("topology: is 5", lambda: System(A100.levels, topology=5)),
    ("overhead: '5' has no unit", lambda: System(A100.levels, overhead="5")),
    ("copy: '5' has no unit", lambda: System(A100.levels, copy="5")),
    ("level 'a': bandwidth: '8' has no unit; expected one of B/s", lambda: Level("a", 2, "8")),
    ("level 'a': latency: '5' has no unit", lambda: Level("a", 2, "8 GB/s", "5")),
    ("level 'a': per_device: '5' has no unit", lambda: Level("a", 2, "8 GB/s", per_device="5")),
    ("level 'a': per_group: '5' has no unit", lambda: Level("a", 2, "8 GB/s", per_group="5")),
    ("bandwidth: None is not a quantity", lambda: Level("a", 2, None)),
    ("dims 22 do not fit", lambda: Level("a", 4, 8, kind="torus", dims="22")),
    ("dims 5 do not fit", lambda: Level("a", 4, 8, kind="torus", dims=5)),
    ("dims [2.0, 2.0] do not fit", lambda: Level("a", 4, 8, kind="torus", dims=[2.0, 2.0])),
    ("over: is 5; expected names of axes", lambda: Reduction([5], 8)),
    ("over: no axis to reduce over", lambda: Reduction(5, 8)),
    ("bytes: [] is not a quantity", lambda: Reduction(["a"], [])),
    ("collective: '5' is unknown", lambda: Reduction(["a"], 8, 5)),
    ("system: is 5; expected a System", lambda: Problem(5, {"a": 64}, Reduction(["a"], 8))),
    ("axes: is 5", lambda: Problem(A100, 5, Reduction(["a"], 8))),
    ("reduction: is 5", lambda: Problem(A100, {"a": 64}, 5)),
    ("limits: is 5", lambda: Problem(A100, {"a": 64}, Reduction(["a"], 8), 5)),
    ("cost_model: is 'paper'", lambda: Problem(A100, {"a": 64}, Reduction(["a"], 8), cost_model="paper")),
    ("axis name '5'", lambda: Axis(5, 5)),
    ("program: is 5; expected text", lambda: parse_program(5, ("root",))),
    ("file: is 5; expected a path", lambda: read_problem(5)),
    ("workload: is 5; expected a Workload", lambda: solve_workload(5)),
    ("time_limit: is 'now'", lambda: solve_workload(STEP, time_limit="now")),
    ("system: is 5", lambda: Workload(5, {"a": 64}, [])),
    ("reductions: is Reduction", lambda: Workload(A100, {"a": 64}, [Reduction(["a"], 8)])),
    ("reductions: is 5; expected a list of NamedReduction", lambda: Workload(A100, {"a": 64}, 5)),
    ("constraints: is 'a'", lambda: Workload(A100, {"a": 64}, STEP.reductions, constraints=["a"])),
    ("cost_model: is 'paper'", lambda: Workload(A100, {"a": 64}, STEP.reductions, cost_model="paper")),
    ("reduction 'r': is 5; expected a Reduction", lambda: NamedReduction("r", 5)),
    ("goal: has no group 1 with a device", lambda: Goal().root(1)),
    ("goal: has no group 1 with a device", lambda: Goal(groups=((0, 1),)).root(1)),
    ("goal: has no group 0 with a device", lambda: Goal(groups=((),)).root(0)),
]


@pytest.mark.parametrize(("words", "call"), WRONG, ids=[f"{number} {words}" for number, (words, _) in enumerate(WRONG)])
def test_one_line_names_the_argument(words: str, call: Callable[[], object]) -> None:
    with pytest.raises(InputError) as refused:
        call()
    assert words in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "instruction"),
    [
        ("step 2: collective: is 'AllReduce'", Instruction("AllReduce", 0, Form.INSIDE_GROUP)),
        ("step 2: form: is 'InsideGroup'", Instruction(Collective.ALL_REDUCE, 0, "InsideGroup")),
        ("step 2: slice: is 3; expected a depth, 0 to 2", Instruction(Collective.ALL_REDUCE, 3, Form.INSIDE_GROUP)),
        ("step 2: ancestor: is None; expected a depth above", Instruction(Collective.ALL_REDUCE, 1, Form.PARALLEL)),
        ("step 2: ancestor: is 1; expected a depth above", Instruction(Collective.REDUCE, 1, Form.MASTER, 1)),
        ("step 2: ancestor: is 0; expected None", Instruction(Collective.REDUCE, 1, Form.INSIDE_GROUP, 0)),
    ],
)
def test_instructions_made_by_hand_are_checked(words: str, instruction: Instruction) -> None:
    first = Instruction(Collective.REDUCE_SCATTER, 1, Form.INSIDE_GROUP)
    with pytest.raises(InputError) as refused:
        simulate(GIVEN, (first, instruction), MATRIX)
    assert str(refused.value).startswith(words)
    assert len(simulate(GIVEN, [first, Instruction(Collective.ALL_REDUCE, 1, Form.PARALLEL, 0)], MATRIX)) == 2


def test_plain_numbers_are_in_base_units() -> None:
    assert Level("a", 2, 8, 0.5, 4) == Level("a", 2, "8 B/s", "500 ms", "4 B/s")
    assert Limits(seconds=Fraction(1, 2), memory=2**31).seconds == 0.5
    assert solve(GIVEN, MATRIX, time_limit=Fraction(60)).cost == solve(GIVEN, MATRIX, time_limit=60.0).cost is not None


def test_axes_are_names_and_sizes_or_objects() -> None:
    assert count_placements({"a": 4, "b": 16}, A100) == count_placements([Axis("a", 4), Axis("b", 16)], A100) == 3


def test_a_goals_root_is_the_one_named_else_the_first() -> None:
    assert Goal(groups=((3, 1), (2, 0)), roots=(1, 2)).root(0) == 1
    assert Goal(groups=((3, 1), (2, 0))).root(1) == 2
    assert Goal(Collective.REDUCE).root(0) == 0  # of one group of all devices
