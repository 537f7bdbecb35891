"""`loopwright key`: the key that signs a service's compiled kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compiler.runtime.signature import KeyFileError, SigningKey
from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.output import err_console


def key(
    file: Annotated[Path, typer.Argument(help="Key file; created if missing.", metavar="FILE")],
) -> None:
    """Create a key that signs compiled kernels, if the file does not exist; print its public key.

    The file stays on the server (`serve --signing-key FILE`). Clients with the public key, in
    `Client(public_key=...)` or in $LOOPWRIGHT_PUBLIC_KEY, load only signed kernels.
    """
    try:
        made = SigningKey.read(file) if file.exists() else SigningKey.create(file)
    except KeyFileError as error:
        raise InputError(str(error)) from error
    err_console.print("the public key, for $LOOPWRIGHT_PUBLIC_KEY of clients:", markup=False)
    typer.echo(made.public)
