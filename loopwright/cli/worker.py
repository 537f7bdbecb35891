"""`loopwright worker`: what measures, on a host of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright.cli.options import (
    DEFAULT_CERTIFICATES,
    CertificatesOption,
    LogFormatOption,
    SchedulerArgument,
)
from workers.engine.cluster import run_workers
from workers.engine.engine import ClusterAddress
from workers.log_format import LogFormat


def worker(
    scheduler: SchedulerArgument,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="How many; each measures alone on its core.")
    ] = 1,
    certificates: CertificatesOption = DEFAULT_CERTIFICATES,
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Measure for a cluster on this host, until interrupted.

    The host is tested first. A scheduler that goes away is waited for.
    """
    run_workers(ClusterAddress(scheduler, certificates), workers, typer.echo)
