"""The SMT-LIB files of the folder `encodings`, filled in by text: a second path beside the clauses.

It uses nothing of the clause builder and the encodings made with it. How a file is filled in is said in
encodings/README.md; here that is `fill`, and the rest are the values that the files name. Whole questions for a solver
are put together in smtlib_questions.
"""

from __future__ import annotations

import importlib.resources
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from smtsynth.errors import InternalError, LimitReached
from smtsynth.meaning.classes import shape
from smtsynth.model.lowering import span_groups
from smtsynth.model.program import Instruction

Values = Mapping[str, object]
Lists = Mapping[str, Sequence[Values]]
_NAME = re.compile(r"<([a-z][a-z-]*)>")
_LINE = re.compile(r"(?P<term>.*?\S)\s*; *(?:each (?P<each>[a-z]+))? *(?:\[(?P<name>[A-Za-z.-]+)\])?")

_LEGEND = re.compile(r";   +\S")  # says what names stand for, and has no place where they are replaced


def encoding_text(name: str) -> str:
    """The text of the file `name` of the folder `encodings`, from the installed package or beside it in a checkout."""
    places = (
        importlib.resources.files("smtsynth") / "_encodings" / name,
        Path(__file__).parents[2] / "encodings" / name,
    )
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise InternalError(f"the file encodings/{name} is not part of this installation")


def conjuncts(text: str) -> tuple[str, ...]:
    """The names of the named conjuncts in a file's text, in order."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return tuple(match["name"] for match in found if match and match["name"])


def fill(text: str, values: Values, lists: Lists, without: Collection[str] = ()) -> str:
    """A file's text with its names replaced and its lines repeated; conjuncts named in `without` become `true`."""

    def replace(line: str, own: Values) -> str:
        return _NAME.sub(lambda match: str({**values, **own}[match[1]]), line)

    lines = []
    for line in text.splitlines():
        if _LEGEND.match(line):
            continue
        match = _LINE.fullmatch(line)
        if match and (match["each"] or match["name"]):
            term = "  true" if match["name"] in without else match["term"]
            note = f"  ; [{match['name']}]" if match["name"] else ""
            lines += [replace(term, own) + note for own in (lists[match["each"]] if match["each"] else [{}])]
        else:
            lines.append(replace(line, {}))
    return "\n".join(lines) + "\n"


def binary(number: int, width: int) -> str:
    """A bit-vector literal."""
    return f"#b{number:0{width}b}"


def side_by_side(letter: str, numbers: Iterable[object], suffix: str = "") -> str:
    """Names in a row: 's0 s1 s2'."""
    return " ".join(f"{letter}{number}{suffix}" for number in numbers)


def parameters(letter: str, numbers: Iterable[object], sort: str) -> str:
    """Parameters in a row: '(s0 State) (s1 State)'."""
    return " ".join(f"({letter}{number} {sort})" for number in numbers)


def number_width(sizes: Sequence[int]) -> int:
    """Bits of the sort Number: enough for k * k."""
    return int(math.prod(sizes) ** 2).bit_length()


def step_name(instruction: Instruction, depth: int) -> str:
    """An instruction's name in the files, e.g. 'AllReduce.0-1m': collective, first factor, the one after the last."""
    start, stop, master = instruction.span(depth)
    return f"{instruction.collective}.{start}-{stop}{'m' * master}"


def step_title(instruction: Instruction, depth: int) -> str:
    """An instruction in words."""
    start, stop, master = instruction.span(depth)
    joined = f"factor {start}" if stop == start + 1 else f"factors {start} to {stop - 1}"
    rest = ", of the devices whose digits further in are zero" * master
    return f"{instruction.collective} along {joined}{rest}"


def define_states(sizes: Sequence[int], without: Collection[str] = ()) -> str:
    """states.smt2 over factors of these sizes."""
    k = math.prod(sizes)
    values = {"k": k, "bits": k * k, "width": number_width(sizes)}
    chunks = [{"c": c, "next": c + 1, "high": c * k + k - 1, "low": c * k} for c in range(k)]
    return fill(encoding_text("states.smt2"), values, {"chunk": chunks}, without)


def _members(m: int, width: int) -> Lists:
    each = [{"i": i, "place": binary(i, width)} for i in range(m)]
    return {"member": each, "other": each[1:], "pair": [{"i": i, "j": j} for i, j in combinations(range(m), 2)]}


def _define_collectives(m: int, width: int, without: Collection[str]) -> str:
    before, after = parameters("s", range(m), "State"), parameters("t", range(m), "State")
    values = {
        "m": m,
        "states": before,
        "both": f"{before} {after}",
        "s": side_by_side("s", range(m)),
        "members": binary(m, width),
    }
    return fill(encoding_text("collectives.smt2"), values, _members(m, width), without)


def _define_step(sizes: Sequence[int], instruction: Instruction, without: Collection[str]) -> str:
    groups, devices = span_groups(sizes, instruction).tolist(), range(math.prod(sizes))
    before, after = parameters("s", devices, "State"), parameters("t", devices, "State")
    touched = {device for group in groups for device in group}
    values = {
        "step": step_name(instruction, len(sizes)),
        "title": step_title(instruction, len(sizes)),
        "collective": instruction.collective,
        "m": len(groups[0]),
        "states": before,
        "both": f"{before} {after}",
        "all-s": side_by_side("s", devices),
        "all-t": side_by_side("t", devices),
    }
    lists: Lists = {
        "group": [{"s": side_by_side("s", group), "t": side_by_side("t", group)} for group in groups],
        "untouched": [{"d": device} for device in devices if device not in touched],
    }
    return fill(encoding_text("step.smt2"), values, lists, without)


def define_steps(sizes: Sequence[int], instructions: Sequence[Instruction], without: Collection[str] = ()) -> str:
    """States, collectives and the step relations `step.NAME` of these instructions over factors of these sizes.

    NAME is that of step_name. `without` names conjuncts that are left out.
    """
    sizes_of_groups = sorted({span_groups(sizes, instruction).shape[1] for instruction in instructions})
    parts = [define_states(sizes, without)]
    parts += [_define_collectives(m, number_width(sizes), without) for m in sizes_of_groups]
    parts += [_define_step(sizes, instruction, without) for instruction in instructions]
    return "\n".join(parts)


def _define_class_collectives(m: int, without: Collection[str]) -> str:
    before, after = parameters("a", range(m), "Class"), parameters("b", range(m), "Class")
    values = {
        "m": m,
        "states": f"(joined Factors) {before}",
        "both": f"(joined Factors) {before} {after}",
        "a": side_by_side("a", range(m)),
    }
    return fill(encoding_text("class-collectives.smt2"), values, _members(m, 1), without)


def _define_class_step(depth: int, instruction: Instruction, without: Collection[str]) -> str:
    groups, classes = shape(instruction, depth), range(1 << depth)
    kinds = [groups.members(root) for root in groups.roots]
    touched = {member for kind in kinds for member in kind}
    before, after = parameters("a", classes, "Class"), parameters("b", classes, "Class")
    values = {
        "step": step_name(instruction, depth),
        "title": step_title(instruction, depth),
        "collective": instruction.collective,
        "m": len(kinds[0]),
        "joined": binary(groups.joined, depth),
        "states": before,
        "both": f"{before} {after}",
        "all-a": side_by_side("a", classes),
        "all-b": side_by_side("b", classes),
    }
    lists: Lists = {
        "kind": [{"a": side_by_side("a", kind), "b": side_by_side("b", kind)} for kind in kinds],
        "untouched": [{"z": z} for z in classes if z not in touched],
    }
    return fill(encoding_text("class-step.smt2"), values, lists, without)


def define_class_steps(depth: int, instructions: Sequence[Instruction], without: Collection[str] = ()) -> str:
    """Class states, collectives and the step relations `class.step.NAME` of these instructions over `depth` factors."""
    values = {
        "depth": depth,
        "bits": 2 * depth + 1,
        "last": 2 * depth,
        "high": 2 * depth - 1,
        "middle": depth - 1,
    }
    groups = sorted({1 << shape(instruction, depth).joined.bit_count() for instruction in instructions})
    parts = [fill(encoding_text("classes.smt2"), values, {}, without)]
    parts += [_define_class_collectives(m, without) for m in groups]
    parts += [_define_class_step(depth, instruction, without) for instruction in instructions]
    return "\n".join(parts)


def define_described(sizes: Sequence[int], without: Collection[str] = ()) -> str:
    """described.smt2 over factors of these sizes; it takes what define_steps and define_class_steps define."""
    k, depth, width = math.prod(sizes), len(sizes), number_width(sizes)
    strides = [math.prod(sizes[f + 1 :]) for f in range(depth)]
    states, classes = parameters("s", range(k), "State"), parameters("a", range(1 << depth), "Class")
    values = {"sizes": " and ".join(map(str, sizes)), "states": states, "classes": classes}
    lists: Lists = {
        "factor": [
            {
                "f": f,
                "size": binary(sizes[f], width),
                "straight": binary(strides[f], width),
                "turned": binary(math.prod(sizes[:f]), width),
            }
            for f in range(depth)
        ],
        "device": [
            {
                "d": d,
                "number": binary(d, width),
                "z": sum((d // strides[f] % sizes[f] > 0) << f for f in range(depth)),
            }
            for d in range(k)
        ],
        "class": [{"z": z} for z in range(1 << depth)],
        "bit": [
            {"bit": chunk * k + start, "chunk": binary(chunk, width), "from": binary(start, width)}
            for chunk in range(k)
            for start in range(k)
        ],
    }
    return fill(encoding_text("described.smt2"), values, lists, without)


def define_obligations(sizes: Sequence[int], instructions: Sequence[Instruction], without: Collection[str] = ()) -> str:
    """The definitions `counterexample.NAME`: how 'a concrete step implies the class step' could fail (obligation.smt2).

    Their parameters are those of obligation_parameters. Raises LimitReached for more than two factors: the chunks could
    be numbered in more ways than the two that described.smt2 knows.
    """
    depth = len(sizes)
    if depth > 2:
        raise LimitReached(f"the obligations are written for at most two factors, not {depth}")
    devices, classes = range(math.prod(sizes)), range(1 << depth)
    parts = [
        define_steps(sizes, instructions, without),
        define_class_steps(depth, instructions, without),
        define_described(sizes, without),
    ]
    values = {
        "parameters": " ".join(f"({name} {sort})" for name, sort in obligation_parameters(sizes)),
        **{f"all-{letter}": side_by_side(letter, devices) for letter in "st"},
        **{f"all-{letter}": side_by_side(letter, classes) for letter in "abc"},
    }
    for instruction in instructions:
        own = {"step": step_name(instruction, depth), "title": step_title(instruction, depth)}
        parts.append(fill(encoding_text("obligation.smt2"), {**values, **own}, {}, without))
    return "\n".join(parts)


def obligation_parameters(sizes: Sequence[int]) -> list[tuple[str, str]]:
    """Names and sorts of what a counterexample to an obligation would consist of."""
    devices, classes = range(math.prod(sizes)), range(1 << len(sizes))
    return [
        *((f"{letter}{device}", "State") for letter in "st" for device in devices),
        *((f"{letter}{number}", "Class") for letter in "abc" for number in classes),
        ("turned", "Bool"),
        ("then", "Bool"),
    ]
