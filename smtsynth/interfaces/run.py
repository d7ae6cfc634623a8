"""The command `run`: programs and schedules executed on processes of this machine, every element compared."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from smtsynth.errors import InputError

if TYPE_CHECKING:
    from smtsynth.execute.run import Ran
    from smtsynth.export.script import Script
    from smtsynth.interfaces.modules import Module
    from smtsynth.interfaces.sources import Sources
    from smtsynth.model.lowering import Lowering
    from smtsynth.model.problem import Problem
    from smtsynth.model.program import Program

MAX_PROGRAMS = 5000
OUTCOMES = ("right", "wrong", "hang", "error", "not run")
MAX_ROWS = 40
BACKENDS = {"mpi": "MPI (mpi4py)", "gloo": "torch.distributed over gloo", "jax": "JAX (host devices, one process)"}


@click.command()
@click.argument("sources", nargs=-1, metavar="[PROBLEM] [FILE]...")
@click.option(
    "--backend", metavar="mpi|gloo|jax", help="What runs it. Default: what a Python module imports, else mpi."
)
@click.option("--placement", metavar="MATRIX", help="The problem's placement, e.g. '[[1,4],[2,1]]'.")
@click.option("--hierarchy", help="Synthesis hierarchy of programs. Default: reduction.")
@click.option("--reduction", metavar="NAME", help="Which reduction of a workload. Default: all of an answer.")
@click.option("--all", "everything", is_flag=True, help="All programs of the placement, in one launch.")
@click.option("--sample", metavar="N", type=click.IntRange(1), help="With --all: a seeded sample of so many of them.")
@click.option(
    "--instruction-set", metavar="p2|full", default="full", show_default=True, help="With --all: which programs."
)
@click.option(
    "--steps", type=int, help="With --all: the step limit. Default: the problem's, else 5 or 2D-1, the larger."
)
@click.option("--elements", type=int, default=1021, show_default=True, help="Elements of the buffer of each process.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the data and of the sample.")
@click.option(
    "--time-limit", metavar="S", type=float, default=60, show_default=True, help="Seconds without progress: a hang."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def run(sources: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Run programs and schedules for real, on 2 to 16 processes, and compare every element with the goal.

    FILE is a schedule, or a program of PROBLEM: a file, the output of `solve --json`, or short text. What runs is
    what `export` writes; a schedule that is wrong runs too, and is said to be wrong by rank and chunk. FILE can also
    be a Python module that `export` wrote, changed by hand: it runs as it is. PROBLEM may be a workload, FILE its
    answer: then the programs of all its reductions run.

    Exit status: 0 all right, 1 something wrong, 2 bad input, 3 a hang, an error or an interrupt ended the launch.

    \b
    Examples:
      smtsynth run schedule.yaml
      smtsynth run problem.yaml answer.json --backend gloo
      smtsynth run examples/v100-2x8.yaml --placement '[[2,2],[1,4]]' --all
    """
    from smtsynth.execute.launch import check_backend
    from smtsynth.execute.run import run_scripts
    from smtsynth.interfaces.modules import backend_of, is_module, read_module
    from smtsynth.interfaces.sources import Sources

    asked = Sources.of(sources, given["placement"], given["hierarchy"], given["reduction"])
    modules = {name: read_module(name) for name in asked.files if is_module(name)}
    backend = backend_of(modules, given["backend"])
    check_backend(backend)
    items = _items(asked, modules, given)
    try:
        ran = run_scripts(
            [item.script for item in items],
            backend,
            texts=[item.text for item in items],
            elements=given["elements"],
            seed=abs(given["seed"]),
            patience=given["time_limit"],
        )
    except InputError as error:
        if error.where not in ("elements", "time limit"):
            raise
        raise InputError(error.what, where=f"--{error.where.replace(' ', '-')}", expected=error.expected) from None
    outcomes = {one.outcome for one in ran}
    status = 3 if outcomes & {"hang", "error", "not run"} else 0
    status = 1 if "wrong" in outcomes else status
    if as_json:
        data = {
            "backend": backend,
            "processes": ran[0].script.devices,
            "elements": given["elements"],
            "programs": [_data(item, one) for item, one in zip(items, ran, strict=True)],
        }
        sys.stdout.write(json.dumps(data, allow_nan=False) + "\n")
    else:
        _report(items, ran, backend, given["elements"])
    sys.exit(status)


class Item(NamedTuple):
    """One thing to run: the file and the workload's reduction it is from, if any, and the text of a module."""

    script: Script
    file: str | None = None
    reduction: str | None = None
    text: str | None = None

    def name(self, many: bool) -> str:
        """What a report calls it; of many also where it is from."""
        words = self.script.wording or ("the module" if self.text is not None else "the schedule")
        where = [word for word in (self.file if many else None, self.reduction) if word]
        return f"{' '.join(where)}: {words}" if where else words


def _items(asked: Sources, modules: dict[str, Module], given: dict[str, Any]) -> list[Item]:
    """What is to be run."""
    from smtsynth.execute.run import check_ranks
    from smtsynth.export.goals import script_of
    from smtsynth.interfaces.modules import check_kind
    from smtsynth.interfaces.yamltext import label

    if not given["everything"]:
        for option in ("sample", "steps"):
            if given[option] is not None:
                raise InputError("comes without --all", where=f"--{option}", expected="--all beside it")
        if not asked.files:
            raise InputError("no program to run", expected="a program or schedule FILE, or --all")
        items = []
        for name in asked.files:
            if name in modules:
                check_ranks(modules[name].script.devices)
                items.append(Item(modules[name].script, label(name), text=modules[name].text))
                continue
            check_kind(name)
            file = label(name) if name == "-" or os.path.exists(name) else None
            items += [Item(script, file, reduction) for reduction, script in asked.scripts(name, check_ranks)]
        return items
    if asked.files:
        raise InputError("comes with files", where="--all", expected="one of the two")
    lowering, problem = asked.lowering(), asked.one()
    assert problem is not None
    check_ranks(problem.system.devices)
    programs = _programs(problem, lowering, given)
    if given["sample"] is not None and given["sample"] < len(programs):
        programs = random.Random(given["seed"]).sample(programs, given["sample"])
    return [Item(script_of(problem, lowering, program), reduction=given["reduction"]) for program in programs]


def _programs(problem: Problem, lowering: Lowering, given: dict[str, Any]) -> list[Program]:
    """All programs of the placement, cheapest first."""
    from smtsynth.cost.models import cost_model_of
    from smtsynth.cost.prices import Prices
    from smtsynth.meaning.goals import target_of
    from smtsynth.model.problem import Limits
    from smtsynth.model.program import instruction_set
    from smtsynth.search.enumerate import StateGraph, cheapest_programs

    try:
        Limits(steps=given["steps"])
        instruction_set(1, given["instruction_set"])
    except InputError as error:
        where = None if error.where is None else f"--{error.where}"
        raise InputError(error.what, where=where or "--instruction-set", expected=error.expected) from None
    limit = given["steps"] or problem.step_limit(lowering.depth)
    target = target_of(lowering, problem.reduction.collective, problem.split)
    prices = Prices(cost_model_of(problem.cost_model), lowering, problem.reduction.payload, target.collective)
    found = cheapest_programs(StateGraph(target, given["instruction_set"]), prices, limit)
    programs = [program for _, program in islice(found, MAX_PROGRAMS + 1)]
    if len(programs) > MAX_PROGRAMS:
        raise InputError(
            f"there are more than {MAX_PROGRAMS} programs of at most {limit} steps", expected="fewer: --steps N"
        )
    return programs


def _data(item: Item, one: Ran) -> dict[str, Any]:
    """A program's outcome as JSON data. Of a module changed by hand, verify says nothing."""
    said = one.script.verdict
    return {
        "file": item.file,
        "reduction": item.reduction,
        "program": one.script.wording,
        "outcome": one.outcome,
        "reason": one.reason or None,
        "rank": one.rank,
        "chunk": one.chunk,
        "waiting": [{"rank": rank, "where": where} for rank, where in one.waiting],
        "verify": None if one.by_hand else {"verdict": said.verdict, "device": said.device, "chunk": said.chunk},
        "agree": one.agrees,
    }


def _report(items: list[Item], ran: list[Ran], backend: str, elements: int) -> None:
    """The outcome for people: the counts first, then what is not right, one by one."""
    from rich.markup import escape

    from smtsynth.execute.run import INTERRUPTED
    from smtsynth.interfaces.layout import Table, console
    from smtsynth.model.program import Collective

    out = console()
    script, many = ran[0].script, len({item.file for item in items}) > 1
    counts: Counter[str] = Counter(one.outcome for one in ran)
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    what = f"{len(ran)} programs" if len(ran) > 1 else items[0].name(many)
    where = "devices" if backend == "jax" else "processes"
    compared = ", every one compared" if counts["right"] + counts["wrong"] == len(ran) else ""
    out.print(
        f"[bold]{said}[/]: {escape(what)} on {script.devices} {where} by {BACKENDS[backend]}, "
        f"{elements} element{'s' * (elements != 1)} each{compared}",
        soft_wrap=True,
    )
    if ran[-1].reason == INTERRUPTED:
        out.print("Interrupted: what had not ended by then counts as not run.")
    kinds = {move.collective for one in ran if not one.by_hand for move in one.script.moves}
    if backend == "jax" and kinds & {Collective.REDUCE, Collective.BROADCAST}:
        out.print("JAX has no Reduce, and no Broadcast on CPUs: both ran as sums.")
    rows = Table(("outcome", "what happened", "program"), below={"program": ""})
    bad = [(item, one) for item, one in zip(items, ran, strict=True) if one.outcome not in ("right", "not run")]
    for item, one in bad[:MAX_ROWS]:
        rows.add_row(one.outcome, one.reason, item.name(many))
    if bad:
        out.print(rows)
    if len(bad) > MAX_ROWS:
        out.print(f"… {len(bad) - MAX_ROWS} more; see --json")
    for item, one in zip(items, ran, strict=True):
        front = f"{item.name(many)}: " if len(ran) > 1 else ""
        verdict = one.script.verdict
        if one.outcome == "wrong" and one.agrees:
            out.print(escape(f"{front}verify says the same: {verdict.reason}"), soft_wrap=True)
        if one.agrees is False:
            text = (
                f"verify says otherwise ({verdict.verdict}: {verdict.reason}): one of the two is a bug, please report"
            )
            out.print(escape(front + text), soft_wrap=True)
    if any(one.by_hand and one.outcome == "wrong" for one in ran):
        out.print("verify can't judge a module, as it may be changed by hand.")
