"""The paper's tables, re-done: its 104 rows and the 329 points of its Figure 11 against smtsynth's cost models.

    python examples/p2_tables.py [--data DIR] [--json]

DIR holds appendix.csv, fig11a.csv, fig11b.csv and two_level_programs.txt (default: examples/p2, see its README).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from smtsynth import InputError, read_problem
from smtsynth.calibrate.report import tables_text
from smtsynth.calibrate.tables import clusters, redo

HERE = Path(__file__).parent / "p2"


def main() -> None:
    """Print the tables, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=HERE, help="folder of the paper's figures, or one with it as p2")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    given = parser.parse_args()
    folder = given.data / "p2" if (given.data / "p2").is_dir() else given.data
    systems = [read_problem(HERE / f"{name}.yaml").system for name in ("a100", "v100", "v100-cpus")]
    try:
        tables = redo(folder, clusters(*systems))
    except InputError as error:
        sys.exit(f"p2_tables: {error}")
    print(json.dumps(tables.data()) if given.json else tables_text(tables))


if __name__ == "__main__":
    main()
