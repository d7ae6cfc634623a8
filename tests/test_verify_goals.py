"""Programs for every size at once under every goal of section 5: what is proved is right, and what isn't is refuted."""

from __future__ import annotations

import random
from functools import cache
from itertools import combinations, product

import buffer_oracle
import pytest
from buffer_oracle import Buffers, Sizes

from smtsynth import InputError, Level, Problem, Reduction, System, solve
from smtsynth.meaning import buffers
from smtsynth.meaning.goals import Aim, run_rules, target_of
from smtsynth.model.lowering import lowering_of
from smtsynth.model.placement import placements
from smtsynth.model.program import Collective, Program, instruction_set, parse_program
from smtsynth.search.enumerate import StateGraph
from smtsynth.search.inclusions import all_programs
from smtsynth.verify import symbolic
from smtsynth.verify.placed import judge_lowered, verify_lowered
from smtsynth.verify.programs import aim_over, judge_over, schedule_over, target_over, verify_program
from smtsynth.verify.schedules import ask, obligation
from smtsynth.verify.symbolic import Proof, Refusal, prove

RS = Collective.REDUCE_SCATTER
Goal = tuple[Collective, tuple[int, ...]]
NAMES = ("root", "a", "b", "c")


def goals(depth: int) -> list[Goal]:
    """Every collective, and every mix: the factors it ends split over."""
    mixes = [split for count in range(1, depth) for split in combinations(range(depth), count)]
    return [(collective, ()) for collective in Collective] + [(RS, split) for split in mixes]


EVERY = [(depth, *goal) for depth in (1, 2, 3) for goal in goals(depth)]


def program(text: str, depth: int = 2) -> Program:
    return parse_program(text, NAMES[: depth + 1])


def check_pairs(aim: Aim, goal: Goal, limit: int, sizes: list[Sizes]) -> int:
    """Walk all programs of at most `limit` steps by the proof and the oracle at once; the number of proved states.

    Programs that lead to the same are walked once. What is proved must be right on all sizes; and chunks are in order
    on all of them exactly where the proof says so.
    """
    instructions, proved = instruction_set(aim.depth), 0
    first: tuple[symbolic.State, tuple[Buffers, ...]]
    first = (symbolic.start_of(aim), tuple(buffer_oracle.start(one, goal[0]) for one in sizes))
    seen, layer = {first}, [first]
    for length in range(limit + 1):
        following = []
        for state, held in layer:
            proof = symbolic.judge(state, aim)
            if isinstance(proof, Proof):
                proved += 1
                both = list(zip(held, sizes, strict=True))
                assert all(buffer_oracle.right(one, size, *goal) for one, size in both)
                ordered = all(buffer_oracle.right(one, size, *goal, identity=True) for one, size in both)
                assert ordered == (proof.layout == "identity")
            for one in instructions if length < limit else ():
                after = symbolic.step(state, one, aim.depth)
                if isinstance(after, str):
                    continue
                now = [buffer_oracle.step(each, size, one) for each, size in zip(held, sizes, strict=True)]
                assert None not in now, "lengths that the proof takes for equal"
                pair = (after, tuple(each for each in now if each is not None))
                if pair not in seen:
                    seen.add(pair)
                    following.append(pair)
        layer = following
    return proved


@pytest.mark.parametrize(("depth", "collective", "split"), EVERY[:12])
def test_what_is_proved_is_right_for_all_programs(depth: int, collective: Collective, split: tuple[int, ...]) -> None:
    """Every program of one and two factors and up to 5 steps, whatever it has before, between and after."""
    sizes = list(product((2, 3, 4), repeat=depth))
    assert check_pairs(aim_over(depth, collective, split), (collective, split), 5, sizes) > 0


@pytest.mark.parametrize(("collective", "split"), goals(3))
def test_what_is_proved_is_right_for_three_factors(collective: Collective, split: tuple[int, ...]) -> None:
    """Up to 4 steps."""
    sizes = [(2, 2, 2), (2, 2, 3), (2, 3, 2), (3, 2, 2)]
    assert check_pairs(aim_over(3, collective, split), (collective, split), 4, sizes) > 0


@pytest.mark.full
@pytest.mark.parametrize(("collective", "split"), goals(3))
def test_what_is_proved_is_right_for_three_factors_and_five_steps(
    collective: Collective, split: tuple[int, ...]
) -> None:
    sizes = [(2, 2, 2), (2, 2, 3), (2, 3, 2), (3, 2, 2)]
    assert check_pairs(aim_over(3, collective, split), (collective, split), 5, sizes) > 0


# --- How much is proved


@cache
def accepted(depth: int, goal: Goal, limit: int) -> list[Program]:
    """The programs of up to `limit` steps that the rules accept on factors of 2 and, where it matters, on others."""
    aim = aim_over(depth, *goal)
    found = list(all_programs(StateGraph(target_over((2,) * depth, aim)), limit))
    others = [target_over(sizes, aim) for sizes in ((2, 2, 3), (3, 2, 2))] if depth == 3 else []
    return [one for one in found if all(run_rules(one, other) is None for other in others)]


@pytest.mark.parametrize(
    ("goal", "counts"),
    [
        ((Collective.ALL_REDUCE, ()), (3, 93)),
        ((RS, ()), (3, 69)),
        ((Collective.ALL_GATHER, ()), (1, 5)),
        ((Collective.REDUCE, ()), (3, 56)),
        ((Collective.BROADCAST, ()), (1, 3)),
        ((RS, (0,)), (3, 75)),
        ((RS, (1,)), (3, 93)),
    ],
)
def test_all_that_the_rules_accept_of_one_and_two_factors_is_proved(goal: Goal, counts: tuple[int, int]) -> None:
    for depth, count in enumerate(counts, 1):
        split = goal[1] if depth == 2 else ()
        programs = accepted(depth, (goal[0], split), 5)
        assert len(programs) == count
        assert all(verify_program(depth, one, collective=goal[0], split=split).verdict == "proved" for one in programs)


@pytest.mark.parametrize(("collective", "split"), goals(3))
def test_most_of_what_the_rules_accept_of_three_factors_is_proved(
    collective: Collective, split: tuple[int, ...]
) -> None:
    """All of it but for chunks that end split with unequal amounts on different devices."""
    aim, programs = aim_over(3, collective, split), accepted(3, (collective, split), 4)
    others = [one for one in programs if not isinstance(prove(3, one, aim), Proof)]
    assert len(others) <= (0.04 * len(programs) if collective is RS else 0)
    for one in others[:1]:
        found = verify_program(3, one, collective=collective, split=split)
        assert found.verdict == "unknown" and len(found.holds) == 27
        assert found.reason.startswith("it holds on all sizes from 2 to 4 by the buffers, but no proof for all sizes: ")


SYSTEMS = [((2, 4), (8,)), ((2, 2, 2), (8,)), ((4, 8), (4, 8)), ((2, 4, 8), (8, 8))]


def asked(sizes: tuple[int, ...], axes: tuple[int, ...], over: tuple[int, ...], collective: object) -> Problem:
    levels = [Level(f"l{n}", size, 10**9 * 6**n, f"{9 - 3 * n} us") for n, size in enumerate(sizes)]
    named = {f"x{number}": size for number, size in enumerate(axes)}
    return Problem(System(levels), named, Reduction([f"x{one}" for one in over], 2**22, collective))  # type: ignore[arg-type]


def check_optimum(problem: Problem) -> int:
    """The best program of each placement is proved on it, and for all sizes of its factors; how many there are."""
    count = 0
    for placement in placements(problem.system, problem.axes):
        answer = solve(problem, placement, steps=3)
        assert answer.program is not None
        lowering = lowering_of(problem, placement)
        assert verify_lowered(problem, lowering, answer.program).verdict == "proved"
        if lowering.depth:
            aim = target_of(lowering, problem.reduction.collective, problem.split).aim
            assert isinstance(prove(lowering.depth, answer.program, aim), Proof), (placement, answer.program)
            count += 1
    return count


@pytest.mark.parametrize("collective", [one for one in Collective if one is not Collective.ALL_REDUCE])
def test_the_best_programs_are_proved(collective: Collective) -> None:
    for sizes, axes in SYSTEMS:
        for over in range(len(axes)):
            assert check_optimum(asked(sizes, axes, (over,), collective)) > 0


KINDS = [("AllReduce", "ReduceScatter"), ("ReduceScatter", "AllReduce")]


@pytest.mark.parametrize("kinds", KINDS)
def test_the_best_programs_of_mixes_are_proved(kinds: tuple[str, str]) -> None:
    for sizes, axes in (((2, 4), (2, 4)), ((4, 8), (4, 8))):
        assert check_optimum(asked(sizes, axes, (0, 1), {"x0": kinds[0], "x1": kinds[1]})) > 1


@pytest.mark.full
@pytest.mark.parametrize("kinds", KINDS)
def test_the_best_programs_of_mixes_on_three_levels_are_proved(kinds: tuple[str, str]) -> None:
    assert check_optimum(asked((2, 4, 8), (8, 8), (0, 1), {"x0": kinds[0], "x1": kinds[1]})) > 1


# --- What is wrong


def mutants(steps: Program, rng: random.Random, depth: int) -> list[Program]:
    """A step dropped, two neighbours swapped, and a step over other groups."""
    instructions = instruction_set(depth)
    found = [steps[:place] + steps[place + 1 :] for place in range(len(steps))]
    found += [(*steps[:i], steps[i + 1], steps[i], *steps[i + 2 :]) for i in range(len(steps) - 1)]
    for place, one in enumerate(steps):
        others = [other for other in instructions if other.collective is one.collective and other != one]
        found.append((*steps[:place], rng.choice(others), *steps[place + 1 :]))
    return found


def by_oracle(steps: Program, sizes: Sizes, goal: Goal) -> bool:
    held: Buffers | None = buffer_oracle.start(sizes, goal[0])
    for one in steps:
        held = None if held is None else buffer_oracle.step(held, sizes, one)
    return held is not None and buffer_oracle.right(held, sizes, *goal)


@pytest.mark.parametrize(("collective", "split"), goals(2))
def test_a_step_dropped_swapped_or_over_other_groups(collective: Collective, split: tuple[int, ...]) -> None:
    """Each is refuted, with a device and a chunk, but for those that are right by the buffers too."""
    rng, refuted, unknown, goal = random.Random(7), 0, 0, (collective, split)
    for steps in accepted(2, goal, 4)[::2]:
        for mutant in mutants(steps, rng, 2):
            found = verify_program(2, mutant, collective=collective, split=split)
            holds = [by_oracle(mutant, sizes, goal) for sizes in ((2, 2), (3, 2), (2, 3))]
            assert (found.verdict == "refuted") == (not all(holds)), mutant
            unknown += found.verdict == "unknown"
            if found.verdict == "refuted":
                refuted += 1
                assert found.fails[0] == (2, 2) and found.device is not None
                assert found.chunk is not None or "unequal lengths" in found.reason or ": undefined" in found.reason
    assert refuted > 2 and unknown < 0.05 * refuted


FAULTS = [
    # a dropped step: half of the sum is missing; the device, the chunk and what is missing are what they seem
    ("ReduceScatter(a, InsideGroup)", RS, (1,), (None, 0, 0, (2, 3)), "what is missing never came"),
    ("AllGather(a, InsideGroup)", Collective.ALL_GATHER, (), (None, 0, 2, (2,)), "what is missing never came"),
    ("Reduce(a, InsideGroup)", Collective.REDUCE, (), (None, 0, 0, (2, 3)), "what is missing never came"),
    ("Broadcast(a, Master(root))", Collective.BROADCAST, (), (None, 1, 0, (0,)), "does not belong there"),
    # a wrong slice: the same contributions again
    (
        "AllReduce(a, InsideGroup); ReduceScatter(root, InsideGroup)",
        RS,
        (),
        (2, 0, 0, ()),
        "what devices 0-3 gave is there more than once; step 2 (ReduceScatter) counted contributions again",
    ),
    # swapped steps: those who have nothing yet pass it on
    (
        "Broadcast(a, InsideGroup); Broadcast(a, Master(root))",
        Collective.BROADCAST,
        (),
        (1, 3, 0, (0,)),
        "what device 2 gave does not belong there; step 1 (Broadcast) brought in contributions from outside",
    ),
    # in another assignment, where it isn't the assignment that is wrong
    (
        "ReduceScatter(a, InsideGroup); ReduceScatter(a, Parallel(root)); Broadcast(a, Master(root))",
        RS,
        (),
        (3, 2, 0, ()),
        "not of this device's part; step 3 (Broadcast) put the chunk there",
    ),
]


@pytest.mark.parametrize(("text", "collective", "split", "where", "reason"), FAULTS)
def test_where_and_what_is_wrong(
    text: str,
    collective: Collective,
    split: tuple[int, ...],
    where: tuple[int | None, int, int, tuple[int, ...]],
    reason: str,
) -> None:
    found = verify_program(2, program(text), collective=collective, split=split)
    assert (found.verdict, found.fails) == ("refuted", ((2, 2),))
    assert (found.step, found.device, found.chunk, found.missing) == where
    assert found.reason.startswith("on 2·2: device ") and reason in found.reason


def test_no_goal_is_another() -> None:
    """The best program of each goal is refuted under the others, but for what they have in common."""
    best = {
        (Collective.ALL_REDUCE, ()): "ReduceScatter(a, InsideGroup); AllReduce(a, Parallel(root)); "
        "AllGather(a, InsideGroup)",
        (RS, ()): "ReduceScatter(a, Parallel(root)); ReduceScatter(a, InsideGroup)",
        (RS, (1,)): "ReduceScatter(a, InsideGroup); AllReduce(a, Parallel(root))",
        (Collective.ALL_GATHER, ()): "AllGather(a, InsideGroup); AllGather(a, Parallel(root))",
        (Collective.REDUCE, ()): "Reduce(a, InsideGroup); Reduce(a, Master(root))",
        (Collective.BROADCAST, ()): "Broadcast(a, Master(root)); Broadcast(a, InsideGroup)",
    }
    proved = {
        (one, other)
        for one, text in best.items()
        for other in best
        if verify_program(2, program(text), collective=other[0], split=other[1]).verdict == "proved"
    }
    everything, part, halves, _, root, _ = best
    more = {(everything, part), (everything, halves), (everything, root), (halves, part)}  # who has all has a part
    assert proved == {(one, one) for one in best} | more
    in_order = {
        one
        for one, text in best.items()
        if verify_program(2, program(text), "identity", collective=one[0], split=one[1]).layout
    }
    assert in_order == set(best)


# --- Layouts


def test_parts_in_another_assignment() -> None:
    steps = program("ReduceScatter(a, InsideGroup); ReduceScatter(a, Parallel(root))")
    found = verify_program(2, steps, collective=RS)
    assert (found.verdict, found.layout) == ("proved", None)
    found = verify_program(2, steps, "identity", collective=RS)
    assert (found.verdict, found.fails, found.device, found.chunk) == ("refuted", ((2, 2),), 1, 1)
    judged = judge_over((2, 3), steps, aim_over(2, RS))
    assert judged.verdict.layout == (0, 2, 4, 1, 3, 5) and judged.schedule is not None
    assert judged.schedule.goal.split == ((0, 3, 1, 4, 2, 5),)
    assert buffers.run(judged.schedule).verdict == "proved"
    assert buffers.run(schedule_over((2, 3), steps, aim_over(2, RS))).verdict == "refuted"


def test_who_holds_more_than_a_part() -> None:
    steps, aim = program("ReduceScatter(a, InsideGroup); AllReduce(a, Parallel(root))"), aim_over(2, RS)
    assert verify_program(2, steps, collective=RS).verdict == "proved"
    assert verify_program(2, steps, "identity", collective=RS).verdict == "refuted"
    judged = judge_over((2, 2), steps, aim)
    assert judged.verdict.layout == (0, 2, 1, 3) and "hold others too" in judged.verdict.reason


def test_chunks_that_do_not_lie_side_by_side() -> None:
    steps = program("ReduceScatter(a, InsideGroup); ReduceScatter(a, Parallel(root)); AllGather(a, InsideGroup)")
    judged = judge_over((2, 2), steps, aim_over(2, RS, (0,)))
    assert (judged.verdict.verdict, judged.verdict.layout, judged.schedule) == ("proved", (0, 2, 1, 3), None)
    assert verify_program(2, steps, collective=RS, split=(0,)).verdict == "proved"
    assert verify_program(2, steps, "identity", collective=RS, split=(0,)).verdict == "refuted"
    assert verify_program(2, steps, collective=RS, split=(1,)).verdict == "refuted"


@pytest.mark.parametrize("layout", ["any", "identity"])
def test_verdicts_on_sizes_are_the_oracles(layout: str) -> None:
    """Random programs under every goal, by the interpreter with assignments and by the oracle without them."""
    rng, seen = random.Random(11), {True: 0, False: 0}
    for depth, collective, split in EVERY[5:]:
        near = accepted(depth, (collective, split), 4 if depth == 2 else 3)
        for _ in range(30):
            steps = rng.choice(mutants(rng.choice(near), rng, depth)) if rng.random() < 0.6 else rng.choice(near)
            sizes = tuple(rng.choice((2, 3)) for _ in range(depth))
            aim = aim_over(depth, collective, split)
            held: Buffers | None = buffer_oracle.start(sizes, collective)
            for one in steps:
                held = None if held is None else buffer_oracle.step(held, sizes, one)
            right = held is not None and buffer_oracle.right(held, sizes, collective, split, layout == "identity")
            found = judge_over(sizes, steps, aim, layout)  # type: ignore[arg-type]
            rules_do = layout == "any" and collective is RS and run_rules(steps, target_over(sizes, aim)) is None
            assert (found.verdict.verdict == "proved") == (right or rules_do), (steps, sizes, collective, split)
            seen[right] += 1
    assert min(seen.values()) > 100


def test_solvers_are_asked_about_the_goal() -> None:
    """What is proved is unsatisfiable, and what is refuted satisfiable, under every goal, in any assignment."""
    rng, count = random.Random(13), 0
    for collective, split in goals(2):
        near = accepted(2, (collective, split), 3)
        for steps in [*rng.sample(near, min(2, len(near))), mutants(rng.choice(near), rng, 2)[0]]:
            judged = judge_over((2, 2), steps, aim_over(2, collective, split))
            if judged.schedule is not None:
                text = obligation(judged.schedule)
                assert text is not None
                (said,) = ask("program", text, judged.verdict.verdict == "proved", ["z3"])
                assert said.answer == said.expected
                count += 1
    assert count > 15


# --- On placements


def test_what_is_too_large_for_buffers_is_proved_for_any_sizes() -> None:
    for collective in (RS, Collective.ALL_GATHER, Collective.BROADCAST):
        problem = asked((16, 32, 32), (16384,), (0,), collective)
        (placement,) = placements(problem.system, problem.axes)
        lowering = lowering_of(problem, placement)
        places = ("b, InsideGroup", "b, Parallel(a)", "a, Parallel(root)")
        text = "; ".join(f"{collective}({where})" for where in places)
        if collective is Collective.BROADCAST:
            text = "Broadcast(a, Master(root)); Broadcast(b, Master(a)); Broadcast(b, InsideGroup)"
        judged = judge_lowered(problem, lowering, program(text, 3))
        assert judged.verdict.verdict == "proved"


# --- Bad input


def test_goals_that_there_are_not() -> None:
    steps = program("AllReduce(root, InsideGroup)")
    for words, match in (
        ({"collective": "Gossip"}, "^collective: 'Gossip' is unknown; expected AllReduce"),
        ({"collective": "Reduce", "split": (0,)}, "^split: Reduce ends split over no factors; expected ReduceScatter"),
        ({"split": (0,)}, "^split: AllReduce ends split over no factors"),
        ({"collective": "ReduceScatter", "split": (2,)}, "^split: there is no factor 2; expected 0 to 1"),
    ):
        with pytest.raises(InputError, match=match):
            verify_program(2, steps, **words)  # type: ignore[arg-type]
    assert aim_over(2, RS, (0, 1)) == aim_over(2, "ReduceScatter")
    assert isinstance(prove(2, steps, aim_over(2, Collective.BROADCAST)), Refusal)
