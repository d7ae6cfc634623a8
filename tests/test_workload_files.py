"""Workload files: what is written reads back, and what is wrong is said in one line."""

from __future__ import annotations

import io
import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from cli_support import ROOT
from files_support import GOOD as PROBLEM
from files_support import WORDS, put, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.errors import InputError
from smtsynth.interfaces.files import read_problem
from smtsynth.interfaces.workloads import (
    is_workload,
    read_problem_or_workload,
    read_workload,
    workload_of,
    workload_text,
)
from smtsynth.interfaces.yamltext import parse_data, read_data
from smtsynth.model.placement import Axis, count_placements, placements
from smtsynth.model.presets import preset
from smtsynth.model.problem import Limits, Problem, Reduction
from smtsynth.model.program import Collective
from smtsynth.model.system import Level, System
from smtsynth.model.workload import Constraint, NamedReduction, Pattern, Traffic, Workload
from smtsynth.workloads.dense import dense_step
from smtsynth.workloads.known import find_model
from smtsynth.workloads.moe import moe_step
from smtsynth.workloads.shape import Mixture, Sizes, Training

EXAMPLES = sorted((ROOT / "examples" / "workloads").glob("*.yaml"))
GOOD = """\
system:
  levels:
    - {name: node, size: 4, bandwidth: 8 GB/s, latency: 20 us}
    - {name: gpu, size: 16, bandwidth: 270 GB/s, latency: 3 us}
axes: {stage: 2, data: 4, shard: 4, tensor: 2}
reductions:
  - {name: parameters, over: [shard], collective: AllGather, bytes: 1 GiB, count: 64}
  - {name: gradients, over: [data, shard], bytes: 2 GiB, collective: {data: AllReduce, shard: ReduceScatter}}
  - {name: activations, over: [tensor], bytes: 67108864, count: 128}
traffic:
  - {name: stages, axis: stage, pattern: point-to-point, bytes: 64 MiB, count: 32}
  - {name: tokens, axis: data, pattern: all-to-all, bytes: 0.5 B}
constraints:
  - {axis: tensor, inside: node}
  - {axis: shard, unsplit: true}
  - {axis: data, level: node, factor: 2}
limits: {steps: 5, time: 90 s}
"""
MADE = """\
system: {preset: dgx-h100, sizes: {node: 8}}
axes: {pipeline: 2, tensor: 4, data: 8}
model: {kind: dense, like: llama-3-8b, sequence: 8192, global_batch: 128, sequence_parallel: true}
constraints:
  - {axis: tensor, inside: node}
"""


def test_a_workload(tmp_path: Path) -> None:
    found = read_workload(put(tmp_path, GOOD))
    assert found == Workload(
        System([Level("node", 4, "8 GB/s", "20 us"), Level("gpu", 16, "270 GB/s", "3 us")]),
        (Axis("stage", 2), Axis("data", 4), Axis("shard", 4), Axis("tensor", 2)),
        [
            NamedReduction("parameters", Reduction(["shard"], "1 GiB", "AllGather"), 64),
            NamedReduction(
                "gradients", Reduction(["data", "shard"], "2 GiB", {"data": "AllReduce", "shard": "ReduceScatter"})
            ),
            NamedReduction("activations", Reduction(["tensor"], "64 MiB"), 128),
        ],
        [
            Traffic("stages", "stage", "point-to-point", "64 MiB", 32),
            Traffic("tokens", "data", "all-to-all", Fraction(1, 2)),
        ],
        [
            Constraint("tensor", inside="node"),
            Constraint("shard", unsplit=True),
            Constraint("data", level="node", factor=2),
        ],
        Limits(steps=5, seconds=90.0),
    )
    assert found.reductions[1].reduction.split == ("shard",)
    assert found.reductions[1].count == 1


def test_json_and_yaml_and_standard_input_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_workload(put(tmp_path, GOOD))
    as_json = json.dumps(read_data(put(tmp_path, GOOD)), default=str)
    assert read_workload(put(tmp_path, as_json, "w.json")) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert read_problem_or_workload("-") == expected


def test_problem_or_workload(tmp_path: Path) -> None:
    problem, workload = put(tmp_path, PROBLEM), put(tmp_path, GOOD, "w.yaml")
    made = put(tmp_path, MADE, "m.yaml")
    assert isinstance(read_problem_or_workload(problem), Problem)
    assert read_problem_or_workload(problem) == read_problem(problem)
    assert read_problem_or_workload(workload) == read_workload(workload)
    assert read_problem_or_workload(made) == read_workload(made)
    assert [is_workload(read_data(path)) for path in (problem, workload, made)] == [False, True, True]
    assert not is_workload([1]) and not is_workload({"system": 1})


def test_each_reader_says_what_the_other_file_is(tmp_path: Path) -> None:
    line = refusal(read_problem, put(tmp_path, GOOD))
    assert "p.yaml:1: holds several reductions (a workload); expected a problem with one `reduce`" in line
    assert "holds several reductions" in refusal(read_problem, put(tmp_path, MADE))
    line = refusal(read_workload, put(tmp_path, PROBLEM))
    assert "p.yaml:1: is a problem of one reduction (`reduce`); expected a workload: `reductions`" in line
    both = GOOD + "reduce: {over: [data], bytes: 1}\n"
    assert "has `reductions` beside `reduce`" in refusal(read_workload, put(tmp_path, both))
    assert "has `reductions` beside `reduce`" in refusal(read_problem_or_workload, put(tmp_path, both))


WRONG = [
    # what is replaced, by what, the place, words of the message
    ("over: [tensor]", "over: [tensr]", "9: key reductions[2].over[0]", ["'tensr' is unknown, did you mean 'tensor'?"]),
    ("over: [tensor]", "over: []", "9: key reductions[2].over", ["no axis to reduce over"]),
    ("over: [tensor]", "over: [tensor, tensor]", "9: key reductions[2].over", ["twice"]),
    ("over: [tensor]", "over: tensor", "9: key reductions[2].over", ["a list of axis names"]),
    ("AllGather", "Allgather", "7: key reductions[0].collective", ["did you mean 'AllGather'?", "ReduceScatter"]),
    ("shard: ReduceScatter", "shard: Scatter", "8: key reductions[1].collective.shard", ["is unknown"]),
    ("shard: ReduceScatter", "tensor: ReduceScatter", "8: key reductions[1].collective", ["'tensor' is not reduced"]),
    ("shard: ReduceScatter", "shard: AllGather", "8: key reductions[1].collective", ["a mix of"]),
    (", shard: ReduceScatter", "", "8: key reductions[1].collective", ["axis 'shard' has none"]),
    (", bytes: 67108864", "", "9: key reductions[2].bytes", ["is missing", "name, over, bytes"]),
    ("67108864", "-1", "9: key reductions[2].bytes", ["negative"]),
    ("67108864", "0", "9: key reductions[2].bytes", ["is zero"]),
    ("67108864", "64 MB/s", "9: key reductions[2].bytes", ["does not fit"]),
    ("count: 128", "count: -1", "9: key reductions[2].count", ["is -1", "a whole number from 1"]),
    ("count: 128", "count: 0", "9: key reductions[2].count", ["is 0"]),
    ("count: 128", "count: 1.5", "9: key reductions[2].count", ["is 1.5"]),
    ("count: 128", "count: true", "9: key reductions[2].count", ["is true"]),
    ("count: 128", "count: 1000000001", "9: key reductions[2].count", ["from 1 to 1000000000"]),
    ("count: 128", "cuont: 128", "9: key reductions[2].cuont", ["did you mean 'count'?"]),
    ("name: activations", "name: gradients", "9: key reductions[2].name", ["two entries are named 'gradients'"]),
    ("name: activations", "name: 7", "9: key reductions[2].name", ["is 7", "name"]),
    ("name: activations", "name: a b", "9: key reductions[2].name", ["cannot be used"]),
    ("name: activations, ", "", "9: key reductions[2].name", ["is missing"]),
    ("name: stages", "name: gradients", "11: key traffic[0].name", ["two entries are named", "reductions[1]"]),
    ("axis: stage", "axis: stages", "11: key traffic[0].axis", ["did you mean 'stage'?"]),
    ("point-to-point", "ring", "11: key traffic[0].pattern", ["'ring' is unknown", "point-to-point, all-to-all"]),
    (", bytes: 64 MiB, count: 32", "", "11: key traffic[0].bytes", ["is missing"]),
    ("count: 32", "count: -32", "11: key traffic[0].count", ["is -32"]),
    ("inside: node", "inside: nod", "14: key constraints[0].inside", ["did you mean 'node'?", "node, gpu"]),
    ("level: node", "level: rack", "16: key constraints[2].level", ["'rack' is unknown", "node, gpu"]),
    ("axis: tensor, inside", "axis: model, inside", "14: key constraints[0].axis", ["'model' is unknown"]),
    (
        "inside: node",
        "inside: node, unsplit: true",
        "14: key constraints[0]",
        ["inside and unsplit", "one of the three"],
    ),
    ("inside: node", "inside: node, level: gpu, factor: 2", "14: key constraints[0]", ["inside and level and factor"]),
    (", level: node, factor: 2", ", level: node", "16: key constraints[2]", ["has level;", "level and factor"]),
    (", level: node, factor: 2", ", factor: 2", "16: key constraints[2]", ["has factor;", "level and factor"]),
    (", inside: node", "", "14: key constraints[0]", ["says nothing"]),
    ("unsplit: true", "unsplit: false", "15: key constraints[1].unsplit", ["is false", "true"]),
    ("unsplit: true", "unsplit: 1", "15: key constraints[1].unsplit", ["is 1", "true or false"]),
    ("factor: 2", "factor: 0", "16: key constraints[2].factor", ["is 0"]),
    ("axes: {stage: 2", "axes: {stage: 3", "5: key axes", ["do not match"]),
    ("axes: {stage: 2, data: 4, shard: 4, tensor: 2}\n", "", "1: key axes", ["is missing"]),
    ("steps: 5", "steps: 0", "17: key limits.steps", ["is 0"]),
    ("limits:", "limit:", "17: key limit", ["did you mean 'limits'?"]),
    ("size: 16", "size: 16, speed: 3", "4: key system.levels[1].speed", ["is unknown"]),
]


@pytest.mark.parametrize(("old", "new", "place", "words"), WRONG)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, old: str, new: str, place: str, words: list[str]) -> None:
    assert GOOD.count(old) == 1
    line = refusal(read_problem_or_workload, put(tmp_path, GOOD.replace(old, new)))
    assert f"p.yaml:{place}: " in line
    for word in words:
        assert word in line


REDUCTIONS = GOOD[GOOD.index("reductions:") : GOOD.index("traffic:")]
TRAFFIC = GOOD[GOOD.index("traffic:") : GOOD.index("constraints:")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace(REDUCTIONS, "reductions: []\n"), "p.yaml:6: key reductions: is empty; expected at least one"),
        (
            GOOD.replace(REDUCTIONS, "reductions:\n"),
            "p.yaml:6: key reductions: is empty; expected a list of reductions",
        ),
        (GOOD.replace(REDUCTIONS, "reductions: {a: 1}\n"), "p.yaml:6: key reductions: is a mapping"),
        (GOOD.replace(REDUCTIONS, "reductions: [1]\n"), "p.yaml:6: key reductions[0]: is 1"),
        (GOOD.replace(TRAFFIC, "traffic: 3\n"), "p.yaml:10: key traffic: is 3; expected a list of traffic"),
        (GOOD.replace(REDUCTIONS, "").replace(TRAFFIC, ""), "p.yaml:1: a workload has no reductions"),
        (GOOD.replace(REDUCTIONS + TRAFFIC, "reductions: []\ntraffic: []\n"), "key reductions: is empty"),
        (GOOD.replace(REDUCTIONS, "reductions: [" + "{}, " * 257 + "]\n"), "holds 257 entries; expected at most 256"),
        ("- 1\n", "p.yaml:1: is a list"),
        ("reductions: [\n", "p.yaml:2: bad YAML"),
        ("reductions: &a []\n", "p.yaml:1: uses a YAML anchor"),
        ("", "p.yaml: is empty"),
        ("reductions: []\nreductions: []\n", "p.yaml:2: key reductions: is there twice"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(read_workload, put(tmp_path, text))


def test_there_may_be_traffic_alone(tmp_path: Path) -> None:
    found = read_workload(put(tmp_path, GOOD.replace(REDUCTIONS, "")))
    assert found.reductions == () and len(found.traffic) == 2
    assert workload_of(parse_data(workload_text(found), "x"), "x") == found


# Ready-made


def test_a_model_takes_its_sizes_from_the_axes(tmp_path: Path) -> None:
    found = read_workload(put(tmp_path, MADE))
    training = Training(sequence=8192, global_batch=128, sequence_parallel=True)
    step = dense_step(find_model("dense", "llama-3-8b"), Sizes(pipeline=2, tensor=4, data=8), training)
    assert found.reductions == step.reductions and found.traffic == step.traffic
    assert [axis.name for axis in found.axes] == ["pipeline", "tensor", "data"]
    assert found.constraints == (Constraint("tensor", inside="node"),)
    assert found.system == preset("dgx-h100", {"node": 8})
    own = MADE.replace("global_batch: 128", "global_batch: 128, kv_heads: 32, gradient_bytes: 2, tied: yes")
    other = read_workload(put(tmp_path, own))
    assert other.reductions[0].reduction.payload != found.reductions[0].reduction.payload
    ones = read_workload(put(tmp_path, MADE.replace("axes: {", "axes: {context: 1, ")))
    assert ones.reductions == found.reductions


def test_a_mixture_of_experts_written_out(tmp_path: Path) -> None:
    text = """\
system: {preset: dgx-h100}
axes: {data: 4, expert: 8}
model:
  {kind: moe, layers: 2, hidden: 8, ffn: 32, heads: 4, vocabulary: 100, experts: 8, active: 2, sequence: 4,
   global_batch: 32}
limits: {steps: 3}
"""
    found = read_workload(put(tmp_path, text))
    shape = Mixture(layers=2, hidden=8, ffn=32, heads=4, vocabulary=100, experts=8, active=2)
    step = moe_step(shape, Sizes(data=4, expert=8), Training(sequence=4, global_batch=32))
    assert (found.reductions, found.traffic, found.limits.steps) == (step.reductions, step.traffic, 3)


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("kind: dense, ", "", "3: key model.kind", ["is missing"]),
        ("kind: dense", "kind: sparse", "3: key model.kind", ["'sparse' is unknown", "dense, moe"]),
        ("llama-3-8b", "llama-3-9b", "3: key model.like", ["did you mean 'llama-3-8b'?"]),
        ("like: llama-3-8b, ", "", "3: key model.layers", ["is missing", "Transformer layers"]),
        (", global_batch: 128", "", "3: key model.global_batch", ["is missing"]),
        ("global_batch: 128", "global_batch: 12", "3: key model.global_batch", ["not shared evenly", "multiple of 8"]),
        ("sequence: 8192", "sequence: 8 KiB", "3: key model.sequence", ["'8 KiB'", "a whole number"]),
        ("sequence: 8192", "sequnce: 8192", "3: key model.sequnce", ["did you mean 'sequence'?"]),
        ("sequence: 8192", "sequence: 8192, experts: 8", "3: key model.experts", ["is unknown"]),
        ("parallel: true", "parallel: 1", "3: key model.sequence_parallel", ["true or false"]),
        ("sequence: 8192", "sequence: 8193", "3: key model.sequence_parallel", ["does not divide"]),
        ("tensor: 4, data: 8", "model: 4, data: 8", "2: key axes", ["'model' has no part", "pipeline, data, shard"]),
        ("tensor: 4, data: 8", "expert: 4, data: 8", "2: key axes", ["no experts"]),
        ("global_batch: 128", "global_batch: 128, interleave: 17", "3: key model.interleave", ["can't fill 34 chunks"]),
        ("pipeline: 2, tensor: 4, data: 8", "tensor: 64", "2: key axes.tensor", ["tensor 64 does not divide heads 32"]),
        ("constraints:", "reductions: []\nconstraints:", "4: key reductions", ["beside `model`"]),
        ("constraints:", "traffic: []\nconstraints:", "4: key traffic", ["beside `model`"]),
        ("inside: node", "inside: su", "5: key constraints[0].inside", ["'su' is unknown"]),
    ],
)
def test_what_is_wrong_with_a_model(tmp_path: Path, old: str, new: str, place: str, words: list[str]) -> None:
    text = MADE.replace("axis: tensor", "axis: data") if old.startswith("tensor: 4") else MADE
    assert text.count(old) == 1
    line = refusal(read_problem_or_workload, put(tmp_path, text.replace(old, new)))
    assert f"p.yaml:{place}: " in line
    for word in words:
        assert word in line


def test_a_model_on_one_device_communicates_nothing(tmp_path: Path) -> None:
    text = MADE[: MADE.index("constraints")].replace("sizes: {node: 8}", "sizes: {node: 1, gpu: 1}")
    text = text.replace("pipeline: 2, tensor: 4, data: 8", "data: 1")
    assert "p.yaml:3: key model: a workload has no reductions" in refusal(read_workload, put(tmp_path, text))


# Written and read again

decimals = st.integers(1, 10**12).map(lambda n: Fraction(n, 1000))
counts = st.one_of(st.just(1), st.integers(1, 10**9))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    names = draw(st.lists(WORDS, min_size=len(sizes), max_size=len(sizes), unique=True))
    levels = [
        Level(name, size, draw(decimals), draw(decimals) / 10**6, draw(st.none() | decimals))
        for name, size in zip(names, sizes, strict=True)
    ]
    system = System(levels, draw(st.sampled_from([0, Fraction(1, 10**6)])))
    axes = [Axis(name, size) for name, size in zip(draw(st.permutations(names)), sizes, strict=True)]
    known = [axis.name for axis in axes]
    entries = draw(st.lists(WORDS, min_size=1, max_size=6, unique=True))
    cut = draw(st.integers(0, len(entries)))
    reductions, traffic = [], []
    for name in entries[:cut]:
        over = draw(st.lists(st.sampled_from(known), min_size=1, unique=True))
        kinds = st.sampled_from([Collective.ALL_REDUCE, Collective.REDUCE_SCATTER])
        mix = st.fixed_dictionaries(dict.fromkeys(over, kinds))
        collective = draw(st.sampled_from(Collective) | mix)
        reductions.append(NamedReduction(name, Reduction(over, draw(decimals), collective), draw(counts)))
    for name in entries[cut:]:
        pattern = draw(st.sampled_from(Pattern))
        traffic.append(Traffic(name, draw(st.sampled_from(known)), pattern, draw(decimals), draw(counts)))
    constraint = st.one_of(
        st.builds(Constraint, st.sampled_from(known), inside=st.sampled_from(names)),
        st.builds(Constraint, st.sampled_from(known), unsplit=st.just(True)),
        st.builds(Constraint, st.sampled_from(known), level=st.sampled_from(names), factor=st.integers(1, 99)),
    )
    limits = Limits(draw(st.none() | st.integers(1, 64)), draw(st.none() | st.sampled_from([0.5, 60.0, 1e-3])))
    return Workload(system, axes, reductions, traffic, draw(st.lists(constraint, max_size=4)), limits)


comments = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=200)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(workloads(), comments)
def test_written_and_read_again(workload: Workload, comment: str) -> None:
    plain = workload_text(workload)
    assert workload_of(parse_data(plain, "x"), "x") == workload
    names = [one.name for one in (*workload.reductions, *workload.traffic)]
    noted = workload_text(workload, dict.fromkeys(names, comment), [comment])
    assert workload_of(parse_data(noted, "x"), "x") == workload
    as_json = json.dumps(parse_data(plain, "x"), default=str)
    assert workload_of(parse_data(as_json, "x", is_json=True), "x") == workload


def test_a_text_people_can_read() -> None:
    system = System([Level("node", 2, "8 GB/s", "20 us")])
    workload = Workload(system, {"data": 2}, [NamedReduction("grads", Reduction(["data"], "2 GiB"), 3)])
    assert workload_text(workload, {"grads": "what it is"}, ["a head"]) == (
        "# a head\n"
        "system:\n"
        "  levels:\n"
        "  - {name: node, size: 2, bandwidth: 8 GB/s, latency: 20 us}\n"
        "axes: {data: 2}\n"
        "reductions:\n"
        "  # what it is\n"
        "  - {name: grads, over: [data], bytes: 2 GiB, count: 3}\n"
    )


def test_what_has_no_short_decimal_can_t_be_written() -> None:
    system = System([Level("node", 2, "8 GB/s", "20 us")])
    workload = Workload(system, {"data": 2}, [NamedReduction("grads", Reduction(["data"], Fraction(1, 3)))])
    with pytest.raises(InputError, match="no short decimal"):
        workload_text(workload)


# Examples


def test_there_are_examples() -> None:
    names = {path.name for path in EXAMPLES}
    assert {"llama-405b-2048.yaml", "moe-1024.yaml", "four-levels-1024.yaml", "five-levels-65536.yaml"} <= names
    assert len(names) >= 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_reads(path: Path) -> None:
    found = read_workload(path)
    assert workload_of(parse_data(workload_text(found), "x"), "x") == found
    assert count_placements(found.axes, found.system) > 1
    if found.system.devices <= 64:
        matrices = [one.matrix for one in placements(found.system, found.axes)]
        allowed = [matrix for matrix in matrices if not found.broken(matrix)]
        assert allowed and (len(allowed) < len(matrices)) == bool(found.constraints)
    number = path.stem.rsplit("-", 1)[1]
    assert found.system.devices == int(number)


def shape_of_example(name: str) -> tuple[tuple[int, ...], int, int]:
    found = read_workload(ROOT / "examples" / "workloads" / name)
    return found.system.sizes, len(found.axes), len(found.reductions)


def test_the_large_examples_have_the_shapes_they_are_named_for() -> None:
    assert shape_of_example("four-levels-1024.yaml") == ((2, 4, 16, 8), 4, 3)
    sizes, axes, _ = shape_of_example("five-levels-65536.yaml")
    assert (len(sizes), axes) == (5, 5)
    sizes, axes, _ = shape_of_example("llama-405b-2048.yaml")
    assert (len(sizes), sizes[-1], axes) == (4, 8, 4)


def test_the_large_examples_are_what_the_formulas_say() -> None:
    found = read_workload(ROOT / "examples" / "workloads" / "llama-405b-2048.yaml")
    sizes = Sizes.of({axis.name: axis.size for axis in found.axes})
    training = Training(sequence=8192, global_batch=512, sequence_parallel=True, reshard=False)
    step = dense_step(find_model("dense", "llama-3-405b"), sizes, training)
    assert (found.reductions, found.traffic) == (step.reductions, step.traffic)
    found = read_workload(ROOT / "examples" / "workloads" / "moe-1024.yaml")
    sizes = Sizes.of({axis.name: axis.size for axis in found.axes})
    shape = find_model("moe", "deepseek-v3")
    assert isinstance(shape, Mixture)
    step = moe_step(shape, sizes, Training(sequence=4096, global_batch=15360, shard_optimizer=True))
    assert (found.reductions, found.traffic) == (step.reductions, step.traffic)
    assert found.system == preset("h100-pod")
