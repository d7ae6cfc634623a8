"""How a library runs a collective on one group: which device sends how much to which, and how long a piece travels.

Ring and open chain are the model's (section 6), but that where devices are not behind one switch a Reduce runs round
the ring from the device after the root to the root: the paper's V100 rows show it (2.29 s, not 0.3). An AllReduce may
also run as a *chain* (reduced towards the first device and sent back) or as a *double binary tree*: two binary trees
over the group's nodes, half of the data on each, a chain inside every node. A node that is inner in one tree is a leaf
of the other, as NCCL builds them. On a switch a library starts a channel at every member of a node, so that the
chain's and the trees' work spreads evenly over them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from smtsynth.cost.patterns import edge_factor, is_chain, latency_factor
from smtsynth.cost.wiring import GraphWiring, LevelWiring
from smtsynth.model.program import Collective

Flow = tuple[int, int, int]  # from, to, how many units


@dataclass(frozen=True, slots=True)
class Flows:
    """What a group of devices sends: `unit` bytes, per byte held, times each flow's number.

    latency: seconds on the way of one piece. filled: seconds of a pipeline that must be filled chunk by chunk.
    """

    unit: Fraction
    flows: list[Flow]
    latency: Fraction = Fraction(0)
    filled: Fraction = Fraction(0)


def ring_flows(wiring: LevelWiring | GraphWiring, collective: Collective, ids: Sequence[int], closed: bool) -> Flows:
    """The model's ring or chain; ids: in id order, a chain's root first. `closed` closes chains to a ring too."""
    pairs = list(zip(ids, ids[1:], strict=False))
    chain = is_chain(collective)
    if closed or not chain:
        pairs.append((ids[-1], ids[0]))
    if collective is Collective.REDUCE and not closed and not wiring.spreads:
        pairs = [*pairs[1:], (ids[-1], ids[0])]  # round the ring to the root, as libraries do
    elif collective is Collective.REDUCE:
        pairs = [(two, one) for one, two in pairs]
    total = sum((wiring.latency(one, two) for one, two in pairs), Fraction(0))
    size = len(ids)
    return Flows(
        edge_factor(collective, size), [(one, two, 1) for one, two in pairs], latency_factor(collective, size) * total
    )


def chain_flows(wiring: LevelWiring | GraphWiring, ids: Sequence[int]) -> Flows:
    """An AllReduce along the devices in id order and back."""
    flows = [flow for one, two in zip(ids, ids[1:], strict=False) for flow in ((one, two, 1), (two, one, 1))]
    return Flows(Fraction(1), flows, filled=sum((wiring.latency(one, two) for one, two, _ in flows), Fraction(0)))


def binary_tree(nodes: int) -> list[tuple[int, int]]:
    """(child, parent) edges of NCCL's tree over nodes 0..nodes-1, rooted at 0: node i hangs on i less its lowest bit,
    raised by the bit above where that is a node."""
    edges = []
    for child in range(1, nodes):
        bit = child & -child
        parent = (child ^ bit) | 2 * bit
        edges.append((child, parent if parent < nodes else child ^ bit))
    return edges


def double_tree(nodes: int) -> list[list[tuple[int, int]]]:
    """Both trees: the second is the first mirrored (an even number of nodes) or shifted by one (an odd one)."""
    first = binary_tree(nodes)
    if nodes % 2 == 0:
        return [first, [(nodes - 1 - child, nodes - 1 - parent) for child, parent in first]]
    return [first, [((child + 1) % nodes, (parent + 1) % nodes) for child, parent in first]]


def by_node(devices: int, ids: Sequence[int]) -> list[list[int]]:
    """A group's members node by node, in id order; a node is a unit of the last level but one, of `devices` devices."""
    nodes: dict[int, list[int]] = {}
    for device in ids:
        nodes.setdefault(device // devices, []).append(device)
    return [sorted(nodes[node]) for node in sorted(nodes)]


def tree_flows(wiring: LevelWiring | GraphWiring, ids: Sequence[int]) -> Flows:
    """An AllReduce on a double binary tree over nodes and a chain inside each (see the module)."""
    nodes = by_node(wiring.system.levels[-1].size, ids)
    share = math.lcm(*map(len, nodes)) if wiring.spreads else 1
    flows: list[Flow] = []
    chains = Fraction(0)
    for members in nodes:
        pairs = list(zip(members, members[1:], strict=False))
        amount = 2 * share
        chains = max(chains, sum((wiring.latency(one, two) for one, two in pairs), Fraction(0)))
        if wiring.spreads and pairs:
            # a chain from every member: of these, all but one take each edge of the ring
            pairs.append((members[-1], members[0]))
            amount = 2 * share * (len(members) - 1) // len(members)
        flows += [flow for one, two in pairs for flow in ((one, two, amount), (two, one, amount))]
    deepest = Fraction(0)
    for tree in double_tree(len(nodes)):
        for child, parent in tree:
            lanes = max(len(nodes[child]), len(nodes[parent])) if wiring.spreads else 1
            lanes = lanes if share % lanes == 0 else 1
            for lane in range(lanes):
                one, two = nodes[child][lane % len(nodes[child])], nodes[parent][lane % len(nodes[parent])]
                flows += [(one, two, share // lanes), (two, one, share // lanes)]
        deepest = max(deepest, _depth(wiring, tree, nodes))
    return Flows(Fraction(1, 2 * share), flows, filled=2 * (deepest + chains))


def _depth(wiring: LevelWiring | GraphWiring, tree: list[tuple[int, int]], nodes: list[list[int]]) -> Fraction:
    """The longest way from a leaf to the root, in seconds."""
    parents = dict(tree)

    def way(node: int) -> Fraction:
        if node not in parents:
            return Fraction(0)
        return wiring.latency(nodes[node][0], nodes[parents[node]][0]) + way(parents[node])

    return max((way(node) for node in range(len(nodes))), default=Fraction(0))
