"""Training steps: the time and memory of the joint optimum. Run: python tests/benchmarks/bench_workload.py"""

from __future__ import annotations

import json
import resource
import subprocess
import sys

from figures import ROOT, Table

EXAMPLES = ROOT / "examples" / "workloads"
NAMES = ("four-levels-1024", "five-levels-65536", "llama-405b-2048", "moe-1024")
LIMIT = 60  # seconds, the bar for the first two


def main() -> None:
    """Solve each workload in a process of its own and print what it took."""
    columns = [("status", 10), ("step", 13), ("gap", 8), ("seconds", 9), ("peak MB", 9)]
    table = Table("workload", columns, 20)
    for name in NAMES:
        command = [sys.executable, "-m", "smtsynth", "solve", str(EXAMPLES / f"{name}.yaml")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done = subprocess.run([*command, "--json", "--time-limit", str(LIMIT)], capture_output=True, text=True)
        found = json.loads(done.stdout)
        gap = 1 - found["lower_bound_seconds"] / found["cost_seconds"]
        peak = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024
        cost, seconds = f"{found['cost_seconds'] * 1e3:.3f} ms", found["solve_seconds"]
        table.line(name, found["status"], cost, f"{100 * gap:.1f}%", f"{seconds:.1f}", f"{peak:.0f}")


if __name__ == "__main__":
    main()
