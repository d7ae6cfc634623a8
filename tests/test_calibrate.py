"""Calibration: every form of nccl-tests' output, curves, levels, the predicted cluster, and the command."""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth import InputError, compare, read_problem, solve
from smtsynth.calibrate.levels import COLLECTIVES, crossover, curves, fit_system, hierarchical, predict
from smtsynth.calibrate.nccl import Run, read_runs
from smtsynth.calibrate.picture import picture
from smtsynth.calibrate.pieces import fit_pieces, fit_run
from smtsynth.cost.models import alpha_beta, cost_model_of
from smtsynth.interfaces.cli import cli
from smtsynth.model.program import Collective

# Logs of their forms, made here: a ring of n devices with `alpha` seconds a hop and `beta` bytes/s an edge.

NEW = "#       size         count      type   redop    root" + 2 * "     time   algbw   busbw #wrong"
OLD = "#       size         count      type   redop" + 2 * "     time   algbw   busbw  error"


def row(size: int, seconds: float, ratio: float, words: str = "float     sum      -1", wrong: str = "0") -> str:
    rate = size / seconds / 1e9
    half = f"{seconds * 1e6:.4f} {rate:.3f} {rate * ratio:.3f} {wrong}"
    return f"{size} {size // 4} {words} {half} {half}"


def log(name: str, nodes: int, devices: int, alpha: float, beta: float, sizes: range = range(25, 34)) -> str:
    once = (devices - 1) / devices
    factor = 2 if name == "all_reduce" else 1
    lines = [f"# Collective test starting: {name}_perf", "# nThread 1 nGpus 1", "#"]
    for rank in range(devices):
        lines.append(f"#  Rank {rank:2} Group  0 Pid 77 on host-{rank * nodes // devices} device  0 [0x27] GPU")
    lines.append(NEW)
    for power in sizes:
        seconds = factor * ((devices - 1) * alpha + once * 2**power / beta)
        lines.append(row(2**power, seconds, factor * once))
    return "\n".join(lines) + "\n# Avg bus bandwidth    : 1\n"


def put(folder: Path, text: str | bytes, name: str = "a.log") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_runs(path)
    line = str(caught.value)
    assert "\n" not in line and line.isprintable()
    return line


def test_a_run_with_its_ranks(tmp_path: Path) -> None:
    (run,) = read_runs(put(tmp_path, log("all_gather", 2, 4, 1e-6, 1e9)))
    assert (run.collective, run.devices, run.nodes, len(run.samples), run.skipped) == ("all_gather", 4, 2, 9, 0)
    assert run.samples[0].size == 2**25
    assert float(run.samples[0].seconds) == pytest.approx(3e-6 + 0.75 * 2**25 / 1e9, rel=1e-6)


def test_several_runs_noise_and_size_0(tmp_path: Path) -> None:
    text = log("all_reduce", 1, 4, 1e-6, 1e9) + "host:1 [0] NCCL INFO Channel 00/0\n" + log("alltoall", 1, 2, 1e-6, 1e9)
    lines = text.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("33554432"))
    lines[at + 1 : at + 1] = ["host:1:1 [0] NCCL INFO comm 0x1 rank 0", "0 0 float sum -1 0.9 0 0 0 0.9 0 0 0"]
    found = read_runs(put(tmp_path, "\n".join(lines)))
    assert [(run.collective, run.devices, len(run.samples), run.skipped) for run in found] == [
        ("all_reduce", 4, 9, 1),
        ("alltoall", 2, 9, 0),
    ]


def test_launchers_prefixes_at_line_start_and_inside_rows(tmp_path: Path) -> None:
    lines = []
    for line in log("reduce_scatter", 1, 8, 1e-6, 1e9).splitlines():
        words = line.split(" ")
        if line[:1].isdigit():
            parts = [" ".join(words[:5]), "  " + " ".join(words[5:9]), " " + " ".join(words[9:])]
            line = "[1,0]<stdout>:".join(parts)
        lines.append("[1,0]<stdout>:" + line)
    (run,) = read_runs(put(tmp_path, "\n".join(lines)))
    assert (run.collective, run.devices, len(run.samples)) == ("reduce_scatter", 8, 9)


def test_the_old_layout_without_ranks_or_name(tmp_path: Path) -> None:
    rows = [row(2**power, 2**power / 1e9, 2 * 15 / 16, "float     sum", "4e-07") for power in range(20, 30)]
    (run,) = read_runs(put(tmp_path, "\n".join([OLD, *rows])))
    assert (run.collective, run.devices, run.nodes, len(run.samples)) == ("all_reduce", 16, None, 10)
    (bare,) = read_runs(put(tmp_path, "\n".join(rows)))  # not even a heading
    assert (bare.collective, bare.devices) == ("all_reduce", 16)


def test_a_cut_rank_list_and_rows_that_cannot_be_used(tmp_path: Path) -> None:
    text = log("all_reduce", 9, 72, 1e-6, 1e9)
    ranks = [line for line in text.splitlines() if "Rank" in line]
    for line in ranks[:-1]:
        text = text.replace(line + "\n", "")
    (run,) = read_runs(put(tmp_path, text))
    assert (run.devices, run.nodes) == (72, None)
    text = log("all_gather", 2, 4, 1e-6, 1e9)
    for rank in (2, 3):
        text = text.replace(f"#  Rank {rank:2}", "#")
    (run,) = read_runs(put(tmp_path, text))
    assert (run.devices, run.nodes) == (4, None)
    rows = [line for line in log("alltoall", 1, 2, 1e-6, 1e9).splitlines() if line[:1].isdigit()]
    broken = [
        rows[0].replace(" 0 ", " 12 ", 1)[: len(rows[0])],  # wrong out of place: in place counts
        rows[1].replace(" 0", " N/A"),
        " ".join(rows[2].split()[:7]),  # cut
        rows[3].replace("float", "float") + " more words",
        " ".join(rows[4].split()[:5] + ["nan"] * 8),
    ]
    text = "\n".join(["# Collective test starting: alltoall_perf", *ranks[:2], NEW, *broken])
    (run,) = read_runs(put(tmp_path, text))
    assert (len(run.samples), run.skipped) == (3, 2)


def test_collectives_follow_from_the_figures_where_the_log_does_not_say(tmp_path: Path) -> None:
    for words, count, expected in (("float none -1", 4, "all_gather"), ("float sum -1", 4, "reduce_scatter")):
        text = "\n".join(
            f"{2**p} {2**p // 4 // count} {words} {1e6 * 2**p / 1e9} 1.0 0.75 0 1 1 1 0" for p in range(20, 25)
        )
        (run,) = read_runs(put(tmp_path, NEW + "\n" + text))
        assert (run.collective, run.devices) == (expected, 4)
    assert "doesn't say" in refusal(put(tmp_path, NEW + "\n1048576 262144 float sum -1 1000 1.0 1.0 0"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "a.log:1: ends without a row"),
        (b"hello\nworld\n", "a.log:2: ends without a row"),
        (b"# size\n\x00\x01\x02", "a.log:2: is not text"),
        (b"\xff\xfe" * 50, "ends without a row"),
        ((NEW + "\n").encode(), "a.log:1: ends without a row"),
    ],
)
def test_files_that_are_no_logs_are_refused_with_file_and_line(tmp_path: Path, text: bytes, words: str) -> None:
    assert words in refusal(put(tmp_path, text))


def test_figures_that_disagree_are_refused_with_their_line(tmp_path: Path) -> None:
    text = log("all_gather", 1, 8, 1e-6, 1e9).replace("all_gather", "all_reduce")
    assert "does not fit to algbw" in (line := refusal(put(tmp_path, text)))
    assert re.search(r"a\.log:\d+: ", line)
    assert "there" in refusal(tmp_path / "none.log") or "cannot be read" in refusal(tmp_path / "none.log")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_logs_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    text = log("all_reduce", 2, 4, 1e-6, 1e9) + log("sendrecv", 2, 4, 1e-6, 1e9).replace("0.75", "1")
    random_ = data.draw(st.randoms(use_true_random=False))
    raw = bytearray(text.encode())
    for _ in range(data.draw(st.integers(0, 12))):
        place = random_.randrange(len(raw))
        raw[place : place + random_.randrange(1, 9)] = random_.choice([b"", b"#", b"9", b" ", b"\n", b"\xff", b"-1e9"])
    cut = data.draw(st.integers(0, len(raw)))
    path = put(tmp_path_factory.mktemp("logs"), bytes(raw[:cut]))
    try:
        for run in read_runs(path):
            assert run.samples and run.devices >= 2
            fit_run(run)
    except InputError as error:
        assert re.match(r".*a\.log:\d+: ", str(error))


def test_a_noisy_file_of_300_kb(tmp_path: Path) -> None:
    random_ = random.Random(4)
    lines = []
    for line in log("all_reduce", 2, 4, 1e-6, 1e9).splitlines():
        lines += [f"host:{random_.randrange(999)}:1 [{i % 8}] NCCL INFO 0 {random_.random()}" for i in range(260)]
        lines.append(line)
    text = "\n".join(lines)
    assert len(text) > 200_000
    (run,) = read_runs(put(tmp_path, text))
    assert len(run.samples) == 9


# Curves and levels


def test_pieces_find_the_line_they_were_made_of() -> None:
    (piece,) = fit_pieces([(2**p, 5e-5 + 2**p / 3e9) for p in range(20, 32)])
    assert (piece.alpha, piece.rate) == (pytest.approx(5e-5), pytest.approx(3e9))
    assert (piece.first, piece.last, piece.error < 1e-9) == (2**20, 2**31, True)
    slow, fast = [(2**p, 1e-4 + 2**p / 1e9) for p in range(10, 20)], [(2**p, 2**p / 9e9) for p in range(24, 32)]
    first, second = fit_pieces(slow + fast)
    assert (first.last, second.first) == (2**19, 2**19 + 1)
    assert second.alpha == pytest.approx(0, abs=1e-9)
    (flat,) = fit_pieces([(2**p, 3e-5) for p in range(3, 9)])
    assert (flat.alpha, flat.rate) == (pytest.approx(3e-5), pytest.approx(1e15))
    (one,) = fit_pieces([(8, 1e-5)])
    assert one.alpha == pytest.approx(1e-5)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2**40), st.floats(1e-6, 10)), min_size=1, max_size=20))
def test_pieces_cover_every_point_once_and_have_no_negative_figures(points: list[tuple[int, float]]) -> None:
    pieces = fit_pieces(points)
    assert pieces[0].first == min(size for size, _ in points)
    assert pieces[-1].last == max(size for size, _ in points)
    assert all(two.first == one.last + 1 for one, two in zip(pieces, pieces[1:], strict=False))
    assert all(piece.alpha >= 0 and 0 < piece.rate <= 1.001e15 and piece.error >= 0 for piece in pieces)


def _runs(tmp_path: Path, *shapes: tuple[str, int, int, float, float]) -> list[Run]:
    return [run for n, shape in enumerate(shapes) for run in read_runs(put(tmp_path, log(*shape), f"{n}.log"))]


def test_levels_come_back_from_logs_that_they_made(tmp_path: Path) -> None:
    inside = [(name, 1, 8, 5e-6, 350e9) for name in ("all_gather", "reduce_scatter")]
    across = [(name, 10, 10, 9e-6, 48e9) for name in ("all_reduce", "all_gather")]
    found = fit_system(_runs(tmp_path, *inside, *across))
    assert found is not None
    node, gpu = found.system.levels
    assert (node.size, gpu.size) == (10, 8)
    assert float(node.per_device or 0) == pytest.approx(48e9, rel=1e-3)
    assert node.bandwidth == 8 * (node.per_device or 0)
    assert float(node.latency) == pytest.approx(9e-6, rel=1e-3)
    assert (float(gpu.bandwidth), float(gpu.latency)) == (pytest.approx(350e9, rel=1e-3), pytest.approx(5e-6, rel=1e-3))
    one = fit_system(_runs(tmp_path, *inside, *across), nics=1)
    assert one is not None and (one.system.levels[0].per_device, float(one.system.levels[0].bandwidth)) == (
        None,
        pytest.approx(48e9, rel=1e-3),
    )
    lone = fit_system(_runs(tmp_path, *inside))
    assert lone is not None and [level.name for level in lone.system.levels] == ["gpu"]
    assert fit_system(_runs(tmp_path, ("all_gather", 2, 4, 1e-6, 1e9))) is None


def test_an_allreduce_faster_than_the_wire_tells_nothing_about_it(tmp_path: Path) -> None:
    rings = [(name, 1, 8, 5e-6, 350e9) for name in ("all_gather", "reduce_scatter")]
    found = fit_system(_runs(tmp_path, *rings, ("all_reduce", 1, 8, 5e-6, 500e9)))
    assert found is not None and float(found.system.levels[0].bandwidth) == pytest.approx(350e9, rel=1e-3)
    assert "is no ring" in found.fits["gpu"].notes[0]


def test_the_fit_never_reads_a_run_of_another_shape(tmp_path: Path) -> None:
    shapes = [("all_gather", 1, 4, 5e-6, 300e9), ("all_gather", 3, 3, 9e-6, 40e9)]
    runs = _runs(tmp_path, *shapes)
    target = _runs(tmp_path, ("all_gather", 3, 12, 7e-3, 1e9), ("all_reduce", 3, 12, 7e-3, 1e9))
    alone, with_target = fit_system(runs), fit_system([*target, *runs])
    assert alone is not None and with_target is not None
    assert alone.system == with_target.system


def test_the_crossover_is_where_plain_overtakes(tmp_path: Path) -> None:
    found = fit_system(_runs(tmp_path, ("all_gather", 1, 8, 5e-6, 350e9), ("all_gather", 10, 10, 9e-6, 48e9)))
    assert found is not None
    model, size = alpha_beta(), crossover(alpha_beta(), found.system)
    assert size is not None
    for factor, plain in ((0.9, False), (1.1, True)):
        near = int(size * factor)
        wins = predict(model, found.system, Collective.ALL_REDUCE, near) <= hierarchical(model, found.system, near)
        assert wins is plain


# The command


def _files(tmp_path: Path) -> list[str]:
    inside = log("all_gather", 1, 4, 5e-6, 300e9) + log("all_reduce", 1, 4, 5e-6, 300e9)
    return [
        str(put(tmp_path, inside, "inside.log")),
        str(put(tmp_path, log("all_reduce", 2, 2, 9e-6, 20e9), "across.log")),
        str(put(tmp_path, log("all_reduce", 2, 8, 9e-6, 90e9), "both.log")),
    ]


@pytest.mark.parametrize("model", ["alpha-beta", "measured"])
def test_solve_takes_what_calibrate_writes(tmp_path: Path, model: str) -> None:
    out, drawn = tmp_path / "out.yaml", tmp_path / "fit.svg"
    result = CliRunner().invoke(
        cli, ["calibrate", *_files(tmp_path), "--json", "-o", str(out), "--model", model, "--picture", str(drawn)]
    )
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert set(data) == {"runs", "system"}
    assert [(run["collective"], run["devices"], run["nodes"], run["rows"]) for run in data["runs"]] == [
        ("all_gather", 4, 1, 9),
        ("all_reduce", 4, 1, 9),
        ("all_reduce", 2, 2, 9),
        ("all_reduce", 8, 2, 9),
    ]
    assert set(data["runs"][0]) == {"file", "collective", "devices", "nodes", "rows", "skipped", "pieces"}
    assert set(data["runs"][0]["pieces"][0]) == {
        "from_bytes",
        "to_bytes",
        "alpha_seconds",
        "bytes_per_second",
        "mean_error",
    }
    asked = read_problem(out)
    assert [level["size"] for level in data["system"]["levels"]] == list(asked.system.sizes) == [2, 4]
    solution = solve(asked)
    assert (solution.status, solution.cost_model.split()[0]) == ("optimal", model)
    assert all(one.agree for one in compare(asked))
    assert drawn.read_text().startswith("<svg") and drawn.read_text().count("<circle") >= 36


def test_the_command_says_what_it_did_and_what_it_cannot(tmp_path: Path) -> None:
    files = _files(tmp_path)
    shown = CliRunner().invoke(cli, ["calibrate", *files]).output
    for words in ("mean error", "Fitted levels", "2 node: ", "Predicted from these levels alone"):
        assert words in shown
    lone = CliRunner().invoke(cli, ["calibrate", files[2], "--json"])
    assert json.loads(lone.stdout)["system"] is None
    for options, words in (
        ([files[2], "-o", str(tmp_path / "x.yaml")], "no run on one node"),
        ([files[0], "--model", "paper"], "'paper' is unknown"),
        ([str(put(tmp_path, "x\n", "bad.log"))], "bad.log:1"),
    ):
        result = CliRunner().invoke(cli, ["calibrate", *options])
        assert isinstance(result.exception, InputError) and words in str(result.exception)
    assert not (tmp_path / "x.yaml").exists()


def test_a_picture_is_xml(tmp_path: Path) -> None:
    from xml.etree import ElementTree

    runs = [run for path in _files(tmp_path) for run in read_runs(path)]
    root = ElementTree.fromstring(picture([(run, fit_run(run)) for run in runs]))
    assert root.tag.endswith("svg")


# Public logs


def test_every_public_log_is_read(data: Path) -> None:
    logs = sorted((data / "nccl-tests").iterdir())
    assert len(logs) == 10
    shapes = {
        path.name: [(run.collective, run.devices, run.nodes, len(run.samples), run.skipped) for run in read_runs(path)]
        for path in logs
    }
    every = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
    for name, devices, nodes in (("10x1", 10, 10), ("10x8", 80, 10), ("1x4", 4, 1), ("1x8", 8, 1)):
        assert shapes[f"h100_{name}.log"] == [(one, devices, nodes, 10, 0) for one in every]
    assert shapes["a100_2x8_sharp_old_layout.txt"] == [("all_reduce", 16, 2, 29, 0)]
    assert shapes["gb200_nvl72_excerpt.txt"] == [("all_reduce", 72, None, 5, 0)]
    assert shapes["h100_1x8_all_reduce_nvls.out"] == [("all_reduce", 8, 1, 31, 0)]
    assert shapes["h100_1x8_reduce_scatter_ring.out"] == [("reduce_scatter", 8, 1, 27, 4)]
    assert shapes["h100_2x8_efa_mpi_prefix.log"] == [("all_reduce", 16, 2, 32, 0)]
    assert shapes["v100_2x8_old_layout.txt"] == [("all_reduce", 16, None, 9, 0)]


def test_curves_of_every_public_log_fit(data: Path) -> None:
    for path in sorted((data / "nccl-tests").iterdir()):
        for run in read_runs(path):
            points = sum(len([s for s in run.samples if p.first <= s.size <= p.last]) for p in fit_run(run))
            assert points == len(run.samples)
            error = np.mean([abs(_curve(run, sample.size) / float(sample.seconds) - 1) for sample in run.samples])
            assert error < 0.06, (path.name, run.collective)


def _curve(run: Run, size: int) -> float:
    piece = next(piece for piece in fit_run(run) if piece.first <= size <= piece.last)
    return piece.alpha + size / piece.rate


def test_cut_public_logs_are_read_or_refused_in_one_line(data: Path, tmp_path: Path) -> None:
    random_ = random.Random(9)
    for path in sorted((data / "nccl-tests").iterdir()):
        raw = path.read_bytes()
        for _ in range(6):
            cut = put(tmp_path, raw[: random_.randrange(len(raw))], "a.log")
            try:
                assert read_runs(cut)
            except InputError as error:
                assert re.match(r".*a\.log:\d+: ", str(error))


def test_ten_nodes_of_eight_h100_from_one_node_and_ten_devices(data: Path) -> None:
    """The fit reads the 1x8 and 10x1 logs alone, and predicts the 10x8 run."""
    folder = data / "nccl-tests"
    found = fit_system([*read_runs(folder / "h100_1x8.log"), *read_runs(folder / "h100_10x1.log")])
    assert found is not None
    assert not any("10x8" in used for fit in found.fits.values() for used in fit.used)
    system, model, off, large = found.system, alpha_beta("auto"), [], []
    for run in read_runs(folder / "h100_10x8.log")[:3]:
        errors = [
            abs(predict(model, system, COLLECTIVES[run.collective], one.size) / float(one.seconds) - 1)
            for one in run.samples
        ]
        assert np.mean(errors) <= 0.20, run.collective
        off += errors
        large += [error for error, one in zip(errors, run.samples, strict=True) if one.size > 2**31 - 2**12]
    assert len(off) == 30 and len(large) == 12
    assert np.mean(off) <= 0.15
    assert np.mean(large) <= 0.10
    size = crossover(model, system)
    assert size is not None and 40 * 2**20 <= size <= 158 * 2**20


def test_the_measured_model_prices_the_flat_collective_by_its_own_run(data: Path, tmp_path: Path) -> None:
    folder = data / "nccl-tests"
    files = [str(folder / f"h100_{name}.log") for name in ("1x8", "10x1", "10x8")]
    out = tmp_path / "measured.yaml"
    assert CliRunner().invoke(cli, ["calibrate", *files, "-o", str(out), "--model", "measured"]).exit_code == 0
    asked = read_problem(out)
    model = cost_model_of(asked.cost_model)
    assert {(curve.nodes, curve.devices) for curve in curves(read_runs(files[2]))} == {(10, 8)}
    for run in read_runs(files[2])[:3]:
        for one in run.samples:
            got = predict(model, asked.system, COLLECTIVES[run.collective], one.size)
            assert got == pytest.approx(float(one.seconds), rel=0.06)
    small, large = (solve_at(asked, size) for size in ("64 MiB", "1 GiB"))
    assert len(small) == 3 and [str(step.collective) for step in large] == ["AllReduce"]


def solve_at(asked: object, size: str) -> tuple[object, ...]:
    from smtsynth import Problem, Reduction

    assert isinstance(asked, Problem)
    at = Problem(asked.system, asked.axes, Reduction(["data"], size), None, asked.cost_model)
    solution = solve(at)
    assert solution.status == "optimal" and solution.program is not None
    return solution.program


def test_prices_are_exact_fractions_of_short_decimals(tmp_path: Path) -> None:
    found = fit_system(_runs(tmp_path, ("all_gather", 1, 3, 5.123456789e-6, 123.456789e9)))
    assert found is not None
    (level,) = found.system.levels
    assert isinstance(level.bandwidth, Fraction) and level.bandwidth == Fraction(1235 * 10**8)
