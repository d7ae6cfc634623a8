"""Check a certificate: nothing in the folder is believed but what the problem and the checks here bear out.

The witness is replayed and priced, every CNF is rebuilt from the problem and its digest compared, every proof goes
through smtsynth.certify.lrat_check, labels through one pass over the transitions, and the manifest with its claim is
written anew from what was found and compared. No solver is used.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from smtsynth.certify import lrat_check
from smtsynth.certify.folder import read_manifest
from smtsynth.certify.labels import check_labels, read_labels
from smtsynth.certify.manifest import (
    MANIFEST,
    PROBLEM,
    SEAL,
    WITNESS,
    Cnf,
    Entry,
    canonical,
    describe,
    digest,
    read_refinements,
    seal,
    stems,
)
from smtsynth.certify.scope import Case, Scope
from smtsynth.certify.witness import check_witness, difference
from smtsynth.encode.clauses import Clauses
from smtsynth.errors import InputError
from smtsynth.model.lowering import HIERARCHIES
from smtsynth.model.placement import Placement, check_placement, count_placements
from smtsynth.model.problem import Problem
from smtsynth.model.program import instruction_set

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

    def file(self, name: str) -> Path:
        """A file of the folder whose digest was found to be the manifest's. Wrong where it isn't."""
        if name not in self.manifest["parts"]:
            raise Wrong(f"the manifest lists no file {name}")
        if any(part.name == f"file {name}" and not part.ok for part in self.parts):
            raise Wrong(f"not checked, as {name} is not the file that the manifest lists")
        return self.folder / name


def check(folder: Path, read: Callable[[str], Problem], told: str | None = None) -> Report:
    """Check a certificate folder. `read` makes the problem of a problem file's text.

    told: the digest of the manifest that was told with the claim, where it is to be compared. Raises InputError where
    the folder is no certificate.
    """
    manifest, text = read_manifest(folder)
    session = Session(folder, manifest)
    with session.part("manifest") as said:
        _check_text(folder, manifest, text, told)
        said.append("as it was sealed" + (", and as told" if told else ""))
    if not session.parts[-1].ok:  # all else would be compared with it
        return Report(tuple(session.parts), None, (), digest(text))
    for name in sorted({*manifest["parts"], *os.listdir(folder)} - {MANIFEST, SEAL}):
        with session.part(f"file {name}") as said:
            _check_file(folder, name, manifest["parts"])
            said.append("digest as in the manifest")
    claim: str | None = None
    rests: tuple[str, ...] = ()
    with session.part("problem") as said:
        scope = _scope(session, read)
        said.append("read; options known")
    if session.parts[-1].ok:
        claim, rests = _check_claim(session, scope)
    ok = all(part.ok for part in session.parts)
    return Report(tuple(session.parts), claim if ok else None, rests if ok else (), digest(text))


def _check_text(folder: Path, manifest: dict[str, Any], text: bytes, told: str | None) -> None:
    """The manifest's own text and its seal."""
    if canonical(manifest) != text:
        raise Wrong("is not in canonical form")
    if (folder / SEAL).read_bytes() != seal(text):
        raise Wrong(f"its digest is {digest(text)}, which is not what {SEAL} says")
    if told is not None and told.lower() != digest(text):
        raise Wrong(f"its digest is {digest(text)}, not {told[:64]} as told")


def _check_file(folder: Path, name: str, listed: dict[str, Any]) -> None:
    if name not in listed:
        raise Wrong("is not listed in the manifest")
    if os.path.basename(name) != name or not os.path.isfile(folder / name):
        raise Wrong("is missing")
    with open(folder / name, "rb") as file:
        found = digest(file.read())
    if found != listed[name]:
        raise Wrong(f"its digest is {found}, which is not what the manifest says")


def _scope(session: Session, read: Callable[[str], Problem]) -> Scope:
    """The scope that the problem file and the manifest's options give."""
    problem = read(session.file(PROBLEM).read_text(encoding="utf-8"))
    options, bound = session.manifest["options"], session.manifest["bound_nanoseconds"]
    if bound is not None and (type(bound) is not int or bound < 0):
        raise Wrong("the bound is no whole number of nanoseconds")
    instruction_set(1, options["instruction_set"])
    if options["hierarchy"] not in HIERARCHIES:
        raise Wrong(f"hierarchy {options['hierarchy']!r} is unknown")
    placement = options["placement"]
    if placement is not None:
        placement = check_placement(placement, problem.axes, problem.system)
    elif count_placements(problem.axes, problem.system) != sum(
        len(case["placements"]) for case in session.manifest["cases"]
    ):
        raise Wrong("the manifest lists another number of placements than there are")
    return Scope(problem, options["instruction_set"], options["hierarchy"], placement, bound)


def _check_claim(session: Session, scope: Scope) -> tuple[str | None, tuple[str, ...]]:
    """Witness, cases and placements; then the manifest as a whole."""
    manifest, witness = session.manifest, None
    with session.part("witness") as said:
        if scope.bound is None:
            said.append("none, as the claim is that there is no program")
        else:
            data = json.loads(session.file(WITNESS).read_bytes())
            lowering, program = check_witness(scope, data)
            witness = lowering.placement
            by = "the meaning for all sizes" if lowering.size > 1024 else "the rules and the buffers"
            said.append(f"{len(program)} steps, replayed by {by}")
            said.append(f"priced step by step at {scope.bound} ns, as the bound")
    if not session.parts[-1].ok:
        return None, ()
    entries: list[Entry] = []
    with session.part("cases") as said:
        listed = manifest["cases"]
        found = [[[list(row) for row in one.placement.matrix] for one in case.lowerings] for case in scope.cases]
        where = difference([case["placements"] for case in listed], found, "placements")
        if where is not None:
            raise Wrong(where)
        said.append(f"{len(found)} of {sum(map(len, found))} placements, as the problem gives them")
    if not session.parts[-1].ok:
        return None, ()
    for case, data, stem in zip(scope.cases, listed, stems(len(listed)), strict=True):
        entry = _check_case(session, case, data, stem, witness)
        if entry is not None:
            entries.append(entry)
    complete = _check_placements(session, scope) if scope.placement is None else None
    if not all(part.ok for part in session.parts):
        return None, ()
    with session.part("claim") as said:
        expected = describe(scope, entries, complete, manifest["parts"], _tools(manifest))
        where = difference(manifest, expected)
        if where is not None:
            raise Wrong(where)
        said.append("follows from the parts")
        return expected["claim"], tuple(expected["rests_on"])
    return None, ()


def _check_case(session: Session, case: Case, data: Any, stem: str, witness: Placement | None) -> Entry | None:
    """The evidence of one case; None where something is wrong with it."""
    name, before, bound = f"case{stem}", len(session.parts), case.scope.bound
    argument, cnf, steps = case.argument(witness), None, None
    if argument is not None:
        with session.part(name) as said:
            said.append(argument)
        return Entry(case, argument)
    with session.part(f"{name} refinements") as said:
        mixed, blocked = read_refinements(data, case.lowering)
        for prefix in blocked:
            if case.why_blocked(prefix) is None:
                raise Wrong("a prefix is blocked that doesn't fail its replay")
        said.append(f"{len(mixed)} exact prices, {len(blocked)} blocked prefixes that fail their replay")
    if not session.parts[-1].ok:
        return None
    if data.get("proof") is not None:
        with session.part(f"{name} proof") as said:
            choice = case.question(mixed, blocked)
            cnf = check_proof(choice.clauses, session.file(f"proof{stem}.lrat.gz"), data["proof"]["cnf"], said, blocked)
            check_stored(session, f"proof{stem}.cnf", cnf)
    if data.get("labels") is not None:
        with session.part(f"{name} labels") as said:
            steps = data["labels"]["steps"]
            if steps not in ("any", case.steps):
                raise Wrong(f"labels for {steps} steps, and the limit is {case.steps}")
            with gzip.open(session.file(f"labels{stem}.gz"), "rt", encoding="ascii") as file:
                labels = read_labels(file, case.lowering.depth)
            limit = None if steps == "any" else steps
            checked = check_labels(case.transitions(blocked), labels, limit, bound)
            said.append(f"{checked.places} labels right over {checked.steps} transitions, {_below(bound)}")
            said.append("for any number of steps" if limit is None else f"for {limit} steps")
    if cnf is None and steps is None:
        with session.part(f"{name} evidence"):
            raise Wrong("neither a proof nor labels")
    if not all(part.ok for part in session.parts[before:]):
        return None
    return Entry(case, None, mixed, blocked, cnf, steps)


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


def _check_placements(session: Session, scope: Scope) -> Cnf | None:
    with session.part("all placements") as said:
        listed = session.manifest["all_placements"]["cnf"]
        cnf = check_proof(scope.other_placement(), session.file("placements.lrat.gz"), listed, said)
        check_stored(session, "placements.cnf", cnf)
        return cnf
    return None


def _below(bound: int | None) -> str:
    return "there is no program" if bound is None else f"no program below {bound} ns"


def _tools(manifest: dict[str, Any]) -> dict[str, str]:
    """What wrote the proofs, which nothing rests on: any short words."""
    tools = manifest["tools"]
    if not all(isinstance(word, str) and len(word) < 200 for pair in tools.items() for word in pair):
        raise Wrong("tools are no words")
    return dict(tools)
