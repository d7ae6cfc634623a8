"""What a ready-made workload is made from: the model's shape, the sizes of the axes, and how it is trained.

Every field carries its help and its least value, so that files, options and checks have one source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from smtsynth.errors import InputError

MOST = 10**9


def about(help: str, least: int = 1) -> dict[str, Any]:
    """A field's metadata: a line of help, and the least whole number it takes."""
    return {"help": help, "least": least}


def is_flag(one: Field[Any]) -> bool:
    """Whether a field is true or false rather than a number."""
    return one.type == "bool"


def check(record: Any) -> None:
    """InputError, `where` being the field, for a value of the wrong type or below its least."""
    for one in fields(record):
        value = getattr(record, one.name)
        if is_flag(one):
            if not isinstance(value, bool):
                raise InputError(f"is {value!r}"[:60], where=one.name, expected="true or false")
        elif not (value is None and one.default is None):
            least = one.metadata["least"]
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
                shown = repr(value)[:40] if not isinstance(value, int) or abs(value) < 10**20 else "far too large"
                raise InputError(f"is {shown}", where=one.name, expected=f"a whole number from {least} to {MOST}")


def divides(part: int, whole: int, what: str, of: str, where: str) -> None:
    """InputError if `part` does not divide `whole`."""
    if whole % part:
        raise InputError(f"{what} {part} does not divide {of} {whole}", where=where, expected=f"a divisor of {whole}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """Shape of a decoder-only transformer in which every token passes every parameter.

    Parameters of a layer: attention 2·h·a·d + 2·h·k·d for h = hidden, a heads and k key-value heads of size d
    (grouped queries, arXiv 2305.13245); feed-forward 3·h·f where gated (SwiGLU, arXiv 2002.05202), else 2·h·f; two
    norms of h. Embedding and output: v·h each (once if tied); a last norm of h. Left out: biases and learned positions.
    """

    layers: int = field(metadata=about("Transformer layers."))
    hidden: int = field(metadata=about("Hidden size."))
    ffn: int = field(metadata=about("Inner size of the feed-forward part."))
    heads: int = field(metadata=about("Attention heads."))
    vocabulary: int = field(metadata=about("Tokens of the vocabulary."))
    kv_heads: int | None = field(default=None, metadata=about("Key-value heads. Default: as many as heads."))
    head_size: int | None = field(default=None, metadata=about("Size of a head. Default: hidden / heads."))
    attention: int | None = field(
        default=None, metadata=about("Parameters of a layer's attention where it has another shape, such as MLA.")
    )
    gated: bool = field(default=True, metadata=about("A gated feed-forward part: three matrices, else two."))
    tied: bool = field(default=False, metadata=about("One matrix for embedding and output."))

    def __post_init__(self) -> None:
        check(self)
        divides(self.groups, self.heads, "kv_heads", "heads", "kv_heads")
        if self.head_size is None:
            divides(self.heads, self.hidden, "heads", "hidden", "heads")

    @property
    def groups(self) -> int:
        """Key-value heads."""
        return self.kv_heads or self.heads

    @property
    def head(self) -> int:
        """Size of a head."""
        return self.head_size or self.hidden // self.heads

    def kv_width(self, tensor: int = 1) -> int:
        """Width of K (or V) on one of `tensor` tensor-parallel devices; where these are more, each holds one head."""
        return max(1, self.groups // tensor) * self.head

    def attention_parameters(self, tensor: int = 1) -> int:
        """Parameters of a layer's attention on one of `tensor` devices."""
        if self.attention is not None:
            return self.attention // tensor
        return 2 * self.hidden * (self.heads // tensor * self.head + self.kv_width(tensor))

    def ffn_parameters(self, width: int, tensor: int = 1) -> int:
        """Parameters of a feed-forward part of this inner size on one of `tensor` devices."""
        return (3 if self.gated else 2) * self.hidden * width // tensor

    def layer_parameters(self, tensor: int = 1) -> int:
        """Parameters of a layer on one of `tensor` devices, each of which holds the norms whole."""
        return self.attention_parameters(tensor) + self.ffn_parameters(self.ffn, tensor) + 2 * self.hidden

    def embedding_parameters(self, tensor: int = 1) -> int:
        """Parameters of the embedding (or of the output) on one of `tensor` devices, the vocabulary rounded up."""
        return -(-self.vocabulary // tensor) * self.hidden

    @property
    def embeddings(self) -> int:
        """How many matrices of the vocabulary's size there are."""
        return 1 if self.tied else 2

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.layers * self.layer_parameters() + self.embeddings * self.embedding_parameters() + self.hidden

    def check_tensor(self, tensor: int) -> None:
        """InputError where the matrices can't be split among `tensor` devices."""
        divides(tensor, self.heads, "tensor", "heads", "tensor")
        divides(tensor, self.ffn, "tensor", "ffn", "tensor")
        if self.groups % tensor and tensor % self.groups:
            raise InputError(
                f"tensor {tensor} does not fit kv_heads {self.groups}", where="tensor", expected="a divisor or multiple"
            )
        if self.attention is not None:
            divides(tensor, self.attention, "tensor", "attention", "tensor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture(Dense):
    """Shape of a transformer with mixtures of experts in `expert_layers` of its layers (all by default).

    Such a layer has, in place of the feed-forward part, `experts` feed-forward parts of inner size `expert_ffn`, of
    which each token takes `active`; `shared_experts` that all tokens take; and a router of h parameters an expert
    (GShard, arXiv 2006.16668; Switch, arXiv 2101.03961; Mixtral, arXiv 2401.04088; DeepSeek-V3, arXiv 2412.19437).
    """

    experts: int = field(metadata=about("Routed experts of a layer."))
    active: int = field(metadata=about("Routed experts that a token takes."))
    expert_ffn: int | None = field(default=None, metadata=about("Inner size of an expert. Default: ffn."))
    shared_experts: int = field(default=0, metadata=about("Experts that every token takes.", 0))
    expert_layers: int | None = field(default=None, metadata=about("Layers with experts. Default: all."))

    def __post_init__(self) -> None:
        Dense.__post_init__(self)
        if self.active > self.experts:
            raise InputError(f"is {self.active}", where="active", expected=f"at most the {self.experts} experts")
        if self.routed_layers > self.layers:
            raise InputError(f"is {self.routed_layers}", where="expert_layers", expected=f"at most {self.layers}")

    @property
    def width(self) -> int:
        """Inner size of an expert."""
        return self.expert_ffn or self.ffn

    @property
    def routed_layers(self) -> int:
        """Layers with experts."""
        return self.expert_layers or self.layers

    def common_parameters(self, tensor: int = 1) -> int:
        """Parameters of a layer with experts but for the routed experts, on one of `tensor` devices.

        The router and the norms are held whole by each.
        """
        shared = self.ffn_parameters(self.shared_experts * self.width, tensor)
        return self.attention_parameters(tensor) + shared + self.hidden * (2 + self.experts)

    def expert_parameters(self, tensor: int = 1, expert: int = 1) -> int:
        """Parameters of a layer's routed experts on one of `tensor` times `expert` devices."""
        return self.experts // expert * self.ffn_parameters(self.width, tensor)

    @property
    def parameters(self) -> int:
        """All parameters."""
        routed = self.routed_layers
        rest = (self.layers - routed) * self.layer_parameters() + self.hidden
        matrices = self.embeddings * self.embedding_parameters()
        return routed * (self.common_parameters() + self.expert_parameters()) + rest + matrices

    def check_tensor(self, tensor: int) -> None:
        """InputError where the matrices can't be split among `tensor` devices."""
        Dense.check_tensor(self, tensor)
        divides(tensor, self.width, "tensor", "expert_ffn", "tensor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained: the batch, what numbers take, and the variants that change what is communicated."""

    sequence: int = field(metadata=about("Tokens of a sequence."))
    global_batch: int = field(metadata=about("Sequences of a step, over all devices."))
    micro_batch: int = field(default=1, metadata=about("Sequences of a micro-batch, per replica of the model."))
    parameter_bytes: int = field(default=2, metadata=about("Bytes of a gathered parameter."))
    gradient_bytes: int = field(default=4, metadata=about("Bytes of a reduced gradient."))
    activation_bytes: int = field(default=2, metadata=about("Bytes of an activation, and of its gradient."))
    interleave: int = field(default=1, metadata=about("Chunks of layers per pipeline stage (interleaved schedule)."))
    sequence_parallel: bool = field(
        default=False, metadata=about("Split activations between tensor-parallel parts along the sequence.")
    )
    recompute: bool = field(default=False, metadata=about("Recompute all activations in the backward pass."))
    reshard: bool = field(
        default=True,
        metadata=about("Axis shard: gather and scatter in every micro-batch, else once a step (memory permitting)."),
    )
    shard_optimizer: bool = field(
        default=False, metadata=about("Without axis shard: split the optimizer over the data axes (ZeRO 1).")
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of the parallel axes, in the order in which a mesh usually has them, outermost first.

    A model's replica takes pipeline · context · tensor devices (its experts are spread over `expert` replicas), and
    data · shard · expert replicas share the batch.
    """

    pipeline: int = field(default=1, metadata=about("Pipeline stages."))
    data: int = field(default=1, metadata=about("Replicas that hold all parameters (with shard: HSDP's copies)."))
    shard: int = field(default=1, metadata=about("Replicas that share the parameters (FSDP)."))
    expert: int = field(default=1, metadata=about("Replicas that share the experts."))
    context: int = field(default=1, metadata=about("Parts of the sequence in attention (context parallelism)."))
    tensor: int = field(default=1, metadata=about("Tensor-parallel parts of every matrix."))

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def of(cls, axes: Mapping[str, int]) -> Sizes:
        """The sizes by axis name; InputError, `where` being axes, for another name."""
        known = [one.name for one in fields(cls)]
        for name in axes:
            if name not in known:
                raise InputError(
                    f"axis {name[:60]!r} has no part in the model", where="axes", expected=", ".join(known)
                )
        return cls(**axes)

    @property
    def axes(self) -> dict[str, int]:
        """Axes of more than one device, {name: size}, outermost first; `data` alone where there is none."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: size for name, size in found.items() if size > 1} or {"data": 1}

    @property
    def devices(self) -> int:
        """All devices."""
        return math.prod(self.axes.values())

    @property
    def replicas(self) -> int:
        """How many replicas share the batch."""
        return self.data * self.shard * self.expert

    def spread(self, *names: str) -> list[str]:
        """Those of the axes that have more than one device."""
        return [name for name in names if getattr(self, name) > 1]
