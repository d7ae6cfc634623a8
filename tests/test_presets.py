"""Known systems: every one is a problem file that reads back, and its figures are those that are claimed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from smtsynth.errors import InputError
from smtsynth.interfaces.files import problem_of, read_problem
from smtsynth.interfaces.yamltext import parse_data
from smtsynth.model.placement import count_placements
from smtsynth.model.presets import PRESETS, find_preset, preset, preset_file, preset_names
from smtsynth.model.system import Level, System

EXAMPLES = Path(__file__).parent.parent / "examples"
GB = 10**9


@pytest.mark.parametrize("name", preset_names())
def test_a_printed_preset_is_a_problem_with_that_system(name: str) -> None:
    text = preset_file(name)
    problem = problem_of(parse_data(text, name), name)
    assert problem.system == preset(name)
    assert count_placements(problem.axes, problem.system) > 1
    words = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
    assert find_preset(name).source in words
    assert find_preset(name).leaves_out in words
    assert "in one direction" in words
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_has_its_example_file(name: str) -> None:
    path = EXAMPLES / f"{name}.yaml"
    assert read_problem(path).system == preset(name)
    assert path.read_text(encoding="utf-8") == preset_file(name)
    assert len(path.read_text(encoding="utf-8").splitlines()) < 25


def test_every_example_reads() -> None:
    paths = sorted(EXAMPLES.glob("*.yaml"))
    assert {path.stem for path in paths} >= set(preset_names())
    for path in paths:
        assert read_problem(path).reduced


def test_the_paper_systems() -> None:
    assert preset("a100-4x16") == System([Level("node", 4, "8 GB/s", "20 us"), Level("gpu", 16, "270 GB/s", "3 us")])
    assert preset("a100-2x16") == System([Level("node", 2, "8 GB/s", "20 us"), Level("gpu", 16, "270 GB/s", "3 us")])
    assert preset("v100-4x8") == System([Level("node", 4, "8 GB/s", "20 us"), Level("gpu", 8, "135 GB/s", "3 us")])
    assert preset("v100-2x8") == System([Level("node", 2, "8 GB/s", "20 us"), Level("gpu", 8, "135 GB/s", "3 us")])


def test_ten_h100_nodes_are_the_worked_example_of_section_6() -> None:
    worked = System([Level("node", 10, "400 GB/s", "8 us", "50 GB/s"), Level("gpu", 8, "450 GB/s", "2 us")])
    assert preset("dgx-h100", {"node": 10}) == worked


@pytest.mark.parametrize(
    ("name", "uplinks", "per_device"),
    [
        ("dgx-h100", (400, 450), (50, None)),
        ("h100-pod", (12800, 400, 450), (50, 50, None)),
        ("gb200-nvl72", (3600, 900), (50, None)),
        ("tpu-v4", (1440, 360, 90), (90, 90, None)),
        ("tpu-v5e", (1600, 100), (100, None)),
        ("tpu-v5p", (3200, 800, 200), (200, 200, None)),
    ],
)
def test_figures_in_one_direction(name: str, uplinks: tuple[int, ...], per_device: tuple[int | None, ...]) -> None:
    levels = preset(name).levels
    assert [level.bandwidth for level in levels] == [figure * GB for figure in uplinks]
    assert [level.per_device for level in levels] == [None if figure is None else figure * GB for figure in per_device]


def test_an_uplink_of_own_links_grows_with_what_is_below_it() -> None:
    half = preset("dgx-h100", {"gpu": 4})
    assert half.levels[0].bandwidth == 200 * GB
    assert half.levels[0].per_device == 50 * GB
    alone = preset("dgx-h100", {"gpu": 1}).levels[0]
    assert (alone.bandwidth, alone.per_device) == (Fraction(50 * GB), None)
    assert preset("tpu-v4", {"chip": 8}).levels[0].bandwidth == 8 * 4 * 90 * GB


@pytest.mark.parametrize(
    ("name", "sizes", "named"),
    [
        ("dgx-h10", {}, ["'dgx-h10'", "did you mean 'dgx-h100'", "tpu-v5e"]),
        ("dgx-h100", {"nodes": 2}, ["'nodes'", "node, gpu"]),
        ("dgx-h100", {"gpu": 9}, ["'gpu'", "9", "1 to 8"]),
        ("dgx-h100", {"node": 0}, ["'node'", "0"]),
        ("dgx-h100", {"node": True}, ["'node'", "True"]),
        ("dgx-h100", {"node": "4"}, ["'node'", "str"]),
        ("gb200-nvl72", {"gpu": 10**5000}, ["'gpu'"]),
    ],
)
def test_bad_presets_are_refused(name: str, sizes: dict[str, int], named: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        preset(name, sizes)
    for word in named:
        assert word in str(caught.value)


def test_presets_say_what_is_assumed_and_what_a_torus_is_not() -> None:
    for one in PRESETS:
        assert "assumption" in one.source
        if one.name.startswith("tpu"):
            assert "not a tree" in one.leaves_out
    for name in ("v100-2x8", "v100-4x8"):
        assert "PCIe" in find_preset(name).leaves_out
