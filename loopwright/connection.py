"""HTTP to one server: requests, retries, and problem documents turned into errors.

Every request that the client makes may be made twice: reads by nature, a submission by its
idempotency key. So all of them are retried when the server does not answer or is busy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
import stamina
import stamina.instrumentation
from pydantic import BaseModel, ValidationError

from loopwright.errors import InvalidAddressError, ProtocolError, ServerUnreachableError, error_for
from loopwright.models import Event, problem_from

API = "/api/v1"
_BUSY = frozenset({429, 502, 503, 504})
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

# Each retry would be a line on the standard output of whoever imports this; the error or warning
# that ends the retries says enough.
stamina.instrumentation.set_on_retry_hooks([])

ModelT = TypeVar("ModelT", bound=BaseModel)


class _BusyError(Exception):
    """The server asked for another try; the last response is kept to be shown if all fail."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"status {response.status_code}")
        self.response = response


class Connection:
    """A pool of connections to one server; safe to use from several threads.

    Raises:
        InvalidAddressError: If `url` is not an address.
    """

    def __init__(self, url: str, token: str | None, *, timeout_secs: float, attempts: int) -> None:
        self.url = url.rstrip("/")
        host = _host(url)
        self._attempts = attempts
        self._http = httpx2.Client(
            base_url=self.url + API,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(timeout_secs, connect=min(5.0, timeout_secs)),
            # A proxy from the environment knows nothing of this host's own loopback.
            trust_env=host not in _LOOPBACK,
        )

    def close(self) -> None:
        """Close the pool; a second call does nothing."""
        self._http.close()

    def get(
        self,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """Read something."""
        return self._send("GET", path, params=params, headers=headers)

    def post(
        self,
        path: str,
        body: BaseModel | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """Send a request body; the request must be one that may be repeated."""
        content = None if body is None else body.model_dump_json(exclude_none=True).encode()
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self._send("POST", path, content=content, headers=headers)

    def events(self, path: str, *, after: int) -> Iterator[httpx2.ServerSentEvent]:
        """Yield the events after number `after` until the server ends the stream or it breaks.

        Raises:
            ServerUnreachableError: If the stream breaks; the caller may resume.
        """
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        try:
            # Between two events a server may be silent for as long as its keep-alive lasts.
            with self._http.stream("GET", path, headers=headers, timeout=60.0) as response:
                if response.is_error:
                    response.read()
                self._check(response)
                yield from httpx2.EventSource(response)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx2.Response:
        try:
            for attempt in stamina.retry_context(
                on=_wait, attempts=self._attempts, timeout=30.0, wait_max=2.0, wait_jitter=0.2
            ):
                with attempt:
                    response = self._http.request(
                        method, path, params=params, headers=headers, content=content
                    )
                    if response.status_code in _BUSY:
                        raise _BusyError(response)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        except _BusyError as error:
            response = error.response
        self._check(response)
        return response

    def _check(self, response: httpx2.Response) -> None:
        if response.is_error:
            raise error_for(
                problem_from(
                    _body(response), status=response.status_code, title=response.reason_phrase
                )
            )

    def _unreachable(self, error: httpx2.TransportError) -> ServerUnreachableError:
        reason = str(error) or type(error).__name__
        return ServerUnreachableError(f"no answer from {self.url}: {reason}")


def read(model: type[ModelT], response: httpx2.Response) -> ModelT:
    """Read a response body as a model.

    Raises:
        ProtocolError: If it is not one.
    """
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"]) or "the body"
        raise ProtocolError(
            f"{response.request.url} did not answer with a {model.__name__}:"
            f" {place}: {problem['msg']}"
        ) from error


def read_event(sent: httpx2.ServerSentEvent) -> Event:
    """Read an event of a stream.

    Raises:
        ProtocolError: If it is not one.
    """
    try:
        return Event.model_validate_json(sent.data)
    except ValidationError as error:
        raise ProtocolError(f"the stream holds what is no event: {sent.data[:200]}") from error


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read to have it checked
        if parts.scheme in {"http", "https"} and parts.hostname:
            return parts.hostname
    except ValueError:
        pass
    raise InvalidAddressError(f"a server's address looks like http://127.0.0.1:8080, not {url!r}")


def _body(response: httpx2.Response) -> object:
    try:
        return response.json()
    except ValueError:
        return response.text[:1000]


def _wait(error: Exception) -> bool | float:
    """Say whether to try again, or after how many seconds if the server told."""
    if isinstance(error, _BusyError):
        told = error.response.headers.get("Retry-After", "")
        return min(float(told), 10.0) if told.isdigit() else True
    return isinstance(error, httpx2.TransportError) and not isinstance(
        error, httpx2.UnsupportedProtocol
    )
