"""A training step of a dense transformer: what it reduces and sends (see smtsynth.workloads.common for formulas)."""

from __future__ import annotations

from smtsynth.errors import InputError
from smtsynth.workloads.common import (
    Unit,
    check_sizes,
    context,
    embedding_unit,
    pipeline,
    stage_layers,
    tensor,
    weights,
)
from smtsynth.workloads.shape import Dense, Sizes, Training
from smtsynth.workloads.step import Step


def dense_step(shape: Dense, sizes: Sizes, training: Training) -> Step:
    """The reductions and traffic of one step.

    - `gradients` and, where split, `parameters` over data, shard and context: weights();
    - `tensor`, or `tensor_gather` and `tensor_scatter`: two blocks (attention, feed-forward) a layer: tensor();
    - `context_gather`, `context_scatter`: context();
    - traffic `pipeline`: pipeline().

    An axis of one device communicates nothing. Raises InputError, `where` being the field or axis, where the model
    can't be split so. Left out everywhere: what overlaps with computing (a cost is what the links take), gradient
    norms, the loss, and checkpoints.
    """
    if sizes.expert > 1:
        raise InputError("a dense model has no experts", where="axes", expected="no axis expert")
    check_sizes(shape, sizes, training)
    layers, each = stage_layers(shape.layers, sizes), shape.layer_parameters(sizes.tensor)
    units = [Unit("", each, layers), *embedding_unit(shape, sizes, each)]
    return Step(
        (
            *weights("", units, ("data", "shard", "context"), sizes, training),
            *tensor(sizes, training, shape.hidden, 2 * layers),
            *context(shape, sizes, training, layers),
            *pipeline(sizes, training, shape.hidden),
        )
    )
