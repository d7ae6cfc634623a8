"""Safe reading of YAML and JSON: text to plain data that knows its line numbers, and nothing else.

No objects, anchors, aliases or tags; numbers stay exact (int or Decimal, never float); nesting, size and the number
of values are bounded, so that no file can cost more than a moment.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import yaml

from smtsynth.errors import InputError
from smtsynth.interfaces.tables import MAX_EVENTS, TOO_DEEP, Event, compose, shown

MAX_BYTES = 16 * 2**20
Path = str | os.PathLike[str]
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,29})")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?")
_NUMERIC = re.compile(r"(?i)[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:e[+-]?[0-9]++)?|\.inf|\.nan)")
_STARTS = {yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent, yaml.AliasEvent}
_FIRST_OF_NUMBER = frozenset("+-.0123456789")
_JSON_WORDS = {"true": True, "false": False, "null": None}
_TRUE, _FALSE, _NULL = {"true", "yes", "on"}, {"false", "no", "off"}, {"", "~", "null"}
_TOKEN = re.compile(r'\n|"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[^\s"{}\[\],:]++')


def label(path: Path) -> str:
    """How messages name a file: one printable line; '-' is standard input."""
    name = os.fspath(path)
    if name == "-":
        return "standard input"
    return "".join(c if c.isprintable() else "?" for c in name[:4096])


def read_text(path: Path) -> str:
    """A file's text; '-' reads standard input. InputError where it is missing, too large or not text."""
    where, text_wanted = label(path), "a text file of YAML or JSON in UTF-8"
    try:
        if os.fspath(path) == "-":
            data = _standard_input()
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError("there is no such file", where=where, expected="a file") from None
    except IsADirectoryError:
        raise InputError("is a folder", where=where, expected="a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read ({reason})", where=where, expected="a readable file") from None
    if len(data) > MAX_BYTES:
        raise InputError("is too large", where=where, expected=f"at most {MAX_BYTES // 2**20} MiB")
    try:
        text = _decoded(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"is not text (byte {error.start})", where=f"{where}:{line}", expected=text_wanted) from None
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        what = f"is not text (control character U+{ord(control[0]):04X})"
        raise InputError(what, where=f"{where}:{line}", expected=text_wanted)
    return text


def _standard_input() -> bytes:
    """What standard input holds, up to the limit; nothing where it is closed."""
    if sys.stdin is None:
        return b""
    if hasattr(sys.stdin, "buffer"):
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    return sys.stdin.read(MAX_BYTES + 1).encode("utf-8", "surrogateescape")


def _decoded(data: bytes) -> str:
    """Bytes as text: UTF-8, or UTF-16 where a byte order mark says so."""
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if utf16 else "utf-8-sig")


def read_data(path: Path, most: int = MAX_EVENTS) -> Any:
    """The data of a YAML or JSON file (JSON where its name ends in .json): Table, Items and scalars."""
    return parse_data(read_text(path), label(path), is_json=is_json(path), most=most)


def is_json(path: Path) -> bool:
    """Whether a file is JSON by its name."""
    return os.fspath(path).lower().endswith(".json")


def parse_data(text: str, where: str, *, is_json: bool = False, most: int = MAX_EVENTS) -> Any:
    """The data of a YAML or JSON text of at most `most` values; `where` names it in messages. Raises InputError."""
    if not text.strip():
        raise InputError("is empty", where=where, expected="YAML or JSON")
    events = _json_events(text, where) if is_json else _yaml_events(text, where)
    data = compose(events, where, most)
    if data is None:
        raise InputError("is empty", where=where, expected="YAML or JSON")
    return data


def _scalar(text: str) -> tuple[str, object]:
    """The event of a plain YAML scalar or JSON number: '=' and None, bool, int, Decimal or str, or '!' and why not."""
    if text[:1] in _FIRST_OF_NUMBER:
        if _INTEGER.fullmatch(text):
            return "=", int(text)
        if _NUMERIC.fullmatch(text):
            if _LEADING_ZERO.fullmatch(text):
                return "!", InputError(f"{shown(text)} starts with a zero", expected="no leading zeros")
            if _DECIMAL.fullmatch(text):
                return "=", Decimal(text)
            finite = text.lower().strip("+-") not in (".inf", ".nan")
            what = f"{shown(text)} is {'too long' if finite else 'no finite number'}"
            return "!", InputError(what, expected="a number of at most 30 digits, with an exponent of at most two")
    if len(text) <= 5:
        word = text.lower()
        if word in _NULL:
            return "=", None
        if word in _TRUE or word in _FALSE:
            return "=", word in _TRUE
    return "=", text


def _yaml_events(text: str, where: str) -> Iterator[Event]:
    """Events of a YAML text; InputError for bad YAML and for anchors, aliases, tags and further documents."""
    documents = 0
    event: Any
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            kind = type(event)
            line = event.start_mark.line + 1
            if kind in _STARTS and (event.anchor is not None or getattr(event, "tag", None) is not None):
                what, expected = "uses a YAML anchor or alias (& or *)", "the value written out in each place"
                if event.anchor is None:
                    what, expected = "uses a YAML tag (!)", "plain values"
                raise InputError(what, where=f"{where}:{line}", expected=expected)
            if kind is yaml.ScalarEvent:
                if event.implicit[0]:
                    yield *_scalar(event.value), line
                else:
                    yield "=", event.value, line
            elif kind is yaml.MappingStartEvent:
                yield "{", None, line
            elif kind is yaml.SequenceStartEvent:
                yield "[", None, line
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                yield "}", None, line
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise InputError("a second YAML document begins", where=f"{where}:{line}", expected="one document")
    except yaml.YAMLError as error:
        raise _yaml_error(error, text, where) from None


def _yaml_error(error: yaml.YAMLError, text: str, where: str) -> InputError:
    """What is wrong with a YAML text, in one line."""
    mark: Any = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be parsed")
    if mark is None:
        return InputError(f"bad YAML: {what[:200]}", where=where, expected="YAML")
    line = text.split("\n", mark.line + 1)[mark.line : mark.line + 1]
    if line and "\t" in line[0][: mark.column + 1] and not line[0][: mark.column + 1].strip(" \t-?:"):
        what = "a tab is used for indentation"
    return InputError(f"bad YAML: {what[:200]}", where=f"{where}:{mark.line + 1}", expected="YAML, indented by spaces")


def _json_events(text: str, where: str) -> Iterator[Event]:
    """Events of a JSON text, which is checked as a whole first; InputError for bad JSON."""
    if sum(map(text.count, ",[{")) > MAX_EVENTS:
        raise InputError("holds too many values", where=where, expected=f"at most {MAX_EVENTS}")
    try:
        # Only the grammar is checked here: nothing is built from objects and numbers.
        json.loads(text, object_pairs_hook=len, parse_int=len, parse_float=len)
    except json.JSONDecodeError as error:
        what = f"bad JSON: {error.msg}"
        raise InputError(what, where=f"{where}:{error.lineno}", expected="one JSON object") from None
    except RecursionError:
        raise InputError("is nested too deeply", where=where, expected=TOO_DEEP) from None
    line = 1
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n":
            line += 1
        elif token[0] == '"':
            yield "=", json.loads(token) if "\\" in token else token[1:-1], line
        elif token in "{[":
            yield token, None, line
        elif token in "}]":
            yield "}", None, line
        elif token in _JSON_WORDS:
            yield "=", _JSON_WORDS[token], line
        elif token in ("NaN", "Infinity", "-Infinity"):
            yield "!", InputError(f"{token} is no finite number", expected="a number"), line
        else:
            yield *_scalar(token), line
