"""Check the evidence of one case: its refinements, its proof, its labels."""

from __future__ import annotations

import gzip
from typing import Any

from smtsynth.certify.labels import check_labels, read_labels
from smtsynth.certify.manifest import Entry, read_refinements
from smtsynth.certify.scope import Case
from smtsynth.certify.session import Session, Wrong, check_proof, check_stored
from smtsynth.model.placement import Placement


def check_case(session: Session, case: Case, data: Any, stem: str, witness: Placement | None) -> Entry | None:
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


def _below(bound: int | None) -> str:
    return "there is no program" if bound is None else f"no program below {bound} ns"
