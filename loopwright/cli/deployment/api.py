"""`loopwright api`: the HTTP side of the service alone."""

from __future__ import annotations

import typer

from loopwright.cli.shared.options import (
    DEFAULT_CERTIFICATES,
    CertificatesOption,
    HostOption,
    LogFormatOption,
    OptionalSchedulerOption,
    PortOption,
    RateLimitOption,
    RemotesOption,
    ServedDbOption,
    ServedTokenFileOption,
    ServedTokenOption,
    SigningKeyOption,
    served_token,
)
from service.http.rate_limit import DEFAULT_PER_SEC
from service.processes.serve import serve
from workers.engine.certificates import read as read_certificates
from workers.engine.engine import ClusterAddress
from workers.log_format import LogFormat


def api(
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    db: ServedDbOption = "sqlite:///loopwright.db",
    token: ServedTokenOption = None,
    token_file: ServedTokenFileOption = None,
    rate_limit: RateLimitOption = DEFAULT_PER_SEC,
    signing_key: SigningKeyOption = None,
    remotes: RemotesOption = False,
    scheduler: OptionalSchedulerOption = None,
    certificates: CertificatesOption = DEFAULT_CERTIFICATES,
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run only the API and the dashboard (stateless), until interrupted.

    Jobs wait in the queue until a `loopwright coordinator` runs on the same database. With
    --remotes, --scheduler names the cluster whose workers serve the sessions.
    """
    if remotes != (scheduler is not None):
        raise typer.BadParameter("--remotes and --scheduler require each other")
    cluster = None if scheduler is None else ClusterAddress(scheduler, certificates)
    if cluster is not None:
        read_certificates(cluster.certificates)  # fail now, not with the first session
    serve(
        *(host, port, db, served_token(token, token_file)),
        num_workers=None,
        requests_per_sec=rate_limit,
        signing_key=signing_key,
        remotes=remotes,
        cluster=cluster,
    )
