"""A placement as a `jax.sharding.Mesh`: any array of devices will do, so that every placement can be expressed."""

from __future__ import annotations

from collections.abc import Sequence

from smtsynth.export.mesh import Grid


def hybrid_shapes(grid: Grid, order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """(mesh_shape, dcn_mesh_shape) of `create_hybrid_device_mesh` for a system of two levels, else None.

    There each axis has one factor across slices (the outer block) and one inside, which is what a row of the matrix is.
    """
    if len(grid.system.levels) != 2:
        return None
    rows = [grid.placement.matrix[axis] for axis in order]
    return tuple(inner for _, inner in rows), tuple(outer for outer, _ in rows)


def jax_mesh_text(grid: Grid, order: Sequence[int]) -> str:
    """A Python module with `make_mesh()`; the mesh's axes in this order."""
    names = ", ".join(f'"{grid.names[axis]}"' for axis in order) + ("," if len(order) == 1 else "")
    devices = grid.system.devices
    hybrid = hybrid_shapes(grid, order)
    note = ""
    if hybrid is not None:
        outer = grid.system.levels[0].name
        note = f"""
Where jax.experimental.mesh_utils knows each {outer} as a slice, this is the same mesh, except that it may order the
devices of a {outer} by their links:

    create_hybrid_device_mesh(mesh_shape={hybrid[0]}, dcn_mesh_shape={hybrid[1]})
"""
    return f'''"""A jax.sharding.Mesh: {grid.title}.

Device i of the placement is jax.devices()[i] after sorting by id: JAX numbers the devices process by process, so start
the processes {grid.system.levels[0].name} by {grid.system.levels[0].name}. On GPUs JAX itself does no topology work.
{note}"""

import jax
import numpy as np
from jax.sharding import Mesh


def make_mesh(devices=None):
    """The mesh over `devices` (default: all of them), which must be {devices}."""
    devices = sorted(jax.devices() if devices is None else devices, key=lambda device: device.id)
    if len(devices) != {devices}:
        raise ValueError(f"{{len(devices)}} devices; expected {devices}")
    ids = {grid.ids_text(order)}
    return Mesh(np.array(devices)[ids], ({names}))
'''
