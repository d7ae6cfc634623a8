"""How long certificates take and how large they are: `python tests/benchmarks/bench_certify.py [--quick]`.

Every certificate is made and checked in a process of its own, after its imports. Nothing here judges a time; the
targets stand beside the figures for the reader.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if importlib.util.find_spec("smtsynth") is None:
    sys.path.insert(0, str(ROOT))

from smtsynth import Level, Limits, Problem, Reduction, System, solve  # noqa: E402
from smtsynth.certify.check import check  # noqa: E402
from smtsynth.certify.produce import produce  # noqa: E402
from smtsynth.certify.scope import Scope  # noqa: E402
from smtsynth.interfaces.certify import problem_of_text  # noqa: E402
from smtsynth.interfaces.files import problem_text  # noqa: E402
from smtsynth.search.loop import Resources  # noqa: E402

TWO = [("node", 4, "8 GB/s", "20 us", None), ("gpu", 16, "270 GB/s", "3 us", None)]
THREE = [
    ("su", 2, "800 GB/s", "12 us", "25 GB/s"),
    ("node", 4, "400 GB/s", "8 us", "50 GB/s"),
    ("gpu", 8, "450 GB/s", "2 us", None),
]
FOUR = [
    ("a", 4, "100 GB/s", "30 us", None),
    ("b", 4, "200 GB/s", "12 us", "25 GB/s"),
    ("c", 2, "400 GB/s", "8 us", "50 GB/s"),
    ("d", 8, "450 GB/s", "2 us", None),
]
SYSTEMS = {"two": TWO, "three": THREE, "four": FOUR}
CASES = [("two", 5, "2 GiB"), ("three", 7, "1 MiB"), ("three", 7, "1 GiB")]
LONG = [("four", 8, "64 KiB"), ("four", 8, "1 GiB"), ("four", 9, "64 KiB")]
TIMES = ("solve", "refute", "elaborate", "produce", "check", "its CPU")
SIZES = ("raw proof", "packed", "labels.gz", "memory")

Row = dict[str, Any]


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
        report = check(folder, problem_of_text, made.sha256)
        worked = process_time() - worked
        checked = perf_counter() - start - produced
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    (took,) = made.refutations
    scale = 1 if sys.platform == "darwin" else 1024
    users = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
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
        "memory": scale * max(resource.getrusage(user).ru_maxrss for user in users),
    }


def measured(name: str, steps: int, payload: str) -> Row:
    """One certificate in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--job", json.dumps([name, steps, payload])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    row: Row = json.loads(done.stdout)
    return row


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
    heads = "".join(f"{head:>11}" for head in (*TIMES, *SIZES))
    print(f"{'factors, steps, payload':32}{heads}{'lemmas':>9}")
    for case in CASES + ([] if given.quick else LONG):
        row = measured(*case)
        rows.append(row)
        cells = "".join(f"{row[head]:11.2f}" for head in TIMES)
        cells += "".join(f"{row[head] / 1e6:8.2f} MB" for head in SIZES)
        print(f"{f'{case[0]} factors, {case[1]} steps, {case[2]}':32}{cells}{row['lemmas']:9}", flush=True)
    return rows


if __name__ == "__main__":
    main()
