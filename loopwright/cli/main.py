"""The command-line application: its commands, and how it reports user errors."""

from __future__ import annotations

import inspect
import keyword
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

import loopwright
from compiler.keywords import suggestion
from loopwright.cli.shared.failure import ExitCode, explain
from loopwright.cli.shared.output import err_console
from loopwright.extras import MissingExtraError, load_extra

_DEPLOYMENT = (
    "api",
    "coordinator",
    "scheduler",
    "worker",
    "token",
    "key",
    "certificate",
    "migrate",
)
"""The commands of the folder `deployment`."""
COMMANDS = (
    "serve",
    "tune",
    "best",
    "lock",
    "verify",
    "prefetch",
    "jobs",
    "trials",
    "workers",
    "export",
    "import",
    "train",
    "check",
    "inspect",
    "compile",
    "run",
    "profile",
    "runner",
    *_DEPLOYMENT,
)


class Commands(TyperGroup):
    """Load and run a command; report a user error as a message and an exit code.

    The function of a command is in the module of its name. The module is imported on first use:
    listing jobs should not import a web server and a cost model.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or None."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        folder = "loopwright.cli.deployment" if cmd_name in _DEPLOYMENT else "loopwright.cli"
        try:
            module = load_extra(f"{folder}.{name}", f"loopwright {cmd_name}")
        except MissingExtraError as error:
            return _unavailable(cmd_name, error)
        command = getattr(module, name)
        if isinstance(command, typer.Typer):  # a group of commands
            return typer.main.get_command(command)
        return _command(cmd_name, command, help=_refilled(command.__doc__))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, or suggest a similar one."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"No such command {args[0]!r}: {suggestion(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except KeyboardInterrupt:
            err_console.print("interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except Exception as error:
            failure = explain(error)
            if failure is None:
                raise
            err_console.print("[red bold]error:[/] ", end="")
            err_console.print(failure.message, markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(failure.exit_code) from error


def _command(name: str, function: Callable[..., None], **settings: Any) -> Any:
    alone = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    alone.command(name, **settings)(function)
    return typer.main.get_command(alone)


def _unavailable(name: str, error: MissingExtraError) -> Any:
    """Return a command that only names the missing extra, so that the help lists it too."""

    def fail() -> None:
        raise error

    takes_anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return _command(name, fail, help=escape(str(error)), context_settings=takes_anything)


def _show_warning(message: Warning | str, *_: object, **_options: object) -> None:
    """Show a warning as one line: a user of commands does not need our source."""
    err_console.print("[yellow bold]warning:[/] ", end="")
    err_console.print(str(message), markup=False, highlight=False, soft_wrap=True)


def _refilled(docstring: str) -> str:
    """Join each paragraph into one line, so that a terminal of any width can wrap it."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


# Earlier spellings of options. They are accepted until version 0.2, and no help shows them.
_RENAMED_OPTIONS = {
    "cold": "no-warm-start",
    "plateau": "patience",
    "seconds": "max-secs",
    "text": "search",
    "trials": "max-trials",
}


def _current_option(name: str) -> str:
    return _RENAMED_OPTIONS.get(name, name)


app = typer.Typer(
    name="loopwright",
    cls=Commands,
    help="Find fast schedules for tensor programs, verify them, and store them.",
    context_settings={"token_normalize_func": _current_option},
    epilog="Exit codes: 0 success, 1 no result, 2 usage error, 3 server unreachable.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


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
    """Handle the options before the command."""


def main() -> None:
    """Run the command line of this process."""
    app(prog_name="loopwright")
