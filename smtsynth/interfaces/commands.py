"""The commands that find and price: placements, solve, compare, simulate, enumerate, hierarchies, presets.

Everything heavy is imported inside the commands, so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from smtsynth.errors import InputError, LimitReached
from smtsynth.interfaces.certify import Order, Written, certificate_options
from smtsynth.interfaces.options import (
    AS_JSON,
    EXIT,
    FILE,
    one_placement,
    options_of,
    print_json,
    quiet,
    search_options,
)

if TYPE_CHECKING:
    from smtsynth.model.workload import Workload


@click.command()
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
        print_json(placements_json(listed))
    else:
        from smtsynth.interfaces.report import placements_report

        placements_report(given, listed, count)


@click.command()
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
@click.option("--why", is_flag=True, help="Of a workload: runners-up, defaults, which axis innermost.")
@certificate_options
@AS_JSON
def solve(problem: str, as_json: bool, joint: bool, why: bool, **given: Any) -> int:
    """Find the cheapest program, and prove that nothing cheaper exists.

    Without --placement, over all placements. A file with several reductions is a workload: one placement and a
    program for each, for the least time of the whole step.

    \b
    Example: smtsynth solve examples/a100-4x16.yaml --placement '[[2,8],[2,2]]'
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
    options, resources, placement = options_of(asked, given)
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
    quiet(resources)
    if as_json:
        print_json(solution_json(solution) | overlap_json(interval) | written.data())
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

    options, resources, placement = options_of(asked, given)
    if placement is not None or joint or options.hierarchy != "reduction" or options.encoding != "reduced":
        raise InputError(
            "a workload takes no --placement, --joint, --hierarchy or --encoding", expected="constraints in its file"
        )
    if (given["overlap"] or asked.cost_model.overlap) == "full":
        raise InputError("is for one reduction", where="overlap full", expected="a problem file with `reduce`")
    if asked.traffic and not options.cost_model.name.startswith("alpha-beta"):
        name = options.cost_model.name
        raise InputError(f"{name} doesn't price given traffic", where="--cost-model", expected="alpha-beta")
    order = Order.of(given, asked, options, None)
    found = solve_workload(asked, options, resources)
    written = Written.of(order, found, options, resources)
    from smtsynth.interfaces.step import step_json, step_report, why_json, why_report

    quiet(resources)
    if as_json:
        reasons = why_json(found, options, resources) if why else {}
        print_json(step_json(found, options) | reasons | written.data())
    else:
        step_report(found, options)
        if why:
            why_report(found, options, resources)
        written.report()
    written.end()
    return 3 if resources.interrupted.is_set() else EXIT[found.status]


@click.command()
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
    options, resources, placement = options_of(asked, given)
    chosen = [placement] if placement is not None else enumerate_placements(asked.system, asked.axes)
    found = run(asked, chosen, options, resources, merge=not no_merge)
    quiet(resources)
    if as_json:
        print_json(compare_json(found))
    else:
        from smtsynth.interfaces.report import compare_report

        compare_report(found, merged=not no_merge)
    return {True: 0, False: 1, None: 3}[agree(found)]


@click.command()
@FILE
@click.argument("file", metavar="FILE")
@search_options
@AS_JSON
def simulate(problem: str, file: str, as_json: bool, **given: Any) -> None:
    """Price a program or schedule, step by step, by the cost model.

    FILE is a program, a schedule, the output of `solve --json`, or short program text.

    \b
    Example: smtsynth simulate examples/a100-4x16.yaml 'AllReduce(root, InsideGroup)' --placement '[[2,8],[2,2]]'
    """
    from smtsynth.interfaces.files import read_problem
    from smtsynth.interfaces.jsonout import overlap_json, simulate_json
    from smtsynth.interfaces.simulation import overlap_interval, simulation

    asked = read_problem(problem)
    options, _, placement = options_of(asked, given)
    source = click.get_current_context().get_parameter_source("hierarchy")
    given_one = options.hierarchy if source is ParameterSource.COMMANDLINE else None
    texts, collectives, costs, schedule = simulation(asked, file, placement, options, given_one)
    both = (given["overlap"] or asked.cost_model.overlap) == "full"
    total = sum(cost.nanoseconds for cost in costs)
    interval = overlap_interval(asked, options, total, schedule) if both else None
    if as_json:
        print_json(overlap_json(interval) | simulate_json(collectives, costs, asked.system))
    else:
        from smtsynth.interfaces.report import overlap_report, simulate_report

        simulate_report(texts, costs, asked.system)
        overlap_report(interval)


@click.command(name="enumerate")
@FILE
@search_options
@click.option("--cheapest", type=click.IntRange(1), default=10, show_default=True, help="How many to list.")
@click.option("--all", "everything", is_flag=True, help="List all programs, cheapest first.")
@AS_JSON
def enumerate_(problem: str, as_json: bool, cheapest: int, everything: bool, **given: Any) -> int:
    """List the programs of one placement, cheapest first (the paper's enumerative search).

    \b
    Example: smtsynth enumerate examples/a100-4x16.yaml --placement '[[2,8],[2,2]]' --cheapest 5
    """
    from smtsynth.interfaces.files import read_problem
    from smtsynth.interfaces.listing import listing, listing_report

    asked = read_problem(problem)
    options, resources, placement = options_of(asked, given)
    found = listing(asked, one_placement(asked, placement), options, resources, None if everything else cheapest)
    quiet(resources)
    if as_json:
        print_json(found)
    else:
        listing_report(found)
    return 0 if found["finished"] else 3


@click.command()
@FILE
@search_options
@AS_JSON
def hierarchies(problem: str, as_json: bool, **given: Any) -> None:
    """Compare what the synthesis hierarchies can express on one placement (small systems).

    \b
    Example: smtsynth hierarchies PROBLEM --placement '[[1,4],[2,1]]' --instruction-set p2
    """
    from smtsynth.interfaces.files import read_problem
    from smtsynth.search.inclusions import inclusions

    asked = read_problem(problem)
    options, resources, placement = options_of(asked, given)
    chosen = one_placement(asked, placement)
    found = inclusions(asked, chosen, options.instruction_set, options.steps, resources.deadline)
    quiet(resources)
    if as_json:
        names = list(found.programs)
        lacks = {one: {two: found.lacks(one, two) for two in names if two != one} for one in names}
        print_json({"programs": {name: len(found.programs[name]) for name in names}, "lacks": lacks})
    else:
        from smtsynth.interfaces.report import inclusions_report

        inclusions_report(found, options.instruction_set)


@click.command()
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
        print_json(presets_json(name))
    elif name is not None:
        click.echo(preset_file(name), nl=False)
    else:
        presets_report()
