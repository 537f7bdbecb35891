"""`loopwright serve`: the whole service in one process tree."""

from __future__ import annotations

from loopwright.cli.options import (
    HostOption,
    NumWorkersOption,
    PortOption,
    ServedDbOption,
    ServedTokenOption,
)
from service.serve import serve as run_service


def serve(
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    db: ServedDbOption = "sqlite:///loopwright.db",
    token: ServedTokenOption = None,
    workers: NumWorkersOption = 1,
) -> None:
    """Run the API, the coordinator and local workers until interrupted."""
    run_service(host, port, db, token, workers)
