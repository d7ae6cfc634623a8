"""The command line: the group of commands, and how it ends. Commands import what is heavy when they run."""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper
from threading import current_thread, main_thread
from typing import Any

import click

from smtsynth.errors import InternalError, LimitReached, SmtsynthError
from smtsynth.interfaces import commands
from smtsynth.interfaces.calibrate import calibrate
from smtsynth.interfaces.certify import check
from smtsynth.interfaces.export import export
from smtsynth.interfaces.run import run
from smtsynth.interfaces.verify import verify
from smtsynth.interfaces.workload_cli import workload

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class Commands(click.Group):
    """The commands; an interrupt that none of them caught is a limit reached, said in one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise LimitReached("interrupted") from None


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


for command in (
    commands.placements,
    commands.solve,
    commands.compare,
    commands.simulate,
    commands.enumerate_,
    commands.hierarchies,
    commands.presets,
    verify,
    check,
    calibrate,
    workload,
    export,
    run,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; every error of the user's is one line on standard error and exit status 2."""
    _open_streams()
    _catch_signals()
    try:
        status = _run()
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


def _run() -> object:
    """What the command returns. Click's own main would end with a status of its own where a pipe is closed."""
    try:
        with cli.make_context("smtsynth", sys.argv[1:]) as context:
            return cli.invoke(context)
    except click.exceptions.Exit as end:  # --help
        return end.exit_code


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
