"""The manifest of a training step's certificate, written by the producer and anew by the check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smtsynth.certify.manifest import ENCODER, FORMAT, PROBLEM, Cnf, proviso, stems, within_steps
from smtsynth.certify.step_scope import RowEntry, StepScope
from smtsynth.model.rows import Row

PLACEMENTS = "placements"


def describe_step(
    scope: StepScope,
    proved: Sequence[RowEntry],
    looked: Sequence[Sequence[Row]],
    cnf: Cnf,
    parts: Mapping[str, str],
    tools: Mapping[str, str],
) -> dict[str, Any]:
    """The manifest as plain data; see StepScope.question for `proved` and `looked`, of which `cnf` is."""
    cnfs = [one.entry.cnf for one in proved if one.entry.cnf is not None]
    return {
        "format": FORMAT,
        "encoder": ENCODER,
        "claim": step_claim(scope, proved),
        "rests_on": step_rests_on(scope, proved),
        "bound_nanoseconds": scope.bound,
        "options": {"instruction_set": scope.instruction_set},
        "rows": [
            {"reduction": one.table.named.name, "row": row_data(one.row), "nanoseconds": one.low}
            | {"evidence": one.entry.data(stem)}
            for one, stem in zip(proved, stems(len(proved)), strict=True)
        ],
        "traffic": [[row_data(row) for row in rows] for rows in looked],
        "all_placements": {"file": f"{PLACEMENTS}.lrat.gz", "cnf": cnf.data()},
        "families": {name: said for one in (*cnfs, cnf) for name, said in one.families.items()},
        "parts": dict(parts),
        "tools": dict(tools),
    }


def row_data(row: Row) -> dict[str, Any]:
    """A row as plain data."""
    return {
        "factors": list(row.factors),
        "split": list(row.split),
        "strides": [list(one) for one in row.strides],
    }


def read_row(data: object) -> Row:
    """A row of its plain data. Raises ValueError, KeyError or TypeError."""
    if not isinstance(data, dict) or data.keys() != {"factors", "split", "strides"}:
        raise ValueError("a row has factors, split and strides")
    return Row(tuple(data["factors"]), tuple(data["split"]), tuple(map(tuple, data["strides"])))


def step_rests_on(scope: StepScope, proved: Sequence[RowEntry]) -> list[str]:
    """The kinds of evidence, each with the number of rows that it covers."""
    if scope.bound is None:
        return ["LRAT proof that no placement obeys the constraints"]
    counts: dict[str, int] = {}
    for one in proved:
        kind = " and ".join(one.entry.kinds)
        counts[kind] = counts.get(kind, 0) + 1
    every = sum(len(table.every) for table in scope.reductions)
    if every > len(proved):
        counts["what any schedule must move, or nothing"] = every - len(proved)
    return ["LRAT proof over all placements"] + [f"{kind} ({count} of {every} rows)" for kind, count in counts.items()]


def step_claim(scope: StepScope, proved: Sequence[RowEntry]) -> str:
    """The claim in one sentence, with its scope."""
    workload = scope.workload
    sizes = " * ".join(str(size) for size in workload.system.sizes)
    axes = ", ".join(f"{axis.name} {axis.size}" for axis in workload.axes)
    where = f"For axes {axes} on {sizes} devices"
    obeys = "; ".join(map(str, workload.constraints))
    if scope.bound is None:
        return f"{where}: no placement obeys the constraints {obeys or '(none)'}."
    parts = [one.name for one in workload.reductions] + [f"{one.name} (given traffic)" for one in workload.traffic]
    entries = [one.entry for one in proved]
    within = f" {within_steps(entries)}{proviso(entries)}" if entries else ""
    asked = f" that obeys {obeys}" if obeys else ""
    longer = "nor does any with longer programs"
    if not all(entry.longer for entry in entries):
        longer = "of longer programs nothing is said"
    return (
        f"{where}, the step of {PROBLEM} ({', '.join(parts)}): no placement"
        f"{asked}, with programs of the instruction set {scope.instruction_set} over the hierarchy reduction{within}, "
        f"takes less than {scope.bound} ns a step, what the witness takes, by the cost model {scope.model.name}; "
        f"{longer}."
    )
