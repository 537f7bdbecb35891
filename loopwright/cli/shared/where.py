"""Choose the server of a command; one rule for all commands.

The server is that of `--url`, else that of `$LOOPWRIGHT_URL`, else the one at the default address
if it responds. The command prints the address in one line, unless `--url` names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loopwright.cli.shared.output import err_console
from loopwright.client.client import DEFAULT_URL, Client
from loopwright.errors import ProtocolError, RequestError, ServerUnreachableError

_PROBE_SECS = 2.0
"""Time limit for a response from the default address. It delays each command if no server runs.
Chosen.
"""

TUNE_HERE = "loopwright tune without a server"
"""The name, in messages, of a search in this process."""


def find_server(url: str | None, token: str | None) -> str | None:
    """Return the address of the server to use; None if none is named and none responds.

    Args:
        url: The value of `--url`, or of `$LOOPWRIGHT_URL`.
    """
    if url is not None:
        if url == os.environ.get("LOOPWRIGHT_URL"):
            _print_status(f"using the server at {url} (from $LOOPWRIGHT_URL)")
        return url
    if not _answers(DEFAULT_URL, token):
        return None
    _print_status(f"using the server at {DEFAULT_URL}")
    return DEFAULT_URL


@contextmanager
def server(url: str | None, token: str | None) -> Iterator[Client]:
    """Yield a client of the server to use.

    Raises:
        ServerUnreachableError: If there is none.
    """
    server_url = find_server(url, token)
    if server_url is None:
        raise ServerUnreachableError(
            f"no server responds at {DEFAULT_URL}, "
            "and neither --url nor $LOOPWRIGHT_URL names another one"
        )
    with Client(server_url, token) as client:
        yield client


def say_in_process() -> None:
    """Print that the search runs in this process, because no server responds."""
    _print_status(
        f"no server responds at {DEFAULT_URL}: tuning in this process; the result is not stored "
        "(`loopwright serve` starts a server that stores it)"
    )


def say_measured_here(database: Path) -> None:
    """Print that schedules are measured in this process, because no server responds."""
    _print_status(
        f"no server responds at {DEFAULT_URL}: measuring in this process; each measurement is"
        f" stored in {database}"
    )


def _answers(url: str, token: str | None) -> bool:
    try:
        with Client(url, token, timeout_secs=_PROBE_SECS, attempts=1) as client:
            client.health()
    except RequestError:  # it requires a token, or is unhealthy, but it is a server
        return True
    except (ServerUnreachableError, ProtocolError):
        return False
    return True


def _print_status(words: str) -> None:
    err_console.print(words, highlight=False, soft_wrap=True, style="dim")
