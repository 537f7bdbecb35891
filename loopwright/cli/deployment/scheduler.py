"""`loopwright scheduler`: the scheduler of a cluster of several hosts."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.options import (
    DEFAULT_CERTIFICATES,
    CertificatesOption,
    LogFormatOption,
    ReadyFileOption,
)
from workers.engine.cluster import run_scheduler
from workers.engine.engine import ClusterAddress
from workers.health.ready_file import ReadyFile
from workers.log_format import LogFormat


def scheduler(
    host: Annotated[str, typer.Option(help="Listen address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 selects a free one.")] = 8786,
    certificates: CertificatesOption = DEFAULT_CERTIFICATES,
    ready_file: ReadyFileOption = None,
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run the cluster scheduler (stateless) until interrupted.

    The first start creates the certificate that all hosts of the cluster need. Keep the
    certificate secret: its holder can run code on those hosts.
    """
    cluster = ClusterAddress(f"tls://{host}:{port}", certificates)
    try:
        run_scheduler(
            cluster,
            lambda address: typer.echo(f"Loopwright scheduler on {address}"),
            ReadyFile(ready_file),
        )
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}") from error
