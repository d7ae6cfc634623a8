"""Check the certificate of a training step; see smtsynth.certify.check."""

from __future__ import annotations

import json
from typing import Any

from smtsynth.certify.evidence import check_case
from smtsynth.certify.manifest import WITNESS, Cnf, stems
from smtsynth.certify.session import Session, Wrong, check_proof, check_stored, tools_of
from smtsynth.certify.step_manifest import PLACEMENTS, describe_step, read_row
from smtsynth.certify.step_scope import RowEntry, StepScope
from smtsynth.certify.step_witness import check_step_witness
from smtsynth.model.rows import Row


def check_step(session: Session, scope: StepScope) -> tuple[str | None, tuple[str, ...]]:
    """Witness, rows and the proof over all placements; then the manifest as a whole."""
    manifest = session.manifest
    with session.part("witness") as said:
        if scope.bound is None:
            said.append("none, as the claim is that no placement obeys the constraints")
        else:
            check_step_witness(scope, json.loads(session.file(WITNESS).read_bytes()))
            said.append(f"{len(scope.reductions)} programs, replayed")
            said.append(f"priced step by step at {scope.bound} ns, as the bound")
    if not session.parts[-1].ok:
        return None, ()
    proved = _rows(session, scope)
    if proved is None:
        return None, ()
    cnf: Cnf | None = None
    looked: list[tuple[Row, ...]] = []
    with session.part("all placements") as said:
        looked = [_looked(rows, flow.every) for rows, flow in zip(manifest["traffic"], scope.flows, strict=True)]
        file, listed = session.file(f"{PLACEMENTS}.lrat.gz"), manifest["all_placements"]["cnf"]
        cnf = check_proof(scope.question(proved, looked), file, listed, said)
        check_stored(session, f"{PLACEMENTS}.cnf", cnf)
    if cnf is None:
        return None, ()
    refuted = cnf
    return session.claim(lambda: describe_step(scope, proved, looked, refuted, manifest["parts"], tools_of(manifest)))


def _rows(session: Session, scope: StepScope) -> list[RowEntry] | None:
    """The rows that have evidence of their own; None where something is wrong with one."""
    before, proved = len(session.parts), list[RowEntry]()
    listed: list[Any] = []
    tables = {table.named.name: table for table in scope.reductions}
    with session.part("rows") as said:
        listed = session.manifest["rows"]
        seen = set()
        for data in listed:
            table, row, low = tables[data["reduction"]], read_row(data["row"]), data["nanoseconds"]
            if (table.named.name, row) in seen or row not in table.least:
                raise Wrong("a row is there twice, or no placement has it")
            if type(low) is not int or low <= table.least[row]:
                raise Wrong("a row's bound is not above what any schedule takes")
            seen.add((table.named.name, row))
        said.append(
            f"{len(listed)} of {sum(len(table.every) for table in scope.reductions)} with evidence of their own"
        )
        said.append("the others by what any schedule must move")
    if not session.parts[-1].ok:
        return None
    for data, stem in zip(listed, stems(len(listed)), strict=True):
        table, row, low = tables[data["reduction"]], read_row(data["row"]), data["nanoseconds"]
        entry = check_case(session, table.case(row, low), data["evidence"], stem, None)
        if entry is not None:
            proved.append(RowEntry(table, row, low, entry))
    return proved if all(part.ok for part in session.parts[before:]) else None


def _looked(data: Any, every: list[Row]) -> tuple[Row, ...]:
    """The priced rows of given traffic."""
    rows = tuple(map(read_row, data))
    if len(set(rows)) < len(rows) or not set(rows) <= set(every):
        raise Wrong("a row of given traffic is there twice, or no placement has it")
    return rows
