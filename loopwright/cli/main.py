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

_DEPLOYMENT = {
    "api": "Run only the API and the dashboard (stateless), until interrupted.",
    "coordinator": (
        "Run the jobs of a database, until interrupted, on workers of this host or of a cluster."
    ),
    "scheduler": "Run the cluster scheduler (stateless) until interrupted.",
    "worker": "Measure candidates for a cluster on this host, until interrupted.",
    "token": "Create, list and revoke access tokens in the database of a service.",
    "key": (
        "Create a key that signs compiled kernels, if the file does not exist; print its public"
        " key."
    ),
    "certificate": "Create the certificate of a cluster, if the folder has none.",
    "migrate": "Create or upgrade the tables of a database.",
}
"""The commands of the folder `deployment`."""
COMMANDS = {
    "serve": "Run the API, the coordinator and local workers until interrupted.",
    "tune": "Search for a fast schedule; verify the output of every candidate.",
    "best": "Show the best schedule of a workload, as a Python program.",
    "lock": (
        "Write the best schedules of workloads to a lock file, for `lw.kernel(..., lock=FILE)`."
    ),
    "verify": "Time the kernels of a lock file again, beside their recorded times.",
    "prefetch": "Fetch the kernels of a manifest into the cache, or build those of a lock file.",
    "jobs": "List jobs, newest first; stop, cancel, resume or extend a job.",
    "trials": "List the trials of a job; failed ones with their error.",
    "workers": "List the workers of a server.",
    "export": (
        "Write jobs with all their measurements to a file of JSON lines, for `loopwright import`."
    ),
    "import": "Import the records of a file: all of them, or none if a line is invalid.",
    "train": "Train a cost model on all measurements of a database, for one kind of target.",
    "check": "Check scripts: parse, print in each spelling and parse again, build, run, compare.",
    "inspect": "Compile a program or a model, and show the result; no device is needed.",
    "compile": "Compile an ONNX model to a package; with --trials, measure schedules first.",
    "run": "Run a compiled model on .npy files, and show or write its results.",
    "profile": "Compile a model, and show the time of each of its kernels, the slowest first.",
    "runner": "Build loopwright-runner for a device, from its sources in C.",
    **_DEPLOYMENT,
}
"""Each command with the first paragraph of its help, which the list of commands shows."""


class Commands(TyperGroup):
    """Load and run a command; report a user error as a message and an exit code.

    The function of a command is in the module of its name. The module is imported when the command
    runs: listing jobs should not import a web server and a cost model, and a list of the commands
    should import none of them.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command without its options, for a list, or None; `resolve_command` loads it."""
        if cmd_name not in COMMANDS:
            return None
        return _command(cmd_name, lambda: None, help=COMMANDS[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, loaded, or suggest a similar one."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"No such command {args[0]!r}: {suggestion(args[0], COMMANDS)}")
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else listed, rest

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


def load_command(name: str) -> Any:
    """Import the module of a command, and return the command."""
    module_name = f"{name}_" if keyword.iskeyword(name) else name
    folder = "loopwright.cli.deployment" if name in _DEPLOYMENT else "loopwright.cli"
    try:
        module = load_extra(f"{folder}.{module_name}", f"loopwright {name}")
    except MissingExtraError as error:
        return _unavailable(name, error)
    command = getattr(module, module_name)
    if isinstance(command, typer.Typer):  # a group of commands
        return typer.main.get_command(command)
    return _command(name, command, help=_refilled(command.__doc__))


def _command(name: str, function: Callable[..., None], **settings: Any) -> Any:
    alone = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    alone.command(name, **settings)(function)
    return typer.main.get_command(alone)


def _unavailable(name: str, error: MissingExtraError) -> Any:
    """Return a command that only names the missing extra."""

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
    epilog=(
        "Exit codes: 0 success, 1 no result, 2 usage error, 3 server unreachable.\n\n"
        "Tuning without a server, models, and the parts of a service need more packages: "
        + escape("pip install 'loopwright[server]'.")
    ),
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
