"""The cost models behind the one interface: algorithms, the paper's, measured curves, overlap."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth import (
    InputError,
    Level,
    Problem,
    Reduction,
    System,
    compare,
    parse_program,
    placements,
    read_problem,
    simulate,
    solve,
)
from smtsynth.cost.algorithms import binary_tree, double_tree, tree_flows
from smtsynth.cost.alphabeta import AlphaBeta, simulate_schedule
from smtsynth.cost.interface import CostModel, GroupLoad
from smtsynth.cost.measured import Measured, curve_seconds
from smtsynth.cost.models import alpha_beta, cost_model_of
from smtsynth.cost.overlap import overlapped
from smtsynth.cost.paper import Paper
from smtsynth.cost.shares import group_types
from smtsynth.cost.wired import filled_nanoseconds, wired_price
from smtsynth.cost.wiring import wiring_of
from smtsynth.interfaces.choices import changed
from smtsynth.interfaces.cli import cli
from smtsynth.interfaces.files import problem_text
from smtsynth.model.choice import CostChoice, Curve, Piece
from smtsynth.model.lowering import Lowering, lower
from smtsynth.model.program import Collective, Form, Instruction, instruction_set
from tests.conftest import A100, axes, problem
from tests.files_support import GOOD, put, refusal

P2 = Path(__file__).parent.parent / "examples" / "p2"
MIB = 2**20
SPLIT = "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)"
SMALL = System([Level("node", 2, "8 GB/s", "9 us"), Level("gpu", 4, "50 GB/s", "1 us", "20 GB/s")], "1 us")
WHOLE = Instruction(Collective.ALL_REDUCE, 0, Form.INSIDE_GROUP)
CURVES = tuple(
    Curve(collective, nodes, devices, (Piece(1, MIB, Fraction(1, 10**5), Fraction(10**10)), _last))
    for collective in (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
    for nodes, devices, _last in (
        (1, 4, Piece(MIB + 1, 2**34, Fraction(2, 10**5), Fraction(4 * 10**10))),
        (2, 1, Piece(MIB + 1, 2**34, Fraction(2, 10**5), Fraction(10**10))),
        (2, 4, Piece(MIB + 1, 2**34, Fraction(1, 10**5), Fraction(5 * 10**9))),
    )
)
WIRED = replace(SMALL.levels[1], per_device=None, kind="ring")
MODELS: list[tuple[str, CostModel, System]] = [
    ("alpha-beta", AlphaBeta(), SMALL),
    ("tree", alpha_beta("tree"), SMALL),
    ("chain", alpha_beta("chain"), SMALL),
    ("auto", alpha_beta("auto"), System(SMALL.levels, copy="100 GB/s")),
    ("group limit", AlphaBeta(), System([replace(SMALL.levels[0], per_group="5 GB/s"), SMALL.levels[1]])),
    ("ring level", AlphaBeta(), System([SMALL.levels[0], WIRED])),
    ("half duplex", alpha_beta("auto"), System([replace(SMALL.levels[0], duplex="half"), SMALL.levels[1]])),
    ("paper", Paper(), SMALL),
    ("measured", Measured(CURVES, "alpha-beta"), SMALL),
]
IDS = [name for name, *_ in MODELS]


def _lowering(system: System, data: st.DataObject) -> Lowering:
    sizes = data.draw(st.sampled_from([(8,), (2, 4), (4, 2)]))
    where = data.draw(st.sampled_from(placements(system, axes(*sizes))))
    hierarchy = data.draw(st.sampled_from(["reduction", "reduction-row-major", "rows", "system"]))
    return lower(system, where, data.draw(st.sampled_from([[0], list(range(len(sizes)))])), hierarchy)


@pytest.mark.parametrize(("name", "model", "system"), MODELS, ids=IDS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_prices_never_fall_when_a_share_grows(name: str, model: CostModel, system: System, data: st.DataObject) -> None:
    """The encodings rest on that; and what `explain` and `step` say of an instruction is its price."""
    lowering = _lowering(system, data)
    instruction = data.draw(st.sampled_from(instruction_set(lowering.depth)))
    types = group_types(lowering.depth, instruction.span(lowering.depth))
    amounts = st.integers(0, 200).map(lambda n: Fraction(n * MIB, 3))
    shares = {mask: data.draw(amounts) for mask in types}
    more = {mask: share + data.draw(amounts) for mask, share in shares.items()}
    price = model.price(lowering, instruction, shares)
    assert price <= model.price(lowering, instruction, more)
    assert model.explain(lowering, instruction, shares).nanoseconds == price
    share = max(shares.values())
    groups = [tuple(group) for group in lowering.device_groups(instruction).tolist()]
    load = GroupLoad(instruction.collective, groups, (), share)
    if name != "measured":  # a curve's group is the largest, here all are
        assert model.step(system, [load]).nanoseconds == model.price(lowering, instruction, share)


@pytest.mark.parametrize(("name", "model", "system"), MODELS, ids=IDS)
def test_solve_proves_its_optimum_and_compare_agrees(name: str, model: CostModel, system: System) -> None:
    asked = problem(system, (4, 2), (0,), 64 * MIB)
    hierarchy = "reduction-row-major" if name == "paper" else "reduction"
    found = compare(asked, cost_model=model, hierarchy=hierarchy)
    assert found and all(one.agree and one.solved.status == "optimal" for one in found)
    assert {one.solved.cost_model for one in found} == {model.name}


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_equal_keys_have_equal_prices(data: st.DataObject) -> None:
    name, model, system = data.draw(st.sampled_from(MODELS))
    sizes = data.draw(st.sampled_from([(2, 2, 2), (4, 2), (2, 4)]))
    where = data.draw(st.lists(st.sampled_from(placements(system, axes(*sizes))), min_size=2, max_size=2))
    one, two = (lower(system, place, [0]) for place in where)
    if model.key(one) == model.key(two):
        for instruction in instruction_set(one.depth):
            assert model.price(one, instruction, Fraction(MIB)) == model.price(two, instruction, Fraction(MIB))


# Algorithms


def test_the_double_tree_is_nccls() -> None:
    assert binary_tree(4) == [(1, 2), (2, 0), (3, 2)]
    assert double_tree(2) == [[(1, 0)], [(0, 1)]]
    for nodes in range(1, 40):
        for tree in double_tree(nodes):
            children = [child for child, _ in tree]
            assert len(set(children)) == len(children) == nodes - 1
            root = next(node for node in range(nodes) if node not in children)
            parents = dict(tree)
            for node in range(nodes):
                steps = 0
                while node != root:
                    node, steps = parents[node], steps + 1
                    assert steps <= math.ceil(math.log2(nodes)) + 1
        inner = [{parent for _, parent in tree} for tree in double_tree(nodes)]
        if nodes % 2 == 0:
            assert not inner[0] & inner[1]  # inner in one tree, leaf in the other


@pytest.mark.parametrize(("nodes", "times"), [(2, 1), (4, 2)])
def test_the_busiest_nic_under_a_tree_carries_the_data_once_at_2_nodes_and_twice_at_4(nodes: int, times: int) -> None:
    system = System([Level("node", nodes, "8 GB/s"), Level("gpu", 4, "1000 GB/s")])
    load = GroupLoad(Collective.ALL_REDUCE, [tuple(range(system.devices))], (), Fraction(8 * 10**9))
    assert alpha_beta("tree").step(system, [load]).transfer == times


def test_a_tree_inside_a_switch_spreads_its_chain_over_the_members() -> None:
    system = System([Level("gpu", 4, "100 GB/s")])
    load = GroupLoad(Collective.ALL_REDUCE, [(0, 1, 2, 3)], (), Fraction(10**11))
    assert alpha_beta("tree").step(system, [load]).transfer == Fraction(3, 2)
    assert alpha_beta("chain").step(system, [load]).transfer == 2
    flows = tree_flows(wiring_of(system), (0, 1, 2, 3))
    assert sum(amount for *_, amount in flows.flows) * flows.unit == 6  # 3 edges, both ways


def test_a_pipeline_is_filled() -> None:
    """Two devices, a chain of one edge each way: A = 1 ms, B = 2 * 10 us."""
    system = System([Level("gpu", 2, "1 GB/s", "10 us")])
    load = GroupLoad(Collective.ALL_REDUCE, [(0, 1)], (), Fraction(10**6))
    cost = alpha_beta("chain").step(system, [load])
    assert cost.nanoseconds == math.ceil(1e6 + 2e4 + 2 * math.sqrt(1e6 * 2e4))


@given(known=st.fractions(0, 10), product=st.fractions(0, 10))
def test_square_roots_are_rounded_up_exactly(known: Fraction, product: Fraction) -> None:
    found = filled_nanoseconds(known, product)
    room = Fraction(found, 10**9) - known
    assert room >= 0 and room * room >= 4 * product
    less = Fraction(found - 1, 10**9) - known
    assert less < 0 or less * less < 4 * product


def test_auto_is_the_cheapest_of_all() -> None:
    lowering = lower(A100, placements(A100, axes(64))[0], [0])
    for share in (Fraction(2**10), Fraction(2**24), Fraction(2**34)):
        every = [wired_price(lowering, WHOLE, share, way) for way in ("ring", "tree", "chain")]
        assert wired_price(lowering, WHOLE, share, "auto") == min(every)
    small = [wired_price(lowering, WHOLE, Fraction(2**10), way) for way in ("ring", "tree")]
    large = [wired_price(lowering, WHOLE, Fraction(2**34), way) for way in ("ring", "tree")]
    assert small[1] < small[0] and large[0] < large[1]


def test_a_copy_costs_by_what_is_read_and_written() -> None:
    slow, fast = System([Level("gpu", 4, "1 GB/s")], copy="1 GB/s"), System([Level("gpu", 4, "1 GB/s")])
    for collective, part in (
        (Collective.ALL_REDUCE, Fraction(1)),
        (Collective.REDUCE_SCATTER, Fraction(5, 8)),
        (Collective.ALL_GATHER, Fraction(5, 2)),
        (Collective.BROADCAST, Fraction(1)),
    ):
        load = [GroupLoad(collective, [(0, 1, 2, 3)], (), Fraction(10**9))]
        extra = AlphaBeta().step(slow, load).nanoseconds - AlphaBeta().step(fast, load).nanoseconds
        assert extra == part * 10**9


def test_a_group_alone_cannot_fill_the_uplink() -> None:
    system = System([Level("node", 2, "8 GB/s", per_group="5 GB/s"), Level("gpu", 2, "100 GB/s")])
    one = AlphaBeta().step(system, [GroupLoad(Collective.ALL_REDUCE, [(0, 2)], (), Fraction(10**9))])
    two = AlphaBeta().step(system, [GroupLoad(Collective.ALL_REDUCE, [(0, 2), (1, 3)], (), Fraction(10**9))])
    assert (one.transfer, two.transfer) == (Fraction(1, 5), Fraction(2, 8))


# The paper's model and lowering


def test_the_papers_model_knows_bandwidth_alone() -> None:
    system = System([Level("gpu", 4, "1 GB/s", "5 us", kind="ring")], "1 ms", copy="1 GB/s")
    chain = GroupLoad(Collective.BROADCAST, [(0, 1, 2, 3)], (0,), Fraction(10**9))
    assert Paper().step(system, [chain]).nanoseconds == 10**9
    assert AlphaBeta().step(system, [chain]).nanoseconds == 10**9 + 15_000 + 10**6 + 10**9


def test_row_major_lowering_is_the_papers_and_costs_it_a_factor() -> None:
    """The model, section 3: axes [2 2 16] over axes 0 and 2, [[1 2][2 1][2 8]], a factor of 1.8."""
    asked = problem(A100, (2, 2, 16), (0, 2), "2006 MB")
    where = [[1, 2], [2, 1], [2, 8]]
    lowering = lower(A100, asked and placements(A100, asked.axes)[0], [0, 2], "reduction-row-major")
    assert lowering.factors == lower(A100, lowering.placement, [0, 2]).factors
    ours, theirs = (
        solve(asked, where, hierarchy=hierarchy, cost_model=Paper()).cost
        for hierarchy in ("reduction", "reduction-row-major")
    )
    assert theirs / ours == pytest.approx(1.8, abs=0.05)  # type: ignore[operator]
    order = lower(A100, placements(A100, axes(2, 2, 16))[1], [0, 2], "reduction-row-major")
    assert order.placement.matrix == ((1, 2), (2, 1), (2, 8))
    assert order.devices[0, :3].tolist() == [0, 1, 2] and order.devices[0, 16] == 8


@pytest.mark.parametrize(
    ("name", "program", "seconds"),
    [
        ("a100", "AllReduce(root, InsideGroup)", 9.7166),
        ("a100", "Reduce(root, InsideGroup); Broadcast(root, InsideGroup)", 10.03),
        ("a100", "AllReduce(node, InsideGroup); AllReduce(node, Parallel(root))", 47.64),
        ("v100", SPLIT, 8.463),
        ("v100", "Reduce(node, InsideGroup); AllReduce(node, Master(root)); Broadcast(node, InsideGroup)", 8.776),
    ],
)
def test_points_of_figure_11_by_hand(name: str, program: str, seconds: float) -> None:
    asked = read_problem(P2 / f"{name}.yaml")
    where = {"a100": [[2, 2], [1, 2], [2, 4]], "v100": [[1, 2], [4, 4]]}[name]
    costs = simulate(asked, program, where, hierarchy="reduction-row-major")
    assert sum(cost.nanoseconds for cost in costs) / 1e9 == pytest.approx(seconds, rel=1e-4)


# Measured curves


def test_curves_are_read_where_they_were_measured_and_never_fall() -> None:
    pieces = (Piece(8, 100, Fraction(5), Fraction(100)), Piece(101, 200, Fraction(0), Fraction(100)))
    falling = Curve(Collective.ALL_REDUCE, 1, 4, pieces)
    assert curve_seconds(falling, Fraction(50)) == Fraction(11, 2)
    assert curve_seconds(falling, Fraction(150)) == 6  # what 100 bytes took
    lowering = lower(SMALL, placements(SMALL, axes(8))[0], [0])
    model = Measured(CURVES)
    flat = model.explain(lowering, WHOLE, Fraction(2**30))
    assert flat.nanoseconds == math.ceil(10_000 + 2**30 / 5)
    gather = Instruction(Collective.ALL_GATHER, 1, Form.INSIDE_GROUP)
    assert model.price(lowering, gather, Fraction(2**28)) == math.ceil(20_000 + 2**30 / 40)  # sizes as at output


def test_what_was_not_measured_is_refused_unless_it_is_said() -> None:
    lowering = lower(SMALL, placements(SMALL, axes(8))[0], [0])
    few = Measured(CURVES[:3])
    for instruction, share, words in (
        (WHOLE, Fraction(2**35), "measured from 1 B to 16 GiB"),
        (Instruction(Collective.REDUCE, 0, Form.INSIDE_GROUP), Fraction(MIB), "a curve of that shape"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            few.price(lowering, instruction, share)
        assert "was not measured" in str(caught.value) and "beyond: alpha-beta" in str(caught.value)
        filled = Measured(CURVES[:3], "alpha-beta")
        assert filled.price(lowering, instruction, share) >= AlphaBeta().price(lowering, instruction, share)
        assert filled.name == "measured (beyond its curves: alpha-beta)"


def test_groups_at_once_share_the_uplinks_that_one_had_alone() -> None:
    lowering = lower(SMALL, placements(SMALL, axes(2, 4))[0], [0])  # 2 inside a node
    across = lower(SMALL, placements(SMALL, axes(2, 4))[1], [0])
    assert across.sizes == (2,) and across.factors[0].level == 0 and lowering.factors[0].level == 1
    alone = Fraction(20_000) + Fraction(2**30, 10)
    assert Measured(CURVES).price(across, WHOLE, Fraction(2**30)) == math.ceil(4 * alone)  # 4 groups on one NIC
    rails = System([Level("node", 2, "8 GB/s", 0, "2 GB/s"), SMALL.levels[1]])
    assert Measured(CURVES).price(replace(across, system=rails), WHOLE, Fraction(2**30)) == math.ceil(alone)
    groups = [tuple(group) for group in across.device_groups(WHOLE).tolist()]
    for system, times in ((SMALL, 4), (rails, 1)):
        load = GroupLoad(Collective.ALL_REDUCE, groups, (), Fraction(2**30))
        assert Measured(CURVES).step(system, [load]).nanoseconds == math.ceil(times * alone)


# Overlap


def test_overlap_lies_between_the_busiest_link_and_the_sum() -> None:
    asked = problem(A100, (64,), (0,), 2**31)
    where = [[4, 16]]
    steps = simulate(asked, SPLIT, where)
    lowering = lower(A100, placements(A100, asked.axes)[0], [0])
    schedule = lowering.schedule(parse_program(SPLIT, lowering.names))
    loads = [
        [GroupLoad(e.collective, e.groups, e.roots, Fraction(2**31, part)) for e in step]
        for step, part in zip(schedule.steps, (1, 16, 16), strict=True)
    ]
    together = overlapped(A100, loads)
    total = sum(cost.nanoseconds for cost in steps)
    assert simulate_schedule(AlphaBeta(), A100, schedule, Fraction(2**31)) == steps
    assert max(cost.nanoseconds for cost in steps) < together < total
    latencies = sum(cost.latency for cost in steps)
    assert together == math.ceil((latencies + steps[1].transfer) * 10**9)
    assert overlapped(A100, loads[:1]) == steps[0].nanoseconds
    assert Paper().overlapped(A100, loads) is None


# Choosing


def test_files_choose_the_model_and_the_command_line_goes_first(tmp_path: Path) -> None:
    text = GOOD + "cost_model: {name: alpha-beta, algorithm: auto, overlap: full}\n"
    read = read_problem(put(tmp_path, text))
    assert read.cost_model == CostChoice("alpha-beta", "auto", "full")
    assert cost_model_of(read.cost_model).name == "alpha-beta (auto)"
    assert read_problem(put(tmp_path, problem_text(read), "again.yaml")) == read
    given: dict[str, str | None] = {"--cost-model": None, "--algorithm": "tree", "--overlap": "none"}
    assert changed(read.cost_model, given) == CostChoice("alpha-beta", "tree", "none")
    assert changed(read.cost_model, {"--cost-model": "paper"}) == CostChoice("paper", "ring", "full")
    assert read_problem(put(tmp_path, GOOD + "cost_model: paper\n")).cost_model == CostChoice("paper")
    assert solve(replace_model(read, "paper"), [[1, 4], [4, 4]]).cost_model == "paper"


def replace_model(asked: Problem, name: str) -> Problem:
    return Problem(asked.system, asked.axes, asked.reduction, asked.limits, CostChoice(name))


def test_curves_in_files_come_back(tmp_path: Path) -> None:
    choice = CostChoice("measured", "auto", curves=CURVES, beyond="alpha-beta")
    asked = Problem(SMALL, axes(8), Reduction(["a0"], "1 MiB"), None, choice)
    assert read_problem(put(tmp_path, problem_text(asked))) == asked


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cost_model: papr", "'papr' is unknown, did you mean 'paper'"),
        ("cost_model: {algorithm: ring}", "cost_model.name: is missing"),
        ("cost_model: {name: alpha-beta, algorithm: star}", "one of ring, tree, chain, auto"),
        ("cost_model: {name: measured}", "measured needs `curves`"),
        ("cost_model: {name: paper, curves: []}", "paper has none"),
        ("cost_model: {name: measured, curves: [{collective: Reduce, nodes: 1, devices: 2, pieces: []}]}", "is empty"),
        (
            "cost_model: {name: measured, curves: [{collective: AllReduce, nodes: 1, devices: 2, "
            "pieces: [[9, 1, 1 us, 1 GB/s]]}]}",
            "out of order",
        ),
    ],
)
def test_bad_choices_are_refused_in_one_line(tmp_path: Path, line: str, words: str) -> None:
    assert words in refusal(read_problem, put(tmp_path, GOOD + line + "\n"))


def test_settings_that_a_model_lacks_are_refused() -> None:
    with pytest.raises(InputError, match="no auto"):
        cost_model_of(CostChoice("paper", "auto"))
    with pytest.raises(InputError, match="curves"):
        cost_model_of(CostChoice("measured"))
    with pytest.raises(InputError, match="curves"):
        changed(CostChoice(), {"--cost-model": "measured"})
    with pytest.raises(InputError, match="--algorithm"):
        changed(CostChoice(), {"--algorithm": "star"})


def _run(*words: object) -> dict[str, object]:
    ran = CliRunner().invoke(cli, [*map(str, words), "--json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)  # type: ignore[no-any-return]


def test_the_commands_take_models_algorithms_and_overlap(tmp_path: Path) -> None:
    path, where = put(tmp_path, GOOD), ["--placement", "[[4,1],[1,16]]"]
    plain = "AllReduce(root, InsideGroup)"
    ring = _run("simulate", path, plain, *where)
    tree = _run("simulate", path, plain, *where, "--algorithm", "tree")
    paper = _run("simulate", path, plain, *where, "--cost-model", "paper")
    assert tree["seconds"] != ring["seconds"] != paper["seconds"]
    assert "overlap_seconds" not in ring
    both = _run("simulate", path, plain + "; " + plain, *where, "--overlap", "full")
    low, high = both["overlap_seconds"]  # type: ignore[misc]
    assert low == high == both["seconds"]  # all wait for one link
    solved = _run("solve", path, "--placement", "[[1,4],[4,4]]", "--algorithm", "auto", "--overlap", "full")
    low, high = solved["overlap_seconds"]  # type: ignore[misc]
    assert 0 < low <= high == solved["cost_seconds"]
    assert solved["cost_model"] == "alpha-beta (auto)"
    agreed = _run("compare", path, "--cost-model", "paper", "--placement", "[[1,4],[4,4]]")
    assert agreed["agree"] is True


def test_the_papers_model_comes_with_its_lowering() -> None:
    """Row-major unless a hierarchy is asked for: on this placement plain AllReduce is its best, and ours is not."""
    words = ("solve", P2 / "a100.yaml", "--placement", "[[2,2],[1,2],[2,4]]")
    theirs = _run(*words)
    assert (theirs["hierarchy"], theirs["cost_seconds"]) == ("reduction-row-major", theirs["allreduce_seconds"])
    ours = _run(*words, "--hierarchy", "reduction")
    assert ours["hierarchy"] == "reduction" and ours["cost_seconds"] < theirs["cost_seconds"]  # type: ignore[operator]


def test_what_needs_levels_of_switches_says_so(tmp_path: Path) -> None:
    asked = Problem(MODELS[IDS.index("ring level")][2], axes(2, 2, 2), Reduction(["a0"], "1 MiB"))
    path = put(tmp_path, problem_text(asked))
    refused = CliRunner().invoke(cli, ["solve", str(path), "--joint"])
    assert isinstance(refused.exception, InputError) and "levels of switches" in str(refused.exception)
    paper = ["simulate", str(path), "AllReduce(root, InsideGroup)", "--cost-model", "paper", "--overlap", "full"]
    refused = CliRunner().invoke(cli, [*paper, "--placement", "[[1,2],[1,2],[2,1]]"])
    assert isinstance(refused.exception, InputError) and "knows no overlap" in str(refused.exception)


def test_a_bottleneck_on_a_link_is_named_in_json() -> None:
    where = ("simulate", P2 / "v100-cpus.yaml", "AllReduce(root, InsideGroup)", "--placement", "[[1,4],[4,2]]")
    (step,) = _run(*where)["steps"]  # type: ignore[misc]
    wanted = {"level": None, "unit": None, "direction": None, "link": "root node0.cpu0"}
    assert step["bottleneck"] == wanted  # type: ignore[index]
