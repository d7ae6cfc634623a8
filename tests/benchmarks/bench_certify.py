"""How long certificates take and how large they are: `python tests/benchmarks/bench_certify.py [--quick]`.

Every certificate is made and checked in a process of its own, after its imports. Nothing here judges a time; the
targets stand beside the figures for the reader.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from figures import SYSTEMS, Row, Table, in_child, peak_memory  # first: it finds smtsynth

from smtsynth import Level, Limits, Problem, Reduction, System, solve
from smtsynth.certify.check import check
from smtsynth.certify.produce import produce
from smtsynth.certify.scope import Scope
from smtsynth.interfaces.certify import read_text
from smtsynth.interfaces.files import problem_text
from smtsynth.search.loop import Resources

CASES = [("two", 5, "2 GiB"), ("three", 7, "1 MiB"), ("three", 7, "1 GiB")]
LONG = [("four", 8, "64 KiB"), ("four", 8, "1 GiB"), ("four", 9, "64 KiB")]
TIMES = ("solve", "refute", "elaborate", "produce", "check", "its CPU")
SIZES = ("raw proof", "packed", "labels.gz", "memory")


def one_certificate(name: str, steps: int, payload: str) -> Row:
    """Solve, certify and check one reduction over all devices; bytes and seconds of each part."""
    system = System([Level(*level) for level in SYSTEMS[name]])
    limits = Limits(steps=steps)
    given = Problem(system, {"all": system.devices}, Reduction(["all"], payload), limits)
    found = solve(given, [system.sizes])
    scope = Scope(given, "full", "reduction", found.placement, found.cost)
    assert found.program is not None
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        start = perf_counter()
        made = produce(scope, (found.lowering, found.program), problem_text(given), folder, Resources())
        produced = perf_counter() - start
        worked = process_time()
        report = check(folder, read_text, made.sha256)
        worked = process_time() - worked
        checked = perf_counter() - start - produced
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    (took,) = made.refutations
    return {
        "status": found.status,
        "ok": report.ok,
        "bound": scope.bound,
        "lemmas": took.lemmas,
        "solve": found.seconds,
        "refute": took.solve_seconds,
        "elaborate": took.elaborate_seconds,
        "produce": produced,
        "check": checked,
        "its CPU": worked,
        "raw proof": took.raw_bytes,
        "packed": sizes["proof.lrat.gz"],
        "labels.gz": sizes["labels.gz"],
        "memory": peak_memory(),
    }


def measured(name: str, steps: int, payload: str) -> Row:
    """One certificate in a process of its own."""
    return in_child(__file__, [name, steps, payload])


def main(words: list[str] | None = None) -> list[Row]:
    """Measure and print; the rows, for who wants to look closer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two and three factors only")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.job:
        print(json.dumps(one_certificate(*json.loads(given.job))))
        return []
    rows = []
    print("Seconds: of the answer; CaDiCaL; elaboration, trimming and first check; all of producing; all of checking")
    print("(and of its CPU). Targets: produce 60 (three factors), 900 (four); check 3, 3, 20; memory 4 GB.")
    heads = [(head, 11) for head in (*TIMES, *SIZES)]
    table = Table("factors, steps, payload", [*heads, ("lemmas", 9)])
    for case in CASES + ([] if given.quick else LONG):
        row = measured(*case)
        rows.append(row)
        cells = [f"{row[head]:.2f}" for head in TIMES] + [f"{row[head] / 1e6:.2f} MB" for head in SIZES]
        table.line(f"{case[0]} factors, {case[1]} steps, {case[2]}", *cells, str(row["lemmas"]))
    return rows


if __name__ == "__main__":
    main()
