"""Check a certificate: nothing in the folder is believed but what the problem and the checks here bear out.

The witness is replayed and priced, every CNF is rebuilt from the problem and its digest compared, every proof goes
through smtsynth.certify.lrat_check, labels through one pass over the transitions, and the manifest with its claim is
written anew from what was found and compared. No solver is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smtsynth.certify.evidence import check_case
from smtsynth.certify.folder import read_manifest
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
    seal,
    stems,
)
from smtsynth.certify.scope import Scope
from smtsynth.certify.session import Report, Session, Wrong, check_proof, check_stored, tools_of
from smtsynth.certify.step_check import check_step
from smtsynth.certify.step_scope import StepScope
from smtsynth.certify.witness import check_witness, difference
from smtsynth.model.lowering import HIERARCHIES
from smtsynth.model.placement import check_placement, count_placements
from smtsynth.model.problem import Problem
from smtsynth.model.program import instruction_set
from smtsynth.model.workload import Workload


def check(folder: Path, read: Callable[[str], Problem | Workload], told: str | None = None) -> Report:
    """Check a certificate folder. `read` makes the problem or workload of a file's text.

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
        claim, rests = check_step(session, scope) if isinstance(scope, StepScope) else _check_claim(session, scope)
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


def _scope(session: Session, read: Callable[[str], Problem | Workload]) -> Scope | StepScope:
    """The scope that the problem file and the manifest's options give."""
    problem = read(session.file(PROBLEM).read_text(encoding="utf-8"))
    options, bound = session.manifest["options"], session.manifest["bound_nanoseconds"]
    if bound is not None and (type(bound) is not int or bound < 0):
        raise Wrong("the bound is no whole number of nanoseconds")
    instruction_set(1, options["instruction_set"])
    if isinstance(problem, Workload):
        return StepScope(problem, options["instruction_set"], bound)
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
        entry = check_case(session, case, data, stem, witness)
        if entry is not None:
            entries.append(entry)
    complete = _check_placements(session, scope) if scope.placement is None else None
    return session.claim(lambda: describe(scope, entries, complete, manifest["parts"], tools_of(manifest)))


def _check_placements(session: Session, scope: Scope) -> Cnf | None:
    with session.part("all placements") as said:
        listed = session.manifest["all_placements"]["cnf"]
        cnf = check_proof(scope.other_placement(), session.file("placements.lrat.gz"), listed, said)
        check_stored(session, "placements.cnf", cnf)
        return cnf
    return None
