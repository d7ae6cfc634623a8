"""Every goal of section 5: classes, words and encodings against the rules; solver against enumeration."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import pytest
from conftest import problem
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth import Form, InputError, Level, Problem, Reduction, Status, System, compare, solve
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.meaning import classes, rules
from smtsynth.meaning.goals import Target, run_rules, target, target_of
from smtsynth.meaning.words import run_words
from smtsynth.model.lowering import lower, lowering_of
from smtsynth.model.placement import placements
from smtsynth.model.program import Collective, Instruction, Program, instruction_set
from smtsynth.search.enumerate import StateGraph, cheapest_programs
from smtsynth.search.inclusions import all_programs
from smtsynth.search.replay import replay
from smtsynth.search.solve import PlacementTask
from smtsynth.solvers.models import all_models

MIB = 2**20
SIZES = [((2,), 3), ((2, 2), 5), ((2, 3), 5), ((2, 2, 2), 4)]
MIXES = [(sizes, split) for sizes in [(2, 2), (2, 3)] for split in product([False, True], repeat=2)]
MIXES += [((2, 2, 2), split) for split in product([False, True], repeat=3)]


def targets() -> list[tuple[Target, int]]:
    every = [(target(sizes, collective), steps) for collective in Collective for sizes, steps in SIZES]
    some = [split for split in MIXES if 0 < sum(split[1]) < len(split[1])]
    return every + [(target(sizes, Collective.REDUCE_SCATTER, split=split), 4) for sizes, split in some]


def name_of(value: object) -> str:
    if isinstance(value, Target):
        split = "".join("s" if flag else "-" for flag in value.split)
        return f"{value.collective}-{'x'.join(map(str, value.sizes))}-{split}"
    return str(value)


@pytest.mark.parametrize(("goal", "steps"), targets(), ids=name_of)
def test_classes_keep_every_program(goal: Target, steps: int) -> None:
    choices = [(one, classes.shape(one, goal.depth)) for one in instruction_set(goal.depth)]
    reached = cache(goal.reached)

    @cache
    def after(state: rules.State) -> list[tuple[Instruction, classes.Shape, rules.State]]:
        found = [(one, groups, rules.step(state, goal.sizes, one)) for one, groups in choices]
        return [(one, groups, new) for one, groups, new in found if not isinstance(new, rules.Failure)]

    @cache
    def programs(state: rules.State, left: int) -> int:
        if reached(state):
            return 1
        return sum(programs(new, left - 1) for _, _, new in after(state)) if left else 0

    @cache
    def kept(state: rules.State, kinds: classes.States, left: int) -> int:
        if reached(state):
            return int(goal.aim.reached(kinds))
        total = 0
        for one, groups, new in after(state) if left else []:
            if programs(new, left - 1):
                then = classes.step(kinds, one.collective, groups)
                total += kept(new, then, left - 1) if then is not None else 0
        return total

    found = programs(goal.start, steps)
    assert found == kept(goal.start, goal.aim.start, steps) > 0


@pytest.mark.parametrize(("goal", "steps"), targets(), ids=name_of)
def test_words_accept_only_what_the_rules_accept(goal: Target, steps: int) -> None:
    """And all of it on these sizes, but for programs that are right on them alone."""
    found = list(all_programs(StateGraph(goal), min(steps, 4)))
    accepted = [program for program in found if run_words(goal.depth, program, aim=goal.aim).proved]
    assert len(accepted) >= 0.9 * len(found)
    for program in accepted:
        larger = Target(tuple(n + 1 for n in goal.sizes), goal.collective, goal.reduced, goal.split)
        assert run_rules(program, larger) is None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_words_never_accept_too_much(data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, 3))
    sizes = tuple(data.draw(st.lists(st.integers(2, 3), min_size=depth, max_size=depth)))
    collective = data.draw(st.sampled_from(list(Collective)))
    goal = target(sizes, collective)
    program: list[Instruction] = []
    state = goal.start
    for _ in range(5):
        options = [
            (one, new)
            for one in instruction_set(depth)
            if not isinstance(new := rules.step(state, sizes, one), rules.Failure)
        ]
        if not options or goal.reached(state):
            break
        one, state = data.draw(st.sampled_from(options))
        program.append(one)
    if run_words(depth, program, aim=goal.aim).proved:
        assert run_rules(tuple(program), goal) is None


def test_assignments() -> None:
    goal = target((2, 2), Collective.REDUCE_SCATTER)
    scattered = rules.run(
        (Instruction(Collective.REDUCE_SCATTER, 0, Form.INSIDE_GROUP),), (2, 2), goal.start, goal.reached
    )
    assert not isinstance(scattered, rules.Failure)
    assert goal.assignment(scattered) == ((0, 1, 2, 3),)
    everything = rules.complete((2, 2))
    assert goal.reached(everything) and goal.assignment(goal.start) is None
    twice = (scattered[0], scattered[0], scattered[2], scattered[3])
    assert not goal.reached(twice), "one chunk at two devices and another at none"
    mixed = target((2, 2), Collective.REDUCE_SCATTER, split=(False, True))
    assert not mixed.reached(scattered) and mixed.reached(everything)


def system(*sizes: int) -> System:
    return System([Level(f"l{n}", size, 10**9 * 6**n, f"{9 - 3 * n} us") for n, size in enumerate(sizes)])


def brute_force(task: PlacementTask) -> int:
    """The least cost over all programs, each walked on its own by the rules and priced on its own."""
    best: list[int] = []

    def walk(state: rules.State, program: Program) -> None:
        if task.target.reached(state):
            best.append(task.cost(program))
        elif len(program) < task.steps:
            for one in task.instructions:
                after = rules.step(state, task.target.sizes, one)
                if not isinstance(after, rules.Failure):
                    walk(after, (*program, one))

    walk(task.target.start, ())
    return min(best)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (2, 2, 2)])
@pytest.mark.parametrize("collective", list(Collective))
def test_solver_enumerator_and_brute_force_agree(sizes: tuple[int, ...], collective: Collective) -> None:
    asked = Problem(system(*sizes), {"a": math.prod(sizes)}, Reduction(["a"], 4 * MIB, collective))
    (placement,) = placements(asked.system, asked.axes)
    steps = 3 if len(sizes) == 3 else 4
    (answer,) = compare(asked, placement, steps=steps)
    assert answer.agree is True and answer.solved.status is Status.OPTIMAL
    lowering = lower(asked.system, placement, (0,))
    goal = target_of(lowering, collective)
    task = PlacementTask(
        Prices(AlphaBeta(), lowering, asked.reduction.payload, collective),
        goal,
        instruction_set(len(sizes)),
        steps,
        "reduced",
    )
    assert brute_force(task) == answer.solved.cost
    assert answer.solved.program is not None and replay(lowering, answer.solved.program, goal).ok
    if len(sizes) == 2:
        by_concrete = solve(asked, placement, steps=3, encoding="concrete")
        assert by_concrete.cost == solve(asked, placement, steps=3).cost


HYBRID = {"shard": "ReduceScatter", "replicate": "AllReduce"}


@pytest.mark.parametrize("hierarchy", ["reduction", "reduction-factors"])
@pytest.mark.parametrize("levels", [(2, 2), (2, 3), (2, 2, 2), (2, 4)])
def test_hybrid_mix_agrees(levels: tuple[int, ...], hierarchy: str) -> None:
    size = math.prod(levels)
    asked = Problem(
        system(*levels), {"replicate": 2, "shard": size // 2}, Reduction(["replicate", "shard"], 4 * MIB, HYBRID)
    )
    for answer in compare(asked, hierarchy=hierarchy, steps=3):
        assert answer.agree is True, answer.lowering.placement
        assert answer.solved.allreduce > 0


@pytest.mark.parametrize("collective", list(Collective))
@pytest.mark.parametrize("over", [(0,), (1,)])
def test_agreement_on_8_by_8_over_2_4_8(collective: Collective, over: tuple[int, ...]) -> None:
    asked = problem(system(2, 4, 8), (8, 8), over, MIB)
    asked = Problem(asked.system, asked.axes, Reduction(asked.reduction.over, MIB, collective))
    faster = 0
    for answer in compare(asked):
        assert answer.agree is True
        assert answer.solved.cost is not None and answer.solved.cost <= answer.solved.allreduce
        faster += answer.solved.cost < answer.solved.allreduce
    chains = (Collective.REDUCE, Collective.BROADCAST)  # one chain carries each byte once already
    assert faster or collective in chains, "no optimum beats the plain collective"


@pytest.mark.parametrize(("steps", "most"), [(3, 4), pytest.param(4, 5, marks=pytest.mark.full)])
def test_hybrid_mix_on_8_by_8_over_2_4_8(steps: int, most: int) -> None:
    """On the placements of at most so many factors; five is all."""
    asked = Problem(system(2, 4, 8), {"replicate": 8, "shard": 8}, Reduction(["replicate", "shard"], MIB, HYBRID))
    every = [lowering_of(asked, one) for one in placements(asked.system, asked.axes)]
    answers = [answer for one in every if one.depth <= most for answer in compare(asked, one.placement, steps=steps)]
    assert len(answers) == {4: 4, 5: 6}[most] and all(answer.agree is True for answer in answers)
    assert all((answer.solved.cost or 0) < answer.solved.allreduce for answer in answers)


@pytest.mark.parametrize("goal", [goal for goal, _ in targets() if goal.size <= 4], ids=name_of)
def test_concrete_encoding_has_exactly_the_programs(goal: Target) -> None:
    """Up to steps after the goal, which only goals that leave something over admit."""
    asked = Problem(system(*goal.sizes), {"a": goal.size}, Reduction(["a"], MIB))
    lowering = lower(asked.system, placements(asked.system, asked.axes)[0], (0,))
    prices = Prices(AlphaBeta(), lowering, asked.reduction.payload, goal.collective)
    task = PlacementTask(prices, goal, instruction_set(goal.depth), 2, "concrete")
    choice = task.encode(None)
    literals = [choice.idle(step) for step in (1, 2)]
    literals += [choice.on(step, span) for step in (1, 2) for span in choice.spans]
    literals += [choice.does(step, collective) for step in (1, 2) for collective in Collective]
    found = {task.tidy(choice.decode(model)) for model in all_models(choice.clauses.dimacs(), literals)}
    assert found == {program for _, program in cheapest_programs(StateGraph(goal), prices, 2)}


def test_65536_devices() -> None:
    for collective in Collective:
        asked = Problem(system(64, 32, 32), {"a": 65536}, Reduction(["a"], 2**30, collective))
        answer = solve(asked, [[64, 32, 32]], steps=4)
        assert answer.status is Status.OPTIMAL and answer.layout is None


def test_goals_need_a_hierarchy_of_the_replica() -> None:
    asked = Problem(system(2, 4), {"a": 4, "b": 2}, Reduction(["a"], MIB, "Reduce"))
    with pytest.raises(InputError, match="takes no Reduce"):
        solve(asked, hierarchy="columns")


def test_bad_mixes() -> None:
    for bad, match in [
        ({"a": "AllReduce"}, "axis 'b' has none"),
        ({"a": "AllReduce", "b": "Reduce"}, "mix of AllReduce and Reduce"),
        ({"a": "AllReduce", "b": "AllReduce", "c": "AllReduce"}, "'c' is not reduced over"),
        ({"a": "AllReduce", "b": "Gossip"}, "'Gossip' is unknown"),
    ]:
        with pytest.raises(InputError, match=match):
            Reduction(["a", "b"], MIB, bad)
    assert Reduction(["a", "b"], MIB, {"a": "AllReduce", "b": "AllReduce"}) == Reduction(["a", "b"], MIB)
