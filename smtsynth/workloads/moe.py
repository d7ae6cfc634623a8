"""A training step of a transformer with mixtures of experts (see smtsynth.workloads.common for what it shares)."""

from __future__ import annotations

from smtsynth.model.program import Collective
from smtsynth.model.workload import Pattern
from smtsynth.workloads.common import (
    Unit,
    activations,
    check_sizes,
    context,
    embedding_unit,
    micro_batches,
    passes,
    pipeline,
    stage_layers,
    tensor,
    weights,
)
from smtsynth.workloads.shape import Mixture, Sizes, Training, divides
from smtsynth.workloads.step import Part, Step, reduction, traffic


def moe_step(shape: Mixture, sizes: Sizes, training: Training) -> Step:
    """The reductions and traffic of one step.

    The axis expert spreads each layer's experts over as many replicas, which share the batch as data does (GShard,
    arXiv 2006.16668). So the weights that all replicas have are kept in step over data, shard, expert and context,
    the experts' (`expert_gradients`, `expert_parameters`) over data, shard and context only. All-to-all traffic
    `dispatch` and `combine`: exchange(). Tensor parallelism splits the experts like any feed-forward part:
    expert_tensor(). The rest is as in a dense model.

    Left out: uneven loads of experts and their capacity (tokens spread evenly, none is dropped or padded), the
    router's own losses, groups of experts that a token is limited to, and experts that are split over the tensor or
    context axis instead. Raises InputError, `where` being the field or axis, where the model can't be split so.
    """
    check_sizes(shape, sizes, training)
    divides(sizes.expert, shape.experts, "expert", "experts", "expert")
    layers = stage_layers(shape.layers, sizes)
    mixed = min(layers, stage_layers(shape.routed_layers, sizes))
    plain = layers - mixed
    each = shape.layer_parameters(sizes.tensor) if plain else shape.common_parameters(sizes.tensor)
    whole = each if plain else each + shape.expert_parameters(sizes.tensor, sizes.expert)
    units = [Unit("", shape.common_parameters(sizes.tensor), mixed), *embedding_unit(shape, sizes, whole)]
    if plain:
        units.insert(1, Unit("dense_", shape.layer_parameters(sizes.tensor), plain))
    experts = [Unit("", shape.expert_parameters(sizes.tensor, sizes.expert), mixed)]
    # With sequence parallelism the routed experts gather other tokens, else their parts are added to the layer's.
    ours = 2 if shape.shared_experts or not training.sequence_parallel else 1
    return Step(
        (
            *weights("", units, ("data", "shard", "expert", "context"), sizes, training),
            *weights("expert_", experts, ("data", "shard", "context"), sizes, training),
            *tensor(sizes, training, shape.hidden, 2 * plain + ours * mixed),
            *expert_tensor(shape, sizes, training, mixed),
            *context(shape, sizes, training, layers),
            *pipeline(sizes, training, shape.hidden),
            *exchange(shape, sizes, training, mixed),
        )
    )


def routed(shape: Mixture, sizes: Sizes, training: Training, parts: int = 1) -> list[tuple[int, str]]:
    """Bytes of a device's tokens (one of `parts` parts of them), once for each expert that a token takes."""
    return [(shape.active, "experts a token"), *activations(training, sizes, shape.hidden, parts)]


def exchange(shape: Mixture, sizes: Sizes, training: Training, layers: int) -> list[Part]:
    """All-to-all traffic between experts (GShard, arXiv 2006.16668; DeepSeek-V3, arXiv 2412.19437).

    Per layer and micro-batch a device sends each of its tokens, h activations, to the `active` experts that it takes
    (dispatch), and as many results come back (combine); the backward pass does the same with gradients. An expert on
    the same device counts too: 1/expert of the payload stays.
    """
    if sizes.expert == 1 or layers == 0:
        return []
    payload = routed(shape, sizes, training, sizes.tensor if training.sequence_parallel else 1)
    count = [passes(training), (layers, "layers"), (micro_batches(training, sizes), "micro-batches")]
    return [
        traffic("dispatch", "expert", Pattern.ALL_TO_ALL, payload, count, "to the experts (arXiv 2006.16668)"),
        traffic("combine", "expert", Pattern.ALL_TO_ALL, payload, count, "back from them (arXiv 2006.16668)"),
    ]


def expert_tensor(shape: Mixture, sizes: Sizes, training: Training, layers: int) -> list[Part]:
    """Tensor parallelism inside the routed experts under sequence parallelism.

    Each tensor-parallel device has received its part of the tokens, but holds a part of every expert: the parts gather
    all received tokens, `active` copies of b·s/context tokens of h activations where loads are even, and scatter
    their results; the backward pass the other way round (Megatron Core's all-to-all dispatcher). Without sequence
    parallelism the tokens are on all of them, and their results are added in the layer's own AllReduce.
    """
    if sizes.tensor == 1 or layers == 0 or not training.sequence_parallel:
        return []
    payload = routed(shape, sizes, training)
    count = [passes(training), (layers, "layers"), (micro_batches(training, sizes), "micro-batches")]
    source = "sequence parallel (arXiv 2205.05198), the experts' tokens"
    return [
        reduction("expert_gather", Collective.ALL_GATHER, ["tensor"], payload, count, source),
        reduction("expert_scatter", Collective.REDUCE_SCATTER, ["tensor"], payload, count, source),
    ]
