"""Which server a command asks; one rule for all commands.

The server of `--url`, else that of `$LOOPWRIGHT_URL`, else the one at the default address if it
answers. Which one it is, is said in one line, unless the command itself names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.cli.output import err_console
from loopwright.client.client import DEFAULT_URL, Client
from loopwright.errors import ProtocolError, RequestError, ServerUnreachableError

_PROBE_SECS = 2.0

TUNE_HERE = "loopwright tune without a server"
"""The name, in messages, of a search in this process."""


def find_server(url: str | None, token: str | None) -> str | None:
    """Return the address of the server to ask; None if no server is named and none answers.

    Args:
        url: The value of `--url`, or of `$LOOPWRIGHT_URL`.
    """
    if url is not None:
        if url == os.environ.get("LOOPWRIGHT_URL"):
            _say(f"asking the server at {url}, which $LOOPWRIGHT_URL names")
        return url
    if not _answers(DEFAULT_URL, token):
        return None
    _say(f"asking the server at {DEFAULT_URL}")
    return DEFAULT_URL


@contextmanager
def server(url: str | None, token: str | None) -> Iterator[Client]:
    """Yield a client of the server to ask.

    Raises:
        ServerUnreachableError: If there is none.
    """
    found = find_server(url, token)
    if found is None:
        raise ServerUnreachableError(
            f"no server answers at {DEFAULT_URL}, "
            "and neither --url nor $LOOPWRIGHT_URL names another"
        )
    with Client(found, token) as client:
        yield client


def say_in_process() -> None:
    """Say that a command does its work itself, because there is no server."""
    _say(
        f"no server answers at {DEFAULT_URL}: tuning in this process; the result is not kept "
        "(`loopwright serve` starts a server that keeps it)"
    )


def _answers(url: str, token: str | None) -> bool:
    try:
        with Client(url, token, timeout_secs=_PROBE_SECS, attempts=1) as client:
            client.health()
    except RequestError:  # it wants a token, or is not well: it is a server all the same
        return True
    except (ServerUnreachableError, ProtocolError):
        return False
    return True


def _say(words: str) -> None:
    err_console.print(words, highlight=False, soft_wrap=True, style="dim")
