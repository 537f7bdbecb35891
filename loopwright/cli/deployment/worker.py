"""`loopwright worker`: measure candidates on a host of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright.cli.shared.options import (
    DEFAULT_CERTIFICATES,
    CertificatesOption,
    EmulateOption,
    LogFormatOption,
    ReadyFileOption,
    RunnerOption,
    SchedulerArgument,
)
from workers.engine.cluster import run_workers
from workers.engine.engine import ClusterAddress
from workers.health.ready_file import ReadyFile
from workers.log_format import LogFormat


def worker(
    scheduler: SchedulerArgument,
    workers: Annotated[
        int,
        typer.Option(min=0, max=256, help="Number of workers for the CPU; each uses its own core."),
    ] = 1,
    certificates: CertificatesOption = DEFAULT_CERTIFICATES,
    ready_file: ReadyFileOption = None,
    _emulate: EmulateOption = None,
    _runner: RunnerOption = None,
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Measure candidates for a cluster on this host, until interrupted.

    The workers test the host first. They reconnect to a scheduler that restarts.
    """
    cluster = ClusterAddress(scheduler, certificates)
    run_workers(cluster, workers, typer.echo, ReadyFile(ready_file))
