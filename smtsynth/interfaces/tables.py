"""Data with line numbers: mappings and lists read from a file, built from parser events without recursion.

The parsers' own composers recurse in C, so that a few kilobytes of brackets can end the process; this one has a
stack of its own and stated bounds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from smtsynth.errors import InputError

MAX_EVENTS = 2**20
MAX_DEPTH = 50
TOO_DEEP = f"at most {MAX_DEPTH} levels"

Event = tuple[str, object, int]
"""'{' or '[' opens, '}' closes either, '=' is a scalar with its value, '!' one that is refused, with its InputError;
then the line, from 1."""

_PLAIN = re.compile(r"[\w.\-\[\]]+")


class Table(dict[str, Any]):
    """A mapping that knows the line it starts on and the lines of those keys that stand on others."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] | None = None

    def line_of(self, key: str) -> int:
        """The line of a key."""
        return (self.lines or {}).get(key, self.line)


class Items(list[Any]):
    """A list that knows the line it starts on and the (index, line) of each item that begins another line."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[tuple[int, int]] | None = None

    def line_of(self, index: int) -> int:
        """The line of an item."""
        lines = self.lines or []
        place = bisect_right(lines, index, key=lambda entry: entry[0])
        return lines[place - 1][1] if place else self.line


def shown(value: object) -> str:
    """A value in a few words for a message."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value[:60] + "…" if len(value) > 60 else value)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    return str(value)[:60]


def tidy(key: str) -> str:
    """A key path for a message: as it is if it is a plain word, else quoted."""
    return key if _PLAIN.fullmatch(key) else repr(key)


def place(file: str, line: int | None, path: str) -> str:
    """Where something stands, for messages: FILE:LINE: key PATH."""
    where = file if line is None else f"{file}:{line}"
    return f"{where}: key {tidy(path)}" if path else where


class _Composer:
    """Builds data from events with a stack of its own."""

    def __init__(self, where: str, most: int) -> None:
        self.where = where
        self.most = most
        self.root: Any = None
        self.stack: list[Table | Items] = []
        self.keys: list[str | None] = []  # for every open Table, the key whose value is being read

    def fault(self, what: str, line: int, expected: str, key: str | None = None) -> InputError:
        """An error at `line`, under the keys that are open."""
        path = ""
        for holder, open_key in zip(self.stack, self.keys, strict=True):
            if isinstance(holder, Items):
                path += f"[{len(holder) - (holder is not self.stack[-1])}]"
            elif open_key is not None or key is not None:
                path += f".{(open_key if open_key is not None else key or '')[:60]}"
        return InputError(what, where=place(self.where, line, path.lstrip(".")), expected=expected)

    def key(self, top: Table, kind: str, value: object, line: int) -> None:
        """Take the next key of the open mapping."""
        if kind != "=" or not isinstance(value, str):
            what = "a key is " + (shown(value) if kind == "=" else "a list or a mapping")
            raise self.fault(what, line, "text, in quotes where YAML would read it otherwise")
        if value in top:
            raise self.fault(f"is there twice, first on line {top.line_of(value)}", line, "each key once", value)
        self.keys[-1] = value
        if line != top.line:
            top.lines = top.lines or {}
            top.lines[value] = line

    def put(self, top: Table | Items | None, item: Any, line: int) -> None:
        """Put a value where it belongs."""
        if top is None:
            self.root = item
        elif isinstance(top, Items):
            if line != (top.lines[-1][1] if top.lines else top.line):
                top.lines = top.lines or []
                top.lines.append((len(top), line))
            top.append(item)
        else:
            top[self.keys[-1] or ""] = item

    def run(self, events: Iterable[Event]) -> Any:
        """The data of all events."""
        stack, keys = self.stack, self.keys
        top: Table | Items | None = None
        for count, (kind, value, line) in enumerate(events):
            if count >= self.most:
                raise InputError("holds too many values", where=self.where, expected=f"at most {self.most}")
            if kind == "}":
                stack.pop()
                keys.pop()
                top = stack[-1] if stack else None
            elif kind == "!" and isinstance(value, InputError):
                raise self.fault(value.what, line, value.expected or "a number")
            elif isinstance(top, Table) and keys[-1] is None:
                self.key(top, kind, value, line)
                continue
            elif kind == "=":
                self.put(top, value, line)
            else:
                if len(stack) >= MAX_DEPTH:
                    raise InputError("is nested too deeply", where=f"{self.where}:{line}", expected=TOO_DEEP)
                item = Table(line) if kind == "{" else Items(line)
                self.put(top, item, line)
                top = item
                stack.append(item)
                keys.append(None)
                continue
            if keys:
                keys[-1] = None
        return self.root


def compose(events: Iterable[Event], where: str, most: int = MAX_EVENTS) -> Any:
    """The data of an event stream: Table, Items and scalars; `where` names the file in messages.

    Raises InputError for duplicate keys, keys that are not text, more than `most` events and too deep nesting.
    """
    return _Composer(where, most).run(events)
