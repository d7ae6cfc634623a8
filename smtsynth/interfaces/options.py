"""What the commands share: their options, and options, limits and placement read from the command line's words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from smtsynth.errors import InputError

if TYPE_CHECKING:
    from smtsynth.model.placement import Placement
    from smtsynth.model.problem import Problem
    from smtsynth.model.workload import Workload
    from smtsynth.search.loop import Resources
    from smtsynth.search.solve import Options

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
EXIT = {"optimal": 0, "infeasible": 1, "feasible": 3, "unknown": 3}
FILE = click.argument("problem", metavar="PROBLEM")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


class Quantity(click.ParamType[Any]):
    """A command-line quantity: a plain number in the base unit or one with a unit."""

    def __init__(self, dimension: str) -> None:
        self.dimension = dimension
        self.name = {"seconds": "S", "bytes": "SIZE"}[dimension]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value as an exact fraction."""
        from smtsynth.model.units import quantity

        return quantity(value, self.dimension, where=param.opts[0] if param else None, bare=True)


def search_options(command: F) -> F:
    """The options that solve, compare and simulate share."""
    options = [
        click.option("--placement", metavar="MATRIX", help="One placement, e.g. '[[1,4],[4,4]]'. Default: all."),
        click.option(
            "--instruction-set",
            metavar="p2|full",
            default="full",
            show_default=True,
            help="p2: the paper's (Master with AllReduce only); full: every form with every collective.",
        ),
        click.option("--steps", type=int, help="Step limit. Default: the problem's, else 5 or 2D-1, the larger."),
        click.option(
            "--hierarchy",
            default="reduction",
            show_default=True,
            help="Synthesis hierarchy: reduction, reduction-factors, reduction-row-major (the paper's tables), rows, "
            "columns or system.",
        ),
        click.option(
            "--cost-model", metavar="NAME", help="alpha-beta, paper or measured. Default: the problem's, or alpha-beta."
        ),
        click.option("--algorithm", metavar="NAME", help="How an AllReduce runs: ring (default), tree, chain or auto."),
        click.option(
            "--overlap", metavar="none|full", help="full: also show the time with perfect overlap of the steps."
        ),
        click.option("--time-limit", type=Quantity("seconds"), help="Time limit in seconds, or with a unit."),
        click.option("--memory-limit", type=Quantity("bytes"), help="Memory limit of a solver process, e.g. '2 GiB'."),
        click.option("--jobs", type=int, default=1, show_default=True, help="Placements solved at once."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def options_of(problem: Problem | Workload, given: dict[str, Any]) -> tuple[Options, Resources, Placement | None]:
    """Options, resources and the placement from the command line's words."""
    from time import perf_counter

    from smtsynth.cost.models import cost_model_of
    from smtsynth.interfaces.choices import changed
    from smtsynth.interfaces.progress import Progress
    from smtsynth.model.lowering import HIERARCHIES, ROW_MAJOR
    from smtsynth.model.placement import check_placement
    from smtsynth.model.problem import Limits, Problem
    from smtsynth.model.program import instruction_set
    from smtsynth.search.loop import Resources
    from smtsynth.search.solve import Options

    steps, solver = given["steps"], given.get("solver", "z3")
    time = problem.limits.seconds if given["time_limit"] is None else float(given["time_limit"])
    memory = problem.limits.memory if given["memory_limit"] is None else int(given["memory_limit"])
    named_option("--time-limit", lambda: Limits(seconds=time))
    named_option("--memory-limit", lambda: Limits(memory=memory))
    named_option("--steps", lambda: Limits(steps=steps))
    named_option("--instruction-set", lambda: instruction_set(1, given["instruction_set"]))
    named_option("--jobs", lambda: Options(jobs=given["jobs"]))
    named_option("--solver", lambda: Options(solver=solver))
    named_option("--encoding", lambda: Options(encoding=given.get("encoding", "reduced")))
    for option, word, words in (
        ("--hierarchy", given["hierarchy"], HIERARCHIES),
        ("--bounds", given.get("bounds", "on"), ("on", "off")),
    ):
        if word not in words:
            raise InputError(f"{word!r} is unknown", where=option, expected=", ".join(words))
    chosen = {"--" + key.replace("_", "-"): given[key] for key in ("cost_model", "algorithm", "overlap")}
    single = problem if isinstance(problem, Problem) else None
    choice = changed(problem.cost_model, chosen)
    asked = click.get_current_context().get_parameter_source("hierarchy") is ParameterSource.COMMANDLINE
    if choice.name == "paper" and not asked and single and not single.reduction.mixed:
        given["hierarchy"] = ROW_MAJOR  # the paper's model comes with its lowering
    options = Options(
        instruction_set=given["instruction_set"],
        steps=steps,
        hierarchy=given["hierarchy"],
        cost_model=cost_model_of(choice),
        encoding=given.get("encoding", "reduced"),
        solver=solver,
        bounds=given.get("bounds", "on") == "on",
        jobs=given["jobs"],
    )
    placement = None
    if given["placement"] is not None:
        matrix = matrix_of(given["placement"])
        placement = named_option("--placement", lambda: check_placement(matrix, problem.axes, problem.system))
    progress = Progress()
    click.get_current_context().call_on_close(progress.stop)
    deadline = None if time is None else perf_counter() + time
    return options, Resources(deadline, memory, solver, progress), placement


def named_option(option: str, check: Callable[[], T]) -> T:
    """What `check` returns; its complaint is said of `option`."""
    try:
        return check()
    except InputError as error:
        raise InputError(error.what, where=option, expected=error.expected) from None


def quiet(resources: Resources) -> None:
    """Take the progress display away, before an answer is printed."""
    from smtsynth.interfaces.progress import Progress

    if isinstance(resources.progress, Progress):
        resources.progress.stop()


def matrix_of(text: str) -> Any:
    """The matrix of an option's text, or InputError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(
            f"{text[:60]!r} is no matrix", where="--placement", expected="rows of whole numbers such as '[[1,4],[4,4]]'"
        ) from None


def one_placement(problem: Problem, placement: Placement | None) -> Placement:
    from smtsynth.model.placement import only_placement

    return placement if placement is not None else only_placement(problem.system, problem.axes)


def print_json(data: Any) -> None:
    sys.stdout.write(json.dumps(data, allow_nan=False) + "\n")
