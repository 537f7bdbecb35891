"""`loopwright coordinator`: what drives jobs, alone."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright.cli.options import (
    DEFAULT_CERTIFICATES,
    CertificatesOption,
    NumWorkersOption,
    ServedDbOption,
)
from service.run_coordinator import run_coordinator
from workers.certificates import read as read_certificates
from workers.engine import ClusterAddress


def coordinator(
    db: ServedDbOption = "sqlite:///loopwright.db",
    workers: NumWorkersOption = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Use the workers of the cluster there, such as tls://HOST:8786."),
    ] = None,
    certificates: CertificatesOption = DEFAULT_CERTIFICATES,
) -> None:
    """Drive the jobs of a database, until interrupted, with workers of this host or of a cluster.

    Any number of coordinators share a database. One that ends, however it ends, leaves its job to
    the others, with all that was measured.
    """
    cluster = None if scheduler is None else ClusterAddress(scheduler, certificates)
    if cluster is not None:
        read_certificates(cluster.certificates)  # told now, and not with the first job
    run_coordinator(db, workers, cluster=cluster)
