"""Meshes put to the real libraries: what JAX and PyTorch make of them has our groups along every axis.

Each library runs in one process of its own, on forced host devices and on a process group that sends nothing.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from run_support import need

from smtsynth import Level, System, placements
from smtsynth.export.jax_mesh import hybrid_shapes, jax_mesh_text
from smtsynth.export.mesh import Grid, along
from smtsynth.export.torch_mesh import torch_mesh_text
from smtsynth.interfaces.workloads import read_problem_or_workload

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
MOST, SMALL = 2048, 64
TWO = System([Level("node", 2, "8 GB/s"), Level("gpu", 4, "80 GB/s")])


def put(script: str, data: Any, folder: Path, **environment: str) -> Any:
    """Run a script in a process of its own on the data; what it prints last, as JSON."""
    (folder / "script.py").write_text(script)
    (folder / "data.json").write_text(json.dumps(data))
    ran = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    return json.loads(ran.stdout.splitlines()[-1])


def workload_grids() -> dict[str, Grid]:
    """Placements of every example problem and workload of at most 2048 devices: the first, the last, one between."""
    found = {}
    for file in sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("workloads/*.yaml")]):
        given = read_problem_or_workload(file)
        if given.system.devices > MOST:
            continue
        listed = placements(given.system, given.axes)
        chosen = {0, len(listed) - 1, random.Random(file.stem).randrange(len(listed))}
        for number in sorted(chosen):
            found[f"{file.stem} {listed[number]}"] = Grid(given.system, listed[number])
    return found


def cases(write: Any, grids: dict[str, Grid]) -> list[dict[str, Any]]:
    """For each mesh: its text, devices, and our groups along each of its axes; axes in order and in reverse."""
    found = []
    for name, grid in grids.items():
        for order in {tuple(range(len(grid.axes))), tuple(reversed(range(len(grid.axes))))}:
            ids = grid.ids.transpose(order)
            found.append(
                {
                    "name": name,
                    "text": write(grid, order),
                    "ids": ids.tolist(),
                    "axes": [grid.names[axis] for axis in order],
                    "groups": {grid.names[axis]: along(ids, place).tolist() for place, axis in enumerate(order)},
                }
            )
    return found


def test_the_workloads_have_many_placements() -> None:
    grids = workload_grids()
    assert len(grids) >= 40
    assert {grid.system.devices for grid in grids.values()} >= {16, 32, 64, 256, 1024, 2048}
    assert any(len(grid.axes) >= 3 for grid in grids.values())


JAX = """
import json
import jax, numpy as np
from jax.experimental import mesh_utils
from jax.sharding import PartitionSpec as P

data = json.load(open("data.json"))
out = {"meshes": [], "hybrid": [], "plain": [], "lowered": None}
for case in data["cases"]:
    names = {}
    exec(case["text"], names)
    ids = np.array(case["ids"])
    mesh = names["make_mesh"](jax.devices()[: ids.size])
    got = np.vectorize(lambda device: device.id)(mesh.devices)
    groups = {}
    for axis in case["axes"] if case["run"] else []:
        own = jax.device_put(got.astype(np.int32), jax.sharding.NamedSharding(mesh, P(*case["axes"])))
        gather = lambda x: jax.lax.all_gather(x.reshape(1), axis, tiled=True).reshape((1,) * ids.ndim + (-1,))
        spec = P(*case["axes"], None)
        rows = jax.jit(jax.shard_map(gather, mesh=mesh, in_specs=P(*case["axes"]), out_specs=spec))(own)
        groups[axis] = sorted({tuple(row) for row in np.asarray(rows).reshape(ids.size, -1).tolist()})
    out["meshes"].append({"ids": got.tolist(), "axes": list(mesh.axis_names), "groups": groups})

class Device:
    platform, device_kind = "gpu", "none"
    def __init__(self, number, inside):
        self.id, self.slice_index, self.process_index = number, number // inside, number // inside

for case in data["hybrid"]:
    devices = [Device(number, case["inside"]) for number in range(case["devices"])]
    mesh = mesh_utils.create_hybrid_device_mesh(case["shape"], case["outer"], devices=devices)
    out["hybrid"].append(np.vectorize(lambda device: device.id)(mesh).tolist())
    out["plain"].append(np.vectorize(lambda d: d.id)(mesh_utils.create_device_mesh(case["whole"], devices)).tolist())

names = {}
exec(data["cases"][data["lowered"]]["text"], names)
axes = data["cases"][data["lowered"]]["axes"]
mesh = names["make_mesh"](jax.devices()[: np.array(data["cases"][data["lowered"]]["ids"]).size])
total = lambda x: jax.lax.psum(x, axes[0])
spec = P(*axes)
step = jax.jit(jax.shard_map(total, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
text = step.lower(np.zeros(mesh.devices.shape, np.float32)).compile().as_text()
out["lowered"] = text
print(json.dumps(out))
"""


def test_jax_meshes_have_our_groups(tmp_path: Path) -> None:
    need("jax")
    asked = cases(jax_mesh_text, workload_grids())
    for number, case in enumerate(asked):
        case["run"] = number % 9 == 0 and np.size(case["ids"]) <= SMALL
    split = [
        number for number, case in enumerate(asked) if case["axes"] and len(case["groups"][case["axes"][0]][0]) > 1
    ]
    two = System([Level("node", 4, "8 GB/s"), Level("gpu", 8, "80 GB/s")])
    hybrid = []
    for placement in placements(two, {"data": 8, "tensor": 4}):
        grid = Grid(two, placement)
        shapes = hybrid_shapes(grid, (0, 1))
        assert shapes is not None
        hybrid.append(
            {
                "devices": 32,
                "inside": 8,
                "shape": shapes[0],
                "outer": shapes[1],
                "whole": (8, 4),
                "ids": grid.ids.tolist(),
            }
        )
    data = {"cases": asked, "hybrid": hybrid, "lowered": split[0]}
    flags = f"--xla_force_host_platform_device_count={MOST}"
    got = put(JAX, data, tmp_path, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    jax_groups(data, got)
    jax_hybrid(data, got)
    jax_lowered(data, got)


def jax_groups(asked: dict[str, Any], got: dict[str, Any]) -> None:
    """Devices, names, and groups gathered for real along every axis."""
    ran = 0
    for case, mesh in zip(asked["cases"], got["meshes"], strict=True):
        assert mesh["ids"] == case["ids"], case["name"]
        assert mesh["axes"] == case["axes"]
        for axis, rows in mesh["groups"].items():  # gathered for real along the axis, in its order
            assert rows == sorted(case["groups"][axis]), (case["name"], axis)
            ran += 1
    assert ran >= 5


def jax_hybrid(asked: dict[str, Any], got: dict[str, Any]) -> None:
    """JAX's own hybrid meshes of two levels are ours."""
    assert len(got["hybrid"]) == 3
    for case, ids, plain in zip(asked["hybrid"], got["hybrid"], got["plain"], strict=True):
        assert ids == case["ids"]
        # On GPUs JAX does no topology work of its own: ids sorted and reshaped, whatever the placement.
        assert [number for row in plain for number in row] == list(range(32))
    assert any(case["ids"] != plain for case, plain in zip(asked["hybrid"], got["plain"], strict=True))


def jax_lowered(asked: dict[str, Any], got: dict[str, Any]) -> None:
    """The replica groups that XLA gets are ours."""
    case = asked["cases"][asked["lowered"]]
    line = next(line for line in got["lowered"].splitlines() if "all-reduce(" in line or "all-reduce-start(" in line)
    # XLA counts the devices in the order of the mesh.
    devices = [number for row in np.array(case["ids"]).reshape(1, -1).tolist() for number in row]
    listed = re.search(r"replica_groups=\{(\{[\d,{}]*\})\}", line)
    assert listed is not None, line
    groups = [[devices[int(place)] for place in row.split(",")] for row in re.findall(r"\{([\d,]+)\}", listed[1])]
    assert sorted(groups) == sorted(case["groups"][case["axes"][0]])


TORCH = """
import json
import torch, torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.testing._internal.distributed.fake_pg import FakeStore

data = json.load(open("data.json"))
out = {"meshes": [], "sorted": []}
for case in data["cases"]:
    ids = torch.tensor(case["ids"])
    found = {}
    for rank in case["ranks"]:
        dist.init_process_group("fake", rank=rank, world_size=ids.numel(), store=FakeStore())
        names = {}
        exec(case["text"], names)
        mesh = names["make_mesh"]("cpu")
        assert list(mesh.mesh_dim_names) == case["axes"]
        ranks = lambda axis: dist.get_process_group_ranks(mesh.get_group(axis))
        found[rank] = {axis: [ranks(axis), mesh.get_local_rank(axis)] for axis in case["axes"]}
        dist.destroy_process_group()
    out["meshes"].append({"ids": mesh.mesh.tolist(), "ranks": found})
for rank in range(4):
    dist.init_process_group("fake", rank=rank, world_size=4, store=FakeStore())
    mesh = DeviceMesh("cpu", torch.tensor([[3, 1], [2, 0]]), mesh_dim_names=("a", "b"))
    group = mesh.get_group("b")
    out["sorted"].append([dist.get_process_group_ranks(group), dist.get_rank(group), mesh.get_coordinate()[1]])
    dist.destroy_process_group()
print(json.dumps(out))
"""


def test_torch_meshes_have_our_groups(tmp_path: Path) -> None:
    need("gloo")
    asked = cases(torch_mesh_text, workload_grids())
    for number, case in enumerate(asked):
        devices = sum(len(group) for group in case["groups"][case["axes"][0]])
        case["ranks"] = [random.Random(number).randrange(devices), *([0, devices - 1] if devices <= SMALL else [])]
    got = put(TORCH, {"cases": asked}, tmp_path)
    torch_sorts_the_ranks_of_a_group(got)
    for case, mesh in zip(asked, got["meshes"], strict=True):
        assert mesh["ids"] == case["ids"], case["name"]
        for rank, axes in mesh["ranks"].items():
            for axis, (group, place) in axes.items():
                ours = next(one for one in case["groups"][axis] if int(rank) in one)
                assert group == ours, (case["name"], axis, rank)
                assert ours[place] == int(rank)


def torch_sorts_the_ranks_of_a_group(got: dict[str, Any]) -> None:
    """The trap that meshes which ascend along every axis avoid: group rank and mesh coordinate differ."""
    assert [groups for groups, _, _ in got["sorted"]] == [[0, 2], [1, 3], [0, 2], [1, 3]]
    assert [[group_rank, place] for _, group_rank, place in got["sorted"]] == [[0, 1], [0, 1], [1, 0], [1, 0]]
