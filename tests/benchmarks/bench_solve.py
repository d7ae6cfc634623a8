"""How long solving takes, beside enumeration: `python tests/benchmarks/bench_solve.py [--quick] [--patience S]`.

Every measurement runs in a process of its own, after its imports, so that none profits from what another has built.
Seconds of a solve are those of its answer (`solve_seconds`): building, solving and the proof. Nothing here judges a
time; the targets stand beside the figures for the reader.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
from collections.abc import Callable
from time import perf_counter

from figures import SYSTEMS, Row, Table, in_child, peak_memory  # first: it finds smtsynth

from smtsynth import Axis, Level, Problem, Reduction, System, compare, count_placements, simulate, solve

STEPS = {"two": 5, "three": 7, "four": 9}
SMALL = {"two": (4, 16), "three": (2, 4, 8), "four": (2, 2, 2, 8)}  # 64 devices each
LARGE = {"two": (256, 256), "three": (32, 32, 64), "four": (16, 16, 16, 16)}  # 65 536 devices each
PROGRAM = "ReduceScatter({inner}, InsideGroup); AllReduce({inner}, Parallel(root)); AllGather({inner}, InsideGroup)"


def system(name: str, sizes: tuple[int, ...] | None = None) -> System:
    """A system by name, with other level sizes where given."""
    levels = SYSTEMS[name]
    chosen = sizes or tuple(level[1] for level in levels)
    return System(
        [
            Level(title, size, bandwidth, latency, share)
            for (title, _, bandwidth, latency, share), size in zip(levels, chosen, strict=True)
        ]
    )


def whole(name: str, payload: str, sizes: tuple[int, ...] | None = None) -> Problem:
    """A reduction over all devices of a system: as many factors as levels."""
    chosen = system(name, sizes)
    return Problem(chosen, {"all": chosen.devices}, Reduction(["all"], payload))


# Each of these runs in a process of its own and returns plain data.


def one_solve(name: str, payload: str, solver: str, bounds: bool, patience: float) -> Row:
    """Solve one reduction."""
    found = solve(whole(name, payload), solver=solver, bounds=bounds, steps=STEPS[name], time_limit=patience)
    return {"seconds": found.seconds, "status": found.status, "cost": found.cost}


def one_enumeration(name: str, payload: str, merge: bool, patience: float) -> Row:
    """Enumerate the programs of one reduction; the solve beside it is not counted."""
    (found,) = compare(whole(name, payload), merge=merge, steps=STEPS[name], time_limit=patience)
    enumerated = found.enumerated
    return {"seconds": enumerated.seconds, "finished": enumerated.finished, "cost": enumerated.cost}


def one_scaling(name: str) -> Row:
    """Solve and simulate 64 and 65 536 devices with the same number of factors; medians of runs in turn."""
    problems = {"small": whole(name, "64 MiB", SMALL[name]), "large": whole(name, "64 MiB", LARGE[name])}
    times: dict[str, list[float]] = {label: [] for label in problems}
    statuses = set()
    row: Row = {}
    for _ in range(7):
        for label, asked in problems.items():
            found = solve(asked, steps=STEPS[name])
            times[label].append(found.seconds)
            statuses.add(found.status)
    for label, asked in problems.items():
        program = PROGRAM.format(inner=asked.system.levels[-2].name)
        row[f"solve_{label}"] = statistics.median(times[label])
        row[f"simulate_{label}"] = median_of(lambda: simulate(asked, program), 200)  # noqa: B023 -- called at once
    return row | {"status": sorted(statuses)}


def one_search(solver: str) -> Row:
    """All five placements of axes 8, 2, 4 on 4 nodes of 16, over the first and the last."""
    axes = {"a": 8, "b": 2, "c": 4}
    found = solve(Problem(system("two"), axes, Reduction(["a", "c"], "2 GiB")), solver=solver)
    return {"seconds": found.seconds, "status": found.status, "placements": len(found.placements)}


def one_count() -> Row:
    """Count the placements of 4 axes on 4 levels of 4096 devices."""
    levels = System([Level(f"l{number}", 8, "1 GB/s") for number in range(4)])
    start = perf_counter()
    count = count_placements([Axis(f"a{number}", 8) for number in range(4)], levels)
    return {"seconds": perf_counter() - start, "count": count}


JOBS: dict[str, Callable[..., Row]] = {
    job.__name__: job for job in (one_solve, one_enumeration, one_scaling, one_search, one_count)
}


def median_of(call: Callable[[], object], times: int) -> float:
    """The median time of a call, in seconds."""
    spans = []
    for _ in range(times):
        start = perf_counter()
        call()
        spans.append(perf_counter() - start)
    return statistics.median(spans)


def measured(job: Callable[..., Row], *given: object) -> Row:
    """Run a job in a process of its own; the peak memory of it and of its solvers comes with its row."""
    return in_child(__file__, [job.__name__, list(given)])


def run_job(text: str) -> None:
    """The child's side of `measured`."""
    name, given = json.loads(text)
    row = JOBS[name](*given)
    print(json.dumps(row | {"memory": peak_memory()}))


def seconds(row: Row | None, patience: float) -> str:
    """A row's time; where it didn't finish, the limit it ran into."""
    if row is None:
        return "-"
    done = row.get("finished", row.get("status") == "optimal")
    return f"{row['seconds']:.2f}" if done else f">{patience:g}"


def main(words: list[str] | None = None) -> list[Row]:
    """Measure everything and print it; the rows, for who wants to look closer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two and three factors only")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds a solve or an enumeration may take")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.job:
        run_job(given.job)
        return []
    rows: list[Row] = []

    def keep(row: Row) -> Row:
        rows.append(row)
        return row

    solvers = ["z3"] + (["cadical"] if importlib.util.find_spec("pysat") else [])
    modes = [(solver, bounds) for solver in solvers for bounds in (True, False)]
    heads = [(solver + (" on" if bounds else " off"), 13) for solver, bounds in modes]
    print("Seconds: of solve, building and proof included, by solver, with bounds on or off; then of enumeration, with")
    print("equal states merged, or not, which is the paper's way. Solving three factors is to take less than that.")
    table = Table("factors, steps, payload", [("target", 9), *heads, ("merged", 9), ("unmerged", 10)])
    cases = [("two", "1 GiB", "0.2"), ("three", "1 MiB", "1"), ("three", "1 GiB", "1")]
    if not given.quick:
        cases += [("four", "64 KiB", "15 (5)"), ("four", "1 GiB", "15 (5)")]
    for name, payload, target in cases:
        solved = [keep(measured(one_solve, name, payload, *mode, given.patience)) for mode in modes]
        merged = keep(measured(one_enumeration, name, payload, True, given.patience))
        walked = None if name == "four" else keep(measured(one_enumeration, name, payload, False, given.patience))
        label = f"{name} factors, {STEPS[name]} steps, {payload}"
        table.line(label, target, *(seconds(row, given.patience) for row in (*solved, merged, walked)))

    print("\nThe same number of factors on 64 and on 65 536 devices (target: at most 1.5 times)")
    table = Table("", [("64", 12), ("65 536", 12), ("ratio", 8)], 16)
    for name in ("two", "three"):
        row = keep(measured(one_scaling, name))
        for what, unit, scale in (("solve", "s", 1), ("simulate", "ms", 1e3)):
            small, large = row[f"{what}_small"], row[f"{what}_large"]
            cells = (f"{scale * time:.3f} {unit}" for time in (small, large))
            table.line(f"{name}, {what}", *cells, f"{large / small:.2f}x")

    print()
    for solver in solvers:
        row = keep(measured(one_search, solver))
        print(f"All {row['placements']} placements of axes 8 2 4, {solver}: {row['seconds']:.2f} s (target 1 s)")
    row = keep(measured(one_count))
    print(
        f"{row['count']} placements of 4 axes on 4 levels of 4096 devices counted in {row['seconds']:.3f} s (target 2)"
    )
    print(f"Peak memory of any process above: {max(row['memory'] for row in rows) / 1e6:.0f} MB (target 1000 MB)")
    return rows


if __name__ == "__main__":
    main()
