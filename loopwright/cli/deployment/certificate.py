"""`loopwright certificate`: the certificate of a cluster, before any of its parts starts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.output import console
from workers.engine import certificates


def certificate(
    folder: Annotated[Path, typer.Argument(help="Folder of the certificate; created if missing.")],
) -> None:
    """Create the certificate of a cluster, if the folder has none.

    The scheduler creates one too. Use this command if its parts receive the files another way.
    Keep the key secret: its holder can run code on the hosts of the cluster.
    """
    try:
        certificates.make(folder)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror}") from error
    certificates.read(folder)
    console.print(f"the certificate of the cluster is in {folder}", markup=False, highlight=False)
