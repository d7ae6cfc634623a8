"""A checked refutation of a CNF: solver, elaboration and the checker, one after the other, within stated limits."""

from __future__ import annotations

import gzip
import io
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import perf_counter

from smtsynth.certify import lrat_check
from smtsynth.certify.elaborate import Literals, Proof, elaborate, lrat, read_drup, read_lrat
from smtsynth.errors import InternalError, LimitReached
from smtsynth.solvers.drup import DEFAULT_MEMORY, ProofKind, prove, solver_version
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.process import Finished, run

READERS: dict[str, Callable[[Iterable[Literals], Iterable[str]], Proof]] = {
    ProofKind.LRAT: read_lrat,
    ProofKind.DRUP: read_drup,
}


class Satisfiable(InternalError):
    """What was to be refuted has a model."""


@dataclass(frozen=True, slots=True)
class Refutation:
    """What a refutation took: the solver, its proof in bytes, the lemmas kept, and seconds of either part."""

    solver: str
    raw_bytes: int
    lemmas: int
    solve_seconds: float
    elaborate_seconds: float


def refute(
    dimacs: str,
    target: Path,
    *,
    kind: ProofKind = ProofKind.LRAT,
    seconds: float | None = None,
    memory: int | None = None,
    stop: Event | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Refutation:
    """Refute the CNF `dimacs` and write the LRAT proof, trimmed and packed, to `target` once the checker took it.

    Solver and elaboration are child processes, one after the other, each within `memory` bytes (default 4 GB), both
    within `seconds`. Raises InputError where the solver isn't installed, LimitReached where a limit ends the work,
    Satisfiable where the CNF is, InternalError where a proof is wrong.
    """
    start, memory = perf_counter(), memory or DEFAULT_MEMORY
    with tempfile.TemporaryDirectory(prefix="smtsynth-") as folder:
        cnf, raw, said, packed = (Path(folder) / name for name in ("problem.cnf", "proof.raw", "progress", "lrat.gz"))
        cnf.write_text(dimacs, encoding="ascii")
        outcome = prove(cnf, raw, kind, seconds, memory, stop, progress)
        if outcome.answer is Answer.SAT:
            raise Satisfiable("what the certificate is to refute is satisfiable")
        if outcome.answer is Answer.UNKNOWN:
            raise LimitReached(f"no proof: {outcome.reason}")
        said.write_text(f"elaborating {raw.stat().st_size / 1e6:.1f} MB of proof", encoding="ascii")
        command = [sys.executable, "-m", "smtsynth.certify.refutation", str(cnf), str(raw), kind, str(packed)]
        left = None if seconds is None else seconds - (perf_counter() - start)
        finished = run([*command, str(said), str(memory)], left, stop, lambda: _tell(progress, said))
        _raise_if_failed(finished, memory, stop)
        target.write_bytes(packed.read_bytes())
        return Refutation(
            solver_version(),
            raw.stat().st_size,
            json.loads(finished.output)["lemmas"],
            outcome.seconds,
            finished.seconds,
        )


def _raise_if_failed(finished: Finished, memory: int, stop: Event | None) -> None:
    reason = " ".join(finished.errors.split())[-400:]
    if finished.late:
        raise LimitReached("no proof: the elaboration reached the time limit")
    if finished.status and stop is not None and stop.is_set():
        raise LimitReached("no proof: the elaboration was stopped")
    if finished.status and any(word in reason for word in ("out of memory", "MemoryError", "failed to map")):
        raise LimitReached(f"no proof: the elaboration needs more than {memory} bytes")
    if finished.status:
        raise InternalError(f"the elaboration ended with status {finished.status}: {reason}")


def _tell(progress: Callable[[str], None], said: Path) -> None:
    line = said.read_text(encoding="ascii")
    if line:  # else the child is just writing it
        progress(line)


def main(cnf: str, raw: str, kind: str, target: str, said: str, memory: str) -> int:
    """Elaborate a solver's proof and check the result, within `memory` bytes; progress goes to the file `said`."""
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))

    def progress(line: str) -> None:
        Path(said).write_text(line, encoding="ascii")

    try:
        clauses = [tuple(clause) for clause in lrat_check.read_cnf(lrat_check.lines(cnf)).values()]
        with open(raw, encoding="ascii") as file:
            proof = READERS[kind](clauses, file)
        kept = elaborate(proof, progress)
        del proof
        with open(target, "wb") as packed:
            pack(packed, lrat(kept, len(clauses)))
        progress(f"checking {len(kept)} lemmas")
        lemmas = lrat_check.check(lrat_check.lines(cnf), lrat_check.lines(target))
    except MemoryError:
        print("out of memory", file=sys.stderr)
        return 1
    except (InternalError, lrat_check.ProofError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({"lemmas": lemmas}))
    return 0


def pack(file: io.BufferedIOBase | io.BufferedWriter, lines: Iterable[str]) -> None:
    """Write lines gzipped, the same bytes every time."""
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        for line in lines:
            packed.write(line.encode("ascii"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
