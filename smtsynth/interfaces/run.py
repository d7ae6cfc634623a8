"""The command `run`: programs and schedules executed on processes of this machine, every element compared."""

from __future__ import annotations

import ast
import json
import random
import sys
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from smtsynth.errors import InputError

if TYPE_CHECKING:
    from smtsynth.execute.run import Ran
    from smtsynth.export.script import Script
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
@click.option("--backend", metavar="mpi|gloo|jax", default="mpi", show_default=True, help="What runs it.")
@click.option("--placement", metavar="MATRIX", help="The problem's placement, e.g. '[[1,4],[2,1]]'.")
@click.option("--hierarchy", help="Synthesis hierarchy of programs. Default: reduction.")
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
    be a Python module that `export` wrote for the backend, changed by hand: it runs as it is.

    Exit status: 0 all right, 1 something wrong, 2 bad input, 3 a hang, an error or an interrupt ended the launch.

    \b
    Examples:
      smtsynth run schedule.yaml
      smtsynth run problem.yaml answer.json --backend gloo
      smtsynth run examples/v100-2x8.yaml --placement '[[2,2],[1,4]]' --all
    """
    from smtsynth.execute.launch import check_backend
    from smtsynth.execute.run import run_scripts
    from smtsynth.interfaces.sources import Sources

    check_backend(given["backend"])
    asked = Sources.of(sources, given["placement"], given["hierarchy"])
    scripts = _scripts(asked, given)
    texts = [_text(name) for name in asked.files] if not given["everything"] else None
    ran = run_scripts(
        scripts,
        given["backend"],
        texts=texts,
        elements=given["elements"],
        seed=abs(given["seed"]),
        patience=given["time_limit"],
    )
    outcomes = {one.outcome for one in ran}
    status = 3 if outcomes & {"hang", "error", "not run"} else 0
    status = 1 if "wrong" in outcomes else status
    if as_json:
        data = {
            "backend": given["backend"],
            "processes": scripts[0].devices,
            "elements": given["elements"],
            "programs": [_data(one) for one in ran],
        }
        sys.stdout.write(json.dumps(data, allow_nan=False) + "\n")
    else:
        _report(ran, given)
    sys.exit(status)


def _scripts(asked: Sources, given: dict[str, Any]) -> list[Script]:
    """What is to be run."""
    from smtsynth.execute.run import check_ranks
    from smtsynth.export.goals import script_of
    from smtsynth.model.problem import Problem

    if not given["everything"]:
        for option in ("sample", "steps"):
            if given[option] is not None:
                raise InputError("comes without --all", where=f"--{option}", expected="--all beside it")
        if not asked.files:
            raise InputError("no program to run", expected="a program or schedule FILE, or --all")
        return [_module(name) if name.endswith(".py") else asked.script(name, check_ranks) for name in asked.files]
    if asked.files:
        raise InputError("comes with files", where="--all", expected="one of the two")
    lowering = asked.lowering()
    assert isinstance(asked.problem, Problem)
    check_ranks(asked.problem.system.devices)
    programs = _programs(asked.problem, lowering, given)
    if given["sample"] is not None and given["sample"] < len(programs):
        programs = random.Random(given["seed"]).sample(programs, given["sample"])
    return [script_of(asked.problem, lowering, program) for program in programs]


def _text(name: str) -> str | None:
    """The text of a Python module, which runs as it is; None for what the exporter writes."""
    from smtsynth.interfaces.yamltext import read_text

    return read_text(name) if name.endswith(".py") else None


def _module(name: str) -> Script:
    """The script of the goal that a Python module written by `export` (and changed since) has to reach.

    Its text is read for RANKS, GOAL, ROOTS and the name of its function; nothing of it runs here.
    """
    from smtsynth.execute.run import check_ranks
    from smtsynth.export.script import FUNCTION, script
    from smtsynth.interfaces.yamltext import label, read_text
    from smtsynth.model.schedule import Entry, Goal, Schedule, check_schedule

    where = label(name)
    try:
        lines = ast.parse(read_text(name)).body
        found = {
            line.targets[0].id: ast.literal_eval(line.value)
            for line in lines
            if isinstance(line, ast.Assign)
            and isinstance(line.targets[0], ast.Name)
            and line.targets[0].id in ("RANKS", "GOAL", "ROOTS")
        }
        ranks = int(found["RANKS"])
        groups = tuple(tuple(int(rank) for rank in group) for group in found.get("GOAL", [range(ranks)]))
        roots = tuple(int(rank) for rank in found.get("ROOTS", []))
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
        raise InputError(
            "is no module that export wrote", where=where, expected="RANKS = N, and its other names"
        ) from None
    kinds = [kind for kind, word in FUNCTION.items() for line in lines if getattr(line, "name", None) == word]
    if len(kinds) != 1:
        raise InputError(
            "defines no one collective", where=where, expected=f"one function of {', '.join(FUNCTION.values())}"
        )
    check_ranks(ranks)
    plain = Schedule(ranks, ((Entry(kinds[0], groups, roots),),), Goal(kinds[0], groups, roots))
    try:
        return script(check_schedule(plain))
    except InputError as error:
        raise error.at(where) from None


def _programs(problem: Problem, lowering: Lowering, given: dict[str, Any]) -> list[Program]:
    """All programs of the placement, cheapest first."""
    from smtsynth.cost.models import cost_model_of
    from smtsynth.cost.prices import Prices
    from smtsynth.meaning.goals import target_of
    from smtsynth.model.problem import Limits
    from smtsynth.model.program import default_steps, instruction_set
    from smtsynth.search.enumerate import StateGraph, cheapest_programs

    try:
        Limits(steps=given["steps"])
        instruction_set(1, given["instruction_set"])
    except InputError as error:
        where = None if error.where is None else f"--{error.where}"
        raise InputError(error.what, where=where or "--instruction-set", expected=error.expected) from None
    limit = given["steps"] or problem.limits.steps or default_steps(lowering.depth)
    target = target_of(lowering, problem.reduction.collective, problem.split)
    prices = Prices(cost_model_of(problem.cost_model), lowering, problem.reduction.payload, target.collective)
    found = cheapest_programs(StateGraph(target, given["instruction_set"]), prices, limit)
    programs = [program for _, program in islice(found, MAX_PROGRAMS + 1)]
    if len(programs) > MAX_PROGRAMS:
        raise InputError(
            f"there are more than {MAX_PROGRAMS} programs of at most {limit} steps", expected="fewer: --steps N"
        )
    return programs


def _data(one: Ran) -> dict[str, Any]:
    """A program's outcome as JSON data."""
    said = one.script.verdict
    return {
        "program": one.script.wording,
        "outcome": one.outcome,
        "reason": one.reason or None,
        "rank": one.rank,
        "chunk": one.chunk,
        "waiting": [{"rank": rank, "where": where} for rank, where in one.waiting],
        "verify": {"verdict": said.verdict, "device": said.device, "chunk": said.chunk},
        "agree": one.agrees,
    }


def _report(ran: list[Ran], given: dict[str, Any]) -> None:
    """The outcome for people: the counts first, then what is not right, one by one."""
    from rich.markup import escape

    from smtsynth.execute.run import INTERRUPTED
    from smtsynth.interfaces.layout import Table, console
    from smtsynth.model.program import Collective

    out = console()
    script = ran[0].script
    counts: Counter[str] = Counter(one.outcome for one in ran)
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    what = f"{len(ran)} programs" if len(ran) > 1 else script.wording or "the schedule"
    where = "devices" if given["backend"] == "jax" else "processes"
    out.print(
        f"[bold]{said}[/]: {escape(what)} on {script.devices} {where} by {BACKENDS[given['backend']]}, "
        f"{given['elements']} elements each, every one compared",
        soft_wrap=True,
    )
    if ran[-1].reason == INTERRUPTED:
        out.print("Interrupted: what had not ended by then counts as not run.")
    kinds = {move.collective for one in ran for move in one.script.moves}
    if given["backend"] == "jax" and kinds & {Collective.REDUCE, Collective.BROADCAST}:
        out.print("JAX has no Reduce, and no Broadcast on CPUs: both ran as sums.")
    rows = Table(("outcome", "what happened", "program"), below={"program": ""})
    bad = [one for one in ran if one.outcome not in ("right", "not run")]
    for one in bad[:MAX_ROWS]:
        rows.add_row(one.outcome, one.reason, one.script.wording or "the schedule")
    if bad:
        out.print(rows)
    if len(bad) > MAX_ROWS:
        out.print(f"… {len(bad) - MAX_ROWS} more; see --json")
    for one in bad:
        verdict = one.script.verdict
        if one.outcome == "wrong" and one.agrees:
            out.print(f"verify says the same: {escape(verdict.reason)}", soft_wrap=True)
    for one in ran:
        if one.agrees is False:
            verdict = one.script.verdict
            text = (
                f"verify says otherwise ({verdict.verdict}: {verdict.reason}): one of the two is a bug, please report"
            )
            out.print(escape(text), soft_wrap=True)
