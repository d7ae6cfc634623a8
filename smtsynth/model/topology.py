"""Whole topologies (beyond the model's tree of levels): devices, switches and the links between them.

A vertex is a device (its number) or a switch (its name). Devices hold the data; unless `forwards` is set, nothing
passes through one that neither sends nor receives it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from smtsynth.errors import InputError
from smtsynth.model.units import Number, quantity

Vertex = int | str
DUPLEX = ("full", "half", "bus")


@dataclass(frozen=True, slots=True)
class LinkKind:
    """Links of one kind. bandwidth: bytes/s; latency: seconds.

    duplex: `full`, each direction has the bandwidth; `half`, both directions of a link share it; `bus`, all links
    of the kind at one switch share it, both directions summed (a CPU's root complex).
    """

    name: str
    bandwidth: Fraction
    latency: Fraction
    duplex: str

    def __init__(self, name: str, bandwidth: Number, latency: Number = 0, duplex: str = "full") -> None:
        rate = quantity(bandwidth, "bytes/s", where=f"link kind {name!r}: bandwidth", bare=True)
        if rate == 0:
            raise InputError("is zero", where=f"link kind {name!r}: bandwidth", expected="a positive quantity")
        if duplex not in DUPLEX:
            raise InputError(f"duplex {duplex!r} is unknown", where=f"link kind {name!r}", expected=", ".join(DUPLEX))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "bandwidth", rate)
        object.__setattr__(self, "latency", quantity(latency, "seconds", where=f"link kind {name!r}", bare=True))
        object.__setattr__(self, "duplex", duplex)


class Link(NamedTuple):
    """A link between vertices `one` and `two`; with `one_way` it carries from `one` to `two` only."""

    one: Vertex
    two: Vertex
    kind: str
    one_way: bool = False


@dataclass(frozen=True, slots=True)
class Topology:
    """Links by kind. `forwards`: devices pass on what is for others."""

    kinds: tuple[LinkKind, ...]
    links: tuple[Link, ...]
    forwards: bool

    def __init__(self, kinds: Iterable[LinkKind], links: Iterable[Link], forwards: bool = False) -> None:
        object.__setattr__(self, "kinds", tuple(kinds))
        object.__setattr__(self, "links", tuple(links))
        object.__setattr__(self, "forwards", forwards)
        names = [kind.name for kind in self.kinds]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two kinds of links are named {name!r}", expected="a name of its own for each")
        for link in self.links:
            if link.kind not in names:
                raise InputError(f"link kind {link.kind!r} is unknown", expected=", ".join(names) or "a kind")
            if link.one == link.two:
                raise InputError(f"a link joins {link.one!r} to itself", expected="two different ends")
            bus = next(kind for kind in self.kinds if kind.name == link.kind).duplex == "bus"
            if bus and not isinstance(link.two, str):
                raise InputError(f"a bus link ends in device {link.two!r}", expected="its switch as the second end")

    @classmethod
    def from_graph(cls, graph: Any, forwards: bool = False) -> Topology:
        """The topology of a networkx Graph (links both ways) or DiGraph (each way on its own).

        Vertices: whole numbers are devices, anything else a switch. Edges carry `bandwidth` (bytes/s or text), and
        optionally `latency`, `duplex` and `kind`; the edges of one kind share its figures. Raises InputError where
        an edge has no bandwidth.
        """
        kinds: dict[tuple[Any, ...], str] = {}
        links: list[Link] = []
        for one, two, data in graph.edges(data=True):
            if "bandwidth" not in data:
                what = f"edge {one}-{two} has no bandwidth"
                raise InputError(what, where="topology", expected="the attribute bandwidth")
            figures = (data["bandwidth"], data.get("latency", 0), data.get("duplex", "full"))
            name = kinds.setdefault((data.get("kind"), *figures), str(data.get("kind", f"link{len(kinds)}")))
            ends = [end if isinstance(end, int) else str(end) for end in (one, two)]
            links.append(Link(ends[0], ends[1], name, graph.is_directed()))
        return cls([LinkKind(name, *figures) for (_, *figures), name in kinds.items()], links, forwards)

    def check(self, devices: int) -> Topology:
        """The topology, if its devices are exactly 0..devices-1; InputError otherwise."""
        found = {end for link in self.links for end in (link.one, link.two) if isinstance(end, int)}
        for device in range(devices):
            if device not in found:
                raise InputError(f"device {device} has no link", where="topology", expected="a link at every device")
        if len(found) > devices:
            raise InputError(
                f"a link ends in device {max(found, key=abs)}", where="topology", expected=f"0 to {devices - 1}"
            )
        return self
