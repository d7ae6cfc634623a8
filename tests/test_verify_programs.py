"""Programs for every size at once: which are proved, refuted on which sizes, or unknown, and never too much."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verify_support import class_programs

from smtsynth.errors import InputError, InternalError
from smtsynth.meaning import buffers, rules
from smtsynth.model.program import Program, instruction_set, parse_program
from smtsynth.verify import programs
from smtsynth.verify.programs import ProgramVerdict, schedule_over, show_sizes, sizes_tried, verify_program
from smtsynth.verify.symbolic import Proof, Refusal, prove

NAMES = ("root", "a", "b", "c")
SOME = [(2, 2), (2, 3), (3, 2), (4, 3)]
TRAP = (
    "ReduceScatter(b, InsideGroup); ReduceScatter(b, Parallel(a)); AllGather(b, InsideGroup); AllGather(b, Master(a)); "
    "ReduceScatter(a, Parallel(root)); Broadcast(a, InsideGroup); AllGather(a, Parallel(root))"
)


def program(text: str, depth: int = 2) -> Program:
    return parse_program(text, NAMES[: depth + 1])


@cache
def accepted(yes: bool) -> list[Program]:
    """The three-factor programs of up to 7 steps that classes accept, and the rules accept on 2·2·2 or don't."""
    return [steps for steps in class_programs(3, 7) if (rules.replay(steps, (2, 2, 2)) is None) == yes]


def right(steps: Program, sizes: tuple[int, ...], layout: str = "any") -> bool:
    """Whether the buffers reach the goal."""
    return buffers.run(schedule_over(sizes, steps), layout).verdict == "proved"  # type: ignore[arg-type]


def lacking(steps: Program) -> list[Program]:
    """The program with each of its instructions removed in turn."""
    return [steps[:place] + steps[place + 1 :] for place in range(len(steps))]


@pytest.mark.parametrize(("depth", "name", "count"), [(1, "full", 3), (1, "p2", 3), (2, "p2", 47), (2, "full", 93)])
def test_all_programs_of_one_and_two_factors_are_proved(depth: int, name: str, count: int) -> None:
    found = [verify_program(depth, steps) for steps in class_programs(depth, 5, name)]
    assert len(found) == count
    assert {(one.verdict, one.fails, one.holds, one.step, one.device) for one in found} == {
        ("proved", (), (), None, None)
    }


@pytest.mark.parametrize("name", ["p2", "full"])
def test_with_one_instruction_removed_the_verdict_is_the_interpreters(name: str) -> None:
    """22 of the 93 stay right with some instruction less, because of spare broadcasts."""
    stay, seen = set(), Counter[str]()
    for steps in class_programs(2, 5, name):
        for mutant in lacking(steps):
            found = verify_program(2, mutant)
            holds = [sizes for sizes in SOME if right(mutant, sizes)]
            assert holds in ([], SOME)
            assert found.verdict == ("proved" if holds else "refuted"), mutant
            assert found.fails == (() if holds else ((2, 2),))
            seen[found.verdict] += 1
            if holds:
                stay.add(steps)
    assert len(stay) == {"p2": 4, "full": 22}[name]
    assert seen["refuted"] == {"p2": 153, "full": 335}[name]


def test_what_only_classes_accept_is_never_proved() -> None:
    """54 programs of three factors and up to 7 steps: the classes accept them, the rules refuse them on 2·2·2."""
    spurious = accepted(False)
    assert len(spurious) == 54
    for steps in spurious:
        assert isinstance(prove(3, steps), Refusal)
    sample = random.Random(3).sample(spurious, 8)
    assert {verify_program(3, steps).verdict for steps in sample} == {"unknown"}


@pytest.mark.full
def test_none_of_the_spurious_is_proved_by_the_whole_verification() -> None:
    spurious = accepted(False)
    assert {verify_program(3, steps).verdict for steps in spurious} == {"unknown"}


def test_all_but_two_of_the_three_factor_programs_are_proved() -> None:
    """8749 are right on 2·2·2; two of them are refuted on 3·2·2."""
    assert len(accepted(True)) == 8749
    others = [steps for steps in accepted(True) if not isinstance(prove(3, steps), Proof)]
    assert len(others) == 2 and program(TRAP, 3) in others
    for steps in others:
        found = verify_program(3, steps)
        assert (found.verdict, found.by_rules, found.step) == ("refuted", True, 6)
        assert found.fails == ((2, 2, 3), (3, 2, 2)) and found.holds == ((2, 2, 2), (2, 3, 2))
        assert found.reason.startswith("on 2·2·3, unlike on 2·2·2: step 6: Broadcast on group ")
        assert all(rules.replay(steps, sizes) is not None for sizes in found.fails)


def check_lacking(steps: Program, depth: int, sizes: list[tuple[int, ...]]) -> str:
    """Assert that the verdict on a three-factor program fits the interpreter's on some sizes."""
    found = verify_program(depth, steps)
    holds = [right(steps, one) for one in sizes]
    if found.verdict == "proved":
        assert all(holds)
    elif found.verdict == "refuted" and not found.by_rules:
        assert not all(right(steps, one) for one in found.fails)
    else:
        assert all(holds) and rules.replay(steps, sizes[0]) is not None
    return found.verdict


def test_a_sample_of_three_factor_programs_with_one_instruction_removed() -> None:
    rng, seen = random.Random(5), Counter[str]()
    for steps in rng.sample(class_programs(3, 7), 60):
        seen[check_lacking(rng.choice(lacking(steps)), 3, [(2, 2, 2), (3, 2, 2)])] += 1
    assert seen["refuted"] > 20 and seen["proved"] > 2


@pytest.mark.full
def test_three_factor_programs_with_one_instruction_removed() -> None:
    rng, seen = random.Random(6), Counter[str]()
    for steps in rng.sample(class_programs(3, 7), 400):
        for mutant in lacking(steps):
            seen[check_lacking(mutant, 3, [(2, 2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 3)])] += 1
    print(f"\nverdicts: {dict(seen)}")
    assert seen["refuted"] > seen["proved"] > 100


# --- The proof for all sizes


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.integers(1, 3), st.randoms(use_true_random=False))
def test_what_is_proved_is_right_on_any_sizes(depth: int, rng: random.Random) -> None:
    """Random programs, and programs that classes accept with something more or less."""
    instructions = instruction_set(depth)
    steps = list(rng.choice(class_programs(depth, 5)))
    for _ in range(rng.randint(0, 2)):
        place = rng.randint(0, len(steps))
        steps[place : place + rng.randint(0, 1)] = [rng.choice(instructions)]
    sizes = tuple(rng.choice((2, 3, 4, 5) if depth < 3 else (2, 3)) for _ in range(depth))
    proof = prove(depth, steps)
    if isinstance(proof, Proof):
        assert right(tuple(steps), sizes)
        if proof.layout == "identity":
            assert right(tuple(steps), sizes, "identity")


def test_layouts_are_known_for_all_sizes() -> None:
    """Whether chunks end in order is the same on every size, and `identity` says so exactly."""
    for steps in class_programs(2, 5):
        proof = prove(2, steps)
        assert isinstance(proof, Proof)
        ordered = {right(steps, sizes, "identity") for sizes in SOME}
        assert ordered == {proof.layout == "identity"}
        assert verify_program(2, steps, "identity").verdict == ("proved" if proof.layout else "refuted")


def test_a_permuted_program_is_refuted_where_order_is_asked_for() -> None:
    text = "ReduceScatter(a, InsideGroup); ReduceScatter(a, Parallel(root)); AllGather(a, InsideGroup); "
    steps = program(text + "AllGather(a, Parallel(root))")
    reason = "right on every system with 2 levels, whatever the sizes"
    assert verify_program(2, steps) == ProgramVerdict("proved", reason, 2)
    found = verify_program(2, steps, "identity")
    assert (found.verdict, found.fails, found.step, found.device, found.chunk) == ("refuted", ((2, 2),), 4, 0, 1)
    assert "not in chunk order since step 4 (AllGather)" in found.reason


def test_steps_without_effect_are_no_fault() -> None:
    """A broadcast of what everyone holds, and collectives among devices that hold nothing."""
    for text in (
        "AllReduce(root, InsideGroup); Broadcast(root, InsideGroup)",
        "Reduce(a, InsideGroup); Reduce(a, Parallel(root)); Broadcast(root, InsideGroup)",
        "Reduce(a, InsideGroup); ReduceScatter(a, Parallel(root)); AllGather(a, Master(root)); "
        "Broadcast(a, InsideGroup)",
    ):
        assert rules.replay(program(text), (2, 2)) is not None
        assert verify_program(2, program(text)).verdict == "proved"
        assert all(right(program(text), sizes) for sizes in SOME)


def test_lengths_of_nothing_count() -> None:
    """Devices that hold nothing, in buffers of unequal lengths, can't reduce."""
    text = (
        "Reduce(a, InsideGroup); ReduceScatter(a, Master(root)); Broadcast(a, Master(root)); "
        "AllGather(root, InsideGroup)"
    )
    assert isinstance(prove(2, program(text)), Refusal)
    mixed = "Reduce(a, InsideGroup); ReduceScatter(a, Parallel(root)); ReduceScatter(a, Parallel(root))"
    refusal = prove(2, program(mixed))
    assert isinstance(refusal, Refusal) and refusal.step == 3


# --- Verdicts in words


def test_the_smallest_sizes_that_fail_and_what_is_wrong_there() -> None:
    found = verify_program(2, program("ReduceScatter(a, InsideGroup); AllReduce(a, Parallel(root))"))
    assert (found.verdict, found.fails, found.holds) == ("refuted", ((2, 2),), ())
    assert (found.step, found.device, found.chunk, found.missing) == (None, 0, 1, (0, 1, 2, 3))
    assert found.reason == "on 2·2: device 0, chunk 1: not there; what is missing never came"
    twice = verify_program(2, program("AllReduce(a, InsideGroup); AllReduce(root, InsideGroup)"))
    assert (twice.verdict, twice.step, twice.device, twice.duplicated) == ("refuted", 2, 0, (0, 1, 2, 3))


def test_unknown_says_on_which_sizes_it_holds() -> None:
    """The rules refuse the broadcast everywhere, and the buffers are right everywhere that was tried."""
    steps = accepted(False)[0]
    found = verify_program(3, steps)
    assert found.verdict == "unknown" and len(found.holds) == 27 and not found.fails
    assert found.reason.startswith("it holds on all sizes from 2 to 4 by the buffers, but the rules refuse it on 2·2·2")
    assert found.step is not None and f"step {found.step}: Broadcast" in found.reason


def test_without_sizes_to_try_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_DEVICES", 3)
    found = verify_program(2, program("AllReduce(a, InsideGroup)"))
    assert (found.verdict, found.holds, found.fails) == ("unknown", (), ())
    assert found.reason.startswith("no sizes are small enough to try; no proof for all sizes: ")
    monkeypatch.setattr(programs, "MAX_DEVICES", 8)
    found = verify_program(3, accepted(False)[0])
    assert found.holds == ((2, 2, 2),) and "from 2 to 4 of at most 8 devices by the buffers" in found.reason


def test_sizes_are_tried_from_the_fewest_devices_on() -> None:
    tried = list(sizes_tried(3))
    assert tried[0] == [(2, 2, 2)] and tried[1] == [(2, 2, 3), (2, 3, 2), (3, 2, 2)]
    assert sorted(sizes for same in tried for sizes in same) == sorted(product((2, 3, 4), repeat=3))
    assert max(math.prod(sizes) for same in sizes_tried(7) for sizes in same) <= programs.MAX_DEVICES
    assert show_sizes([(2, 2)]) == "2·2" and show_sizes([(2,), (3,), (4,)]) == "2, 3 and 4"
    assert show_sizes(tried[1] * 3) == "2·2·3, 2·3·2, 3·2·2, 2·2·3, 2·3·2, 3·2·2, … (9 in all)"


def test_instructions_without_groups_are_bad_input() -> None:
    for depth, text in ((1, "AllReduce(a, InsideGroup)"), (2, "AllReduce(b, InsideGroup)")):
        with pytest.raises(InputError, match=r"^step 1: AllReduce has no groups over \d factor"):
            verify_program(depth, program(text, depth))
    for depth in (0, 13):
        with pytest.raises(InputError, match="factors; expected 1 to 12"):
            verify_program(depth, ())


def test_an_empty_program_reduces_nothing() -> None:
    found = verify_program(1, ())
    assert (found.verdict, found.fails, found.missing) == ("refuted", ((2,),), (1,))


def test_a_proof_that_the_buffers_refute_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "prove", lambda depth, steps, aim: Proof("identity"))
    with pytest.raises(InternalError, match="is refuted on the least ones: device 0"):
        verify_program(2, program("AllReduce(a, InsideGroup)"))
