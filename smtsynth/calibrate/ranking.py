"""How well a model ranks programs whose measured points don't name them (P2, Figure 11).

Points are matched to programs on the simulated value; programs whose simulated values are within TOLERANCE are one
class, and a model is scored over random assignments inside the classes, ties half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
TOLERANCE = 0.012  # how far apart simulated values of one class may be
FAR = 1.1  # pairs count whose measured times are further apart than this
TOPS = (1, 3, 5, 10)
SAMPLES = 200
EQUAL = 1e-9  # relative; prices this near are tied


@dataclass(frozen=True)
class Score:
    """Means over assignments. pairs: ordered right; regret: measured time of the predicted best over the best;
    top: how often the measured best is among the k predicted best; error: median relative error of predictions."""

    pairs: float
    regret: float
    top: dict[int, float]
    error: float
    correlation: float


@dataclass(frozen=True)
class Matching:
    """Measured seconds of points, the program matched to each, and every program's class."""

    measured: Floats
    program: Ints
    classes: Ints

    def score(self, prices: Sequence[float], samples: int = SAMPLES, seed: int = 0) -> Score:
        """The score of a model's prices of the programs, seconds, over `samples` seeded assignments."""
        given, random = np.asarray(prices, dtype=np.float64), np.random.default_rng(seed)
        one, two = np.triu_indices(len(self.measured), 1)
        ratio = self.measured[one] / self.measured[two]
        far = np.maximum(ratio, 1 / ratio) > FAR
        one, two = one[far], two[far]
        groups = [np.flatnonzero(self.classes[self.program] == name) for name in np.unique(self.classes)]
        rows = []
        for _ in range(samples):
            chosen = self.program.copy()
            for places in groups:
                chosen[places] = random.permutation(self.program[places])
            rows.append(self._sample(given[chosen], one, two))
        pairs, regret, error, correlation, *tops = np.array(rows).mean(axis=0).tolist()
        return Score(pairs, regret, dict(zip(TOPS, tops, strict=True)), error, correlation)

    def _sample(self, price: Floats, one: Ints, two: Ints) -> list[float]:
        order = np.where(_tied(price[one], price[two]), 0, np.sign(price[one] - price[two]))
        right = (1 + order * np.sign(self.measured[one] - self.measured[two])) / 2
        best = price[self.measured.argmin()]
        tied = _tied(price, best)
        below, ties = int(((price < best) & ~tied).sum()), int(tied.sum())
        tops = [min(1.0, max(0.0, (k - below) / ties)) for k in TOPS]
        regret = self.measured[_tied(price, price.min())].mean() / self.measured.min()
        error = float(np.median(np.abs(price / self.measured - 1)))
        ranks = np.corrcoef(_ranks(price), _ranks(self.measured))
        return [float(right.mean()), float(regret), error, float(ranks[0, 1]), *tops]


def _tied(one: Floats, two: Floats | float) -> npt.NDArray[np.bool_]:
    return np.abs(one / two - 1) < EQUAL


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, of equal values their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts + 1) / 2)[place]
    return ranks


def match(simulated: Sequence[float], points: Sequence[float | None]) -> list[int | None]:
    """The program of each point, so that the relative distances of simulated values add up to the least.

    On a line, sorted points go with sorted programs; which programs are left out is found exactly. A point without
    a simulated value gets None.
    """
    order = np.argsort(simulated, kind="stable")
    known = [(value, i) for i, value in enumerate(points) if value is not None]
    known.sort()
    cost = np.full((len(known) + 1, len(order) + 1), np.inf)
    cost[0] = 0
    for i, (value, _) in enumerate(known, 1):
        for j in range(i, len(order) + 1):
            near = cost[i - 1, j - 1] + abs(np.log(simulated[order[j - 1]] / value))
            cost[i, j] = min(cost[i, j - 1], near)
    found: list[int | None] = [None] * len(points)
    j = len(order)
    for i in range(len(known), 0, -1):
        while cost[i, j] == cost[i, j - 1]:
            j -= 1
        found[known[i - 1][1]] = int(order[j - 1])
        j -= 1
    return found


def classes(simulated: Sequence[float]) -> Ints:
    """A class number per program: in ascending order, a class begins where one is TOLERANCE above its first."""
    found, number, first = np.zeros(len(simulated), dtype=np.int64), -1, 0.0
    for program in np.argsort(simulated, kind="stable"):
        if number < 0 or simulated[program] > first * (1 + TOLERANCE):
            number, first = number + 1, simulated[program]
        found[program] = number
    return found


def matching(
    simulated: Sequence[float],
    measured: Sequence[float],
    points: Sequence[float | None],
    merged: Sequence[int] = (),
    merged_seconds: float = 0.0,
) -> Matching:
    """Points (measured seconds; simulated seconds, or None where hidden) matched to as many programs.

    merged: programs that the compiler turned into another one, measured to take `merged_seconds`: they get the points
    nearest to both their own simulated and that measured value, and are a class of their own. Points that hide their
    simulated value get the programs that are left over, the longer the more.
    """
    found: list[int | None] = [None] * len(measured)
    for program in merged:
        distance = [
            abs(np.log((shown or simulated[program]) / simulated[program])) + abs(np.log(taken / merged_seconds))
            for shown, taken in zip(points, measured, strict=True)
        ]
        free = [place for place in range(len(measured)) if found[place] is None]
        found[min(free, key=lambda place: distance[place])] = program
    left = [place for place in range(len(measured)) if found[place] is None]
    rest = [program for program in range(len(simulated)) if program not in found]
    for place, number in zip(left, match([simulated[p] for p in rest], [points[p] for p in left]), strict=True):
        found[place] = None if number is None else rest[number]
    spare = sorted((p for p in range(len(simulated)) if p not in found), key=lambda p: simulated[p])
    hidden = sorted((place for place in range(len(measured)) if found[place] is None), key=lambda p: measured[p])
    for place, program in zip(hidden, spare, strict=True):
        found[place] = program
    groups = classes(simulated)
    groups[list(merged)] = groups.max() + 1
    return Matching(np.array(measured), np.array(found, dtype=np.int64), groups)
