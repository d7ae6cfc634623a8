"""Piecewise alpha-beta curves: seconds = alpha + bytes / rate, per range of sizes, as few ranges as fit well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from smtsynth.calibrate.nccl import Run
from smtsynth.model.choice import Piece

WORTH = 0.08  # summed relative error that one more piece must save
LEAST = 3  # points in a piece, where there are as many
FASTEST = 1e15  # bytes/s, where the times don't grow with the size at all

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FittedPiece:
    """A piece and the mean relative error of its points."""

    first: int
    last: int
    alpha: float
    rate: float
    error: float

    def piece(self) -> Piece:
        """The piece with its figures as short decimals."""
        return Piece(self.first, self.last, Fraction(f"{self.alpha:.6g}"), Fraction(f"{self.rate:.6g}"))


def fit_line(sizes: Floats, times: Floats) -> tuple[float, float]:
    """(alpha, seconds per byte), both not negative, of the least squared relative error."""
    rows = np.stack([1 / times, sizes / times], axis=1)
    alpha, slope = np.linalg.lstsq(rows, np.ones(len(sizes)), rcond=None)[0].tolist()
    if slope < 1 / FASTEST or len(sizes) == 1:
        alpha, slope = float(np.sum(1 / times) / np.sum(1 / times**2)), 1 / FASTEST
    if alpha < 0:
        alpha, slope = 0.0, float(np.sum(sizes / times) / np.sum((sizes / times) ** 2))
    return alpha, max(slope, 1 / FASTEST)


def fit_pieces(points: Sequence[tuple[int, float]]) -> list[FittedPiece]:
    """The pieces of the least summed relative error, where each counts for an error of WORTH.

    points: (bytes, seconds), bytes > 0. A range begins right after the size that ends the one before.
    """
    ordered = sorted(points)
    sizes = np.array([size for size, _ in ordered], dtype=np.float64)
    times = np.array([seconds for _, seconds in ordered], dtype=np.float64)
    count, least = len(ordered), min(LEAST, len(ordered))
    lines: dict[tuple[int, int], tuple[float, float, float]] = {}
    for start in range(count):
        for stop in range(start + least, count + 1):
            if start and sizes[start] == sizes[start - 1]:
                continue
            alpha, slope = fit_line(sizes[start:stop], times[start:stop])
            off = np.abs((alpha + slope * sizes[start:stop]) / times[start:stop] - 1)
            lines[start, stop] = (alpha, slope, float(off.mean()))
    best: dict[int, tuple[float, list[tuple[int, int]]]] = {0: (0.0, [])}
    for stop in range(1, count + 1):
        ways = []
        for start in range(stop):
            if start in best and (start, stop) in lines:
                total, cuts = best[start]
                ways.append((total + WORTH + lines[start, stop][2] * (stop - start), [*cuts, (start, stop)]))
        if ways:
            best[stop] = min(ways)
    found = []
    for start, stop in best[count][1]:
        alpha, slope, error = lines[start, stop]
        first = int(sizes[start]) if start == 0 else int(sizes[start - 1]) + 1
        found.append(FittedPiece(first, int(sizes[stop - 1]), alpha, 1 / slope, error))
    return found


def fit_run(run: Run) -> list[FittedPiece]:
    """The curve of one run."""
    return fit_pieces([(sample.size, float(sample.seconds)) for sample in run.samples])
