"""The cost models behind the one interface, made from what a file or the command line chose."""

from __future__ import annotations

from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.interface import CostModel
from smtsynth.cost.measured import Measured
from smtsynth.cost.paper import Paper
from smtsynth.errors import InputError
from smtsynth.model.choice import CostChoice


def cost_model_of(choice: CostChoice) -> CostModel:
    """The model that a choice names. Raises InputError for settings that it doesn't have."""
    if choice.name == "paper":
        if choice.algorithm != "ring":
            raise InputError(f"the paper's model has no {choice.algorithm}", where="algorithm", expected="ring")
        return Paper()
    rest = alpha_beta(choice.algorithm)
    if choice.name == "measured":
        if not choice.curves:
            raise InputError("has no curves", where="cost model 'measured'", expected="those of smtsynth calibrate")
        return Measured(choice.curves, choice.beyond, rest)
    return rest


def alpha_beta(algorithm: str = "ring") -> AlphaBeta:
    """The default model with an AllReduce algorithm; its name tells which where it isn't the ring."""
    return AlphaBeta() if algorithm == "ring" else AlphaBeta(f"alpha-beta ({algorithm})", algorithm)
