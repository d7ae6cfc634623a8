"""A placement as a DeepSpeed `ProcessTopology(axes, dims)`: row-major, the last axis varies fastest."""

from __future__ import annotations

from smtsynth.errors import InputError
from smtsynth.export.mesh import Grid, cannot, row_major_order


def deepspeed_order(grid: Grid) -> tuple[int, ...]:
    """The order of axes, slowest first, in which rank r is device r; InputError with the permutation where none is."""
    order = row_major_order(grid.ids)
    if order is None:
        split = [axis.name for axis, row in zip(grid.axes, grid.placement.matrix, strict=True) if _split(row)]
        why = "DeepSpeed numbers ranks row-major over the axes, and no order of them gives this placement"
        if split:
            why += f" ({' and '.join(split)} {'is' if len(split) == 1 else 'are'} split across levels)"
        raise InputError(cannot(grid, why, range(len(grid.axes))))
    return order


def _split(row: tuple[int, ...]) -> bool:
    return sum(factor > 1 for factor in row) > 1


def deepspeed_text(grid: Grid) -> str:
    """A Python module with `make_topology()`."""
    order = deepspeed_order(grid)
    names = ", ".join(f'"{grid.names[axis]}"' for axis in order)
    dims = ", ".join(str(grid.shape[axis]) for axis in order)
    outer = grid.system.levels[0].name
    return f'''"""A DeepSpeed process topology: {grid.title}.

Row-major, the last axis varies fastest; rank r is device r: start the ranks {outer} by {outer}. PipelineModule looks
for the axis names pipe, data and model.
"""

from deepspeed.runtime.pipe.topology import ProcessTopology


def make_topology():
    """The topology of {grid.system.devices} ranks."""
    return ProcessTopology(axes=[{names}], dims=[{dims}])
'''
