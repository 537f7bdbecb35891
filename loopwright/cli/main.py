"""The application: its commands, and what happens to the errors of their users."""

from __future__ import annotations

from typing import Annotated, Any

import stamina.instrumentation
import typer
from typer.core import TyperGroup

import loopwright
from loopwright.cli import best, jobs, serve, trials, tune
from loopwright.cli.failure import explain
from loopwright.cli.output import err_console


class Commands(TyperGroup):
    """Runs a command; a user's mistake becomes a message and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            failure = explain(error)
            if failure is None:
                raise
            err_console.print("[red bold]error:[/] ", end="")
            err_console.print(failure.message, markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(failure.exit_code) from error


app = typer.Typer(
    name="loopwright",
    cls=Commands,
    help="Find fast schedules for tensor programs, prove them right, and remember them.",
    epilog="Exit codes: 0 done, 1 no result, 2 a mistake in what was asked, 3 no server answers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("serve")(serve.serve)
app.command("tune")(tune.tune)
app.command("best")(best.best)
app.command("jobs")(jobs.jobs)
app.command("trials")(trials.trials)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(loopwright.__version__)
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line of this process."""
    # Retries are told on standard error by the failure that ends them, not one by one on output.
    stamina.instrumentation.set_on_retry_hooks([])
    app()
