"""The paper's tables, re-done: its appendix and Figure 11 against our models, its own and one that is blind inside."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from smtsynth.calibrate.constants import LoadTable, constants, with_constants
from smtsynth.calibrate.p2 import (
    PAYLOAD,
    WHOLE,
    Figure,
    Row,
    allreduce_loads,
    appendix,
    figure11,
    merged,
    programs,
    seconds,
    sized,
)
from smtsynth.calibrate.ranking import TOPS, Score, matching
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.interface import Shares
from smtsynth.cost.models import alpha_beta
from smtsynth.cost.paper import Paper
from smtsynth.cost.prices import Prices
from smtsynth.cost.wired import wired_price
from smtsynth.meaning.goals import target_of
from smtsynth.model.lowering import Lowering
from smtsynth.model.program import Collective, Instruction, Program, default_steps
from smtsynth.model.system import Level, System
from smtsynth.search.enumerate import StateGraph, cheapest_programs

SPLITS = ("odd rows fitted, even ones judged", "2 nodes fitted, 4 judged")


@dataclass(frozen=True)
class Clusters:
    """The paper's systems by GPU: with its simulator's constants, and with data sheets' for ours to start from."""

    paper: Mapping[str, System]
    sheet: Mapping[tuple[str, str], System]


def clusters(a100: System, v100: System, cpus: System) -> Clusters:
    """Systems from those of examples/p2: the paper's A100 and V100, and the V100 nodes as measured.

    On A100, HBM2 of 1555 GB/s copies, reading and writing, at 777 GB/s. Under a tree, what one group alone draws
    from the NIC is a constant too.
    """
    ring = System(a100.levels, copy="777 GB/s")
    tree = System([replace(a100.levels[0], per_group=a100.levels[0].bandwidth), a100.levels[1]], copy="777 GB/s")
    sheet = {("A100", "ring"): ring, ("A100", "tree"): tree, ("V100", "ring"): cpus, ("V100", "tree"): cpus}
    return Clusters({"A100": a100, "V100": v100}, sheet)


@dataclass(frozen=True)
class AllReduceFit:
    """A system and algorithm over the appendix: constants fitted to all rows, and the errors on held-out ones.

    held_out: per split, the error of each row that was not fitted, by its number in `rows`.
    """

    gpu: str
    algorithm: str
    rows: tuple[Row, ...]
    system: System
    held_out: tuple[dict[int, float], ...]

    def error(self, inside: bool | None = None) -> float:
        """The mean error on held-out rows, of the worse split; of rows inside nodes, across, or both (None)."""
        return max(
            float(np.mean([abs(e) for row, e in split.items() if inside in (None, self.rows[row].inside)]))
            for split in self.held_out
        )

    @property
    def worst(self) -> float:
        """The largest error of a held-out row."""
        return max(abs(error) for split in self.held_out for error in split.values())


def fit_allreduce(found: Clusters, rows: Sequence[Row], gpu: str, algorithm: str) -> AllReduceFit:
    """Fit a system's constants to the plain AllReduce of its rows by one algorithm, for all rows and for each split."""
    sheet = found.sheet[gpu, algorithm]
    chosen = tuple(row for row in rows if row.gpu == gpu and algorithm in row.allreduce)
    loads = [allreduce_loads(sheet, row, algorithm) for row in chosen]
    table = LoadTable.of(sheet, loads, [row.allreduce[algorithm] for row in chosen])
    start = constants(sheet)
    odd = np.arange(1, len(chosen) + 1) % 2 == 1
    two = np.array([row.nodes == 2 for row in chosen])
    held_out = []
    for fitted in (odd, two):
        errors = table.part(~fitted).errors(table.part(fitted).fit(start))
        held_out.append(dict(zip(np.flatnonzero(~fitted).tolist(), errors.tolist(), strict=True)))
    return AllReduceFit(gpu, algorithm, chosen, with_constants(sheet, table.fit(start)), tuple(held_out))


def allreduce_errors(fits: Sequence[AllReduceFit]) -> dict[str, float]:
    """The mean errors by the names of the re-done table."""
    errors: dict[str, float] = {}
    for fit in fits:
        name = f"{fit.gpu} {fit.algorithm}"
        if fit.gpu == "A100":
            errors |= {f"{name} across": fit.error(inside=False), f"{name} inside": fit.error(inside=True)}
        else:
            errors[name] = fit.error()
    return errors


@dataclass(frozen=True)
class FigureScores:
    """One placement of Figure 11: the paper's simulated values by `paper`, and the scores of three models."""

    figure: Figure
    simulated_error: float
    scores: dict[str, Score]

    def data(self) -> dict[str, Any]:
        """As the re-done tables' JSON has it: our figures plain, the others' with a prefix."""
        return {"simulated_median_error": self.simulated_error} | scores_data(self.scores)


def scores_data(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Scores by model ('' is ours; the others' keys begin with their names)."""
    data: dict[str, Any] = {}
    for name, score in scores.items():
        data[f"{name}pair_accuracy"] = score.pairs
        data[f"{name}regret"] = score.regret
        data[f"{name}top"] = {str(k): value for k, value in score.top.items()}
        data[f"{name}median_error"] = score.error
        data[f"{name}rank_correlation"] = score.correlation
    return data


def mean_score(scores: Sequence[Score]) -> Score:
    """The mean over placements."""
    return Score(
        float(np.mean([one.pairs for one in scores])),
        float(np.mean([one.regret for one in scores])),
        {k: float(np.mean([one.top[k] for one in scores])) for k in TOPS},
        float(np.mean([one.error for one in scores])),
        float(np.mean([one.correlation for one in scores])),
    )


def score_figure(
    figure: Figure, found: Clusters, fitted: System, known: Sequence[Program], allreduce: float
) -> FigureScores:
    """Score our model on `fitted`, the paper's and the blind one; allreduce: the appendix' seconds of this placement.

    All three price merged programs as the compiler runs them; the matching uses the unmerged, as the paper simulated.
    """
    paper = figure.lowering(found.paper[figure.gpu])
    simulated = [seconds(Paper(), paper, program) for program in known]
    twice = [number for number, program in enumerate(known) if merged(program) != program]
    shown = [point.simulated for point in figure.points]
    pairs = matching(simulated, [point.measured for point in figure.points], shown, twice, allreduce)
    near = [
        abs(simulated[program] / value - 1)
        for program, value in zip(pairs.program.tolist(), shown, strict=True)
        if value is not None
    ]
    blind = figure.lowering(_blind(found.paper[figure.gpu]))
    ran = [merged(program) for program in known]
    ours = figure.lowering(fitted)
    scores = {
        "": pairs.score([seconds(alpha_beta(), ours, program) for program in ran]),
        "paper_": pairs.score([seconds(Paper(), paper, program) for program in ran]),
        "blind_": pairs.score([seconds(Paper(), blind, program) for program in ran]),
    }
    return FigureScores(figure, float(np.median(near)), scores)


def _blind(system: System) -> System:
    """Nodes with the paper's NIC, and no time inside them: a model that knows nothing of what a node is made of."""
    node, gpu = system.levels
    return System([Level(node.name, node.size, "8 GB/s"), Level(gpu.name, gpu.size, Fraction(10**18))])


@dataclass(frozen=True)
class TreeLibrary(AlphaBeta):
    """A library that is told to use trees: its AllReduce on the system fitted to trees, all else on `rings`."""

    rings: System | None = None

    def price(self, lowering: Lowering, instruction: Instruction, shares: Shares) -> int:
        """See CostModel."""
        if instruction.collective is not Collective.ALL_REDUCE and self.rings is not None:
            lowering = replace(lowering, system=sized(self.rings, lowering.system.levels[0].size))
        return wired_price(lowering, instruction, shares, self.algorithm)


@dataclass(frozen=True)
class Gain:
    """A row by one algorithm: predicted seconds of a plain AllReduce and of our best program; `paper`: of the best
    program under the paper's row-major lowering; measured: what the paper measured of the first two."""

    row: Row
    algorithm: str
    allreduce: float
    best: float
    paper: float
    measured: tuple[float, float]


def gains(fits: Sequence[AllReduceFit]) -> list[Gain]:
    """Our optimum on every row and algorithm, on the fitted systems (all programs of the full set, exactly priced)."""
    graphs: dict[tuple[int, ...], StateGraph] = {}
    rings = {fit.gpu: fit.system for fit in fits if fit.algorithm == "ring"}
    found = []
    for fit in fits:
        model = TreeLibrary("trees", "tree", rings[fit.gpu]) if fit.algorithm == "tree" else alpha_beta()
        for row in fit.rows:
            costs = []
            several = len(row.reduced) > 1  # of one axis both lowerings are the same
            for hierarchy in ("reduction", "reduction-row-major")[: 1 + several]:
                lowering = row.lowering(fit.system, hierarchy)
                if lowering.sizes not in graphs:
                    graphs[lowering.sizes] = StateGraph(target_of(lowering), "full")
                prices = Prices(model, lowering, PAYLOAD)
                best = next(iter(cheapest_programs(graphs[lowering.sizes], prices, default_steps(lowering.depth))))
                costs.append(best[0] / 1e9)
            plain = prices.program((WHOLE,)) / 1e9
            taken = (row.allreduce[fit.algorithm], row.best[fit.algorithm])
            found.append(Gain(row, fit.algorithm, plain, costs[0], costs[-1], taken))
    return found


@dataclass(frozen=True)
class Tables:
    """All of it."""

    fits: tuple[AllReduceFit, ...]
    figures: tuple[FigureScores, ...]
    gains: tuple[Gain, ...]

    def residuals(self, least: float) -> list[tuple[AllReduceFit, str, Row, float]]:
        """Held-out rows that are further off than `least`: fit, split, row and error."""
        return [
            (fit, split, fit.rows[row], error)
            for fit in self.fits
            for split, errors in zip(SPLITS, fit.held_out, strict=True)
            for row, error in errors.items()
            if abs(error) > least
        ]

    def data(self) -> dict[str, Any]:
        """The JSON of examples/p2_tables.py."""
        ratios = [gain.allreduce / gain.best for gain in self.gains]
        better = [ratio for ratio in ratios if ratio > 1]
        names = self.figures[0].scores
        mean = {name: mean_score([one.scores[name] for one in self.figures]) for name in names}
        return {
            "allreduce_mean_error": allreduce_errors(self.fits),
            "allreduce_largest_error": {f"{fit.gpu} {fit.algorithm}": fit.worst for fit in self.fits},
            "constants": {
                f"{fit.gpu} {fit.algorithm}": {name: float(rate) for name, rate in constants(fit.system).items()}
                for fit in self.fits
            },
            "figure11": {one.figure.matrix: one.data() for one in self.figures},
            "figure11_mean": scores_data(mean),
            "improved_share": len(better) / len(ratios),
            "mean_gain": float(np.mean(better)),  # of the improved, as the paper's 1.267
            "largest_gain": max(ratios),
            "following_hardware": [
                {
                    "gpu": gain.row.gpu,
                    "matrix": [list(row) for row in gain.row.placement.matrix],
                    "algorithm": gain.algorithm,
                    "ours_seconds": gain.best,
                    "row_major_seconds": gain.paper,
                    "measured_best_seconds": gain.measured[1],
                }
                for gain in self.gains
                if gain.best < gain.paper
            ],
        }


def redo(folder: str | os.PathLike[str], found: Clusters) -> Tables:
    """Re-do the paper's tables from the figures in `folder`. Raises InputError where a file there isn't one."""
    rows, known, panels = appendix(folder), programs(folder), figure11(folder)
    fits = tuple(fit_allreduce(found, rows, gpu, algorithm) for gpu, algorithm in found.sheet)
    rings = {fit.gpu: fit.system for fit in fits if fit.algorithm == "ring"}
    measured = {(row.gpu, row.nodes, row.placement, row.reduced): row.allreduce["ring"] for row in rows}
    figures = tuple(
        score_figure(one, found, rings[one.gpu], known, measured[one.gpu, one.nodes, one.placement, one.reduced])
        for one in panels
    )
    return Tables(fits, figures, tuple(gains(fits)))
