"""Levels from logs: latency and bandwidth inside a node and across nodes, from runs of one shape each.

Inside comes from runs on one node, across from runs with one device on every node; runs of any other shape are never
looked at, so that they can be predicted. A ring of n devices takes rounds * alpha + bytes on an edge / beta, from
LARGE up; AllReduce runs whose bus bandwidth exceeds that of the others (NVLS, trees) tell nothing about a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from smtsynth.calibrate.nccl import COLLECTIVES, Run
from smtsynth.calibrate.pieces import fit_run
from smtsynth.cost.interface import CostModel
from smtsynth.model.choice import Curve
from smtsynth.model.lowering import Lowering, lower
from smtsynth.model.placement import Axis, Placement
from smtsynth.model.program import Collective, Form, Instruction
from smtsynth.model.system import Level, System

LARGE = 2**25 - 2**12  # bytes; sizes are rounded down to what the devices divide
EXCESS = 1.1  # an AllReduce whose busbw is so many times the others' is no ring
RINGS = ("all_gather", "reduce_scatter", "all_reduce")
WHOLE = {one: Instruction(one, 0, Form.INSIDE_GROUP) for one in Collective}


@dataclass(frozen=True, slots=True)
class LinkFit:
    """Seconds per hop, bytes/s of an edge, the mean relative error, and what was used and left out, in words."""

    alpha: float
    beta: float
    error: float
    used: tuple[str, ...]
    notes: tuple[str, ...]


def fit_link(runs: Sequence[Run]) -> LinkFit | None:
    """The fit of ring runs over links of one kind; None where there is none."""
    rings, notes = [run for run in runs if run.collective in RINGS], []
    speed = {run.collective: max(float(sample.busbw) for sample in run.samples) for run in rings}
    others = [rate for name, rate in speed.items() if name != "all_reduce"]
    if others and speed.get("all_reduce", 0.0) > EXCESS * max(others):
        notes.append(f"all_reduce at {speed['all_reduce']:.0f} GB/s bus is no ring (NVLS or a tree): left out")
        rings = [run for run in rings if run.collective != "all_reduce"]
    elif "all_reduce" in speed and not others:
        notes.append("from all_reduce alone: under NVLS or a tree its bus bandwidth is no link's")
    rows = []
    for run in rings:
        rounds = (run.devices - 1) * (2 if run.collective == "all_reduce" else 1)
        large = [sample for sample in run.samples if sample.size >= LARGE] or list(run.samples)
        for sample in large:
            seconds = float(sample.seconds)
            rows.append((rounds / seconds, rounds / run.devices * sample.size / seconds))
    if len(rows) < 2:
        return None
    table = np.array(rows)
    alpha, slope = np.linalg.lstsq(table, np.ones(len(rows)), rcond=None)[0].tolist()
    if alpha < 0:
        alpha, slope = 0.0, float(table[:, 1].sum() / (table[:, 1] ** 2).sum())
    error = float(np.abs(table @ np.array([alpha, slope]) - 1).mean())
    used = tuple(f"{run.file}:{run.line} {run.collective}" for run in rings)
    return LinkFit(alpha, 1 / slope, error, used, tuple(notes))


@dataclass(frozen=True)
class Calibrated:
    """A system fitted to logs, and the fit of each of its levels by name."""

    system: System
    fits: dict[str, LinkFit]


def fit_system(runs: Sequence[Run], nics: int | None = None) -> Calibrated | None:
    """The system that runs on one node and runs with one device a node make; one level where only one of them is there.

    nics: how many devices' worth of network a node has (None: one NIC a device). None where neither kind is there.
    """
    inside = [run for run in runs if run.nodes == 1 and run.devices > 1]
    across = [run for run in runs if run.nodes is not None and 1 < run.nodes == run.devices]
    most, nodes = (max((run.devices for run in part), default=1) for part in (inside, across))
    near = fit_link([run for run in inside if run.devices == most])
    far = fit_link([run for run in across if run.devices == nodes])
    levels, fits = [], {}
    if far is not None:
        devices = 1 if near is None else most
        ports = devices if nics is None else min(nics, devices)
        rate = _short(far.beta)
        limit = rate if devices > 1 and ports > 1 else None
        levels.append(Level("node", nodes, rate * ports, _short(far.alpha), limit))
        fits["node"] = far
    if near is not None:
        levels.append(Level("gpu", most, _short(near.beta), _short(near.alpha)))
        fits["gpu"] = near
    return Calibrated(System(levels), fits) if levels else None


def _short(value: float) -> Fraction:
    """Four digits, as a short decimal."""
    return Fraction(f"{value:.4g}")


def curves(runs: Sequence[Run]) -> list[Curve]:
    """The measured curves of a cluster's runs whose shape is known; of several runs of one shape the first."""
    found: dict[tuple[Collective, int, int], Curve] = {}
    for run in runs:
        collective = COLLECTIVES.get(run.collective)
        if collective is None or run.nodes is None or run.devices % run.nodes:
            continue
        key = (collective, run.nodes, run.devices // run.nodes)
        if key not in found:
            found[key] = Curve(*key, tuple(piece.piece() for piece in fit_run(run)))
    return list(found.values())


def whole(system: System) -> Lowering:
    """All devices of a system as one group."""
    placement = Placement((Axis("data", system.devices),), (system.sizes,))
    return lower(system, placement, (0,))


def predict(model: CostModel, system: System, collective: Collective, size: int) -> float:
    """Seconds of one collective over all devices, at a size as nccl-tests counts it."""
    share = Fraction(size, system.devices) if collective is Collective.ALL_GATHER else Fraction(size)
    return model.price(whole(system), WHOLE[collective], share) / 1e9


def hierarchical(model: CostModel, system: System, size: int) -> float:
    """Seconds of ReduceScatter inside nodes, AllReduce across, AllGather inside, one after the other."""
    lowering, inner = whole(system), system.levels[-1].size
    steps = (
        (Instruction(Collective.REDUCE_SCATTER, 1, Form.INSIDE_GROUP), Fraction(size)),
        (Instruction(Collective.ALL_REDUCE, 1, Form.PARALLEL, 0), Fraction(size, inner)),
        (Instruction(Collective.ALL_GATHER, 1, Form.INSIDE_GROUP), Fraction(size, inner)),
    )
    return sum(model.price(lowering, step, share) for step, share in steps) / 1e9


def crossover(model: CostModel, system: System, low: int = 2**20, high: int = 2**34) -> int | None:
    """The bytes from which a plain AllReduce is no slower than the hierarchical program; None where it never is.

    Both grow with the size, and the program's lead shrinks; found by halving between `low` and `high`.
    """

    def plain_wins(size: int) -> bool:
        return predict(model, system, Collective.ALL_REDUCE, size) <= hierarchical(model, system, size)

    if plain_wins(low) or not plain_wins(high):
        return low if plain_wins(low) else None
    while high - low > 2**16:
        middle = (low + high) // 2
        low, high = (low, middle) if plain_wins(middle) else (middle, high)
    return high
