"""Topologies in problem files: kinds of links, and the links, once for every unit of a level where they repeat.

    topology:                  # or the name of a file with these keys, beside the problem
      kinds:
        nvlink: {bandwidth: 135 GB/s, latency: 1 us, duplex: half}   # duplex: full (default), half or bus
        nic: {bandwidth: 8 GB/s}
      each: node               # optional: the links below are in every unit of this level, devices numbered in it
      shared: [fabric]         # optional: switches that all units share
      links: [[0, 1, nvlink], [0, host, nic], [host, fabric, nic, one-way]]
      forwards: false          # optional: whether devices pass on what is for others

Whole numbers are devices, names are switches; the second end of a bus link is the switch whose bus it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from smtsynth.errors import InputError
from smtsynth.interfaces.nodes import Node
from smtsynth.interfaces.yamltext import label, read_data
from smtsynth.model.system import Level
from smtsynth.model.topology import DUPLEX, Link, LinkKind, Topology, Vertex
from smtsynth.model.units import exact_text

MAX_LINKS = 2**16


def topology_of(node: Node, levels: Iterable[tuple[str, int]]) -> Topology:
    """The topology that a file describes; levels: (name, size), outermost first. InputError names file and key."""
    if isinstance(node.value, str):
        path = os.path.join(os.path.dirname(node.file), node.value)
        node = Node.root(read_data(path, 2**18), label(path))
    keys = node.fields(("kinds", "links"), ("each", "shared", "forwards"))
    kinds = {name: _kind(name, one) for name, one in keys["kinds"].entries("a mapping of link kinds", 64).items()}
    links = [_link(one, kinds) for one in keys["links"].items("a list of links", MAX_LINKS)]
    if "each" in keys:
        shared = [one.text("a switch's name") for one in keys["shared"].items("switches")] if "shared" in keys else []
        links = _repeated(keys["each"], list(levels), links, shared)
    elif "shared" in keys:
        raise keys["shared"].error("goes with `each` only", "no such key")
    forwards = keys["forwards"].value if "forwards" in keys else False
    if not isinstance(forwards, bool):
        raise keys["forwards"].error("is neither true nor false", "true or false")
    try:
        return Topology(kinds.values(), links, forwards)
    except InputError as error:
        raise keys["links"].moved(error) from None


def _kind(name: str, node: Node) -> LinkKind:
    keys = node.fields(("bandwidth",), ("latency", "duplex"))
    latency = keys["latency"].amount("seconds", zero=True) if "latency" in keys else 0
    duplex = keys["duplex"].word(DUPLEX) if "duplex" in keys else "full"
    return LinkKind(name, keys["bandwidth"].amount("bytes/s"), latency, duplex)


def _link(node: Node, kinds: Mapping[str, LinkKind]) -> Link:
    parts = list(node.items("a link [end, end, kind] or [end, end, kind, one-way]", 4))
    if len(parts) < 3:
        raise node.error(f"has {len(parts)} entries", "[end, end, kind] or [end, end, kind, one-way]")
    if len(parts) == 4:
        parts[3].word(["one-way"])
    return Link(_end(parts[0]), _end(parts[1]), parts[2].word(list(kinds)), len(parts) == 4)


def _end(node: Node) -> Vertex:
    if isinstance(node.value, int) and not isinstance(node.value, bool) and node.value >= 0:
        return node.value
    return node.text("a device's number or a switch's name")


def _repeated(each: Node, levels: list[tuple[str, int]], links: list[Link], shared: list[str]) -> list[Link]:
    """The links of every unit of level `each`: its devices by their numbers in it, its switches under its name."""
    name = each.word([level for level, _ in levels])
    place = [level for level, _ in levels].index(name)
    units, below = 1, 1
    for number, (_, size) in enumerate(levels):
        units, below = (units * size, below) if number <= place else (units, below * size)
    if units * len(links) > MAX_LINKS:
        raise each.error(f"makes {units * len(links)} links", f"at most {MAX_LINKS}")

    def end(vertex: Vertex, unit: int) -> Vertex:
        if isinstance(vertex, int):
            if vertex >= below:
                raise each.error(f"has no device {vertex} in a unit", f"0 to {below - 1}")
            return unit * below + vertex
        return vertex if vertex in shared else f"{name}{unit}.{vertex}"

    return [link._replace(one=end(link.one, unit), two=end(link.two, unit)) for unit in range(units) for link in links]


def topology_data(topology: Topology) -> dict[str, Any]:
    """The topology as plain data that topology_of reads back."""
    kinds = {}
    for kind in topology.kinds:
        entry = {"bandwidth": exact_text(kind.bandwidth, "bytes/s"), "latency": exact_text(kind.latency, "seconds")}
        kinds[kind.name] = entry | ({"duplex": kind.duplex} if kind.duplex != "full" else {})
    links = [[one, two, kind, *(["one-way"] if one_way else [])] for one, two, kind, one_way in topology.links]
    return {"kinds": kinds, "links": links} | ({"forwards": True} if topology.forwards else {})


def level_sizes(levels: Iterable[Level]) -> list[tuple[str, int]]:
    """(name, size) of levels."""
    return [(level.name, level.size) for level in levels]
