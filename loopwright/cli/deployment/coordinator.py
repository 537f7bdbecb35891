"""`loopwright coordinator`: run jobs, without the API."""

from __future__ import annotations

import typer

from loopwright.cli.shared.options import (
    DEFAULT_CERTIFICATES,
    CertificatesOption,
    EmulateOption,
    LogFormatOption,
    NumJobsOption,
    NumWorkersOption,
    OptionalSchedulerOption,
    ReadyFileOption,
    ServedDbOption,
)
from service.processes.run_coordinator import run_coordinator
from workers.engine.certificates import read as read_certificates
from workers.engine.engine import ClusterAddress
from workers.health.ready_file import ReadyFile
from workers.log_format import LogFormat


def coordinator(
    db: ServedDbOption = "sqlite:///loopwright.db",
    workers: NumWorkersOption = 1,
    jobs: NumJobsOption = 1,
    *,
    scheduler: OptionalSchedulerOption = None,
    certificates: CertificatesOption = DEFAULT_CERTIFICATES,
    ready_file: ReadyFileOption = None,
    _emulate: EmulateOption = None,
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run the jobs of a database, until interrupted, on workers of this host or of a cluster.

    Several coordinators can share a database. If one stops or crashes, another resumes its job
    with all recorded trials.
    """
    cluster = None if scheduler is None else ClusterAddress(scheduler, certificates)
    if cluster is None and jobs > 1:
        raise typer.BadParameter("more than one job at a time requires --scheduler")
    if cluster is not None:
        read_certificates(cluster.certificates)  # fail now, not with the first job
    run_coordinator(db, workers, num_jobs=jobs, cluster=cluster, ready=ReadyFile(ready_file))
