"""What the tests of certificates as folders share: small ones, copies to damage, and their seals renewed."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from conftest import A100, problem

from smtsynth import Limits, Problem, System, solve
from smtsynth.certify.check import check as check_folder
from smtsynth.certify.manifest import MANIFEST, SEAL, canonical, digest, seal
from smtsynth.certify.produce import Made, produce
from smtsynth.certify.scope import Scope
from smtsynth.certify.session import Report
from smtsynth.interfaces.certify import read_text
from smtsynth.interfaces.files import problem_text
from smtsynth.search.loop import Resources

GIB = 2**30


def scoped(given: Problem, steps: int | None = None) -> Problem:
    """The problem as a certificate keeps it: with a limit of steps and no other."""
    return Problem(given.system, given.axes, given.reduction, Limits(steps=steps), given.cost_model)


def certify(
    given: Problem,
    matrix: Sequence[Sequence[int]] | None,
    folder: Path,
    instruction_set: str = "full",
    hierarchy: str = "reduction",
    with_cnf: bool = False,
    resources: Resources | None = None,
) -> tuple[Scope, Made]:
    """Solve and write the certificate into an empty folder."""
    found = solve(given, matrix, instruction_set=instruction_set, hierarchy=hierarchy)
    scope = Scope(given, instruction_set, hierarchy, None if matrix is None else found.placement, found.cost)
    witness = None if found.program is None else (found.lowering, found.program)
    return scope, produce(scope, witness, problem_text(given), folder, resources or Resources(), with_cnf)


@cache
def worked() -> tuple[Path, Scope, Made]:
    """The model's worked example: 2 GiB on 4 nodes of 16, 5 steps, its CNF beside the proof."""
    folder = Path(tempfile.mkdtemp(prefix="smtsynth-test-"))
    return folder, *certify(scoped(problem(A100, (64,), (0,), 2 * GIB), 5), [[4, 16]], folder, with_cnf=True)


@cache
def everywhere() -> tuple[Path, Scope, Made]:
    """All placements of axes 8 2 4 over the first and the last, of 1 MiB: two cases, each with a proof."""
    folder = Path(tempfile.mkdtemp(prefix="smtsynth-test-"))
    return folder, *certify(scoped(problem(A100, (8, 2, 4), (0, 2), 2**20)), None, folder)


def check(folder: Path, told: str | None = None) -> Report:
    """The check of a folder."""
    return check_folder(folder, read_text, told)


def wrong(folder: Path) -> dict[str, str]:
    """What the check finds wrong, by part."""
    report = check(folder)
    found = {part.name: part.said for part in report.parts if not part.ok}
    assert bool(found) != report.ok and (report.claim is None) == bool(found)
    assert all(said and "\n" not in said for said in found.values())
    return found


def copy(folder: Path, to: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(folder, to / "copy"))


def manifest_of(folder: Path) -> Any:
    """The manifest as data."""
    return json.loads((folder / MANIFEST).read_text())


def write_manifest(folder: Path, data: Any) -> None:
    """Write the manifest and its seal, as a forger would."""
    text = canonical(data)
    (folder / MANIFEST).write_bytes(text)
    (folder / SEAL).write_bytes(seal(text))


def reseal(folder: Path, change: Callable[[Any], None] = lambda data: None) -> None:
    """Renew all digests after damage, as a forger would; `change` changes the manifest."""
    data = manifest_of(folder)
    for name in data["parts"]:
        data["parts"][name] = digest((folder / name).read_bytes())
    change(data)
    write_manifest(folder, data)


def packed_lines(path: Path) -> list[str]:
    """The lines of a packed file."""
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def pack_lines(path: Path, lines: Sequence[str]) -> None:
    """Write lines packed."""
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def system_of(*levels: tuple[str, int, str, str]) -> System:
    """A system of levels (name, size, bandwidth, latency)."""
    from smtsynth import Level

    return System([Level(*level) for level in levels])
