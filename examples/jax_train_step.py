"""A JAX training step on a synthesized mesh, gradients summed by a synthesized program.

Two nodes of four devices, played by eight host devices: the best placement of a data and a tensor axis becomes a
jax.sharding.Mesh, the best program for the gradients a function; one step of a two-layer model with sharded weights
gives the same weights as the step with plain jax.lax.psum.

    pip install 'smtsynth[jax]'
    python examples/jax_train_step.py
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np

try:
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh
    from jax.sharding import PartitionSpec as P
except ImportError:
    raise SystemExit("this example needs jax: pip install 'smtsynth[jax]'") from None

from smtsynth import Level, Problem, Reduction, System, lower, show_program, solve
from smtsynth.export.goals import script_of
from smtsynth.export.jax_mesh import jax_mesh_text
from smtsynth.export.jax_program import jax_text
from smtsynth.export.mesh import Grid

AXES = {"data": 4, "tensor": 2}
RATE = 2**-10


def synthesize():
    """The mesh, and the function that sums gradients over its data axis on a flat array of its devices."""
    system = System([Level("node", 2, "8 GB/s", "20 us"), Level("gpu", 4, "200 GB/s", "3 us")])
    problem = Problem(system, AXES, Reduction(["data"], "64 MiB"))
    placement = [[2, 2], [1, 2]]  # tensor inside a node; data over both levels
    solution = solve(problem, placement)
    lowering = lower(problem, placement)
    print(f"{solution.status}: {show_program(solution.program, lowering.names)}")
    make, program = {}, {}
    exec(jax_mesh_text(Grid(system, lowering.placement), (0, 1)), make)
    exec(jax_text(script_of(problem, lowering, solution.program, order=(0, 1))), program)  # ranks in mesh order
    mesh = make["make_mesh"]()
    return mesh, program["over"](Mesh(mesh.devices.reshape(-1), ("ranks",)))


def local_gradients(weights, inputs):
    """Each device's gradients of the squared outputs' sum over its own data, as one row. For the inside of shard_map.

    Two layers, the hidden units split over the tensor axis; the way back is written out by hand.
    """
    first, second = weights
    hidden = jax.nn.relu(inputs @ first)
    outputs = jax.lax.psum(hidden @ second, "tensor")
    back = (2 * outputs @ second.T) * (hidden > 0)
    return jnp.concatenate([(inputs.T @ back).reshape(-1), (hidden.T @ (2 * outputs)).reshape(-1)])[None]


def make_step(mesh, total):
    """A jitted training step; `total` sums the devices' rows over the data axis."""
    shards = (P(None, "tensor"), P("tensor", None))
    rows = P(("data", "tensor"))
    each = jax.shard_map(local_gradients, mesh=mesh, in_specs=(shards, P("data")), out_specs=rows, check_vma=False)

    def update(weights, row):
        first, second = weights
        one, two = jnp.split(row[0], [first.size])
        return first - RATE * one.reshape(first.shape), second - RATE * two.reshape(second.shape)

    apply = jax.shard_map(update, mesh=mesh, in_specs=(shards, rows), out_specs=shards, check_vma=False)
    return jax.jit(lambda weights, inputs: apply(weights, total(each(weights, inputs))))


def main():
    """One step each way."""
    mesh, program = synthesize()
    rows = P(("data", "tensor"))
    plain = jax.shard_map(
        lambda row: jax.lax.psum(row, "data"), mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False
    )
    random = np.random.default_rng(0)  # small whole numbers, so that every sum is exact
    weights = tuple(jnp.array(random.integers(-2, 3, shape), jnp.float32) for shape in ((6, 10), (10, 3)))
    inputs = jnp.array(random.integers(-3, 4, (16, 6)), jnp.float32)
    ours = make_step(mesh, program)(weights, inputs)
    theirs = make_step(mesh, plain)(weights, inputs)
    assert all(jnp.array_equal(one, two) for one, two in zip(ours, theirs, strict=True))
    assert not jnp.array_equal(ours[0], weights[0])
    print(f"one step on a mesh {dict(mesh.shape)}: all weights equal those of plain psum")


if __name__ == "__main__":
    main()
