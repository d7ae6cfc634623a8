"""One check under way: its parts, the files that its manifest lists, and the proofs in them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from smtsynth.certify import lrat_check
from smtsynth.certify.manifest import Cnf
from smtsynth.certify.witness import difference
from smtsynth.encode.clauses import Clauses
from smtsynth.errors import InputError

FAULTS = (ValueError, InputError)  # what our readers and checks raise; the rest is what damaged data leads to
DAMAGE = (
    *FAULTS,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    OSError,
    EOFError,
    zlib.error,
)


class Wrong(ValueError):
    """A part is not what it has to be; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the check: whether it holds, what was found or what is wrong, and seconds."""

    name: str
    ok: bool
    said: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `claim` is None where something is wrong: nothing is claimed then."""

    parts: tuple[Part, ...]
    claim: str | None
    rests_on: tuple[str, ...]
    sha256: str

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return all(part.ok for part in self.parts)


@dataclass
class Session:
    """One check under way: the parts so far."""

    folder: Path
    manifest: dict[str, Any]
    parts: list[Part] = field(default_factory=list)

    @contextmanager
    def part(self, name: str) -> Iterator[list[str]]:
        """A part of the check; words put on the list are its findings, an exception for damage its fault."""
        start = perf_counter()
        said: list[str] = []
        try:
            yield said
            self.parts.append(Part(name, True, ", ".join(said), perf_counter() - start))
        except DAMAGE as error:
            text = " ".join(str(error).split())[:300]
            if not isinstance(error, FAULTS) or isinstance(error, json.JSONDecodeError):
                text = f"is damaged ({type(error).__name__}: {text})"
            self.parts.append(Part(name, False, text, perf_counter() - start))

    def claim(self, expected: Callable[[], dict[str, Any]]) -> tuple[str | None, tuple[str, ...]]:
        """The claim and what it rests on, if all parts so far hold and the manifest is the expected one."""
        if not all(part.ok for part in self.parts):
            return None, ()
        with self.part("claim") as said:
            found = expected()
            where = difference(self.manifest, found)
            if where is not None:
                raise Wrong(where)
            said.append("follows from the parts")
            return found["claim"], tuple(found["rests_on"])
        return None, ()

    def file(self, name: str) -> Path:
        """A file of the folder whose digest was found to be the manifest's. Wrong where it isn't."""
        if name not in self.manifest["parts"]:
            raise Wrong(f"the manifest lists no file {name}")
        if any(part.name == f"file {name}" and not part.ok for part in self.parts):
            raise Wrong(f"not checked, as {name} is not the file that the manifest lists")
        return self.folder / name


def check_proof(clauses: Clauses, proof: Path, listed: Any, said: list[str], blocked: object = ()) -> Cnf:
    """Compare the CNF of `clauses` with what the manifest lists and check its proof. Raises Wrong or ProofError."""
    text = clauses.dimacs()
    cnf = Cnf.of(clauses, text, bool(blocked))
    if cnf.sha256 != listed["sha256"]:
        raise Wrong(f"the CNF of the problem has the digest {cnf.sha256}, which is not what the manifest says")
    lemmas = lrat_check.check(text.splitlines(), lrat_check.lines(str(proof)))
    said.append(f"CNF of {cnf.clauses} clauses rebuilt, digest as in the manifest")
    said.append(f"refuted by {lemmas} lemmas")
    return cnf


def check_stored(session: Session, name: str, cnf: Cnf) -> None:
    """A CNF that is stored beside its proof is the rebuilt one."""
    if name in session.manifest["parts"] and session.manifest["parts"][name] != cnf.sha256:
        raise Wrong(f"{name} is not the CNF of the problem")


def tools_of(manifest: dict[str, Any]) -> dict[str, str]:
    """What wrote the proofs, which nothing rests on: any short words."""
    tools = manifest["tools"]
    if not all(isinstance(word, str) and len(word) < 200 for pair in tools.items() for word in pair):
        raise Wrong("tools are no words")
    return dict(tools)
