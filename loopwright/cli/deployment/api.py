"""`loopwright api`: the HTTP side of the service alone."""

from __future__ import annotations

from loopwright.cli.shared.options import (
    HostOption,
    LogFormatOption,
    PortOption,
    RateLimitOption,
    ServedDbOption,
    ServedTokenFileOption,
    ServedTokenOption,
    SigningKeyOption,
    served_token,
)
from service.http.rate_limit import DEFAULT_PER_SEC
from service.processes.serve import serve
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
    _log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run only the API and the dashboard (stateless), until interrupted.

    Jobs wait in the queue until a `loopwright coordinator` runs on the same database.
    """
    serve(
        *(host, port, db, served_token(token, token_file)),
        num_workers=None,
        requests_per_sec=rate_limit,
        signing_key=signing_key,
    )
