"""A system's constants by name, and their fit to measured times of steps whose loads are known.

Names: a level's for its uplinks' bandwidth, `LEVEL.per_device` and `LEVEL.per_group` for what one device or group can
drive, a link kind's of a topology, and `copy`. All are in bytes/s; latencies are not fitted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from smtsynth.model.system import Level, System
from smtsynth.model.topology import LinkKind, Topology

Floats = npt.NDArray[np.float64]
REACH = 2.0  # a constant stays within this factor of its data sheet


def constants(system: System) -> dict[str, Fraction]:
    """The system's bandwidths by name."""
    found: dict[str, Fraction] = {}
    if system.topology is not None:
        found |= {kind.name: kind.bandwidth for kind in system.topology.kinds}
    else:
        for level in system.levels:
            found[level.name] = level.bandwidth
            for limit in ("per_device", "per_group"):
                if getattr(level, limit) is not None:
                    found[f"{level.name}.{limit}"] = getattr(level, limit)
    return found if system.copy is None else found | {"copy": system.copy}


def with_constants(system: System, given: Mapping[str, Fraction]) -> System:
    """The system with these bandwidths in place of its own; names that it doesn't have are left out."""
    links = system.topology
    if links is not None:
        kinds = [replace(kind, bandwidth=given.get(kind.name, kind.bandwidth)) for kind in links.kinds]
        links = Topology([LinkKind(one.name, one.bandwidth, one.latency, one.duplex) for one in kinds], links.links)
        links = Topology(links.kinds, links.links, system.topology.forwards if system.topology else False)
    copy = None if system.copy is None else given.get("copy", system.copy)
    return System([_level(level, given) for level in system.levels], system.overhead, copy=copy, topology=links)


def _level(level: Level, given: Mapping[str, Fraction]) -> Level:
    limits = {
        limit: given.get(f"{level.name}.{limit}", getattr(level, limit))
        for limit in ("per_device", "per_group")
        if getattr(level, limit) is not None
    }
    return replace(level, bandwidth=given.get(level.name, level.bandwidth), **limits)


@dataclass(frozen=True)
class LoadTable:
    """Measured times of steps, and what each asks of the constants `names` (the last is the copy): bytes."""

    names: tuple[str, ...]
    bytes: Floats  # shape (steps, names)
    times: Floats  # seconds, shape (steps,)

    @classmethod
    def of(cls, system: System, loads: Sequence[Mapping[str, Fraction]], times: Sequence[float]) -> LoadTable:
        """The table of steps' busiest loads (see Loads.busiest) on a system."""
        names = tuple(constants(system))
        rows = [[float(load.get(name, 0)) for name in names] for load in loads]
        return cls(names, np.array(rows, dtype=np.float64).reshape(len(rows), len(names)), np.array(times))

    def part(self, chosen: npt.NDArray[np.bool_]) -> LoadTable:
        """Some of the steps."""
        return LoadTable(self.names, self.bytes[chosen], self.times[chosen])

    def errors(self, given: Mapping[str, Fraction]) -> Floats:
        """How far the predicted times are off, as parts of the measured ones (0.05 = 5 % too long)."""
        return self._errors(np.array([1 / float(given[name]) for name in self.names]))

    def _errors(self, seconds: Floats) -> Floats:
        copied = self.names[-1] == "copy"
        moved = self.bytes * seconds
        wired = moved[:, :-1] if copied else moved
        total: Floats = wired.max(axis=1) + (moved[:, -1] if copied else 0.0)
        return total / self.times - 1

    def fit(self, sheet: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """Constants of the least mean error, each within REACH of the data sheet, to four digits.

        A search along one constant, then along pairs, with steps that halve, from the data sheet, from its half and
        from its double; it takes no random turns.
        """
        start = np.array([1 / float(sheet[name]) for name in self.names])
        found = [self._search(start * scale, start) for scale in (1, REACH, 1 / REACH)]
        best = min(found, key=lambda one: one[0])[1]
        return {name: Fraction(f"{1 / value:.3e}") for name, value in zip(self.names, best, strict=True)}

    def _mean(self, seconds: Floats) -> float:
        return float(np.abs(self._errors(seconds)).mean())

    def _search(self, best: Floats, sheet: Floats) -> tuple[float, Floats]:
        """The least mean error from a starting point, and where it is (seconds per byte)."""
        low, high = sheet / REACH, sheet * REACH
        error, step, count = self._mean(best), 0.5, len(best)
        moves = [(i,) for i in range(count)] + [(i, j) for i in range(count) for j in range(i)]
        while step > 1e-4:
            better = False
            for move in moves:
                for signs in range(2 ** len(move)):
                    trial = best.copy()
                    for bit, place in enumerate(move):
                        trial[place] *= np.exp(step if signs >> bit & 1 else -step)
                    trial = np.clip(trial, low, high)
                    found = self._mean(trial)
                    if found < error - 1e-12:
                        best, error, better = trial, found, True
            if not better:
                step /= 2
        return error, best
