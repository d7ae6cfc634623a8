"""Placements as arrays of device ids over the axes, and the orders of axes in which frameworks number ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from smtsynth.errors import InputError
from smtsynth.model.lowering import lower
from smtsynth.model.placement import Axis, Placement
from smtsynth.model.system import System

Ids = npt.NDArray[np.int64]

MAX_LISTED = 2**20
"""Devices for which groups and rank lists are written out."""


@dataclass(frozen=True)
class Grid:
    """A placement on its system, seen as a mesh: every coordinate has a device (model, section 2)."""

    system: System
    placement: Placement

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, in the problem's order."""
        return self.placement.axes

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def ids(self) -> Ids:
        """Device ids, shape (*axis sizes): ids[c0, c1, …] is the device with these axis coordinates."""
        if self.system.devices > MAX_LISTED:
            raise InputError(
                f"{self.system.devices} devices are too many to write out", expected=f"at most {MAX_LISTED}"
            )
        every = lower(self.system, self.placement, range(len(self.axes)), "rows")
        return every.devices.reshape(self.shape)

    def groups(self, axis: int) -> Ids:
        """Device groups along an axis, shape (groups, size), each in order of the axis coordinate."""
        return along(self.ids, axis)

    @property
    def title(self) -> str:
        """The placement in words: axes, levels, matrix."""
        axes = ", ".join(f"{axis.name} {axis.size}" for axis in self.axes)
        levels = ", ".join(f"{level.name} {level.size}" for level in self.system.levels)
        return f"axes {axes} on levels {levels}, placement {self.placement}"

    def ids_text(self, order: Sequence[int], arange: str = "np.arange", transpose: str = "transpose") -> str:
        """An expression for `ids` with the axes in this order: 0, 1, … reshaped, and transposed where it has to be.

        arange, transpose: the names that numpy, or another library, has for the two.
        """
        matrix = self.placement.matrix
        digits = [
            (order.index(row), level, matrix[row][level])
            for level in range(len(self.system.levels))
            for row in range(len(self.axes))
            if matrix[row][level] > 1
        ]
        wanted = sorted(range(len(digits)), key=lambda place: digits[place][:2])
        shape = f"({', '.join(str(self.shape[axis]) for axis in order)}{',' if len(order) == 1 else ''})"
        whole = f"{arange}({self.system.devices})"
        if wanted == sorted(wanted):
            return f"{whole}.reshape{shape}"
        sizes = ", ".join(str(size) for _, _, size in digits)
        return f"{whole}.reshape({sizes}).{transpose}({', '.join(map(str, wanted))}).reshape{shape}"


def along(ids: Ids, axis: int) -> Ids:
    """The rows of an array of ids along one of its axes, shape (groups, size of the axis)."""
    return np.moveaxis(ids, axis, -1).reshape(-1, ids.shape[axis])


def ascends(ids: Ids) -> bool:
    """Whether ids rise along every axis, as torch.distributed, which sorts the ranks of a group, will have them."""
    return all(bool((np.diff(ids, axis=axis) > 0).all()) for axis in range(ids.ndim))


def row_major_order(ids: Ids) -> tuple[int, ...] | None:
    """The order of axes, slowest first, in which the ids count 0, 1, 2, …; None where there is none.

    Axes of size 1 stay where they are relative to their neighbours as far as possible: they move no rank.
    """
    origin = (0,) * ids.ndim
    strides = []
    for axis, size in enumerate(ids.shape):
        step = tuple(int(place == axis) for place in range(ids.ndim))
        strides.append(int(ids[step] - ids[origin]) if size > 1 else 0)
    large = iter(sorted((axis for axis in range(ids.ndim) if ids.shape[axis] > 1), key=lambda a: -strides[a]))
    order = tuple(next(large) if size > 1 else axis for axis, size in enumerate(ids.shape))
    flat = ids.transpose(order).reshape(-1)
    return order if np.array_equal(flat, np.arange(flat.size)) else None


def check_order(grid: Grid, order: Sequence[str]) -> tuple[int, ...]:
    """The axes' numbers in an order of their names, slowest first; InputError unless it names each once."""
    if sorted(order) != sorted(grid.names):
        raise InputError(f"{','.join(order)[:80]!r} does not name each axis once", expected=", ".join(grid.names))
    return tuple(grid.names.index(name) for name in order)


def devices_of_ranks(grid: Grid, order: Sequence[int]) -> Ids:
    """Device of rank 0, 1, … where ranks count the coordinates row-major in this order of axes, slowest first."""
    return grid.ids.transpose(tuple(order)).reshape(-1)


def is_identity(devices: Ids) -> bool:
    """Whether rank r sits on device r."""
    return bool((devices == np.arange(len(devices))).all())


def cannot(grid: Grid, why: str, order: Sequence[int]) -> str:
    """The sentence for a target that can't express a placement, with the rank permutation that does it."""
    devices = devices_of_ranks(grid, order).tolist()
    shown = ",".join(map(str, devices[:64])) + (f",… ({len(devices)} in all)" if len(devices) > 64 else "")
    names = ",".join(grid.names[axis] for axis in order)
    return (
        f"{why}; start rank r on device d[r], d = [{shown}] (the targets hostfile, rankfile and slurm with "
        f"--order {names} write it)"
    )
