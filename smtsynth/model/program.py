"""Programs (model, section 4; paper, section 4): instructions over slices and forms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from smtsynth.errors import InputError, check_type


class Collective(StrEnum):
    """The five collectives of the paper."""

    ALL_REDUCE = "AllReduce"
    REDUCE_SCATTER = "ReduceScatter"
    ALL_GATHER = "AllGather"
    REDUCE = "Reduce"
    BROADCAST = "Broadcast"


class Form(StrEnum):
    """How a slice makes groups."""

    INSIDE_GROUP = "InsideGroup"
    PARALLEL = "Parallel"
    MASTER = "Master"


class Span(NamedTuple):
    """The groups of an instruction: factors start+1..stop (depths) are joined.

    With `master`, only devices whose digits below depth `stop` are all zero take part.
    """

    start: int
    stop: int
    master: bool


@dataclass(frozen=True, slots=True, order=True)
class Instruction:
    """One step: a collective on the groups of slice `slice` (a depth) in `form` with ancestor depth `ancestor`."""

    collective: Collective
    slice: int
    form: Form
    ancestor: int | None = None

    def span(self, depth: int) -> Span:
        """Which of `depth` factors the groups join (see Span)."""
        if self.form is Form.INSIDE_GROUP:
            return Span(self.slice, depth, False)
        assert self.ancestor is not None
        return Span(self.ancestor, self.slice, self.form is Form.MASTER and self.slice < depth)


Program = tuple[Instruction, ...]


def named(collective: Collective, span: Span, depth: int) -> Instruction:
    """The instruction with these groups under its one name: InsideGroup, Parallel, Master; smallest e, then a."""
    if span.stop == depth:
        return Instruction(collective, span.start, Form.INSIDE_GROUP)
    return Instruction(collective, span.stop, Form.MASTER if span.master else Form.PARALLEL, span.start)


def canonical(instruction: Instruction, depth: int) -> Instruction | None:
    """The instruction under its one name, or None where all its groups would be single devices."""
    span = instruction.span(depth)
    return named(instruction.collective, span, depth) if span.start < span.stop else None


INSTRUCTION_SETS = ("full", "p2")


def instruction_set(depth: int, name: str = "full") -> tuple[Instruction, ...]:
    """All distinct instructions over `depth` factors, in a fixed order.

    `p2` has Master with AllReduce only, as the paper's counts show; `full` has every form with every collective.
    """
    if name not in INSTRUCTION_SETS:
        raise InputError(f"instruction set {name!r} is unknown", expected=" or ".join(INSTRUCTION_SETS))
    spans = [
        Span(start, stop, master)
        for start in range(depth)
        for stop in range(start + 1, depth + 1)
        for master in ((False, True) if stop < depth else (False,))
    ]
    return tuple(
        named(collective, span, depth)
        for collective in Collective
        for span in spans
        if name == "full" or not span.master or collective is Collective.ALL_REDUCE
    )


def default_steps(depth: int) -> int:
    """The step limit where none is given: 5, or 2D - 1 where that is more."""
    return max(5, 2 * depth - 1)


def depth_of(name: object, names: Sequence[str], what: str) -> int:
    """The depth that carries `name` (names[0] is 'root'), or InputError."""
    if isinstance(name, str) and name in names:
        return list(names).index(name)
    raise InputError(f"{what} {str(name)[:60]!r} is no level of the synthesis hierarchy", expected=", ".join(names))


def instruction_of(
    collective: object, slice_: object, form: object, ancestor: object, names: Sequence[str]
) -> Instruction:
    """An instruction from the words of a file, checked against the depth names; InputError where they don't fit."""
    if collective not in list(Collective):
        raise InputError(f"collective {str(collective)[:60]!r} is unknown", expected=", ".join(Collective))
    if form not in list(Form):
        raise InputError(f"form {str(form)[:60]!r} is unknown", expected=", ".join(Form))
    depth = depth_of(slice_, names, "slice")
    if form == Form.INSIDE_GROUP:
        if ancestor is not None:
            raise InputError("InsideGroup has an ancestor", expected="none")
        result = Instruction(Collective(str(collective)), depth, Form.INSIDE_GROUP)
    else:
        above = depth_of(ancestor, names, f"ancestor of {form}")
        if above >= depth:
            raise InputError(
                f"ancestor {names[above]!r} of {form} is not above slice {names[depth]!r}",
                expected="an ancestor further out than the slice",
            )
        result = Instruction(Collective(str(collective)), depth, Form(str(form)), above)
    return result


CALL = re.compile(r"\s*(\w+)\s*\(\s*([\w.\-]+)\s*,\s*(\w+)\s*(?:\(\s*([\w.\-]+)\s*\))?\s*\)\s*")


MAX_STEP_TEXT = 400  # characters; the pattern is slow on long runs of blanks


def check_program(program: Sequence[Instruction], depth: int) -> Program:
    """The program as a tuple, if its instructions are some over `depth` factors, else InputError naming the step."""
    check_type(program, (tuple, list), "program", "a list of Instruction, or text")
    for number, one in enumerate(program, 1):
        where = f"step {number}"
        check_type(one, Instruction, where, "an Instruction")
        check_type(one.collective, Collective, f"{where}: collective", ", ".join(Collective))
        check_type(one.form, Form, f"{where}: form", ", ".join(Form))
        if one.slice not in range(depth + 1):
            raise InputError(f"is {repr(one.slice)[:40]}", where=f"{where}: slice", expected=f"a depth, 0 to {depth}")
        inside = one.form is Form.INSIDE_GROUP
        if one.ancestor is not None if inside else one.ancestor not in range(one.slice):
            expected = "None with InsideGroup" if inside else "a depth above the slice"
            raise InputError(f"is {repr(one.ancestor)[:40]}", where=f"{where}: ancestor", expected=expected)
    return tuple(program)


def parse_program(text: str, names: Sequence[str]) -> Program:
    """Read the short text `ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); …`.

    names: depth names, 'root' first. Raises InputError naming the step.
    """
    check_type(text, str, "program", "text")
    steps = []
    parts = [part for part in text.replace("\n", ";").split(";") if part.strip()]
    for number, part in enumerate(parts, 1):
        match = CALL.fullmatch(part) if len(part) <= MAX_STEP_TEXT else None
        if match is None:
            raise InputError(
                f"{part.strip()[:60]!r} is not an instruction",
                where=f"step {number}",
                expected="Collective(slice, Form) or Collective(slice, Form(ancestor))",
            )
        collective, slice_, form, ancestor = match.groups()
        try:
            steps.append(instruction_of(collective, slice_, form, ancestor, names))
        except InputError as error:
            raise error.at(f"step {number}") from None
    return tuple(steps)


def show_instruction(instruction: Instruction, names: Sequence[str]) -> str:
    """The instruction as short text, e.g. 'AllReduce(node, Parallel(root))'."""
    form = str(instruction.form)
    if instruction.ancestor is not None:
        form += f"({names[instruction.ancestor]})"
    return f"{instruction.collective}({names[instruction.slice]}, {form})"


def show_program(program: Program, names: Sequence[str]) -> str:
    """The program as short text; parse_program reads it back where it has steps."""
    return "; ".join(show_instruction(step, names) for step in program) or "(nothing to do)"
