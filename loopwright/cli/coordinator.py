"""`loopwright coordinator`: what drives jobs, alone."""

from __future__ import annotations

from loopwright.cli.options import (
    DEFAULT_CERTIFICATES,
    CertificatesOption,
    LogFormatOption,
    NumWorkersOption,
    OptionalSchedulerOption,
    ServedDbOption,
)
from service.processes.run_coordinator import run_coordinator
from workers.engine.certificates import read as read_certificates
from workers.engine.engine import ClusterAddress
from workers.log_format import LogFormat


def coordinator(
    db: ServedDbOption = "sqlite:///loopwright.db",
    workers: NumWorkersOption = 1,
    scheduler: OptionalSchedulerOption = None,
    certificates: CertificatesOption = DEFAULT_CERTIFICATES,
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Drive the jobs of a database, until interrupted, with workers of this host or of a cluster.

    Any number of coordinators share a database. One that ends, however it ends, leaves its job to
    the others, with all that was measured.
    """
    cluster = None if scheduler is None else ClusterAddress(scheduler, certificates)
    if cluster is not None:
        read_certificates(cluster.certificates)  # told now, and not with the first job
    run_coordinator(db, workers, cluster=cluster)
