"""`loopwright serve`: the whole service in one process tree."""

from __future__ import annotations

from typing import Annotated

import typer

from service.serve import serve as run_service


def serve(
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond loopback a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for a free one.")] = 8080,
    db: Annotated[str, typer.Option(help="The database.")] = "sqlite:///loopwright.db",
    token: Annotated[
        str | None,
        typer.Option(envvar="LOOPWRIGHT_TOKEN", help="What clients must know."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Embedded workers.")] = 1,
) -> None:
    """Run the API, the coordinator and local workers until interrupted."""
    run_service(host, port, db, token, workers)
