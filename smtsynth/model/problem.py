"""Problems (model, sections 3 and 8): what is to be reduced, where, and within which limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from types import NoneType

from smtsynth.errors import InputError, check_type
from smtsynth.model.choice import CostChoice
from smtsynth.model.placement import Axis, check_axes
from smtsynth.model.program import Collective, default_steps
from smtsynth.model.system import System
from smtsynth.model.units import Number, quantity

MAX_STEPS = 64


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction over the axes `over`, by `collective`, with `payload` bytes per device (of the whole buffer).

    The collective may be a mix {axis: AllReduce or ReduceScatter}: contributors are complete over all axes, and
    chunks end split over the scattered ones, which `split` names; it is then a ReduceScatter.
    """

    over: tuple[str, ...]
    payload: Fraction
    collective: Collective
    split: tuple[str, ...]

    def __init__(
        self,
        over: Sequence[str],
        payload: Number,
        collective: Collective | str | Mapping[str, Collective | str] = Collective.ALL_REDUCE,
    ) -> None:
        if isinstance(over, str) or not isinstance(over, Sequence) or not over:
            raise InputError("no axis to reduce over", where="over", expected="a list of at least one axis name")
        for axis in over:
            check_type(axis, str, "over", "names of axes")
        if len(set(over)) < len(over):
            raise InputError("an axis is there twice", where="over", expected="each axis once")
        kind, split = _collective(tuple(over), collective)
        amount = quantity(payload, "bytes", where="bytes", bare=True)
        if amount == 0:
            raise InputError("is zero", where="bytes", expected="a positive quantity such as '8 GiB'")
        object.__setattr__(self, "over", tuple(over))
        object.__setattr__(self, "payload", amount)
        object.__setattr__(self, "collective", kind)
        object.__setattr__(self, "split", split)

    @property
    def mixed(self) -> bool:
        """Whether some axes end split and others don't."""
        return 0 < len(self.split) < len(self.over)


def _collective(
    over: tuple[str, ...], given: Collective | str | Mapping[str, Collective | str]
) -> tuple[Collective, tuple[str, ...]]:
    """The collective of a reduction and the axes it ends split over."""
    kinds = dict(given) if isinstance(given, Mapping) else dict.fromkeys(over, given)
    for axis, kind in kinds.items():
        if kind not in list(Collective):
            raise InputError(f"{str(kind)[:40]!r} is unknown", where="collective", expected=", ".join(Collective))
        if axis not in over:
            raise InputError(
                f"axis {str(axis)[:40]!r} is not reduced over", where="collective", expected=", ".join(over)
            )
    for axis in over:
        if axis not in kinds:
            raise InputError(f"axis {axis!r} has none", where="collective", expected="one for each axis of `over`")
    found = {Collective(kind) for kind in kinds.values()}
    split = tuple(axis for axis in over if kinds[axis] == Collective.REDUCE_SCATTER)
    if len(found) == 1:
        return found.pop(), split
    if found != {Collective.ALL_REDUCE, Collective.REDUCE_SCATTER}:
        mix = " and ".join(sorted(found))
        raise InputError(f"a mix of {mix}", where="collective", expected="a mix of AllReduce and ReduceScatter")
    return Collective.REDUCE_SCATTER, split


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a solve: steps of a program (None: the model's default), seconds, bytes of memory of the solver."""

    steps: int | None = None
    seconds: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        steps = self.steps
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_STEPS):
            raise InputError(f"is {steps!r}", where="steps", expected=f"a whole number from 1 to {MAX_STEPS}")
        seconds, memory = self.seconds, self.memory
        if seconds is not None and not (_number(seconds, Real) and 0 < seconds < math.inf):
            raise InputError(f"is {repr(seconds)[:40]}", where="time", expected="a positive number of seconds")
        if memory is not None and not (_number(memory, Integral) and memory > 0):
            raise InputError(f"is {repr(memory)[:40]}", where="memory", expected="a positive whole number of bytes")


def _number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Problem:
    """A system, the axes to place on it ({name: size} or Axis objects), and the reduction to synthesize."""

    system: System
    axes: tuple[Axis, ...]
    reduction: Reduction
    limits: Limits
    cost_model: CostChoice

    def __init__(
        self,
        system: System,
        axes: Mapping[str, int] | Sequence[Axis],
        reduction: Reduction,
        limits: Limits | None = None,
        cost_model: CostChoice | None = None,
    ) -> None:
        for where, value, kinds in (
            ("system", system, (System,)),
            ("reduction", reduction, (Reduction,)),
            ("limits", limits, (Limits, NoneType)),
            ("cost_model", cost_model, (CostChoice, NoneType)),
        ):
            check_type(value, kinds, where, f"a {kinds[0].__name__}")
        object.__setattr__(self, "system", system)
        object.__setattr__(self, "axes", check_axes(axes, system))
        object.__setattr__(self, "reduction", reduction)
        object.__setattr__(self, "limits", limits or Limits())
        object.__setattr__(self, "cost_model", cost_model or CostChoice())
        names = [axis.name for axis in self.axes]
        for name in self.reduction.over:
            if name not in names:
                raise InputError(f"there is no axis {name!r}", where="over", expected=", ".join(names))

    def step_limit(self, depth: int) -> int:
        """The most steps of a program over `depth` factors: the problem's, else the model's (section 7)."""
        return self.limits.steps or default_steps(depth)

    @property
    def split(self) -> tuple[int, ...]:
        """The rows of the axes that the reduction ends split over."""
        return tuple(row for row, axis in enumerate(self.axes) if axis.name in self.reduction.split)

    @property
    def reduced(self) -> tuple[int, ...]:
        """The rows of the reduced axes, in the order of the axes."""
        return tuple(row for row, axis in enumerate(self.axes) if axis.name in self.reduction.over)
