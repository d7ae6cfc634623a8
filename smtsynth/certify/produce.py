"""Write the parts of a certificate: witness, proofs and labels of every case, manifest.

The refutation is asked for anew, below the final bound and by another solver than the search's. Definitions come
first; where a model remains that is none of a cheaper program, exact prices of its steps are added, or the prefix
that fails its replay is blocked, and the manifest names them.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import math
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from smtsynth.certify.labels import LabelError, Labels, check_labels, labels_text, make_labels
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
from smtsynth.certify.refutation import Refutation, Satisfiable, refute
from smtsynth.certify.scope import Case, Scope
from smtsynth.certify.witness import witness_data
from smtsynth.encode.choice import Blocked, Choice, Exactly
from smtsynth.encode.clauses import Clauses
from smtsynth.encode.reduced import MixedRow
from smtsynth.errors import InternalError, LimitReached
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Program
from smtsynth.search.loop import Resources, Status, search
from smtsynth.search.solve import PlacementTask
from smtsynth.solvers.drup import solver_version

MAX_PROVED = 4  # factors; beyond, labels are made, and a proof is tried only where they fail


@dataclass(frozen=True, slots=True)
class Made:
    """A certificate that was written: its manifest, the digest that is told with the claim, what the proofs took."""

    manifest: dict[str, Any]
    sha256: str
    refutations: tuple[Refutation, ...]

    @property
    def claim(self) -> str:
        """The claim in one sentence."""
        return str(self.manifest["claim"])


@dataclass(frozen=True)
class Below(PlacementTask):
    """The synthesis task with its bound held fixed, for the loop; `asked` is what each of its constraints held."""

    bound: int | None = None
    asked: list[tuple[tuple[MixedRow, ...], tuple[Blocked, ...]]] = field(default_factory=list)

    def encode(
        self,
        bound: int | None,
        mixed: Iterable[Any] = (),
        blocked: Iterable[Blocked] = (),
        clauses: Clauses | None = None,
    ) -> Choice:
        """Constraints on programs below the fixed bound."""
        self.asked.append((tuple(mixed), tuple(blocked)))
        return super().encode(self.bound, *self.asked[-1], clauses)


@dataclass
class Producer:
    """What the parts of one certificate share; `parts` collects the digests of the files written to `folder`."""

    folder: Path
    resources: Resources
    with_cnf: bool = False
    parts: dict[str, str] = field(default_factory=dict)
    took: list[Refutation] = field(default_factory=list)

    def put(self, name: str, data: bytes) -> None:
        """Write a part."""
        (self.folder / name).write_bytes(data)
        self.parts[name] = digest(data)

    def refute(self, clauses: Clauses, name: str, blocked: bool = False) -> Cnf:
        """Write the proof NAME.lrat.gz that the clauses are unsatisfiable, and with_cnf the CNF."""
        text = clauses.dimacs()
        target = self.folder / f"{name}.lrat.gz"
        resources = self.resources
        took = refute(
            text,
            target,
            seconds=resources.left(),
            memory=resources.memory,
            stop=resources.interrupted,
            progress=resources.progress,
        )
        self.took.append(took)
        self.parts[target.name] = digest(target.read_bytes())
        if self.with_cnf:
            self.put(f"{name}.cnf", text.encode("ascii"))
        return Cnf.of(clauses, text, blocked)

    def seal(self, manifest: dict[str, Any]) -> Made:
        """Write the manifest, last of all."""
        text = canonical(manifest)
        (self.folder / MANIFEST).write_bytes(text)
        (self.folder / SEAL).write_bytes(seal(text))
        return Made(manifest, digest(text), tuple(self.took))

    def entry(self, case: Case, stem: str, argument: str | None, proof: bool = True) -> Entry:
        """The evidence of a case, from the definitions alone where that is enough; see evidence."""
        if argument is not None:
            return Entry(case, argument)
        try:
            return self.evidence(Entry(case), stem, proof)
        except (Satisfiable, LabelError):
            return self.evidence(self.refined(case), stem, proof)

    def evidence(self, entry: Entry, stem: str, proof: bool = True) -> Entry:
        """The entry with labels, a proof or both; with proof False the proof only where labels fail.

        Raises LabelError or Satisfiable where a program seems cheaper.
        """
        labels, steps, failed = self.labels(entry)
        if labels is not None:
            self.put(f"labels{stem}.gz", packed(labels_text(labels)))
            entry = replace(entry, labels="any" if steps is None else steps)
            if not proof or entry.case.lowering.depth > MAX_PROVED:
                return entry
        try:
            choice = entry.case.question(entry.mixed, entry.blocked, Clauses(deadline=self.resources.deadline))
            return replace(entry, cnf=self.refute(choice.clauses, f"proof{stem}", bool(entry.blocked)))
        except LimitReached as limit:
            if labels is None:
                raise LimitReached(f"no certificate: {failed}, and {limit}") from None
            self.resources.progress(f"the certificate rests on labels alone: {limit}")
            return entry

    def labels(self, entry: Entry) -> tuple[Labels | None, int | None, str]:
        """Labels, for any number of steps where they prove so much; where a limit ends the work, None and its words."""
        case, left, bound = entry.case, self.resources.left(), entry.case.scope.bound
        deadline = None if left is None else perf_counter() + left / 4
        transitions = case.transitions(entry.blocked)
        for steps in (None, case.steps):
            self.resources.progress(f"labels for {steps or 'any number of'} steps")
            try:
                labels = make_labels(transitions, steps, bound, deadline, self.resources.progress)
                check_labels(transitions, labels, steps, bound)
                return labels, steps, ""
            except LabelError:
                if steps is not None:
                    raise
            except LimitReached as limit:
                return None, None, f"no labels: {limit}"
        raise AssertionError("unreachable")

    def refined(self, case: Case) -> Entry:
        """The exact prices and the blocked prefixes without which models remain that are no cheaper programs."""
        bound = case.scope.bound
        task = Below(case.prices, case.target, case.instructions, case.steps, "reduced", bound)
        found = search(task, [], self.resources)
        if found.cost is not None and (bound is None or found.cost < bound):
            raise InternalError(f"a program of {found.cost} ns is below the bound {bound}")
        if found.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            raise LimitReached(f"no certificate: {found.reason}")
        mixed, blocked = task.asked[-1]
        prefixes = tuple(one for one in blocked if not isinstance(one, Exactly))
        if len(prefixes) < len(blocked) or any(case.why_blocked(prefix) is None for prefix in prefixes):
            raise LimitReached("no certificate: a program fails its replay for want of the goal alone")
        return Entry(case, mixed=mixed, blocked=prefixes)


def packed(text: str) -> bytes:
    """Text gzipped, the same bytes every time."""
    return gzip.compress(text.encode("ascii"), mtime=0)


def produce(
    scope: Scope,
    witness: tuple[Lowering, Program] | None,
    problem_text: str,
    folder: Path,
    resources: Resources,
    with_cnf: bool = False,
) -> Made:
    """Write a certificate's files into the empty folder `folder`.

    witness: a program of scope.bound nanoseconds, None where the claim is that there is none. problem_text: a file
    that scope.problem is read from. Solver and elaboration run in child processes, each within resources.memory bytes
    (4 GB where that is None). Raises InputError where the solver isn't installed, LimitReached where a limit ends the
    work, InternalError where the claim is wrong.
    """
    resources = replace(resources, progress=seldom(resources.progress))
    producer = Producer(folder, resources, with_cnf)
    producer.put(PROBLEM, problem_text.encode())
    if witness is not None:
        data = witness_data(scope, *witness)
        if data["nanoseconds"] != scope.bound:
            raise InternalError(f"the witness costs {data['nanoseconds']} ns, not {scope.bound}")
        producer.put(WITNESS, canonical(data, None))
    placed = None if witness is None else witness[0].placement
    entries = []
    for case, stem in zip(scope.cases, stems(len(scope.cases)), strict=True):
        resources.progress(f"certifying placement {case.lowering.placement}")
        entries.append(producer.entry(case, stem, case.argument(placed)))
    complete = None
    if scope.placement is None:
        resources.progress("certifying that no placement is missing")
        complete = producer.refute(scope.other_placement(), "placements")
    return producer.seal(describe(scope, entries, complete, producer.parts, tools()))


def seldom(progress: Callable[[str], None]) -> Callable[[str], None]:
    """Progress without what was said just before, and nothing within a second of it."""
    last, at = "", -math.inf

    def say(line: str) -> None:
        nonlocal last, at
        if line != last and perf_counter() > at + 1:
            last, at = line, perf_counter()
            progress(line)

    return say


def tools() -> dict[str, str]:
    """What writes the proofs, by version."""
    try:
        own = importlib.metadata.version("smtsynth")
    except importlib.metadata.PackageNotFoundError:
        own = "from its source"
    return {"solver": solver_version(), "smtsynth": own, "python": platform.python_version()}
