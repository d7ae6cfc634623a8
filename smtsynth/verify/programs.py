"""Programs for every size at once (model, sections 5 and 7): proved, refuted on the smallest sizes, or unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Literal

from smtsynth.errors import InputError, InternalError
from smtsynth.meaning import buffers, rules
from smtsynth.model.program import Instruction, Program
from smtsynth.model.schedule import Entry, Schedule
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


def schedule_over(sizes: Sizes, program: Sequence[Instruction]) -> Schedule:
    """The program over factors of these sizes, as a schedule of synthesis devices, to be an AllReduce over all."""
    steps = tuple((Entry(one.collective, rules.instruction_groups(sizes, one)),) for one in program)
    return Schedule(math.prod(sizes), steps)


def sizes_tried(depth: int) -> Iterator[list[Sizes]]:
    """All factor sizes of 2 to 4 within MAX_DEVICES, those of as many devices together, fewest first."""
    every = [sizes for sizes in product(TRIED, repeat=depth) if math.prod(sizes) <= MAX_DEVICES]
    for _, same in groupby(sorted(every, key=lambda sizes: (math.prod(sizes), sizes)), key=math.prod):
        yield list(same)


def check_program(depth: int, program: Sequence[Instruction]) -> None:
    """InputError unless every instruction has groups over `depth` factors."""
    if not 1 <= depth <= MAX_FACTORS:
        raise InputError(f"{depth} factors", expected=f"1 to {MAX_FACTORS}")
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
    layout: Literal["any", "identity"] = "any",
    progress: Callable[[str], None] = lambda line: None,
) -> ProgramVerdict:
    """Whether the program all-reduces over `depth` factors, whatever their sizes.

    It is proved by words of cuts (see symbolic); what these refuse is tried on all sizes of 2 to 4, by the rules and
    the buffers. It fails on a size where the buffers refute it, and where the rules do though they accept it on other
    sizes. layout: `identity` demands chunk order at the end. Raises InputError where an instruction has no groups.
    """
    check_program(depth, program)
    proof = prove(depth, program)
    if isinstance(proof, Proof) and (layout == "any" or proof.layout == "identity"):
        _confirm(depth, program, layout)
        return ProgramVerdict("proved", f"right on {scope(depth)}, whatever the sizes", depth, layout=proof.layout)
    holds: list[Sizes] = []
    accepted: list[Sizes] = []
    refused: dict[Sizes, rules.Failure] = {}
    for same in sizes_tried(depth):
        progress(f"{math.prod(same[0])} devices: {show_sizes(same)}")
        found = {sizes: buffers.run(schedule_over(sizes, program), layout) for sizes in same}
        fails = tuple(sizes for sizes, verdict in found.items() if verdict.verdict == "refuted")
        holds += [sizes for sizes, verdict in found.items() if verdict.verdict == "proved"]
        if fails:
            return _refuted(depth, fails, found[fails[0]], holds)
        if isinstance(proof, Proof):
            continue
        for sizes in same:
            failure = rules.replay(program, sizes)
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


def _confirm(depth: int, program: Program, layout: Literal["any", "identity"]) -> None:
    """InternalError where the buffers refute on the least sizes what is proved for all."""
    if 2**depth <= MAX_CONFIRMED:
        verdict = buffers.run(schedule_over((2,) * depth, program), layout)
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
