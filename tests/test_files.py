"""Files in and out (model, section 8): what is written reads back, and what is wrong is said in one line."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from files_support import GOOD, SCHEDULE, SPLIT, WORDS, put, refusal
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smtsynth.errors import InputError
from smtsynth.interfaces.files import problem_data, problem_of, problem_text, read_problem, write_text
from smtsynth.interfaces.programs import program_or_schedule_of, read_program_or_schedule
from smtsynth.interfaces.tables import MAX_DEPTH, Items, Table
from smtsynth.interfaces.yamltext import MAX_BYTES, parse_data, read_data
from smtsynth.model.placement import Axis
from smtsynth.model.presets import preset
from smtsynth.model.problem import Limits, Problem, Reduction
from smtsynth.model.program import Collective
from smtsynth.model.system import Level, System

# Problems


def test_the_problem_of_section_8(tmp_path: Path) -> None:
    problem = read_problem(put(tmp_path, GOOD))
    assert problem == Problem(
        System([Level("node", 4, "8 GB/s", "20 us"), Level("gpu", 16, "270 GB/s", "3 us")]),
        (Axis("data", 4), Axis("shard", 16)),
        Reduction(["data"], "8 GiB"),
        Limits(steps=5),
    )


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    data = read_data(put(tmp_path, GOOD))
    as_json = json.dumps(data, indent=1)
    expected = read_problem(put(tmp_path, GOOD))
    assert read_problem(put(tmp_path, as_json, "p.json")) == expected
    assert read_problem(put(tmp_path, as_json, "p.yml")) == expected
    assert read_problem(put(tmp_path, as_json.replace("\n", "\n\t"), "p.JSON")) == expected


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_with_a_byte_order_mark_and_windows_line_ends(tmp_path: Path, codec: str) -> None:
    assert read_problem(put(tmp_path, GOOD.replace("\n", "\r\n").encode(codec))).system.sizes == (4, 16)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert read_problem("-") == read_problem(put(tmp_path, GOOD))
    monkeypatch.setattr(sys, "stdin", io.StringIO("axes: 3\n"))
    assert refusal(read_problem, "-").startswith("standard input:1: key system: is missing")
    monkeypatch.setattr(sys, "stdin", None)
    assert refusal(read_problem, "-").startswith("standard input: is empty")


def test_quantities_are_exact(tmp_path: Path) -> None:
    text = GOOD.replace("20 us", "0.1 us").replace("8 GiB", "8e9").replace("8 GB/s", "400 Gbit/s")
    problem = read_problem(put(tmp_path, text))
    assert problem.system.levels[0].latency == Fraction(1, 10**7)
    assert problem.system.levels[0].bandwidth == 50 * 10**9
    assert problem.reduction.payload == 8 * 10**9
    digits = "123456789012345.0123456789012345"
    bare = read_problem(put(tmp_path, GOOD.replace("8 GiB", digits)))
    assert bare.reduction.payload == Fraction(digits)
    as_json = json.dumps(read_data(put(tmp_path, GOOD))).replace('"8 GiB"', "0.1")
    assert read_problem(put(tmp_path, as_json, "p.json")).reduction.payload == Fraction(1, 10)


def test_limits_presets_and_collectives(tmp_path: Path) -> None:
    text = """\
system: {preset: dgx-h100, sizes: {node: 16}}
axes: {a: 128}
reduce: {over: [a], bytes: 1, collective: Reduce}
limits: {time: 1.5 s, memory: 2 GiB}
"""
    problem = read_problem(put(tmp_path, text))
    assert problem.system == preset("dgx-h100", {"node": 16})
    assert problem.reduction.collective is Collective.REDUCE
    assert problem.limits == Limits(None, 1.5, 2**31)


def test_axes_keep_the_order_of_the_file(tmp_path: Path) -> None:
    problem = read_problem(put(tmp_path, GOOD.replace("{data: 4, shard: 16}", "{shard: 16, data: 4}")))
    assert [axis.name for axis in problem.axes] == ["shard", "data"]
    assert problem.reduced == (1,)


WRONG = [
    # what is replaced, by what, the place, words of the message
    ("bandwidth: 8", "bandwith: 8", "3: key system.levels[0].bandwith", ["did you mean 'bandwidth'", "latency"]),
    ("limits", "limit", "8: key limit", ["did you mean 'limits'", "system, axes, reduce, limits"]),
    ("size: 4,", "size: 4, size: 4,", "3: key system.levels[0].size", ["twice"]),
    ("limits: {steps: 5}", "axes: {a: 4}", "8: key axes", ["twice", "line 6"]),
    ("axes: {data: 4, shard: 16}\n", "", "1: key axes", ["missing", "system, axes, reduce"]),
    ("name: gpu, ", "", "4: key system.levels[1].name", ["missing"]),
    ("size: 4,", "size: .nan,", "3: key system.levels[0].size", ["finite"]),
    ("8 GiB", ".inf", "7: key reduce.bytes", ["finite"]),
    ("8 GiB", "nan", "7: key reduce.bytes", ["'nan'"]),
    ("size: 4,", f"size: 1{'0' * 10000},", "3: key system.levels[0].size", ["too long"]),
    ("8 GiB", f"1{'0' * 10000} B", "7: key reduce.bytes", ["not a quantity"]),
    ("8 GiB", "1e999", "7: key reduce.bytes", ["too long"]),
    ("size: 4,", "size: yes,", "3: key system.levels[0].size", ["is true", "whole number"]),
    ("size: 4,", "size: '4',", "3: key system.levels[0].size", ["'4'", "whole number"]),
    ("size: 4,", "size: 4.0,", "3: key system.levels[0].size", ["4.0", "whole number"]),
    ("size: 4,", "size: 04,", "3: key system.levels[0].size", ["starts with a zero"]),
    ("size: 4,", "size: 0x4,", "3: key system.levels[0].size", ["'0x4'", "whole number"]),
    ("size: 4,", "size: 0,", "3: key system.levels[0].size", ["is 0", "from 1"]),
    ("size: 4,", "size: 2024-01-01,", "3: key system.levels[0].size", ["'2024-01-01'"]),
    ("size: 4,", "size: ,", "3: key system.levels[0].size", ["is empty"]),
    ("size: 4,", "size: [4],", "3: key system.levels[0].size", ["is a list"]),
    ("8 GB/s", "8", "3: key system.levels[0].bandwidth", ["no unit"]),
    ("8 GB/s", "yes", "3: key system.levels[0].bandwidth", ["is true"]),
    ("8 GB/s", "0 GB/s", "3: key system.levels[0].bandwidth", ["zero"]),
    ("8 GB/s", "8 GiB", "3: key system.levels[0].bandwidth", ["'GiB'", "GB/s"]),
    ("20 us", "-20 us", "3: key system.levels[0].latency", ["negative"]),
    ("0 us", "0", "3: key system.levels[0].latency", ["no unit"]),
    ("name: node", "name: root", "3: key system.levels[0].name", ["'root'"]),
    ("name: node", "name: no", "3: key system.levels[0].name", ["false", "quotes"]),
    ("name: node", "name: gpu", "2: key system.levels", ["two levels", "'gpu'"]),
    ("data: 4, shard", "4: 4, shard", "6: key axes", ["a key is 4"]),
    ("data: 4, shard", "on: 4, shard", "6: key axes", ["a key is true"]),
    ("data: 4, shard", "? [a] : 4, shard", "6: key axes", ["a list or a mapping"]),
    ("data: 4, shard", "a b: 4, shard", "6: key 'axes.a b'", ["axis name"]),
    ("shard: 16", "shard: 8", "6: key axes", ["4 * 8 = 32", "4 * 16 = 64"]),
    ("[data]", "[dta]", "7: key reduce.over[0]", ["did you mean 'data'", "data, shard"]),
    ("[data]", "data", "7: key reduce.over", ["'data'", "a list"]),
    ("[data]", "[]", "7: key reduce.over", ["no axis"]),
    ("[data]", "[data, data]", "7: key reduce.over", ["twice"]),
    ("8 GiB", "0", "7: key reduce.bytes", ["zero"]),
    ("8 GiB", "8 GiB, collective: AllRduce", "7: key reduce.collective", ["did you mean 'AllReduce'"]),
    ("8 GiB", "8 GiB, collective: {shard: AllReduce}", "7: key reduce.collective", ["'shard' is not reduced over"]),
    ("steps: 5", "steps: 65", "8: key limits.steps", ["from 1 to 64"]),
    ("steps: 5", "time: 60", "8: key limits.time", ["no unit"]),
    ("steps: 5", "memory: 0.5 B", "8: key limits.memory", ["less than a byte"]),
    ("system:\n", "system: &a\n", "1", ["anchor"]),
    ("{steps: 5}", "*a", "8", ["alias"]),
    ("{steps: 5}", "!!python/object:os.system {}", "8", ["tag"]),
    ("limits: {steps: 5}\n", "---\na: 1\n", "8", ["second YAML document"]),
    ("limits", "\tlimits", "8", ["a tab", "spaces"]),
    ("limits: {steps: 5}", "limits: {steps: 5", "9", ["bad YAML"]),
    ("limits: {steps: 5}", "limits: {steps: \x07}", "8", ["not text", "U+0007"]),
]


@pytest.mark.parametrize(("old", "new", "place", "words"), WRONG)
def test_what_is_wrong_is_said_with_file_line_and_key(
    tmp_path: Path, old: str, new: str, place: str, words: list[str]
) -> None:
    assert old in GOOD
    path = put(tmp_path, GOOD.replace(old, new, 1))
    line = refusal(read_problem, path)
    assert line.startswith(f"{path}:{place}: ")
    assert "; expected " in line
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty"]),
        ("  \n\n", ["is empty"]),
        ("# only this\n", ["is empty"]),
        ("hello\n", ["'hello'", "system, axes, reduce"]),
        ("- 1\n", ["is a list"]),
        (bytes(range(128, 256)), ["not text", "UTF-8"]),
        (GOOD.encode("utf-16-le"), ["not text", "U+0000"]),
        (b"\xff\xfe\x00", ["not text"]),
        (b"\x7fELF\x02\x01\x01\x00", ["not text"]),
        ("a: '", ["bad YAML"]),
        ("a: \x85\x9f", ["bad YAML"]),
        ("{a: &x [1], b: *x}", ["anchor or alias"]),
        ("b: *x", ["anchor or alias"]),
        ("[" * 2_000_000, ["nest"]),
        ("- " * 100_000, ["nest"]),
        ("a: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), ["nested too deeply", str(MAX_DEPTH)]),
        ("x: [" + "1," * 100_000 + "1]", ["too many values"]),
        ("x" * (MAX_BYTES + 1), ["too large", "16 MiB"]),
        ("".join(f"k{n}: 1\n" for n in range(20_000)), ["k0", "unknown"]),
        ("system: {preset: nothing}\naxes: {a: 1}\nreduce: {over: [a], bytes: 1}", ["key system.preset", "dgx-h100"]),
        ("system: {preset: dgx-h100, sizes: {gpu: 16}}\naxes: {}\nreduce: {}", ["system.sizes.gpu", "16", "1 to 8"]),
        ("system: {preset: dgx-h100, sizes: {gp: 4}}\naxes: {}\nreduce: {}", ["key system.sizes.gp", "'gpu'"]),
        ("system: {preset: dgx-h100, levels: []}\naxes: {}\nreduce: {}", ["key system.levels", "preset, sizes"]),
        ("system: {levels: []}\naxes: {}\nreduce: {}", ["key system.levels", "no levels"]),
        ("system: {levels: [" + "{name: a}," * 17 + "]}\naxes: {}\nreduce: {}", ["at most 16"]),
        (GOOD.replace("size: 4", "size: " + "1" * 500_000 + "x"), ["system.levels[0].size", "'111"]),
        (GOOD.replace("8 GiB", "8" + " " * 500_000 + "x y"), ["reduce.bytes", "'8"]),
        (GOOD.replace("8 GiB", "'8" + " " * 500_000 + "x y'"), ["reduce.bytes", "not a quantity"]),
        (GOOD.replace("name: node", "name: " + "n" * 500_000), ["system.levels[0].name", "'nnn"]),
        (GOOD.replace("data: 4", "d" * 900 + ": 4"), ["axes.ddd", "axis name"]),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_hopeless_files_are_refused_in_one_line(tmp_path: Path, text: str | bytes, words: list[str]) -> None:
    path = put(tmp_path, text)
    line = refusal(read_problem, path)
    assert line.startswith(str(path))
    for word in words:
        assert word in line
    refusal(read_program_or_schedule, path)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{"a": 1,\n "a": 2}', ":2: key a", ["twice, first on line 1"]),
        ('{"a": [0,\n {"b": NaN}]}', ":2: key a[1].b", ["NaN"]),
        ('{"a":\n -Infinity}', ":2: key a", ["-Infinity"]),
        ('{"a": [0,\n [1, NaN]]}', ":2: key a[1][1]", ["NaN"]),
        ('{"a": 1,}', ":1", ["bad JSON"]),
        ('{"a": 1}\n{"a": 1}', ":2", ["bad JSON"]),
        ("{'a': 1}", ":1", ["bad JSON"]),
        ('{"a": 1' + "0" * 10000 + "}", ":1: key a", ["too long"]),
        ('{"a": 1e400}', ":1: key a", ["too long"]),
        ("[" * 500_000, "", ["nested too deeply"]),
        ("[" * 2_000_000, "", ["too many values"]),
        ('{"a": ' + "[" * 60 + "]" * 60 + "}", ":1", ["nested too deeply"]),
        ("[" + "[]," * 3_000_000 + "1]", "", ["too many values"]),
        ('"' + "\\n" * 4_000_000 + '"', "", ["system, axes, reduce"]),
        ('{"system":\n {"levels": 3}, "axes": 1, "reduce": 1}', ":2: key system.levels", ["is 3"]),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_hopeless_json_is_refused_in_one_line(tmp_path: Path, text: str, place: str, words: list[str]) -> None:
    path = put(tmp_path, text, "p.json")
    line = refusal(read_problem, path)
    assert line.startswith(f"{path}{place}: ")
    for word in words:
        assert word in line


@pytest.mark.parametrize("as_json", [True, False])
def test_nesting_is_taken_up_to_the_limit(as_json: bool) -> None:
    inner = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert list(parse_data(f'{{"a": {inner}}}', "f", is_json=as_json)) == ["a"]
    with pytest.raises(InputError, match=f"^f:1: is nested too deeply; expected at most {MAX_DEPTH} levels$"):
        parse_data(f'{{"a": [{inner}]}}', "f", is_json=as_json)


def test_places_that_are_no_files(tmp_path: Path) -> None:
    assert "is a folder" in refusal(read_problem, tmp_path)
    assert "no such file" in refusal(read_problem, tmp_path / "nothing.yaml")
    assert "cannot be read" in refusal(read_problem, "a\0b")
    assert "cannot be read" in refusal(read_problem, "x" * 300)
    assert "no such file" in refusal(read_problem, tmp_path / "a\nb\udcff.yaml")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.booleans())
@example(b"? ? ? a", False)
@example(b"!<", False)
@example(b'"\\ud800"', True)
def test_random_bytes_never_give_anything_but_an_input_error(data: bytes, as_json: bool) -> None:
    try:
        text = data.decode("latin-1" if as_json else "utf-8", "replace")
        problem_of(parse_data(text, "f", is_json=as_json), "f")
    except InputError as error:
        assert str(error).isprintable()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_files_never_give_anything_but_an_input_error(data: st.DataObject) -> None:
    base = data.draw(st.sampled_from([GOOD, SCHEDULE, f"program: {SPLIT}\n", json.dumps(parse_data(GOOD, "f"))]))
    start = data.draw(st.integers(0, len(base)))
    stop = data.draw(st.integers(start, min(len(base), start + 20)))
    new = data.draw(st.text(alphabet="[]{}:,-&*!|>'\"%@`#?~ \n\t\\01.aeyn", max_size=8))
    text = base[:start] + new + base[stop:]
    for read in (problem_of, program_or_schedule_of):
        try:
            read(parse_data(text, "f", is_json=base.startswith("{")), "f")
        except InputError as error:
            assert str(error).isprintable()


def test_plain_data_without_lines() -> None:
    data = {"system": {"preset": "dgx-h100"}, "axes": {"a": 32}, "reduce": {"over": ("a",), "bytes": 2.0**20}}
    assert problem_of(data, "call").reduction.payload == 2**20
    with pytest.raises(InputError, match="^call: key axes.a: is 10"):
        problem_of(data | {"axes": {"a": 10**30}}, "call")
    with pytest.raises(InputError, match="^call: key axes.a: is a number of more than 40 digits"):
        problem_of(data | {"axes": {"a": 10**9000}}, "call")
    with pytest.raises(InputError, match="^call: key axes: a key is 4"):
        problem_of(data | {"axes": {4: 32}}, "call")
    with pytest.raises(InputError, match="^call: key reduce.bytes"):
        problem_of(data | {"reduce": {"over": ["a"], "bytes": float("nan")}}, "call")


def test_lines_and_values_of_a_reading() -> None:
    data = parse_data("a: [1,\n  two,\n  3.5]\nb:\n  c: ~\n  d: off\n  e: 'off'\n  f: 1_0\n", "f")
    assert data == {"a": [1, "two", Fraction(7, 2)], "b": {"c": None, "d": False, "e": "off", "f": "1_0"}}
    assert isinstance(data, Table) and isinstance(data["a"], Items)
    assert [data.line_of(key) for key in data] == [1, 4]
    assert [data["a"].line_of(index) for index in range(3)] == [1, 2, 3]
    assert [data["b"].line_of(key) for key in "cdef"] == [5, 6, 7, 8]


SIMPLE = st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.text(max_size=8))
DATA = st.recursive(SIMPLE, lambda data: st.lists(data) | st.dictionaries(st.text(max_size=5), data), max_leaves=8)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=5), DATA, min_size=1, max_size=4), st.sampled_from([None, 1]))
def test_json_is_read_as_the_standard_library_reads_it(data: dict[str, object], indent: int | None) -> None:
    assert parse_data(json.dumps(data, indent=indent), "f", is_json=True) == data


# Round trips


def quantities(unit: str) -> st.SearchStrategy[str]:
    return st.builds(lambda whole, part: f"{whole}.{part:03d} {unit}", st.integers(1, 10**6), st.integers(0, 999))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    count = len(sizes)
    names = draw(st.lists(WORDS, min_size=count, max_size=count, unique=True))
    levels = [
        Level(
            name,
            size,
            draw(quantities("GB/s")),
            draw(quantities("us")),
            draw(st.one_of(st.none(), quantities("Gbit/s"))),
        )
        for name, size in zip(names, sizes, strict=True)
    ]
    axis_names = draw(st.lists(WORDS, min_size=count, max_size=count, unique=True))
    axes = tuple(Axis(name, size) for name, size in zip(axis_names, draw(st.permutations(sizes)), strict=True))
    over = draw(st.lists(st.sampled_from(axis_names), min_size=1, unique=True))
    payload = Fraction(draw(st.integers(1, 2**60)), draw(st.sampled_from([1, 2, 10])))
    seconds = st.floats(1e-6, 1e6, allow_nan=False)
    limits = Limits(
        draw(st.one_of(st.none(), st.integers(1, 64))),
        draw(st.one_of(st.none(), seconds)),
        draw(st.one_of(st.none(), st.integers(1, 2**50))),
    )
    reduction = Reduction(over, payload, draw(st.sampled_from(Collective)))
    return Problem(System(levels, draw(quantities("ns"))), axes, reduction, limits)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_a_written_problem_reads_back(problem: Problem) -> None:
    assert problem_of(parse_data(problem_text(problem), "f"), "f") == problem
    assert problem_of(parse_data(json.dumps(problem_data(problem)), "f", is_json=True), "f") == problem
    assert problem_of(problem_data(problem), "f") == problem


# Writing


def test_a_file_is_written_whole_with_the_permissions_it_had(tmp_path: Path) -> None:
    path = tmp_path / "out.yaml"
    write_text(path, "a: 1\n")
    assert path.read_bytes() == b"a: 1\n"
    path.chmod(0o640)
    write_text(path, "a: ü\n")
    assert path.read_text(encoding="utf-8") == "a: ü\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["out.yaml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.yaml"
    path.write_text("old")
    with pytest.raises(InputError, match="cannot be written"):
        write_text(path, "half\udcff")

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.yaml"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "such" / "folder.yaml", "a\0b"):
        with pytest.raises(InputError, match="cannot be written") as caught:
            write_text(path, "text")
        assert str(caught.value).isprintable()
    write_text("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
