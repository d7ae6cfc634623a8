"""The paper's published figures (P2, appendix and Figure 11), and what cost models say of their rows and programs."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from smtsynth.cost.interface import CostModel
from smtsynth.cost.prices import Prices
from smtsynth.cost.wired import lowered_loads
from smtsynth.errors import InputError
from smtsynth.model.lowering import Lowering, lower
from smtsynth.model.placement import Axis, Placement
from smtsynth.model.program import Collective, Form, Instruction, Program
from smtsynth.model.system import System
from smtsynth.model.topology import Topology

PAYLOAD = Fraction(2006 * 10**7)  # bytes per device that the appendix' times fit to; its text says otherwise
ALGORITHMS = ("ring", "tree")
SLIP = 0.2
WHOLE = Instruction(Collective.ALL_REDUCE, 0, Form.INSIDE_GROUP)
_WORDS = {
    "AR": Collective.ALL_REDUCE,
    "RS": Collective.REDUCE_SCATTER,
    "AG": Collective.ALL_GATHER,
    "RD": Collective.REDUCE,
    "BC": Collective.BROADCAST,
}
_FORMS = {
    "ALL": (0, Form.INSIDE_GROUP),
    "IN": (1, Form.INSIDE_GROUP),
    "PAR": (1, Form.PARALLEL),
    "MAS": (1, Form.MASTER),
}


@dataclass(frozen=True)
class Row:
    """A row of the appendix: gpu (A100, V100), nodes, the placement, its reduced rows, and measured seconds of a
    plain AllReduce and of the best program by algorithm, where it has them."""

    gpu: str
    nodes: int
    placement: Placement
    reduced: tuple[int, ...]
    allreduce: dict[str, float]
    best: dict[str, float]

    @property
    def inside(self) -> bool:
        """Whether no group leaves its node."""
        return all(self.placement.matrix[row][0] == 1 for row in self.reduced)

    def lowering(self, system: System, hierarchy: str = "reduction") -> Lowering:
        """The row on a system of its GPUs, with as many nodes as the row has."""
        return lower(sized(system, self.nodes), self.placement, self.reduced, hierarchy)


@dataclass(frozen=True)
class Point:
    """A point of Figure 11: measured seconds, and simulated where it can be read."""

    measured: float
    simulated: float | None


@dataclass(frozen=True)
class Figure:
    """One placement of Figure 11 and its points; matrix: as the figure's table writes it."""

    matrix: str
    gpu: str
    nodes: int
    placement: Placement
    reduced: tuple[int, ...]
    points: tuple[Point, ...]

    def lowering(self, system: System) -> Lowering:
        """The placement as the paper lowers it."""
        return lower(sized(system, self.nodes), self.placement, self.reduced, "reduction-row-major")


def sized(system: System, nodes: int) -> System:
    """The system with as many nodes, at most as many as a topology has (its switches named nodeN.… as files do)."""
    if system.levels[0].size == nodes:
        return system
    links = system.topology
    if links is not None:
        below = system.below(0)
        inside = [link for link in links.links if not _beyond(link[:2], nodes, below)]
        links = Topology(links.kinds, inside, links.forwards)
    levels = [replace(system.levels[0], size=nodes), *system.levels[1:]]
    return System(levels, system.overhead, copy=system.copy, topology=links)


def _beyond(ends: Sequence[int | str], nodes: int, below: int) -> bool:
    """Whether a link is of a node that the smaller system doesn't have; switches are named nodeN.…"""
    for end in ends:
        found = re.match(r"node(\d+)\.", end) if isinstance(end, str) else None
        if (isinstance(end, int) and end >= nodes * below) or (found and int(found[1]) >= nodes):
            return True
    return False


def _matrix(text: str) -> tuple[tuple[int, ...], ...]:
    """'[[2 2][1 2]]', '[[1 4] [4 4]]' or '[2 16]' (one axis)."""
    return tuple(tuple(map(int, row.split())) for row in re.findall(r"\[([\d ]+)\]", text))


def _placement(text: str) -> Placement:
    matrix = _matrix(text)
    return Placement(tuple(Axis(f"a{i}", math.prod(row)) for i, row in enumerate(matrix)), matrix)


def _table(path: Path) -> list[dict[str, str]]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), expected="a table of the paper") from None


def _best(line: dict[str, str], algorithm: str) -> float:
    """The measured best; where it and the printed speed-up disagree (one row has a digit too few), the latter."""
    plain, best = (float(line[f"{what}_{algorithm}_s"]) for what in ("allreduce", "optimal"))
    told = plain / float(line[f"speedup_{algorithm}"])
    return best if abs(best / told - 1) < SLIP else told


def appendix(folder: str | os.PathLike[str]) -> list[Row]:
    """The rows of the appendix, from appendix.csv. Raises InputError where the file isn't that."""
    path = Path(folder) / "appendix.csv"
    rows = []
    for number, line in enumerate(_table(path), 2):
        try:
            nodes, gpu = re.fullmatch(r"(\d+) nodes each with \d+ (\w+)", line["system"]).groups()  # type: ignore[union-attr]
            reduced = tuple(map(int, line["reduce_axes"].strip("[]").split()))
            measured = [one for one in ALGORITHMS if line[f"allreduce_{one}_s"]]
            allreduce = {one: float(line[f"allreduce_{one}_s"]) for one in measured}
            best = {one: _best(line, one) for one in measured}
            rows.append(Row(gpu, int(nodes), _placement(line["matrix"]), reduced, allreduce, best))
        except (KeyError, ValueError, AttributeError, TypeError):
            raise InputError("is no row of the appendix", where=f"{path}:{number}", expected="its columns") from None
    return rows


def figure11(folder: str | os.PathLike[str]) -> list[Figure]:
    """The placements of Figure 11 with their points, from fig11a.csv (V100) and fig11b.csv (A100)."""
    figures = []
    for name, gpu, reduced in (("fig11a.csv", "V100", (1,)), ("fig11b.csv", "A100", (0, 2))):
        path, points = Path(folder) / name, dict[str, list[Point]]()
        for number, line in enumerate(_table(path), 2):
            try:
                shown = line.get("simulated_s") or line.get("simulated_s_best_guess") or None
                point = Point(float(line["measured_s"]), None if shown is None else float(shown))
                points.setdefault(line["matrix"], []).append(point)
            except (KeyError, ValueError, TypeError):
                raise InputError("is no point of Figure 11", where=f"{path}:{number}", expected="its columns") from None
        for matrix, found in points.items():
            figures.append(Figure(matrix, gpu, 4, _placement(matrix), reduced, tuple(found)))
    return figures


def programs(folder: str | os.PathLike[str]) -> list[Program]:
    """The 47 programs over two factors, from two_level_programs.txt."""
    path, found = Path(folder) / "two_level_programs.txt", []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), expected="the list of programs") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            steps = [step.strip().split("@") for step in line.split(maxsplit=1)[1].split(";")]
            found.append(tuple(_instruction(*step) for step in steps))
        except (KeyError, IndexError, TypeError):
            wanted = "steps such as AR@IN ; AR@PAR"
            raise InputError("is no program", where=f"{path}:{number}", expected=wanted) from None
    return found


def _instruction(collective: str, form: str) -> Instruction:
    slice_, shape = _FORMS[form]
    return Instruction(_WORDS[collective], slice_, shape, None if shape is Form.INSIDE_GROUP else 0)


def merged(program: Program) -> Program:
    """As the paper's compiler runs it: two consecutive AllReduce over both factors become one over all devices."""
    if len(program) == 2 and all(step.collective is Collective.ALL_REDUCE for step in program):
        return (WHOLE,)
    return program


def seconds(model: CostModel, lowering: Lowering, program: Program) -> float:
    """What a program takes on a lowering at the appendix' payload."""
    return Prices(model, lowering, PAYLOAD).program(program) / 1e9


def allreduce_loads(system: System, row: Row, algorithm: str) -> dict[str, Fraction]:
    """What a row's plain AllReduce asks of each constant of the system, bytes."""
    loads = lowered_loads(row.lowering(system), WHOLE, algorithm, False)
    assert loads is not None
    return loads.busiest([PAYLOAD])
