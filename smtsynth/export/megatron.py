"""A placement as Megatron-LM's sizes and order: the FIRST token of an order string varies fastest.

The rule, restated: rank = Σ coordinate(token) × product of the sizes of the tokens before it. The command line offers
two orders, tp-cp-ep-dp-pp and (with --use-tp-pp-dp-mapping) tp-cp-ep-pp-dp; expert parallelism is laid over the data
ranks, its own token between cp and dp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from smtsynth.errors import InputError
from smtsynth.export.mesh import Grid, Ids, cannot, is_identity

TOKENS = {"tp": "tensor", "cp": "context", "ep": "expert", "dp": "data", "pp": "pipeline"}
ALIASES = {
    "tp": ("tensor", "tensor_parallel", "model", "mp"),
    "cp": ("context", "sequence", "seq", "context_parallel"),
    "ep": ("expert", "experts", "expert_parallel"),
    "dp": ("data", "replica", "replicate", "batch", "data_parallel", "fsdp", "shard"),
    "pp": ("pipeline", "pipe", "stage", "stages", "pipeline_parallel"),
}
ORDERS = {"tp-cp-ep-dp-pp": False, "tp-cp-ep-pp-dp": True}
"""The orders of the command line, and whether each needs --use-tp-pp-dp-mapping."""


@dataclass(frozen=True, slots=True)
class Megatron:
    """What the command line needs: an order, and a size for each token (dp counts the data ranks of a dense layer).

    data: the axes that dp stands for, slowest first, where there are several.
    """

    order: str
    sizes: Mapping[str, int]
    data: tuple[str, ...] = ()

    @property
    def flags(self) -> str:
        """The command-line flags; data parallelism has none, it is what is left of the world size."""
        words = [
            f"--tensor-model-parallel-size {self.sizes['tp']}",
            f"--pipeline-model-parallel-size {self.sizes['pp']}",
        ]
        if self.sizes["cp"] > 1:
            words.append(f"--context-parallel-size {self.sizes['cp']}")
        if self.sizes["ep"] > 1:
            words.append(f"--expert-model-parallel-size {self.sizes['ep']}")
        if ORDERS[self.order]:
            words.append("--use-tp-pp-dp-mapping")
        return " ".join(words)


def token_of(name: str) -> str | None:
    """The token that an axis of this name stands for, or None."""
    word = name.lower()
    return next((token for token, names in ALIASES.items() if word == token or word in names), None)


def axes_by_token(grid: Grid, given: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """The axes of each token; `given` names tokens for axes whose name says nothing.

    Only dp may have several, which together are one. InputError where an axis has no token.
    """
    found: dict[str, tuple[int, ...]] = {}
    for axis, name in enumerate(grid.names):
        token = given.get(name) or token_of(name)
        if token is None or token not in TOKENS:
            raise InputError(
                f"Megatron-LM has no axis {name!r}", where="--as", expected=f"{name}=TOKEN, one of {', '.join(TOKENS)}"
            )
        if token in found and token != "dp":
            other = grid.names[found[token][0]]
            raise InputError(
                f"axes {other!r} and {name!r} are both {TOKENS[token]} parallelism ({token}), and Megatron-LM has one",
                where="--as",
                expected="each token but dp once",
            )
        found[token] = (*found.get(token, ()), axis)
    return found


def coordinates(order: str, sizes: Mapping[str, int]) -> dict[str, Ids]:
    """Megatron's rule: each token's coordinate of rank 0, 1, … for an order string, whose first token is fastest."""
    ranks = np.arange(math.prod(sizes[token] for token in order.split("-")))
    found, stride = {}, 1
    for token in order.split("-"):
        found[token] = ranks // stride % sizes[token]
        stride *= sizes[token]
    return found


def megatron(grid: Grid, given: Mapping[str, str] | None = None) -> Megatron:
    """Order and sizes for which Megatron-LM's rank r is device r of the placement.

    given: {axis: token}. Raises InputError with the rank permutation that does it where neither order does.
    """
    axes_of = axes_by_token(grid, given or {})
    sizes = {token: math.prod(grid.shape[axis] for axis in axes_of.get(token, ())) for token in TOKENS}
    if sizes["ep"] > 1 and sizes["cp"] > 1:
        raise InputError(
            "Megatron-LM lays expert parallelism over the context and data ranks together, so that an expert axis "
            "beside a context axis has no place of its own",
            expected="one of the two axes",
        )
    for order, mapped in ORDERS.items():
        if mapped and sizes["ep"] > 1:
            continue  # Megatron refuses it: pipeline groups of dense and expert layers would differ
        place = coordinates(order, sizes)
        for data in permutations(axes_of.get("dp", ())):  # as given, first
            at: dict[int, Ids] = {}
            for token, axes in (axes_of | {"dp": data}).items():
                rest = place[token]
                for axis in reversed(axes):  # the last varies fastest
                    rest, at[axis] = np.divmod(rest, grid.shape[axis])
            if is_identity(grid.ids[tuple(at[axis] for axis in range(len(grid.axes)))]):
                several = tuple(grid.names[axis] for axis in data) if len(data) > 1 else ()
                return Megatron(order, {**sizes, "dp": sizes["dp"] * sizes["ep"]}, several)
    slowest_first = [axis for token in reversed(next(iter(ORDERS)).split("-")) for axis in axes_of.get(token, ())]
    why = "neither order of Megatron-LM's command line gives this placement"
    if len(axes_of.get("dp", ())) > 1:
        why += f" ({' and '.join(grid.names[axis] for axis in axes_of['dp'])} together are dp)"
    raise InputError(cannot(grid, why, slowest_first))


def megatron_text(grid: Grid, given: Mapping[str, str] | None = None) -> str:
    """The flags, with what they mean in comments."""
    found = megatron(grid, given)
    used = " ".join(f"{token}={size}" for token, size in found.sizes.items() if size > 1) or "all sizes 1"
    data = f"# dp is {' x '.join(found.data)} together, the last varies fastest\n" if found.data else ""
    return (
        f"# Megatron-LM: {grid.title}\n"
        f"# order {found.order} (the first varies fastest), {used}; rank r is device r: start the ranks "
        f"{grid.system.levels[0].name} by {grid.system.levels[0].name}\n"
        f"{data}{found.flags}\n"
    )
