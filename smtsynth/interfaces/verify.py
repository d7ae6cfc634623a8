"""The command `verify`: schedules, programs and MSCCL XML, each proved or refuted with where and why."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from smtsynth.errors import InputError

if TYPE_CHECKING:
    from smtsynth.interfaces.answers import Answer

EXIT = {"proved": 0, "refuted": 1, "unknown": 3}
ON_OFF, LAYOUTS = ("on", "off"), ("any", "identity")


@click.command()
@click.argument("file", required=False)
@click.option(
    "--program",
    metavar="TEXT|FILE",
    is_flag=False,
    flag_value="",
    help="Verify a program of the DSL, for every size of its factors or on a placement.",
)
@click.option(
    "--factors",
    metavar="N|NAMES",
    help="How many factors the program is over, or their names, outermost first: node,gpu.",
)
@click.option(
    "--collective",
    metavar="NAME",
    help="What a program over --factors is to be: AllReduce, ReduceScatter, AllGather, Reduce, Broadcast. "
    "Default: AllReduce.",
)
@click.option(
    "--split",
    metavar="NAMES",
    help="The factors that its chunks end split over, where these are some only: gpu. Default: all of a ReduceScatter.",
)
@click.option("--problem", metavar="PROBLEM", help="A problem file: coordinates of devices, and the goal.")
@click.option("--placement", metavar="MATRIX", help="The problem's placement, e.g. '[[1,4],[4,4]]'.")
@click.option("--hierarchy", help="Synthesis hierarchy of a program on a placement. Default: reduction.")
@click.option(
    "--layout",
    metavar="any|identity",
    default="any",
    show_default=True,
    help="any: one order of the chunks for all devices will do; identity: chunk order.",
)
@click.option("--explain", is_flag=True, help="Show what the group held before and after the faulty step.")
@click.option("--dump", metavar="DIR", help="Write the question as SMT-LIB files, for any solver (small ones only).")
@click.option(
    "--solver-check",
    metavar="on|off",
    default="on",
    show_default=True,
    help="Ask z3, and cvc5 where installed, the same question (small ones only).",
)
@click.option(
    "--fifo-slots", metavar="N", type=int, default=8, show_default=True, help="Messages that a FIFO of an XML holds."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def verify(file: str | None, program: str | None, as_json: bool, **given: Any) -> None:
    """Prove a schedule, a program or an MSCCL XML right, or show where and why it is wrong.

    FILE is a schedule or a program (YAML or JSON), the output of `solve --json`, or MSCCL XML (*.xml).

    \b
    Examples:
      smtsynth verify schedule.yaml --explain
      smtsynth verify deployed.xml
      smtsynth verify --factors 2 --program \\
        'ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)'
      smtsynth verify --factors node,gpu --split gpu --program \\
        'ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root))'
    """
    if program and file is not None:
        raise InputError(f"comes with another file, {file[:60]!r}", where="--program", expected="one of the two")
    name = program or file
    if name is None:
        raise InputError("nothing to verify", expected="a FILE, or --program with its text")
    for option, known in (("layout", LAYOUTS), ("solver_check", ON_OFF)):
        if given[option] not in known:
            where = f"--{option.replace('_', '-')}"
            raise InputError(f"{given[option][:40]!r} is unknown", where=where, expected=" or ".join(known))
    answer = _answer(name, program is not None, given)
    if given["dump"] is not None:
        _dump(given["dump"], answer.questions(), answer.unasked)
    if as_json:
        sys.stdout.write(json.dumps(answer.data, allow_nan=False) + "\n")
    else:
        from smtsynth.interfaces.verdicts import print_answer

        print_answer(answer, given["explain"], given["dump"])
    sys.exit(EXIT[answer.verdict])


def _answer(name: str, is_program: bool, given: dict[str, Any]) -> Answer:
    """The answer on what `name` is or holds."""
    from smtsynth.interfaces.answers import Settings
    from smtsynth.interfaces.progress import Progress
    from smtsynth.interfaces.verify_files import verify_yaml
    from smtsynth.interfaces.verify_xml import verify_xml
    from smtsynth.verify.schedules import installed_solvers

    progress = Progress()
    click.get_current_context().call_on_close(progress.stop)
    settings = Settings(
        layout=given["layout"],
        solvers=installed_solvers() if given["solver_check"] == "on" else (),
        factors=given["factors"],
        problem=given["problem"],
        placement=given["placement"],
        hierarchy=given["hierarchy"],
        fifo_slots=given["fifo_slots"],
        progress=progress,
        collective=given["collective"],
        split=given["split"],
    )
    try:
        if not is_program and _is_xml(name):
            return verify_xml(name, settings)
        return verify_yaml(name, is_program, settings)
    finally:
        progress.stop()


def _is_xml(name: str) -> bool:
    """Whether a file is XML, by its name or its first bytes."""
    if name.lower().endswith(".xml"):
        return True
    try:
        if not os.path.isfile(name):
            return False
        with open(name, "rb") as file:
            return file.read(1000).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")
    except (OSError, ValueError):
        return False


def _dump(folder: str, questions: dict[str, str], unasked: str | None) -> None:
    """Write the questions as files of a folder, which is made if it isn't there; `unasked` says why there are none."""
    from smtsynth.interfaces.files import write_text

    if not questions:
        what = "this is too large for a solver's question" if unasked is None else f"no question is asked: {unasked}"
        raise InputError(what, where="--dump", expected="a smaller case" if unasked is None else "another program")
    try:
        os.makedirs(folder, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{folder[:200]!r} cannot be made ({reason})", where="--dump", expected="a folder") from None
    for name, text in questions.items():
        write_text(os.path.join(folder, name), text)
