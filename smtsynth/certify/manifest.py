"""The manifest of a certificate: the claim in one sentence, what it rests on, and the digests of all parts.

It is a function of the scope, the witness and the proofs, so that the check writes it anew and compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smtsynth.certify.scope import Case, Scope
from smtsynth.encode.clauses import Clauses
from smtsynth.encode.reduced import MixedRow
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Program, parse_program, show_instruction
from smtsynth.model.units import exact_text

FORMAT = "smtsynth certificate 1"
ENCODER = 1  # of encode.reduced, encode.choice, encode.costs and encode.placement: one more where their clauses change
MANIFEST, SEAL, PROBLEM, WITNESS = "manifest.json", "manifest.sha256", "problem.yaml", "witness.json"


@dataclass(frozen=True)
class Cnf:
    """A CNF in a few words: the digest of its DIMACS text, its size, its families of clauses and what they say."""

    sha256: str
    variables: int
    clauses: int
    families: Mapping[str, str]

    @staticmethod
    def of(clauses: Clauses, text: str, blocked: bool = False) -> Cnf:
        """Of clauses and their DIMACS text; the family `blocked` is there only where something is."""
        families = {name: said for name, said in clauses.families.items() if blocked or name != "blocked"}
        return Cnf(digest(text.encode("ascii")), clauses.count, len(clauses.clauses), families)

    def data(self) -> dict[str, Any]:
        """As plain data."""
        sizes = {"sha256": self.sha256, "variables": self.variables, "clauses": self.clauses}
        return {**sizes, "families": sorted(self.families)}


@dataclass(frozen=True)
class Entry:
    """A case and what refutes everything below the bound: an argument; or a proof, labels, or both.

    labels: "any" where they hold for any number of steps, else the limit of steps; None without labels.
    """

    case: Case
    argument: str | None = None
    mixed: tuple[MixedRow, ...] = ()
    blocked: tuple[Program, ...] = ()
    cnf: Cnf | None = None
    labels: str | int | None = None

    @property
    def longer(self) -> str | None:
        """Why longer programs are no cheaper, in a word or two; None where that isn't shown."""
        if self.argument is not None:
            return "argument"
        if self.labels == "any":
            return "labels"
        return "least step" if self.case.steps_suffice else None

    @property
    def kinds(self) -> list[str]:
        """What it rests on."""
        if self.argument is not None:
            return ["argument"]
        return ["LRAT proof"] * (self.cnf is not None) + ["labels"] * (self.labels is not None)

    def data(self, stem: str) -> dict[str, Any]:
        """As plain data; `stem` is put after the names of its files."""
        case, names = self.case, self.case.lowering.names
        found: dict[str, Any] = {
            "placements": [[list(row) for row in one.placement.matrix] for one in case.lowerings],
            "argument": self.argument,
        }
        if self.argument is not None:
            return found
        return found | {
            "factors": list(case.lowering.sizes),
            "steps": case.steps,
            "least_step_nanoseconds": case.least_step,
            "longer_programs": self.longer,
            "proof": None if self.cnf is None else {"file": f"proof{stem}.lrat.gz", "cnf": self.cnf.data()},
            "labels": None if self.labels is None else {"file": f"labels{stem}.gz", "steps": self.labels},
            "mixed_prices": mixed_data(self.mixed, names),
            "blocked": [
                {"prefix": [show_instruction(one, names) for one in prefix], "reason": case.why_blocked(prefix)}
                for prefix in self.blocked
            ],
        }


def mixed_data(mixed: Sequence[MixedRow], names: Sequence[str]) -> list[list[Any]]:
    """Price definitions of steps whose groups hold different parts: instruction, mask of factors per kind of group."""
    return [[show_instruction(instruction, names), list(masks)] for instruction, masks in mixed]


def read_refinements(data: object, lowering: Lowering) -> tuple[tuple[MixedRow, ...], tuple[Program, ...]]:
    """The mixed prices and blocked prefixes of a case's data. Raises ValueError, KeyError, TypeError or InputError."""
    if not isinstance(data, dict):
        raise TypeError("a case is no mapping")
    names, every = lowering.names, 1 << lowering.depth
    mixed: list[MixedRow] = []
    for text, masks in data["mixed_prices"]:
        (instruction,) = parse_program(text, names)
        if not all(type(mask) is int and 0 <= mask < every for mask in masks):
            raise ValueError("a mixed price has no masks over the factors")
        mixed.append((instruction, tuple(masks)))
    blocked = tuple(parse_program(";".join(one["prefix"]), names) for one in data["blocked"])
    if not all(blocked):
        raise ValueError("an empty prefix is blocked")
    return tuple(mixed), blocked


def stems(count: int) -> list[str]:
    """What is put after the names of the files of each case: nothing where there is only one."""
    return [""] if count == 1 else [f"-{number}" for number in range(1, count + 1)]


def describe(
    scope: Scope,
    entries: Sequence[Entry],
    complete: Cnf | None,
    parts: Mapping[str, str],
    tools: Mapping[str, str],
) -> dict[str, Any]:
    """The manifest as plain data.

    complete: the CNF whose proof shows that no placement is missing (None: one was given). parts: digest by file.
    tools: what wrote the proofs, for the record only; nothing rests on it.
    """
    cnfs = [cnf for cnf in (*(entry.cnf for entry in entries), complete) if cnf is not None]
    return {
        "format": FORMAT,
        "encoder": ENCODER,
        "claim": claim(scope, entries),
        "rests_on": rests_on(entries, complete),
        "bound_nanoseconds": scope.bound,
        "options": {
            "instruction_set": scope.instruction_set,
            "hierarchy": scope.hierarchy,
            "placement": None if scope.placement is None else [list(row) for row in scope.placement.matrix],
        },
        "cases": [entry.data(stem) for entry, stem in zip(entries, stems(len(entries)), strict=True)],
        "all_placements": None if complete is None else {"file": "placements.lrat.gz", "cnf": complete.data()},
        "families": {name: said for cnf in cnfs for name, said in cnf.families.items()},
        "parts": dict(parts),
        "tools": dict(tools),
    }


def rests_on(entries: Sequence[Entry], complete: Cnf | None) -> list[str]:
    """The kinds of evidence, each with the number of cases that it covers."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[" and ".join(entry.kinds)] = counts.get(" and ".join(entry.kinds), 0) + 1
    found = [f"{kind} ({count} of {len(entries)} cases)" for kind, count in counts.items()]
    return found + ["LRAT proof that no placement is missing"] * (complete is not None)


def claim(scope: Scope, entries: Sequence[Entry]) -> str:
    """The claim in one sentence, with its scope."""
    problem = scope.problem
    reduction, sizes = problem.reduction, " * ".join(str(size) for size in problem.system.sizes)
    what = str(reduction.collective)
    if reduction.mixed:
        what = f"AllReduce that ends split over {', '.join(reduction.split)}"
    where = "with any placement" if scope.placement is None else f"with placement {_matrix(scope)}"
    least = "reaches the goal" if scope.bound is None else f"costs less than {scope.bound} ns"
    if scope.bound is not None:
        least += ", what the witness costs"
    longer = (
        "nor does any longer program" if all(entry.longer for entry in entries) else "of longer ones nothing is said"
    )
    return (
        f"For {what} of {exact_text(reduction.payload, 'bytes')} a device over {', '.join(reduction.over)} on "
        f"{sizes} devices, {where}: no program of the instruction set {scope.instruction_set} over the hierarchy "
        f"{scope.hierarchy} {within_steps(entries)}{proviso(entries)} {least}, by the cost model "
        f"{scope.model.name}; {longer}."
    )


def within_steps(entries: Iterable[Entry]) -> str:
    """The limits of steps in words: 'within 5 or 7 steps …'."""
    steps = sorted({entry.case.steps for entry in entries})
    words = f"within {' or '.join(map(str, steps))} step{'s' * (steps != [1])}"
    return words + " (by the number of factors)" * (len(steps) > 1)


def proviso(entries: Iterable[Entry]) -> str:
    """What the claim leaves out, where prefixes are blocked that only the meaning for all sizes refuses."""
    symbolic = any(entry.blocked and entry.case.symbolic for entry in entries)
    return ", but for those that the meaning for all sizes refuses" if symbolic else ""


def _matrix(scope: Scope) -> str:
    assert scope.placement is not None
    return json.dumps([list(row) for row in scope.placement.matrix], separators=(",", ":"))


def canonical(data: object, indent: int | None = 2) -> bytes:
    """Plain data as the one text it has here: JSON, keys sorted, ASCII; with `indent` None all on one line."""
    return (json.dumps(data, sort_keys=True, indent=indent, allow_nan=False) + "\n").encode("ascii")


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def seal(manifest: bytes) -> bytes:
    """The text of the file beside the manifest, as sha256sum writes and checks it."""
    return f"{digest(manifest)}  {MANIFEST}\n".encode("ascii")
