"""Certificates on the command line: `solve --certificate` writes them, `check` checks them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from smtsynth.errors import InputError, LimitReached

if TYPE_CHECKING:
    from smtsynth.certify.produce import Made
    from smtsynth.certify.session import Report
    from smtsynth.model.placement import Placement
    from smtsynth.model.problem import Problem
    from smtsynth.model.workload import Workload
    from smtsynth.search.loop import Resources
    from smtsynth.search.solution import Solution
    from smtsynth.search.solve import Options
    from smtsynth.search.workload import WorkloadSolution

F = TypeVar("F", bound=Callable[..., Any])


def certificate_options(command: F) -> F:
    """The options of solve that ask for a certificate."""
    folder = click.option(
        "--certificate",
        metavar="DIR",
        help="Write a certificate that `check` checks: witness, proofs, labels (needs the extra 'certify'). Solver and "
        "elaboration each stay within --memory-limit, 4 GB where it isn't given.",
    )
    cnf = click.option("--with-cnf", is_flag=True, help="Store the CNFs in the certificate too.")
    return folder(cnf(command))


@dataclass(frozen=True)
class Order:
    """A certificate that was asked for, checked as far as it can be before the search."""

    folder: Path
    with_cnf: bool
    asked: Problem | Workload
    text: str
    placed: bool

    @staticmethod
    def of(
        given: dict[str, Any], asked: Problem | Workload, options: Options, placement: Placement | None
    ) -> Order | None:
        """The order of the command line's words, if there is one. Raises InputError where it can't be carried out."""
        from dataclasses import replace

        from smtsynth.certify.folder import check_place
        from smtsynth.cost.models import cost_model_of
        from smtsynth.interfaces.choices import changed
        from smtsynth.interfaces.files import problem_text
        from smtsynth.interfaces.workloads import workload_text
        from smtsynth.model.problem import Limits
        from smtsynth.model.problem import Problem as Plain
        from smtsynth.solvers.drup import solver_version

        if given["certificate"] is None:
            if given["with_cnf"]:
                raise InputError("comes without a certificate", where="--with-cnf", expected="--certificate beside it")
            return None
        solver_version()
        folder = Path(given["certificate"])
        check_place(folder)
        words = {"--" + key.replace("_", "-"): given[key] for key in ("cost_model", "algorithm", "overlap")}
        choice = replace(changed(asked.cost_model, words), overlap="none")
        limits = Limits(steps=options.steps or asked.limits.steps)
        kept = replace(asked, limits=limits, cost_model=choice)
        text = problem_text(kept) if isinstance(kept, Plain) else workload_text(kept)
        if cost_model_of(choice) != options.cost_model or read_text(text) != kept:
            raise InputError("the problem can't be written down exactly", where="--certificate", expected="another")
        return Order(folder, given["with_cnf"], kept, text, placement is not None)

    def carry_out(self, found: Solution | WorkloadSolution, options: Options, resources: Resources) -> Made:
        """Write the certificate of an answer. Raises LimitReached where there is none, and says why."""
        from smtsynth.certify.check import check
        from smtsynth.certify.folder import staged
        from smtsynth.errors import InternalError
        from smtsynth.search.loop import Status

        if found.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            why = f": {found.reason}" if found.reason else ""
            raise LimitReached(f"no certificate, as the answer is only {found.status}{why}")
        try:
            with staged(self.folder) as beside:
                made = self._produce(found, options, beside, resources)
                resources.progress("checking the certificate")
                report = check(beside, read_text, made.sha256)
                if not report.ok:
                    wrong = next(part for part in report.parts if not part.ok)
                    raise InternalError(f"the certificate fails its check: {wrong.name}: {wrong.said}")
                return made
        except KeyboardInterrupt:
            raise LimitReached("no certificate: interrupted") from None

    def _produce(
        self, found: Solution | WorkloadSolution, options: Options, beside: Path, resources: Resources
    ) -> Made:
        from smtsynth.certify.produce import produce
        from smtsynth.certify.scope import Scope
        from smtsynth.certify.step_produce import produce_step
        from smtsynth.certify.step_scope import StepScope
        from smtsynth.model.workload import Workload as Step
        from smtsynth.search.solution import Solution as One

        if isinstance(self.asked, Step):
            assert not isinstance(found, One)
            scope = StepScope(self.asked, options.instruction_set, found.cost)
            chosen, lows, looked = None, list[Any](), list[Any]()
            if found.placement is not None and found.tables is not None:
                chosen = found.placement, [one.solution.program or () for one in found.reductions]
                lows = [table.looked_at for table in found.tables.tables]
                looked = [list(table.looked_at) for table in found.tables.flows]
            looked = looked or [[] for _ in self.asked.traffic]
            return produce_step(scope, chosen, lows, looked, self.text, beside, resources, self.with_cnf)
        assert isinstance(found, One)
        placement = found.placement if self.placed else None
        asked = Scope(self.asked, options.instruction_set, options.hierarchy, placement, found.cost)
        witness = None if found.program is None else (found.lowering, found.program)
        return produce(asked, witness, self.text, beside, resources, self.with_cnf)


def read_text(text: str) -> Problem | Workload:
    """The problem or workload of the text of a certificate's problem file."""
    from smtsynth.interfaces.files import MAX_PROBLEM_VALUES, is_workload, problem_of
    from smtsynth.interfaces.workloads import workload_of
    from smtsynth.interfaces.yamltext import parse_data

    data = parse_data(text, "problem.yaml", most=MAX_PROBLEM_VALUES)
    return (workload_of if is_workload(data) else problem_of)(data, "problem.yaml")


@dataclass(frozen=True)
class Written:
    """What became of an order: the certificate, or why there is none; neither where none was asked for."""

    order: Order | None
    made: Made | None = None
    failure: LimitReached | None = None

    @staticmethod
    def of(order: Order | None, found: Solution | WorkloadSolution, options: Options, resources: Resources) -> Written:
        """Carry out an order; an answer is still to be shown where that fails."""
        try:
            return Written(order, order.carry_out(found, options, resources) if order else None)
        except LimitReached as failure:
            return Written(order, None, failure)

    def data(self) -> dict[str, Any]:
        """What `solve --json` says of it, besides the answer."""
        if self.order is None or self.made is None:
            return {} if self.order is None else {"certificate": None}
        made = self.made
        words = {"claim": made.claim, "rests_on": made.manifest["rests_on"], "sha256": made.sha256}
        return {"certificate": {"folder": str(self.order.folder), **words}}

    def report(self) -> None:
        """The same for people."""
        if self.order is not None and self.made is not None:
            folder, made = self.order.folder, self.made
            click.echo(f"\nCertificate: {folder} (check it with `smtsynth check {folder}`)")
            click.echo(f"  {made.claim}")
            click.echo(f"  Rests on: {'; '.join(made.manifest['rests_on'])}.")
            click.echo(f"  SHA-256 of its manifest: {made.sha256}")

    def end(self) -> None:
        """Raise the failure, after the answer was shown."""
        if self.failure is not None:
            raise self.failure


@click.command()
@click.argument("folder", metavar="DIR")
@click.option("--digest", metavar="HEX", help="The manifest's SHA-256 as it was told with the claim, to be compared.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def check(folder: str, digest: str | None, as_json: bool) -> int:
    """Check a certificate that `solve --certificate` wrote, without any solver.

    The witness is replayed and priced, every CNF rebuilt from the problem, every proof and label checked.

    Exit status: 0 the claim holds, 1 something is wrong, 2 no certificate.

    \b
    Example: smtsynth solve examples/a100-4x16.yaml --certificate proof && smtsynth check proof
    """
    from smtsynth.certify.check import check as run

    report = run(Path(folder), read_text, digest)
    if as_json:
        sys.stdout.write(json.dumps(report_json(report), allow_nan=False) + "\n")
    else:
        _show(report)
    return 0 if report.ok else 1


def report_json(report: Report) -> dict[str, Any]:
    """What `check --json` prints."""
    parts = [{"part": one.name, "ok": one.ok, "said": one.said, "seconds": one.seconds} for one in report.parts]
    return {
        "verdict": "ok" if report.ok else "wrong",
        "claim": report.claim,
        "rests_on": list(report.rests_on),
        "sha256": report.sha256,
        "parts": parts,
    }


def _show(report: Report) -> None:
    width = max(len(part.name) for part in report.parts)
    for part in report.parts:
        click.echo(f"{'ok   ' if part.ok else 'WRONG'}  {part.name.ljust(width)}  {part.said}")
    if report.ok:
        click.echo(f"\nThe claim holds: {report.claim}")
        click.echo(f"Rests on: {'; '.join(report.rests_on)}. SHA-256 of the manifest: {report.sha256}")
    else:
        wrong = sum(not part.ok for part in report.parts)
        click.echo(f"\nNothing is claimed: {wrong} of {len(report.parts)} parts are wrong.")
