"""Placements for frameworks and launchers: ids, orders, groups, hosts; Megatron's and DeepSpeed's rules restated."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth import InputError, Level, System, placements
from smtsynth.export import deepspeed, groups, hosts, jax_mesh, megatron, torch_mesh
from smtsynth.export.mesh import Grid, along, ascends, check_order, devices_of_ranks, row_major_order
from smtsynth.model.placement import Placement

TWO = System([Level("node", 2, "8 GB/s"), Level("gpu", 4, "80 GB/s")])
DEEP = System([Level("pod", 2, "8 GB/s"), Level("node", 2, "8 GB/s"), Level("gpu", 4, "80 GB/s")])
FOUR_AXES = {"pipeline": 2, "data": 2, "context": 2, "tensor": 2}


def grids(system: System, axes: dict[str, int]) -> list[Grid]:
    return [Grid(system, placement) for placement in placements(system, axes)]


def coordinate(grid: Grid, device: int) -> tuple[int, ...]:
    """The device's axis coordinates, digit by digit, as section 2 of the model says."""
    found = [0] * len(grid.axes)
    rest = device
    digits: dict[tuple[int, int], int] = {}
    for level in reversed(range(len(grid.system.levels))):
        inside = rest % grid.system.levels[level].size
        rest //= grid.system.levels[level].size
        for row in reversed(range(len(grid.axes))):
            size = grid.placement.matrix[row][level]
            digits[row, level] = inside % size
            inside //= size
    for row in range(len(grid.axes)):
        for level in range(len(grid.system.levels)):
            found[row] = found[row] * grid.placement.matrix[row][level] + digits[row, level]
    return tuple(found)


@st.composite
def any_grid(draw: st.DrawFn) -> Grid:
    """A random placement of up to three axes on up to three levels."""
    levels, axes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    matrix = tuple(tuple(draw(st.sampled_from([1, 2, 3])) for _ in range(levels)) for _ in range(axes))
    system = System([Level(f"l{n}", math.prod(row[n] for row in matrix), "1 GB/s") for n in range(levels)])
    sizes = {f"a{n}": math.prod(row) for n, row in enumerate(matrix)}
    return next(grid for grid in grids(system, sizes) if grid.placement.matrix == matrix)


@given(any_grid())
@settings(max_examples=60, deadline=None)
def test_every_coordinate_has_its_device(grid: Grid) -> None:
    for device in range(grid.system.devices):
        assert grid.ids[coordinate(grid, device)] == device


@given(any_grid(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_expression_gives_the_ids_in_any_order_of_axes(grid: Grid, random: object) -> None:
    order = list(range(len(grid.axes)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert np.array_equal(eval(grid.ids_text(order), {"np": np}), grid.ids.transpose(order))


@given(any_grid())
@settings(max_examples=60, deadline=None)
def test_a_placements_mesh_always_ascends(grid: Grid) -> None:
    assert ascends(grid.ids)  # so that PyTorch's sorted groups keep the mesh's coordinates


@given(any_grid())
@settings(max_examples=60, deadline=None)
def test_groups_along_an_axis_agree_on_all_others(grid: Grid) -> None:
    for axis in range(len(grid.axes)):
        rows = grid.groups(axis).tolist()
        assert sorted(itertools.chain(*rows)) == list(range(grid.system.devices))
        for row in rows:
            places = [coordinate(grid, device) for device in row]
            assert [place[axis] for place in places] == list(range(grid.shape[axis]))
            assert len({place[:axis] + place[axis + 1 :] for place in places}) == 1


@given(any_grid())
@settings(max_examples=60, deadline=None)
def test_an_order_is_row_major_exactly_if_some_order_is(grid: Grid) -> None:
    counting = np.arange(grid.system.devices)
    some = any(
        np.array_equal(grid.ids.transpose(order).reshape(-1), counting)
        for order in itertools.permutations(range(len(grid.axes)))
    )
    order = row_major_order(grid.ids)
    assert (order is not None) == some
    if order is not None:
        assert np.array_equal(grid.ids.transpose(order).reshape(-1), counting)


# --- Megatron-LM: the rule of its rank generator, restated, on the examples of its documentation ---


def megatron_groups(order: str, sizes: dict[str, int], tokens: Sequence[str]) -> list[list[int]]:
    """Groups of ranks that differ in `tokens` only: rank = the sum of coordinate times product of sizes before it."""
    names = order.split("-")
    stride = {name: math.prod(sizes[before] for before in names[:place]) for place, name in enumerate(names)}
    others = [name for name in reversed(names) if name not in tokens]
    inside = [name for name in reversed(names) if name in tokens]
    found = []
    for outer in itertools.product(*(range(sizes[name]) for name in others)):
        base = sum(n * stride[name] for n, name in zip(outer, others, strict=True))
        found.append(
            [
                base + sum(n * stride[name] for n, name in zip(inner, inside, strict=True))
                for inner in itertools.product(*(range(sizes[name]) for name in inside))
            ]
        )
    return found


def by_coordinates(order: str, sizes: dict[str, int], token: str) -> list[list[int]]:
    """The same groups, from what the exporter uses."""
    place = megatron.coordinates(order, sizes)
    others = [name for name in order.split("-") if name != token]
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in range(math.prod(sizes.values())):
        found.setdefault(tuple(int(place[name][rank]) for name in reversed(others)), []).append(rank)
    return [found[key] for key in sorted(found)]


@pytest.mark.parametrize(
    ("order", "sizes", "token", "wanted"),
    [
        # the documentation's sixteen GPUs: tensor 2, pipeline 4, so data 2
        ("tp-dp-pp", {"tp": 2, "dp": 2, "pp": 4}, "tp", [[0, 1], [2, 3], [4, 5]]),
        ("tp-dp-pp", {"tp": 2, "dp": 2, "pp": 4}, "dp", [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11]]),
        ("tp-dp-pp", {"tp": 2, "dp": 2, "pp": 4}, "pp", [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]),
        # its eight GPUs of order tp-pp-dp
        ("tp-pp-dp", {"tp": 2, "pp": 2, "dp": 2}, "dp", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        # its sizes 2, 3, 4: the first, second and last data groups
        ("tp-dp-pp", {"tp": 2, "dp": 3, "pp": 4}, "dp", [[0, 2, 4], [1, 3, 5]]),
    ],
)
def test_megatrons_rule_on_its_documented_examples(
    order: str, sizes: dict[str, int], token: str, wanted: list[list[int]]
) -> None:
    found = megatron_groups(order, sizes, [token])
    assert found[: len(wanted)] == wanted
    assert by_coordinates(order, sizes, token) == found


def test_megatrons_last_documented_group() -> None:
    assert megatron_groups("tp-dp-pp", {"tp": 2, "dp": 3, "pp": 4}, ["dp"])[-1] == [19, 21, 23]


TOKEN = {"pipeline": "pp", "data": "dp", "context": "cp", "tensor": "tp", "expert": "ep"}


@pytest.mark.parametrize("axes", [FOUR_AXES, {"data": 4, "tensor": 4}, {"pipeline": 4, "data": 2, "tensor": 2}])
def test_megatrons_groups_are_ours_or_the_permutation_makes_them_so(axes: dict[str, int]) -> None:
    expressed = 0
    for grid in grids(DEEP, axes):
        try:
            found = megatron.megatron(grid)
            order, sizes, devices = found.order, dict(found.sizes), list(range(16))
            expressed += 1
            assert f"--tensor-model-parallel-size {axes['tensor']}" in found.flags
            assert ("--use-tp-pp-dp-mapping" in found.flags) == (order == "tp-cp-ep-pp-dp")
        except InputError as error:
            order, sizes = "tp-cp-ep-dp-pp", {TOKEN[name]: size for name, size in axes.items()}
            sizes = {token: sizes.get(token, 1) for token in megatron.TOKENS}
            match = re.search(r"d = \[([\d,]+)\]", str(error))
            assert match is not None
            devices = [int(number) for number in match[1].split(",")]
            slowest = [name for name in ("pipeline", "data", "context", "tensor") if name in axes]
            assert f"--order {','.join(slowest)} " in str(error)
        sizes["ep"] = 1
        for axis, name in enumerate(grid.names):
            theirs = [[devices[rank] for rank in group] for group in megatron_groups(order, sizes, [TOKEN[name]])]
            assert sorted(theirs) == sorted(grid.groups(axis).tolist())
    assert expressed >= 1


def test_both_orders_of_megatron_are_found() -> None:
    orders = set()
    for grid in grids(DEEP, {"pipeline": 2, "data": 2, "tensor": 4}):
        try:
            orders.add(megatron.megatron(grid).order)
        except InputError:
            orders.add("neither")
    assert orders == {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "neither"}


def test_experts_are_laid_over_the_data_ranks() -> None:
    system = System([Level("node", 4, "1 GB/s"), Level("gpu", 4, "1 GB/s")])
    (grid,) = [
        g
        for g in grids(system, {"data": 4, "expert": 2, "tensor": 2})
        if g.placement.matrix == ((4, 1), (1, 2), (1, 2))
    ]
    found = megatron.megatron(grid)
    assert found.sizes == {"tp": 2, "cp": 1, "ep": 2, "dp": 8, "pp": 1}
    assert "--expert-model-parallel-size 2" in found.flags
    # experts: order tp-ep-dp, data 4; dense layers: the data ranks of both together
    assert megatron_groups("tp-ep-dp", {"tp": 2, "ep": 2, "dp": 4}, ["ep"]) == sorted(grid.groups(1).tolist())
    dense = megatron_groups("tp-dp", {"tp": 2, "dp": 8}, ["dp"])
    assert dense == [sorted(grid.ids[:, :, t].reshape(-1).tolist()) for t in range(2)]


@pytest.mark.parametrize(
    ("axes", "given", "words"),
    [
        ({"rows": 4, "tensor": 2}, {}, "Megatron-LM has no axis 'rows'; expected rows=TOKEN"),
        ({"tensor": 4, "model": 2}, {}, "axes 'tensor' and 'model' are both tensor parallelism (tp)"),
        ({"expert": 4, "context": 2}, {}, "an expert axis beside a context axis has no place of its own"),
    ],
)
def test_what_megatron_cannot_express_is_said(axes: dict[str, int], given: dict[str, str], words: str) -> None:
    with pytest.raises(InputError) as caught:
        megatron.megatron(grids(TWO, axes)[-1], given)
    assert words in str(caught.value)


def test_two_data_axes_are_one_for_megatron() -> None:
    axes = {"data": 2, "shard": 2, "tensor": 2}
    said = {}
    for grid in grids(TWO, axes):
        try:
            found = megatron.megatron(grid)
            assert (found.sizes["dp"], found.sizes["tp"]) == (4, 2)
            said[grid.placement.matrix] = " x ".join(found.data)
            assert f"# dp is {' x '.join(found.data)} together, the last varies fastest\n" in megatron.megatron_text(
                grid
            )
            devices = list(range(8))
            axes_in_order = [grid.names.index(name) for name in found.data]
        except InputError as error:
            assert "(data and shard together are dp); start rank r on device" in str(error)
            assert "--order data,shard,tensor " in str(error)
            match = re.search(r"d = \[([\d,]+)\]", str(error))
            assert match is not None
            devices = [int(number) for number in match[1].split(",")]
            axes_in_order = [0, 1]
        wanted = grid.ids.transpose(*axes_in_order, 2).reshape(4, 2)  # dp, tp
        groups = megatron_groups("tp-dp", {"tp": 2, "dp": 4}, ["dp"])
        assert [[devices[rank] for rank in group] for group in groups] == wanted.T.tolist()
    assert set(said.values()) == {"data x shard", "shard x data"} and len(said) < len(grids(TWO, axes))


def test_an_axis_can_be_named_for_megatron() -> None:
    (plain,) = [g for g in grids(TWO, {"rows": 2, "columns": 4}) if g.placement.matrix == ((2, 1), (1, 4))]
    assert megatron.megatron(plain, {"rows": "dp", "columns": "tp"}).sizes["tp"] == 4


# --- DeepSpeed: row-major over the axes, on the examples of its documentation ---


def topology(axes: Sequence[str], dims: Sequence[int]) -> dict[tuple[int, ...], int]:
    """DeepSpeed's rule: coordinates, in the order of the axes given, to ranks."""
    return {place: rank for rank, place in enumerate(itertools.product(*map(range, dims)))}


def axis_lists(axes: Sequence[str], dims: Sequence[int], axis: str) -> list[list[int]]:
    """Ranks that differ in one axis only."""
    ranks, number = topology(axes, dims), axes.index(axis)
    others = [range(size) for place, size in enumerate(dims) if place != number]
    return [
        [ranks[(*rest[:number], here, *rest[number:])] for here in range(dims[number])]
        for rest in itertools.product(*others)
    ]


def test_deepspeeds_rule_on_its_documented_examples() -> None:
    assert topology(["x", "y"], [2, 3])[0, 1] == 1
    assert axis_lists(["pipe", "data", "model"], [2, 2, 2], "pipe") == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert [rank for place, rank in topology(["pipe", "data", "model"], [2, 2, 2]).items() if place[:2] == (0, 1)] == [
        2,
        3,
    ]


@pytest.mark.parametrize("axes", [FOUR_AXES, {"data": 4, "model": 4}, {"pipe": 2, "data": 8, "model": 1}])
def test_deepspeeds_groups_are_ours_or_the_permutation_makes_them_so(axes: dict[str, int]) -> None:
    expressed = 0
    for grid in grids(DEEP, axes):
        try:
            order = deepspeed.deepspeed_order(grid)
            text = deepspeed.deepspeed_text(grid)
            names = json.loads(re.search(r"axes=(\[.*?\])", text)[1])  # type: ignore[index]
            dims = json.loads(re.search(r"dims=(\[.*?\])", text)[1])  # type: ignore[index]
            assert names == [grid.names[axis] for axis in order]
            devices = list(range(16))
            expressed += 1
        except InputError as error:
            assert "split across levels" in str(error)
            names, dims = list(grid.names), list(grid.shape)
            match = re.search(r"d = \[([\d,]+)\]", str(error))
            assert match is not None
            devices = [int(number) for number in match[1].split(",")]
        for axis, name in enumerate(grid.names):
            theirs = [[devices[rank] for rank in group] for group in axis_lists(names, dims, name)]
            assert sorted(theirs) == sorted(grid.groups(axis).tolist())
    assert expressed >= 1


# --- explicit groups, JAX's and PyTorch's texts (run for real in test_export_frameworks) ---


def test_groups_as_json() -> None:
    grid = grids(TWO, {"data": 4, "tensor": 2})[0]
    data = json.loads(groups.groups_text(grid))
    assert data == {
        "devices": 8,
        "axes": {"data": [[0, 1, 2, 3], [4, 5, 6, 7]], "tensor": [[0, 4], [1, 5], [2, 6], [3, 7]]},
    }


def test_pytorch_gets_the_plain_call_where_ranks_count_row_major() -> None:
    split, plain = grids(TWO, {"data": 4, "tensor": 2})
    assert "init_device_mesh(device_type, (4, 2)" in torch_mesh.torch_mesh_text(plain, (0, 1))
    text = torch_mesh.torch_mesh_text(split, (0, 1))
    assert "torch.arange(8).reshape(2, 4).permute(1, 0)" in text and "init_device_mesh" not in text
    assert 'init_device_mesh(device_type, (2, 4), mesh_dim_names=("tensor", "data"))' in torch_mesh.torch_mesh_text(
        split, (1, 0)
    )


def test_a_mesh_that_does_not_ascend_is_refused_for_pytorch() -> None:
    class Backwards(Grid):
        ids = np.array([[3, 1], [2, 0]])  # type: ignore[assignment]

    system = System([Level("node", 2, "1 GB/s"), Level("gpu", 2, "1 GB/s")])
    grid = Backwards(system, Placement(grids(system, {"a": 2, "b": 2})[0].axes, ((2, 1), (1, 2))))
    with pytest.raises(InputError, match="PyTorch sorts the ranks of a group"):
        torch_mesh.torch_mesh_text(grid, (0, 1))


def test_hybrid_shapes_are_the_columns() -> None:
    grid = next(g for g in grids(TWO, {"data": 4, "tensor": 2}) if g.placement.matrix == ((2, 2), (1, 2)))
    assert jax_mesh.hybrid_shapes(grid, (0, 1)) == ((2, 2), (2, 1))
    assert jax_mesh.hybrid_shapes(grids(DEEP, FOUR_AXES)[0], (0, 1, 2, 3)) is None


# --- hosts ---


def test_hosts_are_read_in_every_form() -> None:
    text = "n[01-03,7] a:4, b slots=8 max_slots=8 # the last\n# none here\nc-1.example.org\n"
    assert hosts.expand_hosts(text) == [
        ("n01", None),
        ("n02", None),
        ("n03", None),
        ("n7", None),
        ("a", 4),
        ("b", 8),
        ("c-1.example.org", None),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n[3-1]", "'3-1' is no range"),
        ("n[1-2", "is no host name"),
        ("slots=4", "does not follow a host"),
        ("a:x", "is no number of slots"),
        ("n[0-99999999]", "names too many hosts"),
        ("-a", "is no host name"),
        ("a\nb c!\n", "hosts:2: 'c!' is no host name"),
    ],
)
def test_hosts_that_make_no_sense(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        hosts.expand_hosts(text, "hosts")
    assert words in str(caught.value)


@given(any_grid(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_every_rank_sits_where_its_coordinate_is(grid: Grid, random: object) -> None:
    order = list(range(len(grid.axes)))
    random.shuffle(order)  # type: ignore[attr-defined]
    level = grid.system.levels[0].name
    seats = hosts.seating(grid, order, level=level)
    shape = [grid.shape[axis] for axis in order]
    for seat, place in zip(seats.seats, itertools.product(*map(range, shape)), strict=True):
        back = [place[order.index(axis)] for axis in range(len(order))]
        assert grid.ids[tuple(back)] == seat.device
        per_host = grid.system.devices // grid.system.levels[0].size
        assert seat.host.removeprefix(level).lstrip("0") == (str(seat.device // per_host).lstrip("0"))
        assert seat.local_device == seat.device % per_host
        before = [other for other in seats.seats[: seat.rank] if other.host == seat.host]
        assert seat.local_rank == len(before)


def test_the_files_of_a_permuted_placement() -> None:
    grid = next(g for g in grids(TWO, {"data": 4, "tensor": 2}) if g.placement.matrix == ((1, 4), (2, 1)))
    seats = hosts.seating(grid, (0, 1), [("x", 4), ("y", None)])
    assert not seats.in_order and seats.local_in_order
    assert [seat.device for seat in seats.seats] == [0, 4, 1, 5, 2, 6, 3, 7]
    lines = hosts.hostfile_text(seats).splitlines()
    assert lines[-2:] == ["x:4", "y:4"]
    assert "-rankmap '(vector,0,1,0,1,0,1,0,1)'" in lines[-3]
    assert hosts.slurm_text(seats) == "x\ny\n" * 4
    assert hosts.rankfile_text(seats).splitlines()[-8:-5] == ["rank 0=x slot=0", "rank 1=y slot=0", "rank 2=x slot=1"]
    plain = hosts.hostfile_text(hosts.seating(grid, (1, 0)))
    assert "rankmap" not in plain and "node0:4\nnode1:4\n" in plain


def test_a_local_rank_that_is_not_its_device_is_said() -> None:
    grid = next(g for g in grids(TWO, {"data": 4, "tensor": 2}) if g.placement.matrix == ((2, 2), (1, 2)))
    seats = hosts.seating(grid, (1, 0))
    assert not seats.local_in_order
    assert "LOCAL = 0,2,0,2,1,3,1,3" in hosts.hostfile_text(seats)
    assert [seat.local_device for seat in seats.seats] == [0, 2, 0, 2, 1, 3, 1, 3]


@pytest.mark.parametrize(
    ("given_hosts", "words"),
    [
        ([("a", None)], "names 1 host; expected 2, one for each node"),
        ([("a", None), ("a", None)], "host 'a' is there twice"),
        ([("a", 2), ("b", 4)], "host 'a' has 2 slots; expected 4"),
    ],
)
def test_hosts_that_do_not_fit(given_hosts: list[tuple[str, int | None]], words: str) -> None:
    with pytest.raises(InputError) as caught:
        hosts.seating(grids(TWO, {"data": 8})[0], (0,), given_hosts)
    assert words in str(caught.value)


def test_the_level_of_hosts() -> None:
    assert hosts.host_level(grids(DEEP, {"data": 16})[0]) == 1
    two = System([Level("rack", 2, "1 GB/s"), Level("chip", 2, "1 GB/s")])
    assert hosts.host_level(grids(two, {"data": 4})[0]) == 0
    three = System([Level("plane", 2, "1 GB/s"), Level("row", 2, "1 GB/s"), Level("chip", 2, "1 GB/s")])
    with pytest.raises(InputError, match="no level is called node"):
        hosts.host_level(grids(three, {"data": 8})[0])
    assert hosts.host_level(grids(three, {"data": 8})[0], "row") == 1
    with pytest.raises(InputError, match="there is no level 'x'"):
        hosts.host_level(grids(three, {"data": 8})[0], "x")


def test_orders_must_name_each_axis_once() -> None:
    grid = grids(TWO, {"data": 4, "tensor": 2})[0]
    assert check_order(grid, ["tensor", "data"]) == (1, 0)
    assert devices_of_ranks(grid, (1, 0)).tolist() == along(grid.ids, 0).reshape(-1).tolist()
    for wrong in (["data"], ["data", "data"], ["data", "x"]):
        with pytest.raises(InputError, match="does not name each axis once"):
            check_order(grid, wrong)
