"""Write the certificate of a training step: rows' evidence, the proof over all placements, witness, manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from smtsynth.certify.manifest import PROBLEM, WITNESS, canonical, stems
from smtsynth.certify.produce import Made, Producer, seldom, tools
from smtsynth.certify.step_manifest import PLACEMENTS, describe_step
from smtsynth.certify.step_scope import RowEntry, StepScope
from smtsynth.certify.step_witness import step_witness_data
from smtsynth.errors import InternalError
from smtsynth.model.placement import Placement
from smtsynth.model.program import Program
from smtsynth.model.rows import Row
from smtsynth.search.loop import Resources

MAX_PROVED = 3  # factors of the witness's own rows, which get a proof beside labels


def produce_step(
    scope: StepScope,
    witness: tuple[Placement, Sequence[Program]] | None,
    lows: Sequence[Mapping[Row, int]],
    looked: Sequence[Sequence[Row]],
    text: str,
    folder: Path,
    resources: Resources,
    with_cnf: bool = False,
) -> Made:
    """Write a certificate's files into the empty folder `folder`.

    witness: a placement and a program per reduction of scope.bound nanoseconds a step, None where the claim is that no
    placement obeys the constraints. lows: per reduction, rows and nanoseconds that no program costs less than; those
    that any schedule takes need no evidence and are left out. looked: per given traffic the rows that were priced.
    text: a file that the workload is read from. Raises as smtsynth.certify.produce.produce does.
    """
    resources = replace(resources, progress=seldom(resources.progress))
    producer = Producer(folder, resources, with_cnf)
    producer.put(PROBLEM, text.encode())
    proved: list[RowEntry] = []
    if witness is not None:
        data = step_witness_data(scope, *witness)
        if data["nanoseconds"] != scope.bound:
            raise InternalError(f"the witness takes {data['nanoseconds']} ns, not {scope.bound}")
        producer.put(WITNESS, canonical(data, None))
        above = [
            (table, row, low)
            for table, known in zip(scope.reductions, lows, strict=True)
            for row, low in sorted(known.items())
            if low > table.least[row]
        ]
        for number, ((table, row, low), stem) in enumerate(zip(above, stems(len(above)), strict=True), 1):
            resources.progress(f"certifying row {number} of {len(above)}")
            case = table.case(row, low)
            proof = row == table.rows.of(witness[0].matrix) and case.lowering.depth <= MAX_PROVED
            proved.append(RowEntry(table, row, low, producer.entry(case, stem, None, proof)))
    plain = scope.workload.system.plain or scope.bound is None
    priced = [() if plain else tuple(sorted(rows)) for rows in looked]
    resources.progress("certifying that no placement is cheaper")
    cnf = producer.refute(scope.question(proved, priced), PLACEMENTS)
    return producer.seal(describe_step(scope, proved, priced, cnf, producer.parts, tools()))
