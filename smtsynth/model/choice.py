"""The choice of a cost model, as files and options give it; smtsynth.cost.models makes the model of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from smtsynth.errors import InputError
from smtsynth.model.program import Collective

MODELS = ("alpha-beta", "paper", "measured")
ALGORITHMS = ("ring", "tree", "chain", "auto")
OVERLAPS = ("none", "full")
BEYOND = ("refuse", "alpha-beta")


class Piece(NamedTuple):
    """A stretch of a measured curve: seconds = alpha + bytes / rate for first <= bytes <= last."""

    first: int
    last: int
    alpha: Fraction
    rate: Fraction


@dataclass(frozen=True, slots=True)
class Curve:
    """What a collective was measured to take on groups of `devices` devices on each of `nodes` nodes.

    Sizes are those of nccl-tests: bytes per device at input, for an AllGather at output. Pieces by size.
    """

    collective: Collective
    nodes: int
    devices: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class CostChoice:
    """A cost model by name, with its settings.

    algorithm: how an AllReduce runs (`auto`: the cheapest way); overlap: `full` asks for the bound of perfect
    overlap beside the sum of the steps; curves and beyond: of `measured`, and what it does where it has no curve.
    """

    name: str = "alpha-beta"
    algorithm: str = "ring"
    overlap: str = "none"
    curves: tuple[Curve, ...] = ()
    beyond: str = "refuse"

    def __post_init__(self) -> None:
        for what, value, known in (
            ("cost model", self.name, MODELS),
            ("algorithm", self.algorithm, ALGORITHMS),
            ("overlap", self.overlap, OVERLAPS),
            ("beyond", self.beyond, BEYOND),
        ):
            if value not in known:
                raise InputError(f"{what} {str(value)[:40]!r} is unknown", expected=", ".join(known))
