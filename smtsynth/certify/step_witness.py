"""The witness of a training step: a placement and a program for every reduction, replayed and priced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smtsynth.certify.step_scope import StepScope
from smtsynth.certify.witness import WitnessError, compare, read_witness, witness_data
from smtsynth.cost.wired_traffic import traffic_step
from smtsynth.model.placement import Placement, check_placement
from smtsynth.model.program import Program


def step_witness_data(scope: StepScope, placement: Placement, programs: Sequence[Program]) -> dict[str, Any]:
    """The witness as plain data; `programs`: one for each reduction. Raises WitnessError where one isn't right, or the
    placement doesn't obey the constraints."""
    workload, total = scope.workload, 0
    broken = workload.broken(placement.matrix)
    if broken:
        raise WitnessError(f"the placement doesn't obey {broken[0]}")
    reductions, flows = [], []
    for table, program in zip(scope.reductions, programs, strict=True):
        placed = table.placed(placement)
        data = witness_data(placed, placed.lowering(placement), program)
        del data["placement"]
        reductions.append({"name": table.named.name, "count": table.named.count} | data)
        total += table.named.count * int(data["nanoseconds"])
    for one in workload.traffic:
        axis = workload.row(one.axis)
        once = traffic_step(workload.system, placement, axis, one.pattern, one.payload).nanoseconds
        flows.append({"name": one.name, "count": one.count, "nanoseconds": once})
        total += one.count * once
    return {
        "placement": [list(row) for row in placement.matrix],
        "reductions": reductions,
        "traffic": flows,
        "nanoseconds": total,
    }


def check_step_witness(scope: StepScope, data: object) -> Placement:
    """Replay and price the witness anew, and compare all that it says. Raises WitnessError or InputError."""
    if not isinstance(data, dict) or not isinstance(data.get("reductions"), list):
        raise WitnessError("no reductions")
    workload, listed = scope.workload, data["reductions"]
    if len(listed) != len(workload.reductions):
        raise WitnessError(f"programs for {len(listed)} reductions, expected {len(workload.reductions)}")
    placement = check_placement(data.get("placement"), workload.axes, workload.system)  # type: ignore[arg-type]
    programs = []
    for table, one in zip(scope.reductions, listed, strict=True):
        whole = one | {"placement": data["placement"]} if isinstance(one, dict) else one
        programs.append(read_witness(table.placed(placement), whole)[1])
    compare(data, step_witness_data(scope, placement, programs), scope.bound)
    return placement
