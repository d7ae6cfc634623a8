"""The command `calibrate`: logs of nccl-tests to curves, systems and problem files."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from smtsynth.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smtsynth.calibrate.levels import Calibrated
    from smtsynth.calibrate.nccl import Run
    from smtsynth.calibrate.pieces import FittedPiece
    from smtsynth.model.choice import CostChoice

    Fitted = tuple[Run, Sequence[FittedPiece]]


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("--output", "-o", metavar="FILE", help="Write a problem file that solve takes.")
@click.option(
    "--model",
    metavar="NAME",
    default="alpha-beta",
    show_default=True,
    help="Cost model of the written file: alpha-beta, on the fitted levels, or measured, with the curves.",
)
@click.option("--nics", type=click.IntRange(1), help="NICs a node has. Default: one for each device.")
@click.option("--picture", metavar="FILE", help="Draw points and fits into an SVG file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def calibrate(
    logs: tuple[str, ...], output: str | None, model: str, nics: int | None, picture: str | None, as_json: bool
) -> None:
    """Fit cost models to the output of nccl-tests.

    Runs on one node give the level inside, runs with one device on each of several nodes the level across; runs of
    other shapes are only compared with what that predicts.

    \b
    Example: smtsynth calibrate one-node.log ten-nodes.log -o cluster.yaml && smtsynth solve cluster.yaml
    """
    from smtsynth.calibrate.levels import fit_system
    from smtsynth.calibrate.nccl import read_runs
    from smtsynth.calibrate.pieces import fit_run
    from smtsynth.interfaces.files import system_data, write_text

    if model not in ("alpha-beta", "measured"):
        raise InputError(f"{model[:40]!r} is unknown", where="--model", expected="alpha-beta or measured")
    fitted: list[Fitted] = [(run, fit_run(run)) for log in logs for run in read_runs(log)]
    runs = [run for run, _ in fitted]
    found = fit_system(runs, nics)
    if output is not None:
        write_text(output, _problem_text(found, runs, model))
    if picture is not None:
        from smtsynth.calibrate.picture import picture as draw

        write_text(picture, draw(fitted))
    if as_json:
        system = None if found is None else system_data(found.system)
        data = {"runs": [_run_json(run, pieces) for run, pieces in fitted], "system": system}
        sys.stdout.write(json.dumps(data, allow_nan=False) + "\n")
    else:
        _report(fitted, found)
        for path in (output, picture):
            if path is not None:
                click.echo(f"wrote {path}")


def _run_json(run: Run, pieces: Sequence[FittedPiece]) -> dict[str, Any]:
    return {
        "file": run.file,
        "collective": run.collective,
        "devices": run.devices,
        "nodes": run.nodes,
        "rows": len(run.samples),
        "skipped": run.skipped,
        "pieces": [
            {
                "from_bytes": piece.first,
                "to_bytes": piece.last,
                "alpha_seconds": piece.alpha,
                "bytes_per_second": piece.rate,
                "mean_error": piece.error,
            }
            for piece in pieces
        ],
    }


def _problem_text(found: Calibrated | None, runs: Sequence[Run], model: str) -> str:
    """A problem on the fitted system: an AllReduce over all devices."""
    from smtsynth.calibrate.levels import curves
    from smtsynth.interfaces.files import problem_text
    from smtsynth.model.choice import CostChoice
    from smtsynth.model.placement import Axis
    from smtsynth.model.problem import Problem, Reduction

    if found is None:
        raise InputError(
            "the logs hold no run on one node, nor one with one device a node",
            where="--output",
            expected="such a run of all_gather, reduce_scatter or all_reduce, with its ranks",
        )
    choice: CostChoice = CostChoice("alpha-beta", "auto")
    if model == "measured":
        choice = CostChoice("measured", "auto", curves=tuple(curves(runs)), beyond="alpha-beta")
    problem = Problem(found.system, (Axis("data", found.system.devices),), Reduction(["data"], "1 GiB"), None, choice)
    return problem_text(problem)


def _report(fitted: Sequence[Fitted], found: Calibrated | None) -> None:
    from smtsynth.interfaces.layout import Table, console
    from smtsynth.model.units import show_bandwidth, show_seconds

    out = console()
    numbers = ("devices", "nodes", "rows", "skipped", "from", "to", "alpha", "bytes/s", "mean error")
    rows = Table(("collective", *numbers, "file"), right=numbers, below={"file": "in "})
    for run, pieces in fitted:
        first = [run.collective, str(run.devices), "?" if run.nodes is None else str(run.nodes)]
        first += [str(len(run.samples)), str(run.skipped)]
        for piece in pieces:
            rate = show_bandwidth(piece.rate) if piece.rate < 1e15 else "any"
            figures = (_size(piece.first), _size(piece.last), show_seconds(piece.alpha), rate)
            rows.add_row(*first, *figures, f"{100 * piece.error:.1f} %", f"{run.file}:{run.line}")
            first = [""] * 5
    out.print(rows)
    if found is None:
        out.print("\nNo system: that takes a run on one node, or one with one device on each of several nodes.")
        return
    out.print("\nFitted levels (rings, from 32 MiB up):")
    for level in found.system.levels:
        fit = found.fits[level.name]
        limit = "" if level.per_device is None else f", {show_bandwidth(level.per_device)} a device"
        out.print(
            f"  {level.size} {level.name}: {show_bandwidth(level.bandwidth)}{limit}, "
            f"{show_seconds(level.latency)} a hop; mean error {100 * fit.error:.1f} %"
        )
        for note in fit.notes:
            out.print(f"    {note}", markup=False)
    _compare([run for run, _ in fitted], found)


def _compare(runs: Sequence[Run], found: Calibrated) -> None:
    """Runs over all devices of the system, which the fit never saw: predicted beside measured."""
    from smtsynth.calibrate.levels import predict
    from smtsynth.calibrate.nccl import COLLECTIVES
    from smtsynth.cost.models import alpha_beta
    from smtsynth.interfaces.layout import Table, console
    from smtsynth.model.units import show_seconds

    system, out = found.system, console()
    seen = [run for run in runs if run.devices == system.devices and run.nodes == system.levels[0].size]
    if len(system.levels) < 2 or not seen:
        return
    numbers = ("size", "measured", "predicted", "error")
    rows = Table(("collective", *numbers), right=numbers)
    for run in seen:
        for sample in run.samples if run.collective in COLLECTIVES else ():
            expected = predict(alpha_beta("auto"), system, COLLECTIVES[run.collective], sample.size)
            measured, off = float(sample.seconds), expected / float(sample.seconds) - 1
            cells = (_size(sample.size), show_seconds(measured), show_seconds(expected), f"{100 * off:+.0f} %")
            rows.add_row(run.collective, *cells)
    out.print("\nPredicted from these levels alone (cost model alpha-beta, algorithm auto):")
    out.print(rows)


def _size(size: int) -> str:
    """About how many bytes, in binary units: logs round sizes down to what the devices divide."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale * 0.999:
            return f"{size / scale:.4g} {unit}"
    return f"{size} B"
