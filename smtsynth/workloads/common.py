"""What dense models and mixtures of experts share: batches, stages, and each kind of parallelism's communication.

Payloads are bytes per device of the whole buffer (model, sections 3 and 5): what each holds before an AllReduce or
a ReduceScatter, what each holds after an AllGather. `count` is how often a device takes part in one training step,
so that count times bytes is what the step communicates. Names: b sequences of a micro-batch, s tokens of a sequence,
h hidden size, L layers of the fullest pipeline stage, m micro-batches; p, g, e bytes of a parameter, gradient and
activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smtsynth.errors import InputError
from smtsynth.model.program import Collective
from smtsynth.model.workload import Pattern
from smtsynth.workloads.shape import Dense, Sizes, Training, divides
from smtsynth.workloads.step import Part, reduction, traffic


@dataclass(frozen=True, slots=True)
class Unit:
    """Weights that are gathered and reduced together: parameters on a device, and how many such units it has.

    root: gathered once for forward and backward pass together.
    """

    name: str
    parameters: int
    count: int
    root: bool = False


def micro_batches(training: Training, sizes: Sizes) -> int:
    """Micro-batches of a step, m = global batch / (replicas · b)."""
    at_once = sizes.replicas * training.micro_batch
    if training.global_batch % at_once:
        raise InputError(
            f"{training.global_batch} sequences are not shared evenly by {sizes.replicas} replicas with micro-batches "
            f"of {training.micro_batch}",
            where="global_batch",
            expected=f"a multiple of {at_once}",
        )
    return training.global_batch // at_once


def check_sizes(shape: Dense, sizes: Sizes, training: Training) -> None:
    """InputError where the model can't be split so."""
    shape.check_tensor(sizes.tensor)
    micro_batches(training, sizes)
    chunks = sizes.pipeline * training.interleave
    if chunks > shape.layers:
        raise InputError(
            f"{shape.layers} layers can't fill {chunks} chunks",
            where="interleave" if training.interleave > 1 else "pipeline",
            expected=f"at most {shape.layers}",
        )
    divides(sizes.context, training.sequence, "context", "sequence", "context")
    if training.sequence_parallel:
        where, part = "sequence_parallel", training.sequence // sizes.context
        divides(sizes.tensor, part, "tensor", "the tokens of a part of the sequence,", where)
    if training.shard_optimizer and sizes.shard > 1:
        raise InputError("axis shard splits the optimizer already", where="shard_optimizer", expected="one of the two")


def tokens(training: Training, sizes: Sizes) -> int:
    """Tokens of a micro-batch on a device, b·s / context."""
    return training.micro_batch * training.sequence // sizes.context


def activations(training: Training, sizes: Sizes, hidden: int, parts: int = 1) -> list[tuple[int, str]]:
    """Bytes of the activations of a micro-batch on a device, of one of `parts` parts of its tokens."""
    return [
        (tokens(training, sizes) // parts, "tokens"),
        (hidden, "hidden"),
        (training.activation_bytes, "B"),
    ]


def passes(training: Training, *more: str) -> tuple[int, str]:
    """Passes of a micro-batch: forward, again where recomputed, backward, and what else happens as often."""
    words = ["forward", *(["recomputed"] if training.recompute else []), "backward", *more]
    return len(words), f"passes ({', '.join(words)})"


def stage_layers(layers: int, sizes: Sizes) -> int:
    """Layers of the fullest pipeline stage, L = layers / pipeline rounded up: all stages work at the same time."""
    return -(-layers // sizes.pipeline)


def stage_embeddings(shape: Dense, sizes: Sizes, layer: int) -> int:
    """Matrices of the vocabulary's size on the stage that holds most.

    One stage has all; of several, the first has the embedding and the last the output (tied: a copy). Where layers
    go unevenly into stages and two are spare, first and last have one less each, as in Llama 3 (arXiv 2407.21783,
    section 3.3), and a stage between is the fullest, if a layer (`layer` parameters) is no smaller.
    """
    if sizes.pipeline == 1:
        return shape.embeddings
    spare = sizes.pipeline * stage_layers(shape.layers, sizes) - shape.layers
    return 0 if spare >= 2 and layer >= shape.embedding_parameters(sizes.tensor) else 1


def embedding_unit(shape: Dense, sizes: Sizes, layer: int) -> list[Unit]:
    """Embedding, output and last norm as one unit, where the fullest stage has any."""
    matrices = stage_embeddings(shape, sizes, layer)
    parameters = matrices * shape.embedding_parameters(sizes.tensor) + shape.hidden
    return [Unit("embedding_", parameters, 1, root=True)] if matrices else []


def weights(prefix: str, units: Sequence[Unit], over: Sequence[str], sizes: Sizes, training: Training) -> list[Part]:
    """Keeping the copies of weights in step, over those of the axes `over` that have more than one device.

    - plain data parallelism: AllReduce of all gradients, g bytes each, once a step (in one piece; libraries cut it
      into buckets, which changes latency only);
    - with a split optimizer (ZeRO 1, arXiv 1910.02054, sections 5 and 7): ReduceScatter of the gradients and AllGather
      of the parameters, once a step;
    - with an axis shard (ZeRO 3, FSDP, arXiv 2304.11277, section 3): per unit, AllGather of its parameters before the
      forward and again before the backward pass of each micro-batch (the root unit: once for both), and
      ReduceScatter of its gradients after each backward pass; with reshard off, each once a step. With data as well
      (HSDP): gradients end split over shard and summed over data, {shard: ReduceScatter, data: AllReduce}.

    Context-parallel parts see other tokens with the same weights, so that they count as data (callers put `context`
    into `over`).
    """
    live = sizes.spread(*over)
    if not live:
        return []
    if sizes.shard == 1:
        return _whole(prefix, sum(unit.parameters * unit.count for unit in units), live, training)
    m = (micro_batches(training, sizes), "micro-batches")
    split = [axis for axis in live if axis != "data"]
    kind: dict[str, Collective] = {
        axis: Collective.REDUCE_SCATTER if axis in split else Collective.ALL_REDUCE for axis in live
    }
    parts = []
    for unit in units:
        units_ = (unit.count, "units")
        gathers, scatters = [units_], [units_]  # without resharding both happen once a step
        if training.reshard:
            gathers = [units_, m] if unit.root else [(2, "passes (forward, backward)"), units_, m]
            scatters = [units_, m]
        each, name = (unit.parameters, "parameters of a unit"), prefix + unit.name
        parts += [
            reduction(
                f"{name}parameters",
                Collective.ALL_GATHER,
                split,
                [each, (training.parameter_bytes, "B")],
                gathers,
                "FSDP (arXiv 2304.11277), parameters gathered",
            ),
            reduction(
                f"{name}gradients",
                kind if len(split) < len(live) else Collective.REDUCE_SCATTER,
                live,
                [each, (training.gradient_bytes, "B")],
                scatters,
                f"{'HSDP' if len(split) < len(live) else 'FSDP'} (arXiv 2304.11277), gradients scattered",
            ),
        ]
    return parts


def _whole(prefix: str, parameters: int, live: Sequence[str], training: Training) -> list[Part]:
    """Weights that every data-parallel device holds whole."""
    each, once = (parameters, "parameters of a device"), [(1, "a step")]
    gradients, gathered = [each, (training.gradient_bytes, "B")], [each, (training.parameter_bytes, "B")]
    if not training.shard_optimizer:
        source = "data parallel, gradients summed"
        return [reduction(f"{prefix}gradients", Collective.ALL_REDUCE, live, gradients, once, source)]
    source = "ZeRO 1 (arXiv 1910.02054)"
    return [
        reduction(f"{prefix}gradients", Collective.REDUCE_SCATTER, live, gradients, once, f"{source}, gradients"),
        reduction(f"{prefix}parameters", Collective.ALL_GATHER, live, gathered, once, f"{source}, after the optimizer"),
    ]


def tensor(sizes: Sizes, training: Training, hidden: int, blocks: int, what: str = "half layers") -> list[Part]:
    """Tensor parallelism of `blocks` pairs of a column- and a row-split matrix: an attention or feed-forward part.

    Without sequence parallelism an AllReduce of b·s·h/context activations in the forward and one in the backward pass
    of each, four a layer (Megatron-LM, arXiv 1909.08053, section 3). With it (arXiv 2205.05198, section 4.2.2) an
    AllGather and a ReduceScatter of the same buffer in place of each AllReduce, and one AllGather more in the
    backward pass, as only a part of the input is kept. Recomputation repeats the forward pass. Left out: embedding
    and output, which communicate once a micro-batch on one stage.
    """
    if sizes.tensor == 1 or blocks == 0:
        return []
    payload = activations(training, sizes, hidden)
    many = [(blocks, what), (micro_batches(training, sizes), "micro-batches")]
    if not training.sequence_parallel:
        source = "Megatron-LM (arXiv 1909.08053)"
        return [reduction("tensor", Collective.ALL_REDUCE, ["tensor"], payload, [passes(training), *many], source)]
    source = "sequence parallel (arXiv 2205.05198)"
    gathers, scatters = [passes(training, "the kept part again"), *many], [passes(training), *many]
    return [
        reduction("tensor_gather", Collective.ALL_GATHER, ["tensor"], payload, gathers, source),
        reduction("tensor_scatter", Collective.REDUCE_SCATTER, ["tensor"], payload, scatters, source),
    ]


def context(shape: Dense, sizes: Sizes, training: Training, layers: int) -> list[Part]:
    """Context parallelism by gathering keys and values (Llama 3, arXiv 2407.21783, section 3.3.2).

    Per layer and micro-batch an AllGather of K and V, 2·b·s·(their width on a tensor-parallel device) activations, in
    the forward pass, and, as only the own part is kept (Transformer Engine does so), in the backward pass; and a
    ReduceScatter of their gradients. Ring attention moves as much in another pattern, which is not modelled.
    """
    if sizes.context == 1:
        return []
    if shape.attention is not None:
        raise InputError(
            "keys and values are of unknown size where attention is given by its parameters",
            where="context",
            expected="axis context of size 1",
        )
    width = shape.kv_width(sizes.tensor)
    payload = [
        (2, "for K and V"),
        (training.micro_batch * training.sequence, "tokens"),
        (width, "width"),
        (training.activation_bytes, "B"),
    ]
    many = [(layers, "layers"), (micro_batches(training, sizes), "micro-batches")]
    gathers, scatters = [passes(training), *many], [(1, "backward"), *many]
    source = "context parallel (arXiv 2407.21783)"
    return [
        reduction("context_gather", Collective.ALL_GATHER, ["context"], payload, gathers, source),
        reduction("context_scatter", Collective.REDUCE_SCATTER, ["context"], payload, scatters, source),
    ]


def pipeline(sizes: Sizes, training: Training, hidden: int) -> list[Part]:
    """What pipeline stages pass on (arXiv 2104.04473, sections 2.2 and 4.1).

    Per micro-batch, and per chunk of an interleaved schedule, b·s·h/context activations to the next stage and as
    many gradients back, which cost the same on full-duplex links; with sequence parallelism each tensor-parallel
    device sends its part. Left out: the interleaved schedule's way from the last stage back to the first.
    """
    if sizes.pipeline == 1:
        return []
    parts = sizes.tensor if training.sequence_parallel else 1
    count = [(2, "for activations and gradients"), (micro_batches(training, sizes), "micro-batches")]
    if training.interleave > 1:
        count.append((training.interleave, "chunks"))
    source = "pipeline (arXiv 2104.04473)"
    payload = activations(training, sizes, hidden, parts)
    return [traffic("pipeline", "pipeline", Pattern.POINT_TO_POINT, payload, count, source)]
