"""Training steps: the time and memory of the joint optimum. Run: python tests/benchmarks/bench_workload.py"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "workloads"
NAMES = ("four-levels-1024", "five-levels-65536", "llama-405b-2048", "moe-1024")
LIMIT = 60  # seconds, the bar for the first two


def main() -> None:
    """Solve each workload in a process of its own and print what it took."""
    print(f"{'workload':20} {'status':10} {'step':>12} {'gap':>7} {'seconds':>8} {'peak MB':>8}")
    for name in NAMES:
        command = [sys.executable, "-m", "smtsynth", "solve", str(EXAMPLES / f"{name}.yaml")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done = subprocess.run([*command, "--json", "--time-limit", str(LIMIT)], capture_output=True, text=True)
        found = json.loads(done.stdout)
        gap = 1 - found["lower_bound_seconds"] / found["cost_seconds"]
        peak = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024
        cost, seconds = f"{found['cost_seconds'] * 1e3:.3f} ms", found["solve_seconds"]
        print(f"{name:20} {found['status']:10} {cost:>12} {100 * gap:6.1f}% {seconds:8.1f} {peak:8.0f}")


if __name__ == "__main__":
    main()
