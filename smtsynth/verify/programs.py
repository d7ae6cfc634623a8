"""Programs for every size at once (model, sections 5 and 7): proved, refuted on the smallest sizes, or unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Literal

from smtsynth.errors import InputError, InternalError
from smtsynth.meaning import buffers, rules
from smtsynth.meaning.goals import Aim, Target, run_rules, target
from smtsynth.model.program import Collective, Instruction, Program
from smtsynth.model.schedule import Entry, Goal, Group, Schedule
from smtsynth.verify.assigned import BY_RULES, Judged, judge_assigned
from smtsynth.verify.schedules import Layout
from smtsynth.verify.symbolic import Proof, prove

Sizes = tuple[int, ...]
TRIED = (2, 3, 4)
MAX_DEVICES = 1024  # devices of the sizes that are tried
MAX_CONFIRMED = 64  # devices of the least sizes, on which a proof is confirmed
MAX_FACTORS = 12


@dataclass(frozen=True, slots=True)
class ProgramVerdict:
    """What is claimed of a program over `depth` factors of any sizes of at least 2.

    refuted: `fails` are the smallest sizes that fail, `step`, `device` and the rest say what is wrong on the first of
    them. unknown: it holds on all of `holds` by the buffers, but there is no proof for all sizes; `step` is the first
    that the proof or the rules refuse. layout: `identity` if chunks surely end in chunk order, else None. by_rules:
    where it fails the rules alone refuse it, and the buffers come out right.
    """

    verdict: Literal["proved", "refuted", "unknown"]
    reason: str
    depth: int
    step: int | None = None
    device: int | None = None
    chunk: int | None = None
    missing: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    layout: Literal["identity"] | None = None
    fails: tuple[Sizes, ...] = ()
    holds: tuple[Sizes, ...] = ()
    by_rules: bool = False


def scope(depth: int) -> str:
    """Which systems a proof for all sizes speaks of."""
    return f"every system with {depth} level{'s' * (depth != 1)}"


def show_sizes(sizes: Sequence[Sizes], most: int = 6) -> str:
    """Factor sizes in words: '2·2·3 and 3·2·2'."""
    texts = ["·".join(map(str, one)) for one in sizes[:most]]
    if len(sizes) > most:
        return f"{', '.join(texts)}, … ({len(sizes)} in all)"
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def aim_over(depth: int, collective: Collective | str = Collective.ALL_REDUCE, split: Collection[int] = ()) -> Aim:
    """The goal of a collective over `depth` factors (model, section 5).

    split: the factors (from 0, outermost) that it ends split over, where these are some only: contributors are complete
    over all factors, chunks split over these (the model's mix of AllReduce and ReduceScatter). Raises InputError for
    another collective or factor, and for `split` with a goal that doesn't end split.
    """
    _check_depth(depth)
    if collective not in list(Collective):
        raise InputError(f"{str(collective)[:40]!r} is unknown", where="collective", expected=", ".join(Collective))
    kind = Collective(str(collective))
    if split and kind is not Collective.REDUCE_SCATTER:
        raise InputError(f"{kind} ends split over no factors", where="split", expected=str(Collective.REDUCE_SCATTER))
    for factor in split:
        if factor not in range(depth):
            raise InputError(f"there is no factor {factor}", where="split", expected=f"0 to {depth - 1}")
    flags = [factor in split for factor in range(depth)] if split else None
    return target((2,) * depth, kind, split=flags).aim


def target_over(sizes: Sizes, aim: Aim) -> Target:
    """The goal on factors of these sizes."""
    split = [not aim.whole >> factor & 1 for factor in range(aim.depth)]
    return target(sizes, aim.collective, split=split)


def schedule_over(sizes: Sizes, program: Sequence[Instruction], aim: Aim | None = None) -> Schedule:
    """The program over factors of these sizes, as a schedule of synthesis devices with its goal (default: AllReduce).

    The goal is over all devices, in their order; where it ends split over some factors only, `split` has the groups.
    """
    steps = tuple((Entry(one.collective, rules.instruction_groups(sizes, one)),) for one in program)
    split: tuple[Group, ...] = ()
    if aim is not None and aim.collective is Collective.REDUCE_SCATTER and aim.whole:
        (parts,) = target_over(sizes, aim).parts
        split = tuple(zip(*parts, strict=True))
    goal = Goal() if aim is None else Goal(aim.collective, split=split)
    return Schedule(math.prod(sizes), steps, goal)


def judge_over(sizes: Sizes, program: Program, aim: Aim | None = None, layout: Layout = "any") -> Judged:
    """The verdict on factors of these sizes: by the buffers, and where chunks may end split by the rules too."""
    judged = judge_assigned(schedule_over(sizes, program, aim), layout)
    if aim is None or layout != "any" or judged.verdict.verdict != "refuted":
        return judged
    if aim.collective is Collective.REDUCE_SCATTER and run_rules(program, target_over(sizes, aim)) is None:
        return Judged(buffers.Verdict("proved", BY_RULES), None)
    return judged


def sizes_tried(depth: int) -> Iterator[list[Sizes]]:
    """All factor sizes of 2 to 4 within MAX_DEVICES, those of as many devices together, fewest first."""
    every = [sizes for sizes in product(TRIED, repeat=depth) if math.prod(sizes) <= MAX_DEVICES]
    for _, same in groupby(sorted(every, key=lambda sizes: (math.prod(sizes), sizes)), key=math.prod):
        yield list(same)


def _check_depth(depth: int) -> None:
    if not 1 <= depth <= MAX_FACTORS:
        raise InputError(f"{depth} factors", expected=f"1 to {MAX_FACTORS}")


def check_program(depth: int, program: Sequence[Instruction]) -> None:
    """InputError unless every instruction has groups over `depth` factors."""
    _check_depth(depth)
    for number, instruction in enumerate(program, 1):
        start, stop, _ = instruction.span(depth)
        if not 0 <= start < stop <= depth:
            raise InputError(
                f"{instruction.collective} has no groups over {depth} factor{'s' * (depth != 1)}",
                where=f"step {number}",
                expected="a slice and an ancestor that leave groups of more than one device",
            )


def verify_program(
    depth: int,
    program: Program,
    layout: Layout = "any",
    progress: Callable[[str], None] = lambda line: None,
    collective: Collective | str = Collective.ALL_REDUCE,
    split: Collection[int] = (),
) -> ProgramVerdict:
    """Whether the program reaches a goal over `depth` factors, whatever their sizes (model, sections 5 and 7).

    collective, split: the goal (see aim_over); the default is the AllReduce. It is proved by words of cuts (see
    symbolic); what these refuse is tried on all sizes of 2 to 4, by the rules and the buffers. It fails on a size where
    the buffers refute it, and where the rules do though they accept it on other sizes. layout: `identity` demands chunk
    order at the end, and of a goal that ends split the j-th part, and no more, at the j-th device; `any` takes parts in
    any assignment. Raises InputError where an instruction has no groups, and for a goal that there isn't;
    InternalError where the buffers refute on the least sizes what was proved.
    """
    check_program(depth, program)
    aim = aim_over(depth, collective, split)
    proof = prove(depth, program, aim)
    if isinstance(proof, Proof) and (layout == "any" or proof.layout == "identity"):
        _confirm(depth, program, aim, layout)
        return ProgramVerdict("proved", f"right on {scope(depth)}, whatever the sizes", depth, layout=proof.layout)
    holds: list[Sizes] = []
    accepted: list[Sizes] = []
    refused: dict[Sizes, rules.Failure] = {}
    for same in sizes_tried(depth):
        progress(f"{math.prod(same[0])} devices: {show_sizes(same)}")
        found = {sizes: judge_over(sizes, program, aim, layout).verdict for sizes in same}
        fails = tuple(sizes for sizes, verdict in found.items() if verdict.verdict == "refuted")
        holds += [sizes for sizes, verdict in found.items() if verdict.verdict == "proved"]
        if fails:
            return _refuted(depth, fails, found[fails[0]], holds)
        if isinstance(proof, Proof):
            continue
        for sizes in same:
            failure = run_rules(program, target_over(sizes, aim))
            if failure is None:
                accepted.append(sizes)
            else:
                refused[sizes] = failure
        if accepted and refused:
            return _refused(depth, accepted, refused)
    tried = f"it holds on all sizes from {TRIED[0]} to {TRIED[-1]}" if holds else "no sizes are small enough to try"
    if depth and TRIED[-1] ** depth > MAX_DEVICES and holds:
        tried += f" of at most {MAX_DEVICES} devices"
    if isinstance(proof, Proof):
        return ProgramVerdict("unknown", f"no proof that chunks end in order; {tried}", depth, holds=tuple(holds))
    why = str(next(iter(refused.values()))) if refused else proof.reason
    who = f"the rules refuse it on {show_sizes(list(refused)[:1])}" if refused else "no proof for all sizes"
    step = next(iter(refused.values())).step if refused else proof.step
    reason = f"{tried} by the buffers, but {who}: {why}" if holds else f"{tried}; {who}: {why}"
    return ProgramVerdict("unknown", reason, depth, step, holds=tuple(holds))


def _confirm(depth: int, program: Program, aim: Aim, layout: Layout) -> None:
    """InternalError where the buffers refute on the least sizes what is proved for all."""
    if 2**depth <= MAX_CONFIRMED:
        verdict = judge_over((2,) * depth, program, aim, layout).verdict
        if verdict.verdict == "refuted":
            raise InternalError(f"what is proved for all sizes is refuted on the least ones: {verdict.reason}")


def _refuted(depth: int, fails: tuple[Sizes, ...], fault: buffers.Verdict, holds: Sequence[Sizes]) -> ProgramVerdict:
    """The verdict where buffers go wrong; `fault` is that of the first sizes."""
    return ProgramVerdict(
        "refuted",
        f"on {show_sizes(fails[:1])}: {fault.reason}",
        depth,
        fault.step,
        fault.device,
        fault.chunk,
        fault.missing,
        fault.duplicated,
        fails=fails,
        holds=tuple(holds),
    )


def _refused(depth: int, accepted: Sequence[Sizes], refused: dict[Sizes, rules.Failure]) -> ProgramVerdict:
    """The verdict where the rules refuse some sizes and accept others."""
    least = min(map(math.prod, refused))
    fails = tuple(sizes for sizes in refused if math.prod(sizes) == least)
    failure = refused[fails[0]]
    reason = f"on {show_sizes(fails[:1])}, unlike on {show_sizes(accepted[:1])}: {failure}"
    device = failure.devices[0] if failure.devices else None
    return ProgramVerdict(
        "refuted",
        reason,
        depth,
        failure.step,
        device,
        failure.chunk,
        fails=fails,
        holds=tuple(accepted),
        by_rules=True,
    )
