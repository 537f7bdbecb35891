"""Frames of a session through a server: each is a request to `/remotes`, and its answer."""

from __future__ import annotations

import time
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2

from compiler.remote.channel import CONNECT_SECS, Channel
from compiler.remote.error import RemoteGoneError
from loopwright.errors import RequestError, error_for
from service.wire.problems import problem_from
from service.wire.remotes import RemoteCreate, RemoteCreated

_API = "/api/v1/remotes"
_BYTES = {"Content-Type": "application/octet-stream"}
_BUSY = frozenset({429, 503})
"""Statuses of requests that were not executed."""
_PAUSE_SECS = 0.5
"""Pause before a request is sent again, unless the server says how long. Chosen."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ServerChannel(Channel):
    """A session on a worker of a server.

    Args:
        url: The address of the server.
        token: The token of the server, with the scope `submit`; empty if it requires none.
        target: The target whose workers may serve the session.

    Raises:
        RequestError: If the server refuses the session.
        RemoteGoneError: If it does not answer.
    """

    def __init__(self, url: str, token: str, target: str) -> None:
        self._http = httpx2.Client(
            base_url=url.rstrip("/"),
            headers={"Authorization": f"Bearer {token}"} if token else {},
            # A proxy from the environment can't reach this host's loopback.
            trust_env=urlsplit(url).hostname not in _LOOPBACK,
        )
        self._path = ""
        try:
            body = RemoteCreate(target=target).model_dump()
            response = self._post(_API, CONNECT_SECS + 60, json=body)
            if response.status_code != httpx2.codes.CREATED:
                raise _error(response)
            self._path = f"{_API}/{RemoteCreated.model_validate_json(response.content).id}"
        except BaseException:
            self._http.close()
            raise

    def exchange(self, request: bytes, timeout_secs: float) -> bytes:
        """Send a frame, and return the frame that answers it."""
        path = f"{self._path}/frames"
        response = self._post(path, timeout_secs, content=request, headers=_BYTES)
        if response.status_code == httpx2.codes.OK:
            return response.content
        error = _error(response)
        raise RemoteGoneError(str(error)) from error

    def _post(self, path: str, timeout_secs: float, **body: object) -> httpx2.Response:
        """Send a request; again, as long as the server is busy."""
        end = time.monotonic() + timeout_secs
        while True:
            try:
                response = self._http.post(path, timeout=timeout_secs, **body)  # type: ignore[arg-type]
            except httpx2.TransportError as error:
                reason = str(error) or type(error).__name__
                raise RemoteGoneError(f"no answer from {self._http.base_url}: {reason}") from error
            pause = _pause_secs(response)
            if response.status_code not in _BUSY or time.monotonic() + pause > end:
                return response
            time.sleep(pause)

    def close(self) -> None:
        """End the session."""
        if self._http.is_closed:
            return
        with suppress(httpx2.HTTPError, RequestError):
            self._http.delete(self._path, timeout=CONNECT_SECS)
        self._http.close()


def _error(response: httpx2.Response) -> RequestError:
    """Return the error for an answer that is a problem document, or anything else."""
    try:
        body: object = response.json()
    except ValueError:
        body = response.text
    title = response.reason_phrase
    return error_for(problem_from(body, status=response.status_code, title=title))


def _pause_secs(response: httpx2.Response) -> float:
    try:
        return max(_PAUSE_SECS, float(response.headers.get("Retry-After", _PAUSE_SECS)))
    except ValueError:
        return _PAUSE_SECS
