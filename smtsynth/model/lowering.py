"""Lowering (model, section 3; paper, section 5): synthesis hierarchies and the device groups of instructions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smtsynth.errors import InputError
from smtsynth.model.placement import Placement
from smtsynth.model.problem import Problem
from smtsynth.model.program import Instruction, Program
from smtsynth.model.schedule import Entry, Goal, Schedule
from smtsynth.model.system import System

ROW_MAJOR = "reduction-row-major"
HIERARCHIES = ("reduction", "reduction-factors", ROW_MAJOR, "rows", "columns", "system")


class Factor(NamedTuple):
    """One factor of the synthesis hierarchy: the digits of matrix rows `rows` at level `level`, most significant first.

    `reduced` says whether the reduction runs over it: True, False, or None where only over a part of it.
    """

    level: int
    rows: tuple[int, ...]
    size: int
    reduced: bool | None


@dataclass(frozen=True)
class Lowering:
    """How a program's synthesis devices are laid over a system's devices.

    A replica's synthesis devices 0..k-1 are numbered by the factors' digits, first factor most significant;
    `replicas` replicas run the same program at the same time (one, of all devices, in the hierarchies
    `system`, `columns` and `rows`).
    """

    system: System
    placement: Placement
    reduced_rows: tuple[int, ...]
    hierarchy: str
    factors: tuple[Factor, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the factors, outermost first; all at least 2."""
        return tuple(factor.size for factor in self.factors)

    @property
    def depth(self) -> int:
        """The number of factors, D."""
        return len(self.factors)

    @property
    def size(self) -> int:
        """Devices of one replica, k."""
        return math.prod(self.sizes)

    @property
    def replicas(self) -> int:
        """How many replicas run side by side."""
        return self.system.devices // self.size

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Depth names: 'root', then each factor's level (level.axis where a level has several factors)."""
        levels = [factor.level for factor in self.factors]
        names = ["root"]
        for factor in self.factors:
            name = self.system.levels[factor.level].name
            if levels.count(factor.level) > 1:
                name += "." + self.placement.axes[factor.rows[0]].name
            names.append(name)
        return tuple(names)

    def _stride(self, level: int, row: int) -> int:
        """How far one step of matrix digit (row, level) moves the device id."""
        inner = math.prod(r[level] for r in self.placement.matrix[row + 1 :])
        return inner * self.system.below(level)

    def _ids(self, digits: Sequence[tuple[int, int]]) -> npt.NDArray[np.int64]:
        """Device ids of all values of these (level, row) digits, first most significant, other digits zero."""
        ids = np.zeros(1, dtype=np.int64)
        for level, row in digits:
            steps = np.arange(self.placement.matrix[row][level], dtype=np.int64) * self._stride(level, row)
            ids = (ids[:, None] + steps[None, :]).reshape(-1)
        return ids

    @cached_property
    def devices(self) -> npt.NDArray[np.int64]:
        """Device ids, shape (replicas, k), in synthesis order; replicas by their first device."""
        own = [(factor.level, row) for factor in self.factors for row in factor.rows]
        if self.hierarchy == ROW_MAJOR:
            own = [(level, row) for row in self.reduced_rows for level in range(len(self.system.levels))]
        every = product(range(len(self.system.levels)), range(len(self.placement.axes)))
        rest = [digit for digit in every if digit not in own]
        return self._ids(rest)[:, None] + self._ids(own)[None, :]

    def groups(self, instruction: Instruction) -> npt.NDArray[np.int64]:
        """Synthesis-device groups of an instruction, shape (groups, m), each in synthesis order."""
        return span_groups(self.sizes, instruction)

    def device_groups(self, instruction: Instruction) -> npt.NDArray[np.int64]:
        """Groups of all replicas as device ids, shape (replicas * groups, m), each in synthesis order."""
        groups = self.groups(instruction)
        return self.devices[:, groups].reshape(-1, groups.shape[1])

    def schedule(self, program: Program) -> Schedule:
        """The program on the system's devices, with the reduction's goal (model, section 8)."""
        steps = tuple(
            (Entry(step.collective, tuple(map(tuple, self.device_groups(step).tolist()))),) for step in program
        )
        return Schedule(self.system.devices, steps, Goal(groups=self.replica_groups))

    @cached_property
    def replica_groups(self) -> tuple[tuple[int, ...], ...]:
        """The devices of each replica of the reduction, whatever the hierarchy."""
        if self.hierarchy.startswith("reduction"):
            return tuple(map(tuple, self.devices.tolist()))
        other = lower(self.system, self.placement, self.reduced_rows)
        return other.replica_groups


def span_groups(sizes: Sequence[int], instruction: Instruction) -> npt.NDArray[np.int64]:
    """Groups of an instruction over factors of these sizes (model, section 4), shape (groups, m)."""
    start, stop, master = instruction.span(len(sizes))
    index = np.arange(math.prod(sizes), dtype=np.int64).reshape(
        math.prod(sizes[:start]), math.prod(sizes[start:stop]), math.prod(sizes[stop:])
    )
    if master:
        index = index[:, :, :1]
    return index.transpose(0, 2, 1).reshape(-1, index.shape[1])


def lower(
    system: System,
    placement: Placement,
    reduced: Sequence[int],
    hierarchy: str = "reduction",
    split: Sequence[int] = (),
) -> Lowering:
    """The synthesis hierarchy of a reduction over matrix rows `reduced` (paper, section 5).

    hierarchy: `reduction` (rows of the reduction, collapsed by level), `reduction-factors` (the same, not
    collapsed), `rows`, `columns`, `system`, or `reduction-row-major`, the paper's tables' own: the collapsed factors
    laid over a replica's devices row by row, not following the hardware where several axes are reduced.
    Where only some of the reduced rows end split (`split`, of a mix), the
    default collapses them apart from the others, which come first. Raises InputError for another hierarchy.
    """
    if split and hierarchy == ROW_MAJOR:
        raise InputError(f"hierarchy {hierarchy!r} takes no mix of collectives", expected="reduction")
    matrix, rows = placement.matrix, tuple(sorted(reduced))
    levels, every = range(len(system.levels)), range(len(matrix))
    parts: list[tuple[int, tuple[int, ...]]]
    if hierarchy in ("reduction", ROW_MAJOR):
        kinds = [tuple(row for row in rows if (row in split) is flag) for flag in (False, True)]
        parts = [(level, kind) for level in levels for kind in kinds if kind]
    elif hierarchy == "reduction-factors":
        parts = [(level, (row,)) for level in levels for row in rows]
    elif hierarchy == "columns":
        parts = [(level, (row,)) for level in levels for row in every]
    elif hierarchy == "rows":
        parts = [(level, (row,)) for row in every for level in levels]
    elif hierarchy == "system":
        parts = [(level, tuple(every)) for level in levels]
    else:
        raise InputError(f"hierarchy {hierarchy!r} is unknown", expected=", ".join(HIERARCHIES))
    factors = []
    for level, members in parts:
        size = math.prod(matrix[row][level] for row in members)
        inside = math.prod(matrix[row][level] for row in members if row in rows)
        if size > 1:
            factors.append(Factor(level, members, size, inside == size if inside in (1, size) else None))
    return Lowering(system, placement, rows, hierarchy, tuple(factors))


def lowering_of(problem: Problem, placement: Placement, hierarchy: str = "reduction") -> Lowering:
    """The synthesis hierarchy of a problem's reduction on a placement."""
    split = problem.split if problem.reduction.mixed else ()
    return lower(problem.system, placement, problem.reduced, hierarchy, split)
