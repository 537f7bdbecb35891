"""`loopwright key`: a key that a service signs compiled kernels with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compiler.runtime.signature import KeyFileError, SigningKey
from loopwright.cli.failure import InputError
from loopwright.cli.output import err_console


def key(
    file: Annotated[Path, typer.Argument(help="Where the key is, or is to be.", metavar="FILE")],
) -> None:
    """Make a key to sign compiled kernels with, and print its public key; print that of a key.

    The file stays with the server (`serve --signing-key FILE`). Clients that are given the public
    key, as `Client(public_key=...)` or in $LOOPWRIGHT_PUBLIC_KEY, load signed kernels only.
    """
    try:
        made = SigningKey.read(file) if file.exists() else SigningKey.create(file)
    except KeyFileError as error:
        raise InputError(str(error)) from error
    err_console.print("the public key, for $LOOPWRIGHT_PUBLIC_KEY of clients:", markup=False)
    typer.echo(made.public)
