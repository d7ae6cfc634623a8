"""A value of a file together with its place, so that every complaint names file, line and key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import cast

from smtsynth.errors import InputError
from smtsynth.interfaces.tables import Items, Table, place, shown
from smtsynth.model.units import EXAMPLES, Number, quantity


def closest(name: str, known: Iterable[str]) -> str:
    """', did you mean …?' with the nearest known name, or nothing."""
    near = difflib.get_close_matches(name[:60], list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


@dataclass(frozen=True, slots=True)
class Node:
    """A value, the file and line it stands in, and the key path that leads to it."""

    value: object
    file: str
    line: int | None = None
    path: str = ""

    @classmethod
    def root(cls, data: object, file: str) -> Node:
        """The node of a whole file's data."""
        return cls(data, file, data.line if isinstance(data, (Table, Items)) else None)

    @property
    def where(self) -> str:
        """FILE:LINE: key PATH."""
        return place(self.file, self.line, self.path)

    def error(self, what: str, expected: str | None = None) -> InputError:
        """An error about this value."""
        return InputError(what, where=self.where, expected=expected)

    def moved(self, error: InputError) -> InputError:
        """An error of the model, said of this value."""
        what = error.what if len(error.what) <= 300 else error.what[:300] + "…"
        return InputError(what, where=self.where, expected=error.expected)

    def _under(self, key: str) -> str:
        """The path of a key of this mapping."""
        return f"{self.path}.{key[:60]}" if self.path else key[:60]

    def child(self, key: str) -> Node:
        """The value of a key of this mapping."""
        value = self.value
        assert isinstance(value, dict)
        line = value.line_of(key) if isinstance(value, Table) else self.line
        return Node(value[key], self.file, line, self._under(key))

    def keys(self, expected: str) -> list[str]:
        """The keys of a mapping, in file order."""
        if not isinstance(self.value, dict):
            raise self.error(f"is {shown(self.value)}", expected)
        for key in self.value:
            if not isinstance(key, str):
                raise self.error(f"a key is {shown(key)}", "text")
        return list(self.value)

    def fields(self, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Node]:
        """The entries of a mapping with fixed keys; InputError for another key, naming the known ones, or one less."""
        known = [*required, *optional]
        keys = self.keys(f"a mapping with the keys {', '.join(known)}")
        for key in keys:
            if key not in known:
                raise self.child(key).error(f"is unknown{closest(key, known)}", f"one of {', '.join(known)}")
        for key in required:
            if key not in keys:
                where = place(self.file, self.line, self._under(key))
                raise InputError("is missing", where=where, expected=f"keys {', '.join(required)}")
        return {key: self.child(key) for key in keys}

    def entries(self, expected: str, most: int) -> dict[str, Node]:
        """The entries of a mapping whose keys are free, in file order; at most `most`."""
        keys = self.keys(expected)
        self._count(len(keys), most)
        return {key: self.child(key) for key in keys}

    def _count(self, length: int, most: int | None) -> None:
        """InputError if there is more here than may be."""
        if most is not None and length > most:
            raise self.error(f"holds {length} entries", f"at most {most}")

    def item(self, index: int) -> Node:
        """One item of a list."""
        value = self.value
        assert isinstance(value, (list, tuple))
        line = value.line_of(index) if isinstance(value, Items) else self.line
        return Node(value[index], self.file, line, f"{self.path}[{index}]")

    def items(self, expected: str, most: int | None = None) -> Iterator[Node]:
        """The items of a list, in order; InputError at once where it is no list or holds more than `most`."""
        if not isinstance(self.value, (list, tuple)):
            raise self.error(f"is {shown(self.value)}", expected)
        self._count(len(self.value), most)
        return (self.item(index) for index in range(len(self.value)))

    def text(self, expected: str) -> str:
        """A text value."""
        if not isinstance(self.value, str):
            hint = " (YAML reads it as no text; put it in quotes)" if isinstance(self.value, bool) else ""
            raise self.error(f"is {shown(self.value)}{hint}", expected)
        return self.value

    def word(self, known: Sequence[str]) -> str:
        """A text value out of `known`."""
        value = self.text(f"one of {', '.join(known)}")
        if value not in known:
            raise self.error(f"{shown(value)} is unknown{closest(value, known)}", f"one of {', '.join(known)}")
        return value

    def truth(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.error(f"is {shown(self.value)}", "true or false")
        return self.value

    def whole(self, lowest: int, highest: int) -> int:
        """A whole number from `lowest` to `highest`; true, 4.0 and "4" are none."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise self.error(f"is {shown(value)}", f"a whole number from {lowest} to {highest}")
        return value

    def amount(self, dimension: str, *, bare: bool = False, zero: bool = False) -> Fraction:
        """A quantity with its unit (without one too if `bare`), in the base unit of `dimension`; 0 only if `zero`."""
        value = self.value
        number = isinstance(value, (int, float, Decimal, Fraction)) and not isinstance(value, bool)
        if not (number or isinstance(value, str)) or (isinstance(value, int) and abs(value) >= 10**40):
            raise self.error(f"is {shown(value)}", f"a quantity such as {EXAMPLES[dimension]!r}")
        try:
            amount = quantity(cast(Number, value), dimension, bare=bare)
        except InputError as error:
            raise self.moved(error) from None
        if amount == 0 and not zero:
            raise self.error("is zero", "a positive quantity")
        return amount
