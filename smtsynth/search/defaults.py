"""Placements that common defaults choose: an order of the axes, laid over the devices one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from smtsynth.model.placement import Axis, Matrix
from smtsynth.model.system import System
from smtsynth.model.workload import Workload

# Megatron-LM's default order, the first varying fastest, and the names people give these axes.
MEGATRON = (
    ("tensor", "tp"),
    ("context", "sequence", "cp"),
    ("expert", "ep"),
    ("shard", "fsdp"),
    ("data", "dp", "replicate"),
    ("pipeline", "pipe", "pp"),
)


def order_matrix(system: System, axes: Sequence[Axis], inner: Sequence[int]) -> Matrix | None:
    """The matrix of devices numbered through the axes, `inner` listing their rows from the innermost one out.

    None where an axis cuts a level unevenly, so that no matrix says it.
    """
    entries = [[1] * len(system.levels) for _ in axes]
    left = [axis.size for axis in axes]
    order = list(inner)
    for level in reversed(range(len(system.levels))):
        room = system.sizes[level]
        while room > 1 and order:
            row = order[0]
            part = min(left[row], room)
            if room % part or left[row] % part:
                return None
            entries[row][level] *= part
            left[row] //= part
            room //= part
            if left[row] == 1:
                order.pop(0)
    return tuple(map(tuple, entries))


def default_matrices(workload: Workload) -> list[tuple[str, Matrix | None]]:
    """What common defaults choose, by name: (default, its matrix or None where no matrix says it)."""
    rows = list(range(len(workload.axes)))
    names = [axis.name for axis in workload.axes]
    found = [
        ("first axis outermost (JAX, PyTorch: last axis varies fastest)", rows[::-1]),
        ("first axis innermost", rows),
    ]
    ranks = [next((n for n, kind in enumerate(MEGATRON) if _is_one_of(name, kind)), None) for name in names]
    if all(rank is not None for rank in ranks) and len(names) > 1:
        found.append(("Megatron-LM's order tp-cp-ep-dp-pp", sorted(rows, key=lambda row: (ranks[row] or 0, row))))
    return [(name, order_matrix(workload.system, workload.axes, inner)) for name, inner in found]


def _is_one_of(name: str, kind: Sequence[str]) -> bool:
    """Whether an axis' name is, or begins with, one of these words ('data_replicate' is a data axis)."""
    return any(name.lower() == word or name.lower().startswith(word + "_") for word in kind)
