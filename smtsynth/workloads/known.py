"""The kinds of ready-made workloads, and shapes of published models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from smtsynth.errors import InputError
from smtsynth.workloads.dense import dense_step
from smtsynth.workloads.moe import moe_step
from smtsynth.workloads.shape import Dense, Mixture, Sizes, Training
from smtsynth.workloads.step import Step

Record = TypeVar("Record", Dense, Training)
SHAPES: dict[str, type[Dense]] = {"dense": Dense, "moe": Mixture}
_STEPS: dict[str, Callable[..., Step]] = {"dense": dense_step, "moe": moe_step}

_GPT3 = Dense(layers=96, hidden=12288, ffn=49152, heads=96, vocabulary=50257, gated=False, tied=True)


def _llama(layers: int, hidden: int, ffn: int, heads: int) -> Dense:
    return Dense(layers=layers, hidden=hidden, ffn=ffn, heads=heads, kv_heads=8, vocabulary=128256)


MODELS: dict[str, dict[str, tuple[Dense, str]]] = {
    "dense": {
        "gpt-3-175b": (_GPT3, "arXiv 2005.14165, table 2.1"),
        "llama-3-8b": (_llama(32, 4096, 14336, 32), "arXiv 2407.21783, table 3"),
        "llama-3-70b": (_llama(80, 8192, 28672, 64), "arXiv 2407.21783, table 3"),
        "llama-3-405b": (_llama(126, 16384, 53248, 128), "arXiv 2407.21783, table 3"),
    },
    "moe": {
        "mixtral-8x7b": (
            Mixture(layers=32, hidden=4096, ffn=14336, heads=32, kv_heads=8, vocabulary=32000, experts=8, active=2),
            "arXiv 2401.04088, table 1",
        ),
        # Multi-head latent attention (section 2.1.1): h·1536 + 1536·128·192 + h·576 + 512·128·256 + 128·128·h, and the
        # norms of the two compressed vectors, 1536 + 512.
        "deepseek-v3": (
            Mixture(
                layers=61,
                hidden=7168,
                ffn=18432,
                heads=128,
                attention=187_107_328,
                vocabulary=129280,
                experts=256,
                active=8,
                expert_ffn=2048,
                shared_experts=1,
                expert_layers=58,
                head_size=128,
            ),
            "arXiv 2412.19437, section 4.2",
        ),
    },
}
"""Shapes by kind and name, with their source; vocabularies are those of the published weights."""


def find_model(kind: str, name: str) -> Dense:
    """The shape of a published model; InputError naming the known ones."""
    if name not in MODELS[kind]:
        raise InputError(f"model {name[:60]!r} is unknown", where="like", expected=", ".join(MODELS[kind]))
    return MODELS[kind][name][0]


def shape_of(kind: str, like: str | None, given: Mapping[str, Any]) -> Dense:
    """A shape from its fields, those of a published model where they are not given.

    Raises InputError, `where` being the field, for one that is missing or wrong.
    """
    values: dict[str, Any] = {}
    if like is not None:
        known = find_model(kind, like)
        values = {one.name: getattr(known, one.name) for one in fields(known)}
    return _made(SHAPES[kind], values | dict(given))


def training_of(given: Mapping[str, Any]) -> Training:
    """The training from its fields; InputError as in shape_of."""
    return _made(Training, dict(given))


def _made(kind: type[Record], values: dict[str, Any]) -> Record:
    for one in fields(kind):
        if one.default is MISSING and one.name not in values:
            raise InputError("is missing", where=one.name, expected=one.metadata["help"].rstrip("."))
    return kind(**values)


def step_of(kind: str, shape: Dense, sizes: Sizes, training: Training) -> Step:
    """What a step communicates (see dense_step and moe_step)."""
    return _STEPS[kind](shape, sizes, training)
