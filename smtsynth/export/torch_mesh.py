"""A placement as a PyTorch `DeviceMesh`, by `init_device_mesh` where ranks count row-major, else from a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from smtsynth.errors import InputError
from smtsynth.export.mesh import Grid, ascends


def torch_mesh_text(grid: Grid, order: Sequence[int]) -> str:
    """A Python module with `make_mesh(device_type)`; the mesh's dimensions in this order.

    torch.distributed sorts the ranks inside a group, so that only ids that rise along every dimension keep group rank
    and mesh coordinate the same. Those of a placement always do; an InputError would say otherwise.
    """
    ids = grid.ids.transpose(tuple(order))
    if not ascends(ids):
        raise InputError(
            "PyTorch sorts the ranks of a group, and this mesh does not ascend along every axis",
            expected="an order of ranks that does",
        )
    names = ", ".join(f'"{grid.names[axis]}"' for axis in order) + ("," if len(order) == 1 else "")
    expression = grid.ids_text(order, "torch.arange", "permute")
    if "permute" in expression:
        imports = "import torch\nfrom torch.distributed.device_mesh import DeviceMesh"
        body = f"""    ranks = {expression}
    return DeviceMesh(device_type, ranks, mesh_dim_names=({names}))"""
    else:
        imports = "from torch.distributed.device_mesh import init_device_mesh"
        shape = ", ".join(str(size) for size in ids.shape) + ("," if ids.ndim == 1 else "")
        body = f"    return init_device_mesh(device_type, ({shape}), mesh_dim_names=({names}))"
    outer = grid.system.levels[0].name
    return f'''"""A torch DeviceMesh: {grid.title}.

Rank r is device r of the placement: start the ranks {outer} by {outer}, as torchrun does. Ranks ascend along every
dimension, so that the rank in a group is the mesh coordinate (torch sorts the ranks of each group).
"""

{imports}


def make_mesh(device_type="cuda"):
    """The mesh; call it on every one of the {grid.system.devices} ranks, after init_process_group."""
{body}
'''
