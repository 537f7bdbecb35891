"""`loopwright scheduler`: where coordinators and workers of several hosts meet."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright.cli.failure import InputError
from loopwright.cli.options import DEFAULT_CERTIFICATES, CertificatesOption, LogFormatOption
from workers.engine.cluster import run_scheduler
from workers.engine.engine import ClusterAddress
from workers.log_format import LogFormat


def scheduler(
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for a free one.")] = 8786,
    certificates: CertificatesOption = DEFAULT_CERTIFICATES,
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Be the meeting point of a cluster, until interrupted: it hands work on, and keeps nothing.

    The first start makes the certificate that all hosts of the cluster need. Whoever has it may run
    code on them.
    """
    cluster = ClusterAddress(f"tls://{host}:{port}", certificates)
    try:
        run_scheduler(cluster, lambda address: typer.echo(f"Loopwright meets at {address}"))
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}") from error
