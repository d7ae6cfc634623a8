"""Reading MSCCL XML: text to an Algorithm, every error with its file and line. No DTD, no entities, no recursion."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.parsers import expat

from smtsynth.errors import InputError
from smtsynth.msccl.check import check_algorithm
from smtsynth.msccl.model import NO_LIMIT, Algorithm, Gpu, ThreadBlock, XmlStep

MAX_FILE = 64 * 2**20
PARENTS = {"algo": "", "gpu": "algo", "tb": "gpu", "step": "tb"}
ALIASES = {"ra": "re", "reducescatter": "reduce_scatter"}
_NUMBER = re.compile(r"\s*(-?[0-9]{1,19})\s*", re.ASCII)


class _Element:
    """One element while it is read: attributes, line, and the finished children by id."""

    def __init__(self, tag: str, attributes: dict[str, str], where: str, line: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.where = where
        self.line = line
        self.children: dict[int, Gpu | ThreadBlock | XmlStep] = {}

    def text(self, key: str) -> str:
        if key not in self.attributes:
            raise InputError(f"<{self.tag}> has no attribute {key!r}", where=self.where, expected=f'{key}="…"')
        return self.attributes[key]

    def word(self, key: str) -> str:
        word = self.text(key).strip()
        return ALIASES.get(word, word)

    def number(self, key: str, default: int | None = None) -> int:
        if default is not None and key not in self.attributes:
            return default
        value = self.text(key)
        match = _NUMBER.fullmatch(value) if len(value) < 100 else None
        if match is None:
            what = f"{key} of <{self.tag}> is {value[:40]!r}"
            raise InputError(what, where=self.where, expected="a whole number of at most 19 digits")
        return int(match[1])

    def flag(self, key: str, default: int | None = None) -> bool:
        value = self.number(key, default)
        if value not in (0, 1):
            raise InputError(f"{key} of <{self.tag}> is {value}", where=self.where, expected="0 or 1")
        return value == 1

    def add(self, key: int, child: Gpu | ThreadBlock | XmlStep, other: _Element) -> None:
        if key in self.children:
            raise InputError(f"there are two <{other.tag}> {key}", where=other.where, expected="each number once")
        self.children[key] = child

    def in_order(self, tag: str, key: str) -> list[Gpu | ThreadBlock | XmlStep]:
        """The children numbered 0, 1, 2, …, or InputError naming the first number that is missing."""
        for number in range(len(self.children)):
            if number not in self.children:
                what = f"<{self.tag}> has {len(self.children)} <{tag}> but none with {key} {number}"
                raise InputError(what, where=self.where, expected="numbers from 0 without a gap")
        return [self.children[number] for number in range(len(self.children))]


class _Reader:
    """Expat handlers over a stack of open elements (at most four deep)."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.stack: list[_Element] = []
        self.algorithm: Algorithm | None = None
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text
        self.parser.StartDoctypeDeclHandler = self.doctype

    @property
    def where(self) -> str:
        return f"{self.file}:{self.parser.CurrentLineNumber}"

    def doctype(self, *_: object) -> None:
        raise InputError("a document type (DTD) is declared", where=self.where, expected="plain <algo> XML without one")

    def text(self, text: str) -> None:
        if not text.isspace():
            raise InputError(f"there is text, {text.strip()[:40]!r}", where=self.where, expected="elements only")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self.stack[-1].tag if self.stack else ""
        if PARENTS.get(tag) != parent:
            inside = f"inside <{parent}>" if parent else "as the outermost element"
            known = next((f"<{child}>" for child, above in PARENTS.items() if above == parent), "nothing")
            raise InputError(f"<{tag[:40]}> {inside}", where=self.where, expected=known)
        self.stack.append(_Element(tag, attributes, self.where, self.parser.CurrentLineNumber))

    def end(self, _: str) -> None:
        element = self.stack.pop()
        if element.tag == "step":
            self.stack[-1].add(self.step_number(element), _step(element), element)
        elif element.tag == "tb":
            self.stack[-1].add(element.number("id"), _block(element), element)
        elif element.tag == "gpu":
            self.stack[-1].add(element.number("id"), _gpu(element), element)
        else:
            self.algorithm = _algorithm(element)

    def step_number(self, element: _Element) -> int:
        """The step's number: the runtimes go by position, dependencies by number, so they must agree."""
        number, position = element.number("s"), len(self.stack[-1].children)
        if number != position:
            raise InputError(f"step s is {number}", where=element.where, expected=f"{position}, its position in the tb")
        return number


def _step(element: _Element) -> XmlStep:
    return XmlStep(
        type=element.word("type"),
        srcbuf=element.word("srcbuf"),
        srcoff=element.number("srcoff"),
        dstbuf=element.word("dstbuf"),
        dstoff=element.number("dstoff"),
        cnt=element.number("cnt"),
        depid=element.number("depid"),
        deps=element.number("deps"),
        hasdep=element.flag("hasdep"),
        line=element.line,
    )


def _block(element: _Element) -> ThreadBlock:
    steps = tuple(step for step in element.in_order("step", "s") if isinstance(step, XmlStep))
    return ThreadBlock(element.number("send"), element.number("recv"), element.number("chan"), steps, element.line)


def _gpu(element: _Element) -> Gpu:
    blocks = tuple(block for block in element.in_order("tb", "id") if isinstance(block, ThreadBlock))
    sizes = [element.number(f"{buffer}_chunks") for buffer in "ios"]
    return Gpu(sizes[0], sizes[1], sizes[2], blocks, element.line)


def _algorithm(element: _Element) -> Algorithm:
    gpus = tuple(gpu for gpu in element.in_order("gpu", "id") if isinstance(gpu, Gpu))
    ngpus = element.number("ngpus")
    if ngpus != len(gpus):
        raise InputError(f"ngpus is {ngpus}", where=element.where, expected=f"{len(gpus)}, the number of <gpu>")
    inplace = element.flag("inplace", 0)
    return Algorithm(
        name=element.text("name"),
        proto=element.word("proto"),
        nchannels=element.number("nchannels"),
        nchunksperloop=element.number("nchunksperloop"),
        coll=element.word("coll"),
        gpus=gpus,
        inplace=inplace,
        outofplace=element.flag("outofplace", int(not inplace)),
        min_bytes=element.number("minBytes", 0),
        max_bytes=element.number("maxBytes", NO_LIMIT),
        root=element.number("root", 0),
        line=element.line,
    )


def parse_msccl(data: bytes, file: str) -> Algorithm:
    """The algorithm that the XML text `data` spells; `file` names it in errors.

    Absent attributes: minBytes 0, maxBytes without limit, inplace 0, outofplace the opposite of inplace, root 0.
    Unknown attributes are passed over, as the runtimes do. Raises InputError "FILE:LINE: …".
    """
    reader = _Reader(file)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        what = f"this is not XML: {expat.errors.messages.get(error.code, str(error))}"
        raise InputError(what, where=f"{file}:{error.lineno}", expected="an MSCCL <algo> file") from None
    except (ValueError, LookupError) as error:
        raise InputError(f"unreadable text: {error}", where=reader.where, expected="UTF-8 XML") from None
    if reader.algorithm is None:
        raise InputError("there is no <algo>", where=f"{file}:1", expected="an MSCCL <algo> file")
    return check_algorithm(reader.algorithm, file)


def read_msccl(path: str | os.PathLike[str]) -> Algorithm:
    """The algorithm in the MSCCL XML file `path`. Raises InputError "FILE:LINE: …" for anything unreadable."""
    file = os.fsencode(path).decode("utf-8", "replace")
    try:
        if Path(path).is_file() and Path(path).stat().st_size > MAX_FILE:
            raise InputError("the file is too large", where=file, expected=f"at most {MAX_FILE // 2**20} MiB")
        with open(path, "rb") as stream:
            data = stream.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read: {reason}", where=file, expected="an MSCCL XML file") from None
    if len(data) > MAX_FILE:
        raise InputError("the file is too large", where=file, expected=f"at most {MAX_FILE // 2**20} MiB")
    return parse_msccl(data, file)
