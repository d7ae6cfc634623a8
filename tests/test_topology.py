"""Wiring beyond a tree: kinds of levels, half duplex, whole topologies; routes and loads by hand and by brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth import InputError, Level, Problem, Reduction, System, compare, placements, read_problem, solve
from smtsynth.calibrate.constants import with_constants
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.closed import closed_step
from smtsynth.cost.explicit import explicit_step
from smtsynth.cost.interface import GroupLoad
from smtsynth.cost.shares import group_types
from smtsynth.cost.wired import wired_explain, wired_step
from smtsynth.cost.wiring import GraphWiring, LevelWiring, wiring_of
from smtsynth.interfaces.files import problem_text
from smtsynth.model.lowering import lower
from smtsynth.model.program import Collective, instruction_set
from smtsynth.model.topology import Link, LinkKind, Topology
from tests.conftest import axes
from tests.files_support import put, refusal

HERE = Path(__file__).parent.parent / "examples" / "p2"
RING = System([Level("node", 2, "8 GB/s"), Level("gpu", 6, "50 GB/s", "1 us", kind="ring")])


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_on_the_models_trees_edges_followed_one_by_one_cost_what_the_closed_form_says(data: st.DataObject) -> None:
    limits = st.sampled_from([None, "3 GB/s"])
    system = System(
        [
            Level("a", data.draw(st.sampled_from([1, 2, 3])), "8 GB/s", "20 us", data.draw(limits)),
            Level("b", 2, "30 GB/s", "5 us", data.draw(limits)),
            Level("c", data.draw(st.sampled_from([2, 4])), "270 GB/s", "3 us"),
        ],
        "1 us",
    )
    sizes = (2, system.devices // 2)
    where = data.draw(st.sampled_from(placements(system, axes(*sizes))))
    lowering = lower(system, where, data.draw(st.sampled_from([[0], [1], [0, 1]])))
    for instruction in instruction_set(lowering.depth):
        types = group_types(lowering.depth, instruction.span(lowering.depth))
        shares = {mask: Fraction(data.draw(st.integers(0, 5)) * 2**24, 3) for mask in types}
        assert wired_explain(lowering, instruction, shares) == closed_step(lowering, instruction, shares)


def test_explicit_groups_cost_the_same_either_way() -> None:
    system = System([Level("node", 3, "8 GB/s", "20 us"), Level("gpu", 4, "90 GB/s", "3 us", "30 GB/s")])
    entries = [
        GroupLoad(Collective.REDUCE, [(7, 0, 4)], (4,), [Fraction(2**20)]),
        GroupLoad(Collective.ALL_GATHER, [(1, 2), (8, 11)], (), [Fraction(2**22), Fraction(2**21)]),
    ]
    assert wired_step(system, entries) == explicit_step(system, entries)
    with pytest.raises(InputError, match="root"):
        wired_step(system, [GroupLoad(Collective.REDUCE, [(0, 1)], (5,), [Fraction(1)])])
    with pytest.raises(InputError, match="two groups"):
        wired_step(system, [GroupLoad(Collective.ALL_REDUCE, [(0, 1), (1, 2)], (), Fraction(1))])


def test_a_ring_goes_the_shorter_way_and_a_torus_dimension_by_dimension() -> None:
    ring = wiring_of(RING)
    hops = [lane[3:] for lane in ring.route(1, 5)]
    assert hops == [(1, 0), (0, 5)]
    assert [lane[3:] for lane in ring.route(0, 3)] == [(0, 1), (1, 2), (2, 3)]  # as long either way: forward
    assert ring.latency(1, 5) == Fraction(2, 10**6)
    assert [lane[0] for lane in ring.route(0, 7)] == ["uplink", "uplink"]  # out of the node by itself
    torus = wiring_of(System([Level("chip", 12, "50 GB/s", kind="torus", dims=[3, 4])]))
    assert [lane[3:] for lane in torus.route(0, 11)] == [(0, 8), (8, 11)]
    assert System([Level("chip", 12, 1, kind="torus")]).levels[0].dims == (3, 4)
    full = wiring_of(System([Level("gpu", 4, "50 GB/s", kind="full")]))
    assert full.route(0, 2) == (("link", 0, 0, 0, 2),)


def test_routes_on_rings_and_tori_are_as_short_as_a_graphs() -> None:
    for level, graph in (
        (Level("u", 7, 1, kind="ring"), nx.cycle_graph(7)),
        (Level("u", 20, 1, kind="torus", dims=[4, 5]), nx.grid_2d_graph(4, 5, periodic=True)),
    ):
        system = System([level])
        wiring, nodes = wiring_of(system), sorted(graph)
        for one in range(system.devices):
            for two in range(system.devices):
                if one != two:
                    least = nx.shortest_path_length(graph, nodes[one], nodes[two])
                    assert len(wiring.route(one, two)) == least


def test_half_duplex_sums_both_directions() -> None:
    for kind in ("switch", "ring", "full"):
        times = [
            wired_step(
                System([Level("gpu", 2, "10 GB/s", kind=kind, duplex=duplex)]),
                [GroupLoad(Collective.ALL_REDUCE, [(0, 1)], (), Fraction(10**9))],
            ).transfer
            for duplex in ("full", "half")
        ]
        assert times == [Fraction(1, 10), Fraction(1, 5)]


def test_a_stride_costs_on_a_ring_what_its_hops_load() -> None:
    """Groups of 2: neighbours use a link each; opposite ones share three links each way round."""
    model, share = AlphaBeta(), Fraction(50 * 10**9)
    near = model.step(RING, [GroupLoad(Collective.ALL_REDUCE, [(0, 1), (2, 3), (4, 5)], (), share)])
    far = model.step(RING, [GroupLoad(Collective.ALL_REDUCE, [(0, 3), (1, 4), (2, 5)], (), share)])
    assert near.transfer == 1
    assert far.transfer == 3
    assert far.latency == Fraction(6, 10**6)


def test_a_topology_routes_around_devices() -> None:
    kinds = [LinkKind("wire", "10 GB/s", "1 us"), LinkKind("slow", "1 GB/s", "5 us")]
    links = [Link(0, 1, "wire"), Link(1, 2, "wire"), Link(0, "s", "slow"), Link(1, "s", "slow"), Link(2, "s", "slow")]
    system = System([Level("gpu", 3, 1)], topology=Topology(kinds, links))
    wiring = wiring_of(system)
    assert isinstance(wiring, GraphWiring)
    assert wiring.path(0, 2) == [0, "s", 2]
    assert wiring.latency(0, 2) == Fraction(10, 10**6)
    forwarding = System([Level("gpu", 3, 1)], topology=Topology(kinds, links, forwards=True))
    assert wiring_of(forwarding).path(0, 2) == [0, 1, 2]  # as few links, less latency
    cost = AlphaBeta().step(system, [GroupLoad(Collective.BROADCAST, [(0, 2)], (0,), Fraction(10**9))])
    assert (cost.transfer, cost.latency) == (1, Fraction(10, 10**6))
    assert cost.bottleneck is not None and cost.bottleneck.link == "slow 0-s"


def test_links_of_one_way_and_what_cannot_be_reached() -> None:
    graph = nx.DiGraph()
    graph.add_edge(0, 1, bandwidth="10 GB/s")
    graph.add_edge(1, 0, bandwidth="5 GB/s")
    system = System([Level("gpu", 2, 1)], topology=Topology.from_graph(graph))
    cost = AlphaBeta().step(system, [GroupLoad(Collective.ALL_REDUCE, [(0, 1)], (), Fraction(10**9))])
    assert cost.transfer == Fraction(1, 5)
    graph.remove_edge(1, 0)
    with pytest.raises(InputError, match="device 0 cannot be reached from device 1"):
        AlphaBeta().step(System([Level("gpu", 2, 1)], topology=Topology.from_graph(graph)), [_pair()])
    with pytest.raises(InputError, match="device 2 has no link"):
        System([Level("gpu", 3, 1)], topology=Topology.from_graph(graph))
    with pytest.raises(InputError, match="no bandwidth"):
        Topology.from_graph(nx.path_graph(2))


def _pair() -> GroupLoad:
    return GroupLoad(Collective.ALL_REDUCE, [(0, 1)], (), Fraction(1))


def test_loads_on_a_v100_node_by_hand() -> None:
    """Strides tell: neighbours on NVLink, all else twice over the root complex of their CPU, or between the CPUs."""
    system = read_problem(HERE / "v100-cpus.yaml").system
    model, share = AlphaBeta(), Fraction(10**9)
    copy = Fraction(10**9, 450 * 10**9)

    def seconds(*groups: tuple[int, ...]) -> Fraction:
        return model.step(system, [GroupLoad(Collective.ALL_REDUCE, groups, (), share)]).transfer

    assert seconds((0, 1)) == Fraction(2 * 10**9, 135 * 10**9)  # both directions share the link
    assert seconds((0, 2)) == Fraction(4 * 10**9, 32 * 10**9)  # in and out at both ends, on one bus
    assert seconds((0, 4), (1, 5), (2, 6), (3, 7)) == Fraction(4 * 10**9, 16 * 10**9)  # between the CPUs
    assert seconds((0, 8)) == Fraction(10**9, 8 * 10**9)  # the NIC
    assert seconds(tuple(range(8))) == Fraction(2 * 7, 8) * 10**9 / (135 * 10**9)
    whole = model.step(system, [GroupLoad(Collective.ALL_REDUCE, [(0, 1)], (), share)])
    assert whole.nanoseconds == math.ceil((whole.transfer + copy) * 10**9)


def test_a_reduce_on_links_goes_round_the_ring_to_its_root() -> None:
    system = read_problem(HERE / "v100-cpus.yaml").system
    cost = AlphaBeta().step(system, [GroupLoad(Collective.REDUCE, [(0, 1, 2, 3)], (0,), Fraction(10**9))])
    assert cost.transfer == Fraction(2 * 10**9, 32 * 10**9)  # the hop 3 to 0 is no neighbour's
    down = AlphaBeta().step(system, [GroupLoad(Collective.BROADCAST, [(0, 1, 2, 3)], (0,), Fraction(10**9))])
    assert down.transfer == Fraction(10**9, 135 * 10**9)


@pytest.mark.parametrize("sizes", [(2, 16), (16, 2), (4, 8)])
def test_solve_tells_placements_with_equal_factors_apart_on_v100(sizes: tuple[int, int]) -> None:
    """What the paper measured: 7.2 and 15.0 s for equal factors. Every optimum agrees with enumeration."""
    system = read_problem(HERE / "v100-cpus.yaml").system
    asked = Problem(system, axes(*sizes), Reduction([f"a{int(sizes[1] == 16)}"], "20.06 GB"))
    solution = solve(asked)
    assert solution.status == "optimal"
    for one, both in zip(solution.placements, compare(asked), strict=True):
        assert both.agree
        assert one.cost == both.enumerated.cost
        assert one.placement == both.lowering.placement
        assert one.allreduce == both.solved.allreduce


FITTED = {"root": Fraction(20 * 10**9), "cpus": Fraction(86 * 10**8), "nic": Fraction(11 * 10**9)}


def test_equal_factors_cost_what_their_strides_load_on_v100() -> None:
    system = with_constants(read_problem(HERE / "v100-cpus.yaml").system, FITTED)
    for sizes, matrix, over, measured in (
        ((2, 16), [[1, 2], [4, 4]], "a1", 7.18),
        ((16, 2), [[4, 4], [1, 2]], "a0", 15.00),
    ):
        asked = Problem(system, axes(*sizes), Reduction([over], "20.06 GB"))
        assert solve(asked, matrix).allreduce / 1e9 == pytest.approx(measured, rel=0.06)
    lowerings = [
        lower(system, placements(system, axes(2, 16))[0], [1]),
        lower(system, placements(system, axes(16, 2))[1], [0]),
    ]
    assert lowerings[0].sizes == lowerings[1].sizes == (4, 4)
    assert AlphaBeta().key(lowerings[0]) != AlphaBeta().key(lowerings[1])


@pytest.mark.parametrize("kind", ["ring", "full", "torus"])
def test_the_proof_and_the_comparison_hold_on_every_kind_of_level(kind: str) -> None:
    system = System([Level("node", 2, "8 GB/s", "9 us"), Level("gpu", 4, "50 GB/s", "1 us", kind=kind)])
    asked = Problem(system, axes(4, 2), Reduction(["a0"], "64 MiB"))
    found = compare(asked)
    assert found and all(one.agree and one.solved.status == "optimal" for one in found)


FILE = """\
system:
  levels: [{name: node, size: 2}, {name: gpu, size: 2}]
  copy: 500 GB/s
  topology:
    kinds:
      nvlink: {bandwidth: 100 GB/s, latency: 1 us, duplex: half}
      nic: {bandwidth: 8 GB/s}
    each: node
    shared: [fabric]
    links: [[0, 1, nvlink], [0, host, nic], [1, host, nic], [host, fabric, nic]]
axes: {a: 4}
reduce: {over: [a], bytes: 1 GB}
"""


def test_topologies_in_files_repeat_units_and_come_back(tmp_path: Path) -> None:
    read = read_problem(put(tmp_path, FILE))
    assert read.system.topology is not None
    assert Link(2, 3, "nvlink") in read.system.topology.links
    assert Link("node1.host", "fabric", "nic") in read.system.topology.links
    again = read_problem(put(tmp_path, problem_text(read), "again.yaml"))
    assert again == read
    inline = FILE[FILE.index("    kinds") : FILE.index("axes")]
    put(tmp_path, "\n".join(line[4:] for line in inline.splitlines()), "links.yaml")
    whole = FILE[: FILE.index("  topology:")] + "  topology: links.yaml\n" + FILE[FILE.index("axes") :]
    assert read_problem(put(tmp_path, whole)) == read


def test_levels_in_files_know_their_kind_and_come_back(tmp_path: Path) -> None:
    text = """\
system:
  levels:
    - {name: node, size: 2, bandwidth: 8 GB/s, per_group: 5 GB/s, duplex: half}
    - {name: chip, size: 8, bandwidth: 50 GB/s, latency: 1 us, kind: torus, dims: [2, 4]}
axes: {a: 16}
reduce: {over: [a], bytes: 1 GB}
"""
    read = read_problem(put(tmp_path, text))
    assert [level.kind for level in read.system.levels] == ["switch", "torus"]
    assert not read.system.plain
    assert read_problem(put(tmp_path, problem_text(read), "again.yaml")) == read


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[0, 1, nvlink]", "[0, 1, nvlnk]", "'nvlnk' is unknown, did you mean 'nvlink'"),
        ("[0, 1, nvlink]", "[0, 2, nvlink]", "has no device 2 in a unit"),
        ("[0, 1, nvlink]", "[0, 1]", "has 2 entries"),
        ("[0, 1, nvlink]", "[0, 1, nvlink, twice]", "one of one-way"),
        ("duplex: half", "duplex: quarter", "quarter"),
        ("each: node", "each: rack", "rack"),
        ("[0, 1, nvlink], [0, host, nic]", "[0, 0, nvlink], [0, host, nic]", "to itself"),
        ("[0, host, nic], [1, host, nic], [host, fabric, nic]", "[0, host, nic], [1, h, nic]", "cannot be reached"),
        ("size: 2}, {name: gpu", "size: 2, bandwidth: 1 GB/s}, {name: gpu", "unknown"),
        ("  copy: 500 GB/s", "  copy: 0 GB/s", "zero"),
        ("kinds:", "kind:", "kinds"),
    ],
)
def test_bad_topologies_are_refused_in_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in FILE

    def read_and_price(path: object) -> None:
        asked = read_problem(path)  # type: ignore[arg-type]
        solve(asked)

    line = refusal(read_and_price, put(tmp_path, FILE.replace(old, new)))
    assert words in line


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ({"kind": "star"}, "kind 'star' is unknown"),
        ({"kind": "ring", "per_device": "1 GB/s"}, "no uplinks to limit"),
        ({"kind": "torus", "dims": [2, 3]}, "do not fit"),
        ({"dims": [2, 2]}, "do not fit"),
        ({"duplex": "simplex"}, "duplex"),
    ],
)
def test_bad_levels_are_refused(level: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Level("gpu", 4, "1 GB/s", **level)  # type: ignore[arg-type]


def test_a_levels_wiring_is_not_a_graphs() -> None:
    assert isinstance(wiring_of(RING), LevelWiring)
    assert not RING.plain
