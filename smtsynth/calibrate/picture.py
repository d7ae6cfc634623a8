"""A picture of measured points and fitted pieces: one SVG file, sizes and times on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from smtsynth.calibrate.nccl import Run
from smtsynth.calibrate.pieces import FittedPiece
from smtsynth.model.units import show_bytes, show_seconds

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, KEY = 900, 560, 90, 30, 60, 300
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")


def picture(runs: Sequence[tuple[Run, Sequence[FittedPiece]]]) -> str:
    """The SVG text of runs with their pieces: dots are measured, lines fitted."""
    sizes = [sample.size for run, _ in runs for sample in run.samples]
    times = [float(sample.seconds) for run, _ in runs for sample in run.samples]
    across = _Axis(min(sizes), max(sizes), LEFT, WIDTH - KEY)
    up = _Axis(min(times), max(times), HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    ]
    for power in range(math.floor(math.log2(across.low)), math.ceil(math.log2(across.high)) + 1):
        if power % 5 == 0 and across.low <= 2**power <= across.high:
            x = across(2**power)
            parts.append(_line(x, TOP, x, HEIGHT - BOTTOM, "#ddd"))
            parts.append(_text(x, HEIGHT - BOTTOM + 18, show_bytes(2**power), "middle"))
    for power in range(math.floor(math.log10(up.low)), math.ceil(math.log10(up.high)) + 1):
        if up.low <= 10.0**power <= up.high:
            y = up(10.0**power)
            parts.append(_line(LEFT, y, WIDTH - KEY, y, "#ddd"))
            parts.append(_text(LEFT - 6, y + 4, show_seconds(10.0**power), "end"))
    for number, (run, pieces) in enumerate(runs):
        colour = COLOURS[number % len(COLOURS)]
        for sample in run.samples:
            x, y = across(sample.size), up(float(sample.seconds))
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        for piece in pieces:
            steps = [piece.first * (piece.last / piece.first) ** (i / 24) for i in range(25)]
            line = " ".join(f"{across(size):.1f},{up(piece.alpha + size / piece.rate):.1f}" for size in steps)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}"/>')
        nodes = "" if run.nodes is None else f", {run.nodes} nodes"
        words = f"{run.collective}, {run.devices} devices{nodes}"
        parts.append(f'<circle cx="{WIDTH - KEY + 20}" cy="{TOP + 18 * number}" r="4" fill="{colour}"/>')
        parts.append(_text(WIDTH - KEY + 30, TOP + 18 * number + 4, words, "start"))
    parts.append(_text((LEFT + WIDTH - KEY) / 2, HEIGHT - 16, "bytes (as nccl-tests counts them)", "middle"))
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Axis:
    """A logarithmic axis from `low` to `high` drawn from pixel `start` to `stop`, with a little room at both ends."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        self.low, self.high, self.start, self.stop = low / 1.3, high * 1.3, start, stop

    def __call__(self, value: float) -> float:
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.stop - self.start)


def _line(x: float, y: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
