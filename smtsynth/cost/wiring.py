"""The way bytes take from one device to another, link by link and in each direction: levels of any kind, or a graph.

A *lane* is what edges share: one direction of an uplink or link, both where it is half duplex, or a whole bus. On
levels, an edge whose ends first differ at level f passes level f by its kind: up to the switch and down, straight
(`full`), or hop by hop the shorter way round (`ring`, `torus`, dimension by dimension; forward where both are as
long). Inside, it loads the uplinks of the deeper switch levels at both ends; a unit that is wired to its
neighbours gets out of their parent by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from smtsynth.cost.interface import Bottleneck, Direction
from smtsynth.errors import InputError
from smtsynth.model.system import Level, System
from smtsynth.model.topology import LinkKind

if TYPE_CHECKING:
    import networkx as nx  # slow to import, and only graphs need it

Lane = tuple[Any, ...]


class Wiring(Protocol):
    """Routes on a system. spreads: a library's channels share the work of a unit evenly among its devices."""

    @property
    def spreads(self) -> bool:
        """Whether the innermost level is a switch, behind which all devices are alike."""
        ...

    def route(self, source: int, target: int) -> tuple[Lane, ...]:
        """The lanes that bytes from one device to another load, each once per entry."""
        ...

    def latency(self, source: int, target: int) -> Fraction:
        """Seconds of the first byte on that way."""
        ...

    def capacity(self, lane: Lane) -> tuple[str, Fraction]:
        """The name of the constant that the lane's bandwidth is, and its value in bytes/s."""
        ...

    def place(self, lane: Lane) -> Bottleneck:
        """The lane in a report's words."""
        ...


@dataclass(frozen=True)
class LevelWiring:
    """The wiring of a system's levels; `known`: routes that were asked for."""

    system: System
    known: dict[tuple[int, int], tuple[Lane, ...]] = field(default_factory=dict, compare=False)

    @property
    def spreads(self) -> bool:
        """See Wiring."""
        return self.system.levels[-1].kind == "switch"

    def units(self, device: int) -> list[int]:
        """The device's unit at every level, numbered over the system."""
        return [device // self.system.below(level) for level in range(len(self.system.levels))]

    def differ(self, source: int, target: int) -> int:
        """The outermost level at which two devices differ."""
        pairs = zip(self.units(source), self.units(target), strict=True)
        return next(number for number, (one, two) in enumerate(pairs) if one != two)

    def route(self, source: int, target: int) -> tuple[Lane, ...]:
        """See Wiring."""
        found = self.known.get((source, target))
        if found is None:
            found = self.known[source, target] = self._route(source, target)
        return found

    def _route(self, source: int, target: int) -> tuple[Lane, ...]:
        first, ends = self.differ(source, target), (self.units(source), self.units(target))
        lanes: list[Lane] = []
        for number in range(first, len(self.system.levels)):
            level, one, two = self.system.levels[number], ends[0][number], ends[1][number]
            if level.kind == "switch":
                lanes += [uplink(level, number, one, "up"), uplink(level, number, two, "down")]
            elif number == first:
                for here, there in _hops(level, one % level.size, two % level.size):
                    lanes.append(self._link(level, number, one // level.size, here, there))
        return tuple(lanes)

    @staticmethod
    def _link(level: Level, number: int, parent: int, here: int, there: int) -> Lane:
        if level.duplex == "half":
            here, there = min(here, there), max(here, there)
        return ("link", number, parent, here, there)

    def latency(self, source: int, target: int) -> Fraction:
        """See Wiring: the outermost level's, once per hop."""
        number = self.differ(source, target)
        level = self.system.levels[number]
        if level.kind == "switch":
            return level.latency
        one, two = self.units(source)[number] % level.size, self.units(target)[number] % level.size
        return level.latency * sum(1 for _ in _hops(level, one, two))

    def capacity(self, lane: Lane) -> tuple[str, Fraction]:
        """See Wiring."""
        level = self.system.levels[lane[1]]
        if lane[0] in ("per_device", "per_group"):
            return f"{level.name}.{lane[0]}", getattr(level, lane[0])
        return level.name, level.bandwidth

    def place(self, lane: Lane) -> Bottleneck:
        """See Wiring; a link is that of its first end."""
        kind, number = lane[0], lane[1]
        if kind == "link":
            size = self.system.levels[number].size
            return Bottleneck(number, lane[2] * size + lane[3], "up")
        direction: Direction = "down" if lane[-1] == "down" else "up"
        return Bottleneck(number, lane[2], direction, lane[3] if kind == "per_device" else None)


def uplink(level: Level, number: int, unit: int, direction: Direction) -> Lane:
    """The lane of one direction of a unit's uplink."""
    return ("uplink", number, unit, "both" if level.duplex == "half" else direction)


def _hops(level: Level, one: int, two: int) -> Iterator[tuple[int, int]]:
    """The hops from unit `one` to unit `two` of one parent."""
    if level.kind == "full":
        yield one, two
        return
    stride = level.size
    for size in level.dims or (level.size,):
        stride //= size
        here, there = one // stride % size, two // stride % size
        step = 1 if 2 * ((there - here) % size) <= size else -1
        while here != there:
            after = (here + step) % size
            yield one, one + (after - here) * stride
            one, here = one + (after - here) * stride, after


@dataclass(frozen=True)
class GraphWiring:
    """The wiring of a topology: routes of the fewest links, then the least latency (links in their order)."""

    system: System
    graph: nx.DiGraph
    known: dict[int, dict[Any, list[Any]]] = field(default_factory=dict)

    @property
    def spreads(self) -> bool:
        """See Wiring: routes are explicit, so devices are not alike."""
        return False

    def path(self, source: int, target: int) -> list[Any]:
        """The vertices on the way. Raises InputError where there is none."""
        import networkx as nx

        if source not in self.known:
            forwards = self.system.topology is not None and self.system.topology.forwards

            def weight(one: Any, two: Any, data: dict[str, Any]) -> Fraction | None:
                through = one == source or forwards or not isinstance(one, int)
                return 1 + data["kind"].latency / 10**6 if through else None

            self.known[source] = nx.single_source_dijkstra_path(self.graph, source, weight=weight)
        if target not in self.known[source]:
            raise InputError(f"device {target} cannot be reached from device {source}", where="topology")
        return self.known[source][target]

    def _edges(self, source: int, target: int) -> Iterator[dict[str, Any]]:
        path = self.path(source, target)
        return (self.graph.edges[edge] for edge in zip(path, path[1:], strict=False))

    def route(self, source: int, target: int) -> tuple[Lane, ...]:
        """See Wiring."""
        return tuple(data["lane"] for data in self._edges(source, target))

    def latency(self, source: int, target: int) -> Fraction:
        """See Wiring: the links' sum."""
        return sum((data["kind"].latency for data in self._edges(source, target)), Fraction(0))

    def capacity(self, lane: Lane) -> tuple[str, Fraction]:
        """See Wiring."""
        return lane[1].name, lane[1].bandwidth

    def place(self, lane: Lane) -> Bottleneck:
        """See Wiring: a link or bus by its name."""
        kind: LinkKind = lane[1]
        ends = lane[2:] if kind.duplex == "bus" else lane[2:4]
        return Bottleneck(None, None, None, link=f"{kind.name} {'-'.join(map(str, ends))}")


def _graph(system: System) -> GraphWiring:
    import networkx as nx

    assert system.topology is not None
    kinds = {kind.name: kind for kind in system.topology.kinds}
    graph = nx.DiGraph()
    for number, (one, two, name, one_way) in enumerate(system.topology.links):
        kind = kinds[name]
        for start, stop in ((one, two),) if one_way else ((one, two), (two, one)):
            lane: Lane = ("link", kind, start, stop, number)
            if kind.duplex == "bus":
                lane = ("link", kind, two)
            elif kind.duplex == "half":
                lane = ("link", kind, one, two, number)
            graph.add_edge(start, stop, kind=kind, lane=lane)
    wiring = GraphWiring(system, graph)
    for device in range(system.devices):
        for other in (0, device) if device else range(1, system.devices):
            if other != device:
                wiring.path(device, other)
    return wiring


@lru_cache(maxsize=32)
def wiring_of(system: System) -> LevelWiring | GraphWiring:
    """The wiring of a system. Raises InputError where a topology leaves a device out of reach."""
    return LevelWiring(system) if system.topology is None else _graph(system)
