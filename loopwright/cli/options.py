"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from compiler.script import parse
from loopwright.cli.failure import InputError
from loopwright.client import DEFAULT_URL
from loopwright.workload import to_func

WorkloadArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="A script file, or an operator such as matmul:512,512,512:float32.",
        metavar="WORKLOAD",
        show_default=False,
    ),
]
TargetOption: TypeAlias = Annotated[
    str, typer.Option("--target", help='Such as "cpu" or "cpu -mcpu=znver3 -num-cores=1".')
]
UrlOption: TypeAlias = Annotated[
    str, typer.Option("--url", envvar="LOOPWRIGHT_URL", help="The server's address.")
]
OptionalUrlOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="LOOPWRIGHT_URL",
        help=f"A server, such as {DEFAULT_URL}; else this process.",
    ),
]
TokenOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--token", envvar="LOOPWRIGHT_TOKEN", help="What the server knows you by."),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def read_workload(argument: str) -> str:
    """Return a script's text or an operator, after checking that it means something.

    Raises:
        ScriptError: If the file is not a script; the error shows the place.
        OperatorError: If the operator is unknown.
        InputError: If the file cannot be read.
    """
    path = Path(argument)
    if not path.exists() and path.suffix == "" and "/" not in argument:
        to_func(argument)
        return argument
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"the script {argument} cannot be read: {reason}") from error
    parse(text, filename=argument)
    return text
