"""The command line. Everything heavy is imported inside the commands, so that --help answers at once."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from smtsynth.errors import InputError, InternalError, LimitReached, SmtsynthError
from smtsynth.interfaces.calibrate import calibrate
from smtsynth.interfaces.certify import Order, Written, certificate_options, check
from smtsynth.interfaces.export import export
from smtsynth.interfaces.run import run as run_command
from smtsynth.interfaces.verify import verify
from smtsynth.interfaces.workload_cli import workload

if TYPE_CHECKING:
    from smtsynth.model.placement import Placement
    from smtsynth.model.problem import Problem
    from smtsynth.model.workload import Workload
    from smtsynth.search.loop import Resources
    from smtsynth.search.solve import Options

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
EXIT = {"optimal": 0, "infeasible": 1, "feasible": 3, "unknown": 3}
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
FILE = click.argument("problem", metavar="PROBLEM")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


class Commands(click.Group):
    """The commands; an interrupt that none of them caught is a limit reached, said in one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise LimitReached("interrupted") from None


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


def _version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    from importlib.metadata import PackageNotFoundError, version

    if asked:
        try:
            click.echo(f"smtsynth {version('smtsynth')}")
        except PackageNotFoundError:
            click.echo("smtsynth (run from its source, not installed)")
        ctx.exit()


@click.group(cls=Commands, context_settings=CONTEXT, invoke_without_command=False)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
def cli() -> None:
    """Optimal placements and reduction programs for hierarchical systems, with proof.

    \b
    Example:
      smtsynth presets a100-4x16 > a100.yaml
      smtsynth solve a100.yaml

    Exit status: 0 optimal, proved or agree; 1 infeasible, refuted or disagree; 2 bad input; 3 unknown or only feasible.
    """


@cli.command()
@FILE
@AS_JSON
@click.option("--all", "everything", is_flag=True, help="List all of them, however many.")
def placements(problem: str, as_json: bool, everything: bool) -> None:
    """List and count the placements (parallelism matrices) of a problem.

    \b
    Example: smtsynth placements examples/a100-4x16.yaml
    """
    from smtsynth.interfaces.files import read_problem
    from smtsynth.interfaces.jsonout import placements_json
    from smtsynth.model.placement import count_placements
    from smtsynth.model.placement import placements as enumerate_placements

    given = read_problem(problem)
    count = count_placements(given.axes, given.system)
    if count > 1_000_000 and (as_json or everything):
        raise LimitReached(f"there are {count} placements, too many to list")
    listed = enumerate_placements(given.system, given.axes) if as_json or everything or count <= 1000 else []
    if as_json:
        _print_json(placements_json(listed))
    else:
        from smtsynth.interfaces.report import placements_report

        placements_report(given, listed, count)


@cli.command()
@FILE
@search_options
@click.option("--solver", default="z3", show_default=True, help="z3, or cadical (needs the extra 'certify').")
@click.option(
    "--encoding",
    default="reduced",
    show_default=True,
    help="reduced (device classes, any size) or concrete (small systems, the audited one).",
)
@click.option(
    "--bounds",
    metavar="on|off",
    default="on",
    show_default=True,
    help="Start from the cheapest path over device classes (on) or from common schemes (off).",
)
@click.option("--joint", is_flag=True, help="One query with the placement unknown too (small systems).")
@click.option(
    "--why", is_flag=True, help="Of a workload: runners-up, defaults, which axis innermost."
)
@certificate_options
@AS_JSON
def solve(problem: str, as_json: bool, joint: bool, why: bool, **given: Any) -> int:
    """Find the cheapest program, and prove that nothing cheaper exists.

    Without --placement, over all placements. A file with several reductions is a workload: one placement and a
    program for each, for the least time of the whole step.

    \b
    Example: smtsynth solve examples/a100-4x16.yaml --placement '[[1,4],[4,4]]'
    """
    from smtsynth.interfaces.jsonout import overlap_json, solution_json
    from smtsynth.interfaces.simulation import overlap_interval
    from smtsynth.interfaces.workloads import read_problem_or_workload
    from smtsynth.model.problem import Problem
    from smtsynth.search.joint import solve_joint
    from smtsynth.search.solve import solve as run

    asked = read_problem_or_workload(problem)
    if not isinstance(asked, Problem):
        return _solve_step(asked, as_json, joint, why, given)
    if why:
        raise InputError("is for workloads", where="--why", expected="a file with several reductions")
    options, resources, placement = _options(asked, given)
    order = Order.of(given, asked, options, placement)
    if joint:
        if placement is not None:
            raise InputError("--joint looks for the placement itself", where="--placement", expected="one of the two")
        solution = solve_joint(asked, options, resources)
    else:
        solution = run(asked, placement, options, resources)
    written = Written.of(order, solution, options, resources)
    interval = None
    if (given["overlap"] or asked.cost_model.overlap) == "full" and solution.schedule is not None:
        interval = overlap_interval(asked, options, solution.cost or 0, solution.schedule)
    _quiet(resources)
    if as_json:
        _print_json(solution_json(solution) | overlap_json(interval) | written.data())
    else:
        from smtsynth.interfaces.report import overlap_report, solve_report

        solve_report(solution, asked, options.cost_model)
        overlap_report(interval)
        written.report()
    written.end()
    return EXIT[solution.status]


def _solve_step(asked: Workload, as_json: bool, joint: bool, why: bool, given: dict[str, Any]) -> int:
    """Solve a workload."""
    from smtsynth.search.workload import solve_workload

    options, resources, placement = _options(asked, given)
    if given["certificate"] is not None or given["with_cnf"]:
        raise InputError("a workload has no certificate", where="--certificate", expected="a problem with one `reduce`")
    if placement is not None or joint or options.hierarchy != "reduction" or options.encoding != "reduced":
        raise InputError(
            "a workload takes no --placement, --joint, --hierarchy or --encoding", expected="constraints in its file"
        )
    if not options.cost_model.name == "alpha-beta" or not asked.system.plain:
        raise InputError("a workload needs the alpha-beta model on a tree of plain levels", where="cost_model")
    found = solve_workload(asked, options, resources)
    from smtsynth.interfaces.step import step_json, step_report, why_report

    _quiet(resources)
    if as_json:
        _print_json(step_json(found, options))
    else:
        step_report(found, options)
        if why:
            why_report(found, options, resources)
    return EXIT[found.status]


@cli.command()
@FILE
@search_options
@click.option("--no-merge", is_flag=True, help="Enumerate programs one by one, as the paper does; slower.")
@click.option("--solver", default="z3", show_default=True, help="z3, or cadical (needs the extra 'certify').")
@AS_JSON
def compare(problem: str, as_json: bool, no_merge: bool, **given: Any) -> int:
    """Set the paper's enumerative search beside the solver, placement by placement.

    \b
    Example: smtsynth compare examples/a100-4x16.yaml
    """
    from smtsynth.interfaces.files import read_problem
    from smtsynth.interfaces.jsonout import compare_json
    from smtsynth.model.placement import placements as enumerate_placements
    from smtsynth.search.compare import agree
    from smtsynth.search.compare import compare as run

    asked = read_problem(problem)
    options, resources, placement = _options(asked, given)
    chosen = [placement] if placement is not None else enumerate_placements(asked.system, asked.axes)
    found = run(asked, chosen, options, resources, merge=not no_merge)
    _quiet(resources)
    if as_json:
        _print_json(compare_json(found))
    else:
        from smtsynth.interfaces.report import compare_report

        compare_report(found, merged=not no_merge)
    return {True: 0, False: 1, None: 3}[agree(found)]


@cli.command()
@FILE
@click.argument("file", metavar="FILE")
@search_options
@AS_JSON
def simulate(problem: str, file: str, as_json: bool, **given: Any) -> None:
    """Price a program or schedule, step by step, by the cost model.

    FILE is a program, a schedule, the output of `solve --json`, or short program text.

    \b
    Example: smtsynth simulate examples/a100-4x16.yaml 'AllReduce(root, InsideGroup)' --placement '[[1,4],[4,4]]'
    """
    from smtsynth.interfaces.files import read_problem
    from smtsynth.interfaces.jsonout import overlap_json, simulate_json
    from smtsynth.interfaces.simulation import overlap_interval, simulation

    asked = read_problem(problem)
    options, _, placement = _options(asked, given)
    source = click.get_current_context().get_parameter_source("hierarchy")
    given_one = options.hierarchy if source is ParameterSource.COMMANDLINE else None
    texts, collectives, costs, schedule = simulation(asked, file, placement, options, given_one)
    both = (given["overlap"] or asked.cost_model.overlap) == "full"
    total = sum(cost.nanoseconds for cost in costs)
    interval = overlap_interval(asked, options, total, schedule) if both else None
    if as_json:
        _print_json(overlap_json(interval) | simulate_json(collectives, costs, asked.system))
    else:
        from smtsynth.interfaces.report import overlap_report, simulate_report

        simulate_report(texts, costs, asked.system)
        overlap_report(interval)


@cli.command(name="enumerate")
@FILE
@search_options
@click.option("--cheapest", type=click.IntRange(1), default=10, show_default=True, help="How many to list.")
@click.option("--all", "everything", is_flag=True, help="List all programs, cheapest first.")
@AS_JSON
def enumerate_(problem: str, as_json: bool, cheapest: int, everything: bool, **given: Any) -> int:
    """List the programs of one placement, cheapest first (the paper's enumerative search).

    \b
    Example: smtsynth enumerate examples/a100-4x16.yaml --placement '[[1,4],[4,4]]' --cheapest 5
    """
    from smtsynth.interfaces.files import read_problem
    from smtsynth.interfaces.listing import listing, listing_report

    asked = read_problem(problem)
    options, resources, placement = _options(asked, given)
    found = listing(asked, _one_placement(asked, placement), options, resources, None if everything else cheapest)
    _quiet(resources)
    if as_json:
        _print_json(found)
    else:
        listing_report(found)
    return 0 if found["finished"] else 3


@cli.command()
@FILE
@search_options
@AS_JSON
def hierarchies(problem: str, as_json: bool, **given: Any) -> None:
    """Compare what the four synthesis hierarchies can express on one placement (small systems).

    \b
    Example: smtsynth hierarchies PROBLEM --placement '[[1,4],[2,1]]' --instruction-set p2
    """
    from smtsynth.interfaces.files import read_problem
    from smtsynth.search.inclusions import inclusions

    asked = read_problem(problem)
    options, resources, placement = _options(asked, given)
    chosen = _one_placement(asked, placement)
    found = inclusions(asked, chosen, options.instruction_set, options.steps, resources.deadline)
    _quiet(resources)
    if as_json:
        names = list(found.programs)
        lacks = {one: {two: found.lacks(one, two) for two in names if two != one} for one in names}
        _print_json({"programs": {name: len(found.programs[name]) for name in names}, "lacks": lacks})
    else:
        from smtsynth.interfaces.report import inclusions_report

        inclusions_report(found, options.instruction_set)


@cli.command()
@click.argument("name", required=False)
@AS_JSON
def presets(name: str | None, as_json: bool) -> None:
    """List the systems known by name, or print one as a problem file.

    \b
    Example: smtsynth presets dgx-h100 > my-cluster.yaml
    """
    from smtsynth.interfaces.presets import presets_json, presets_report
    from smtsynth.model.presets import preset_file

    if as_json:
        _print_json(presets_json(name))
    elif name is not None:
        click.echo(preset_file(name), nl=False)
    else:
        presets_report()


cli.add_command(verify)
cli.add_command(check)
cli.add_command(calibrate)
cli.add_command(workload)
cli.add_command(export)
cli.add_command(run_command)


def _options(problem: Problem | Workload, given: dict[str, Any]) -> tuple[Options, Resources, Placement | None]:
    """Options, resources and the placement from the command line's words."""
    from time import perf_counter

    from smtsynth.cost.models import cost_model_of
    from smtsynth.interfaces.choices import changed
    from smtsynth.interfaces.progress import Progress
    from smtsynth.model.choice import CostChoice
    from smtsynth.model.lowering import HIERARCHIES, ROW_MAJOR
    from smtsynth.model.placement import check_placement
    from smtsynth.model.problem import Limits, Problem
    from smtsynth.model.program import instruction_set
    from smtsynth.search.loop import Resources
    from smtsynth.search.solve import Options

    steps, solver = given["steps"], given.get("solver", "z3")
    time = problem.limits.seconds if given["time_limit"] is None else float(given["time_limit"])
    memory = problem.limits.memory if given["memory_limit"] is None else int(given["memory_limit"])
    _named("--time-limit", lambda: Limits(seconds=time))
    _named("--memory-limit", lambda: Limits(memory=memory))
    _named("--steps", lambda: Limits(steps=steps))
    _named("--instruction-set", lambda: instruction_set(1, given["instruction_set"]))
    _named("--jobs", lambda: Options(jobs=given["jobs"]))
    _named("--solver", lambda: Options(solver=solver))
    _named("--encoding", lambda: Options(encoding=given.get("encoding", "reduced")))
    for option, word, words in (
        ("--hierarchy", given["hierarchy"], HIERARCHIES),
        ("--bounds", given.get("bounds", "on"), ("on", "off")),
    ):
        if word not in words:
            raise InputError(f"{word!r} is unknown", where=option, expected=", ".join(words))
    chosen = {"--" + key.replace("_", "-"): given[key] for key in ("cost_model", "algorithm", "overlap")}
    single = problem if isinstance(problem, Problem) else None
    choice = changed(single.cost_model if single else CostChoice(), chosen)
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
        placement = _named("--placement", lambda: check_placement(matrix, problem.axes, problem.system))
    progress = Progress()
    click.get_current_context().call_on_close(progress.stop)
    deadline = None if time is None else perf_counter() + time
    return options, Resources(deadline, memory, solver, progress), placement


def _named(option: str, check: Callable[[], T]) -> T:
    """What `check` returns; its complaint is said of `option`."""
    try:
        return check()
    except InputError as error:
        raise InputError(error.what, where=option, expected=error.expected) from None


def _quiet(resources: Resources) -> None:
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


def _one_placement(problem: Problem, placement: Placement | None) -> Placement:
    from smtsynth.model.placement import only_placement

    return placement if placement is not None else only_placement(problem.system, problem.axes)


def _print_json(data: Any) -> None:
    sys.stdout.write(json.dumps(data, allow_nan=False) + "\n")


def main() -> None:
    """Run the command line; every error of the user's is one line on standard error and exit status 2."""
    _open_streams()
    _catch_signals()
    try:
        status = cli.main(standalone_mode=False, prog_name="smtsynth")
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except InternalError as error:
        _fail(f"internal error, please report: {error}", 4)
    except LimitReached as error:
        _fail(str(error), 3)
    except SmtsynthError as error:
        _fail(str(error), 2)
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted", 3)
    except BrokenPipeError:
        _drop_output()
        sys.exit(0)
    except OSError as error:
        _drop_output()
        _fail(f"the answer cannot be written ({error.strerror or error})", 2)


def _open_streams() -> None:
    """Streams that can be written: none is closed, and what an encoding lacks is replaced."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- open until the process ends
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _catch_signals() -> None:
    """Being asked to end is an interrupt too, so that no solver is left behind."""
    if current_thread() is main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)


def _drop_output() -> None:
    """What is still buffered goes nowhere, so that the end of the process doesn't complain again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> None:
    print(f"smtsynth: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
