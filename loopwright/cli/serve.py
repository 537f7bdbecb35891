"""`loopwright serve`: the whole service in one process tree."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from loopwright.cli.shared.options import (
    EmulateOption,
    HostOption,
    LogFormatOption,
    NumWorkersOption,
    PortOption,
    RateLimitOption,
    RemotesOption,
    RunnerOption,
    ServedDbOption,
    ServedTokenFileOption,
    ServedTokenOption,
    SigningKeyOption,
    served_token,
)
from service.http.rate_limit import DEFAULT_PER_SEC
from service.processes.serve import serve as run_service
from workers.log_format import LogFormat

_DATABASE = "sqlite:///loopwright.db"


def serve(
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    db: ServedDbOption = _DATABASE,
    token: ServedTokenOption = None,
    token_file: ServedTokenFileOption = None,
    workers: NumWorkersOption = 1,
    rate_limit: RateLimitOption = DEFAULT_PER_SEC,
    signing_key: SigningKeyOption = None,
    remotes: RemotesOption = False,
    _emulate: EmulateOption = None,
    _runner: RunnerOption = None,
    _log_format: LogFormatOption = LogFormat.TEXT,
    demo: Annotated[
        bool, typer.Option("--demo", help="Replay recorded jobs from a temporary database.")
    ] = False,
) -> None:
    """Run the API, the coordinator and local workers until interrupted."""
    token = served_token(token, token_file)
    if not demo:
        run_service(
            *(host, port, db, token, workers),
            requests_per_sec=rate_limit,
            signing_key=signing_key,
            remotes=remotes,
        )
        return
    if db != _DATABASE:
        raise typer.BadParameter("--demo uses a temporary database: leave out --db or --demo")
    with TemporaryDirectory(prefix="loopwright-demo-") as folder:
        run_service(host, port, f"sqlite:///{folder}/demo.db", token, workers, demo=True)
