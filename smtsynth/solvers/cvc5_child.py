"""cvc5 (by its package) on an SMT-LIB file, as a program: `python -m smtsynth.solvers.cvc5_child FILE BYTES`.

It parses strictly: what isn't standard SMT-LIB is an error.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def main(path: str, memory: int) -> int:
    """Run the script within `memory` bytes and print what its commands answer."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        import cvc5

        solver = cvc5.Solver(cvc5.TermManager())
        solver.setOption("strict-parsing", "true")
        text = Path(path).read_text(encoding="utf-8")
        if "(set-logic QF_BV)" in text:  # measured: ten times faster on our questions
            solver.setOption("bitblast", "eager")
        if text.count("(check-sat") > 1:
            solver.setOption("incremental", "true")
        symbols = cvc5.SymbolManager(solver.getTermManager())
        parser = cvc5.InputParser(solver, symbols)
        parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, path)
        while not (command := parser.nextCommand()).isNull():
            print(command.invoke(solver, symbols), end="", flush=True)
    except (MemoryError, ImportError, RuntimeError) as error:
        said = " ".join(str(error).split())
        if isinstance(error, MemoryError) or "bad_alloc" in said or "failed to map" in said:
            print("out of memory", file=sys.stderr)
        else:
            print(f'(error "{said}")')
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
