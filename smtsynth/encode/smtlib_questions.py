"""Whole questions for an SMT solver, put together from the files of the folder `encodings` (see smtlib)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from smtsynth.cost.prices import Parts, Prices
from smtsynth.cost.shares import group_types
from smtsynth.encode.smtlib import (
    Lists,
    Values,
    binary,
    define_class_steps,
    define_obligations,
    define_steps,
    encoding_text,
    fill,
    number_width,
    obligation_parameters,
    parameters,
    side_by_side,
    step_name,
)
from smtsynth.errors import LimitReached
from smtsynth.meaning.classes import shape, submasks
from smtsynth.meaning.goals import Target
from smtsynth.meaning.rules import State
from smtsynth.model.lowering import span_groups
from smtsynth.model.placement import Matrix
from smtsynth.model.program import Collective, Instruction, Program

HEAD = "(set-option :produce-models true)\n(set-logic QF_BV)\n"
Row = tuple[Instruction, str, int]


def obligations_question(
    sizes: Sequence[int], instructions: Sequence[Instruction], without: Collection[str] = ()
) -> str:
    """A script with one `check-sat` per instruction: is there a concrete step that the class step doesn't follow?

    All are unsatisfiable if, over one or two factors of these sizes, each concrete step implies the class step.
    `without` names conjuncts that are left out.
    """
    names = obligation_parameters(sizes)
    text = HEAD + define_obligations(sizes, instructions, without)
    text += "".join(f"(declare-const {name} {sort})\n" for name, sort in names)
    arguments = " ".join(name for name, _ in names)
    for instruction in instructions:
        counterexample = f"(counterexample.{step_name(instruction, len(sizes))} {arguments})"
        text += f"(push 1)\n(assert {counterexample})\n(check-sat)\n(pop 1)\n"
    return text


def placement_question(
    axes: Sequence[int], levels: Sequence[int], blocked: Iterable[Matrix] = (), without: Collection[str] = ()
) -> str:
    """A script: is there a placement of axes of these sizes on levels of these sizes that isn't in `blocked`?

    Entries are the constants x0.0, x0.1, ...: row, column.
    """
    most = max(*axes, *levels)
    width = most.bit_length() * max(len(axes), len(levels))
    values: dict[str, object] = {"axes": len(axes), "levels": len(levels), "width": width}
    values |= {"one": binary(1, width), "most": binary(most, width)}
    entries = [{"r": r, "c": c, "below": r + 1, "right": c + 1} for r in range(len(axes)) for c in range(len(levels))]
    lists: dict[str, Sequence[Values]] = {
        "entry": entries,
        "axis": [{"r": r, "size": binary(size, width)} for r, size in enumerate(axes)],
        "level": [{"c": c, "size": binary(size, width)} for c, size in enumerate(levels)],
    }
    text = HEAD + fill(encoding_text("placement.smt2"), values, lists, without)
    for matrix in blocked:
        same = " ".join(
            f"(= x{r}.{c} {binary(entry, width)})" for r, row in enumerate(matrix) for c, entry in enumerate(row)
        )
        text += f"(assert (not (and true {same})))\n"
    return text + "(check-sat)\n"


def program_question(
    target: Target,
    instructions: Sequence[Instruction],
    steps: int,
    bound: int | None = None,
    prices: Prices | None = None,
    mixed: Iterable[tuple[Instruction, Parts]] = (),
    blocked: Iterable[Program] = (),
    without: Collection[str] = (),
) -> str:
    """A script: do at most `steps` of `instructions` make a program by the rules that costs less than `bound`?

    bound: nanoseconds, None for any cost. A step costs at least its price where every group holds as many chunks;
    mixed: (instruction, parts) that get their exact price; blocked: prefixes that are excluded. A model's program is
    the constants instruction.1, instruction.2, ...: numbers into `instructions`, or their number where a step is idle.
    Raises LimitReached for a target that ends split: who gets which chunk isn't written in SMT-LIB.
    """
    if any(target.split):
        raise LimitReached("a goal that leaves the chunks split has no SMT-LIB question by the rules")
    sizes, k, width = target.sizes, target.size, number_width(target.sizes)
    matter = range(1 if target.collective is Collective.REDUCE else k)
    states = parameters("s", range(k), "State")
    goal = {"start": _rows(target.start, range(k)), "wanted": _rows(target.final, matter)}
    text = HEAD + define_steps(sizes, instructions, without)
    text += fill(encoding_text("goal.smt2"), {"states": states}, goal, without)
    rows: list[Row] = []
    if bound is not None and prices is not None:
        for instruction in instructions:
            roots = [group[0] for group in span_groups(sizes, instruction).tolist()]
            for number in range(1, k + 1):
                held = " ".join(f"(bvuge (count s{root}) {binary(number, width)})" for root in roots)
                rows.append((instruction, held, prices.price(instruction, (Fraction(number, k),))))
        for instruction, parts in mixed:
            kinds = group_types(len(sizes), instruction.span(len(sizes)))
            part_of = dict(zip(kinds, parts, strict=True))
            held = " ".join(
                f"(= (count s{group[0]}) {binary(int(part_of[_class(group[0], sizes)] * k), width)})"
                for group in span_groups(sizes, instruction).tolist()
            )
            rows.append((instruction, held, prices.price(instruction, parts)))
    return text + _program(
        ("State", "step", "s", "t"), range(k), len(sizes), instructions, steps, bound, rows, blocked, without
    )


def class_program_question(
    target: Target,
    instructions: Sequence[Instruction],
    steps: int,
    bound: int | None = None,
    prices: Prices | None = None,
    mixed: Iterable[tuple[Instruction, tuple[int, ...]]] = (),
    blocked: Iterable[Program] = (),
    without: Collection[str] = (),
) -> str:
    """As program_question, by the class meaning, for any target; mixed: rows masks in place of parts."""
    depth, aim = target.depth, target.aim
    every = (1 << depth) - 1
    values = {
        "states": parameters("a", range(1 << depth), "Class"),
        "summed": binary(aim.summed, depth),
        "whole": binary(aim.whole, depth),
    }
    text = HEAD + define_class_steps(depth, instructions, without)
    classes: Lists = {
        "class": [
            {
                "z": z,
                "start": f"(class {binary(one.rows, depth)} {binary(one.contributors, depth)})"
                if one.held
                else "empty",
            }
            for z, one in enumerate(aim.start)
        ],
        "wanted": [{"z": z} for z in aim.kinds],
    }
    text += fill(encoding_text("class-goal.smt2"), values, classes, without)
    rows: list[Row] = []
    if bound is not None and prices is not None:
        for instruction in instructions:
            groups = shape(instruction, depth)
            base = 0 if instruction.collective is Collective.ALL_GATHER else groups.joined
            for free in submasks(every & ~groups.joined):
                held = " ".join(f"(subset {binary(free, depth)} (all-rows a{root}))" for root in groups.roots)
                rows.append((instruction, held, prices.masks(instruction, (base | free,))))
        for instruction, masks in mixed:
            roots = shape(instruction, depth).roots
            held = " ".join(
                f"(= (all-rows a{root}) {binary(one, depth)})" for root, one in zip(roots, masks, strict=True)
            )
            rows.append((instruction, held, prices.masks(instruction, masks)))
    return text + _program(
        ("Class", "class.step", "a", "b"), range(1 << depth), depth, instructions, steps, bound, rows, blocked, without
    )


def _rows(state: State, devices: Iterable[int]) -> list[Values]:
    """What these devices hold of each chunk."""
    k = len(state)
    return [
        {"d": d, "c": c, "from": binary(next((have for rows, have in state[d] if rows >> c & 1), 0), k)}
        for d in devices
        for c in range(k)
    ]


def _class(device: int, sizes: Sequence[int]) -> int:
    """The mask of the factors in which a device's digits are not zero."""
    mask = 0
    for factor, size in reversed(list(enumerate(sizes))):
        device, digit = divmod(device, size)
        mask |= (digit > 0) << factor
    return mask


def _program(
    words: tuple[str, str, str, str],
    places: Sequence[int],
    depth: int,
    instructions: Sequence[Instruction],
    steps: int,
    bound: int | None,
    rows: Sequence[Row],
    blocked: Iterable[Program],
    without: Collection[str],
) -> str:
    """program.smt2 over states of devices or of classes; without a bound costs are 0, and less than 1."""
    sort, relation, one, two = words
    limit = 1 if bound is None else bound
    code, price = len(instructions).bit_length(), (limit * max(steps, 1)).bit_length()
    number = {instruction: binary(n, code) for n, instruction in enumerate(instructions)}
    number_of_idle = binary(len(instructions), code)
    at = [side_by_side(one, places, f".{time}") for time in range(steps + 1)]
    states = parameters(one, places, sort)
    values = {
        "steps": steps,
        "sort": sort,
        "relation": relation,
        "states": states,
        "both": f"{states} {parameters(two, places, sort)}",
        "before": side_by_side(one, places),
        "after": side_by_side(two, places),
        "code": code,
        "idle": number_of_idle,
        "price": price,
        "bound": binary(limit, price),
        "nothing": binary(0, price),
        "first": at[0],
        "last": at[steps],
    }
    lists: Mapping[str, Sequence[Values]] = {
        "place": [{"was": f"{one}{place}", "is": f"{two}{place}"} for place in places],
        "instruction": [{"number": n, "step": step_name(i, depth)} for i, n in number.items()],
        "row": [
            {"number": number[i], "held": held, "least": binary(min(least, limit), price)} for i, held, least in rows
        ],
        "variable": [{"name": f"{one}{place}.{time}"} for time in range(steps + 1) for place in places],
        "time": [{"at": time, "was": at[time - 1], "now": at[time]} for time in range(1, steps + 1)],
        "blocked": [
            {"prefix": " ".join(f"(= instruction.{n} {number[i]})" for n, i in enumerate(prefix, 1))}
            for prefix in blocked
        ],
    }
    return fill(encoding_text("program.smt2"), values, lists, without) + "(check-sat)\n"
