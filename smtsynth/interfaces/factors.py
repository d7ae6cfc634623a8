"""Which factors the names of a program stand for, where no placement says so (`verify --factors`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase

from smtsynth.errors import InputError
from smtsynth.interfaces.programs import RawProgram
from smtsynth.model.program import Form, Program
from smtsynth.verify.programs import MAX_FACTORS

NAME = re.compile(r"[\w.\-]{1,80}")
EXAMPLE = "a number such as 3, or the names, outermost first: node,gpu"


def resolve_over(raw: RawProgram, factors: str) -> tuple[tuple[str, ...], Program]:
    """The depth names ('root' first) and the program, over `factors`: their names, or how many there are.

    With a number, names out of 1, 2, … or d1, d2, … or a, b, … are depths; others are put in the one order that their
    use allows: an ancestor is further out than its slice, and the innermost factor has no groups inside. Raises
    InputError where there is none, or more than one.
    """
    words = [word.strip() for word in factors.split(",")]
    if len(words) > 1 or not words[0].isascii() or not words[0].isdigit():
        for word in words:
            if NAME.fullmatch(word) is None or word == "root":
                raise InputError(f"{word[:80]!r} names no factor", where="--factors", expected=EXAMPLE)
        if len(set(words)) < len(words):
            raise InputError("a name is there twice", where="--factors", expected="each factor's own name")
        _count(len(words))
        names = ("root", *words)
        return names, raw.resolve(names)
    count = _count(int(words[0]) if len(words[0]) < 6 else MAX_FACTORS + 1)
    names = _names(raw, count)
    return names, raw.resolve(names)


def split_of(text: str, names: Sequence[str]) -> tuple[int, ...]:
    """The factors (from 0) that `--split` names, of the depth names `names`; InputError for any other word."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in names[1:]:
            raise InputError(f"{word[:80]!r} names no factor", where="--split", expected=", ".join(names[1:]))
    if len(set(words)) < len(words):
        raise InputError("a name is there twice", where="--split", expected="each factor's own name")
    return tuple(names[1:].index(word) for word in words)


def _count(count: int) -> int:
    if not 1 <= count <= MAX_FACTORS:
        raise InputError(f"{count} factors", where="--factors", expected=f"1 to {MAX_FACTORS}")
    return count


def used_names(raw: RawProgram) -> list[str]:
    """The names in a program but for root, in order of appearance."""
    words = [word for step in raw.steps for word in (step.slice, step.ancestor) if word is not None]
    return [word for word in dict.fromkeys(words) if word != "root"]


def _names(raw: RawProgram, count: int) -> tuple[str, ...]:
    """Depth names for `count` factors that make sense of the program's names."""
    used = used_names(raw)
    depths = range(1, count + 1)
    for plain in ([str(d) for d in depths], [f"d{d}" for d in depths], list(ascii_lowercase[:count])):
        if used and set(used) <= set(plain):
            return ("root", *plain)
    if len(used) > count:
        raise InputError(
            f"the program names {len(used)} factors ({', '.join(used)})", where="--factors", expected=f"not {count}"
        )
    orders = _orders(raw, used, count)
    first, second = next(orders, None), next(orders, None)
    if first is None:
        raise InputError(f"{', '.join(used)} fit in no order over {count} factors", where="--factors", expected=EXAMPLE)
    if second is not None:
        raise InputError(
            f"{', '.join(used)} can stand for several of {count} factors: {','.join(first)} or {','.join(second)}, …",
            where="--factors",
            expected="the names of all factors, outermost first",
        )
    return ("root", *first)


def _orders(raw: RawProgram, used: Sequence[str], count: int) -> Iterator[tuple[str, ...]]:
    """Every way to give the names to depths 1 to `count`, other depths being named d1, d2, … by their number."""
    above = {(step.ancestor, step.slice) for step in raw.steps if step.form != Form.INSIDE_GROUP}
    inside = {step.slice for step in raw.steps if step.form == Form.INSIDE_GROUP}

    def place(done: tuple[str, ...], left: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if len(done) == count:
            yield done
            return
        depth = len(done) + 1
        for name in left:
            rest = tuple(other for other in left if other != name)
            free = not any((other, name) in above for other in rest) and (name, name) not in above
            if free and not (depth == count and name in inside):
                yield from place((*done, name), rest)
        if count - len(done) > len(left):
            yield from place((*done, f"d{depth}" if f"d{depth}" not in used else f"depth{depth}"), left)

    yield from place((), tuple(used))
