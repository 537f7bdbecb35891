"""HTTP to one server: retries, and problem documents as errors.

A request is repeated if the server is busy or does not answer, and repeating is safe: it changes
nothing, has an idempotency key, or can't have been executed.
"""

from __future__ import annotations

import email.utils
import random
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import stamina
import stamina.instrumentation

from loopwright.atomic_file import atomic_file
from loopwright.client.steps import (
    Download,
    HttpCall,
    Item,
    Listen,
    LocalWork,
    NextEvent,
    Params,
    Pause,
    Plan,
    PlanRunner,
    Step,
    Stream,
    Upload,
)
from loopwright.errors import (
    ClientClosedError,
    InvalidAddressError,
    ServerUnreachableError,
    error_for,
)
from service.wire.problems import problem_from

API = "/api/v1"
LONGEST_WAIT_SECS = 60.0
"""A request with a longer `Retry-After` fails instead of waiting. Chosen."""

_BUSY = frozenset({429, 502, 503, 504})
_REFUSED = frozenset({429, 503})  # nothing was done, so that any request may be sent again
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
LONGEST_UPLOAD_SECS = 3600.0
"""The time limit of the answer to an upload: the server reads all of it first, and may wait for
others.
"""
_SILENT_SECS = 60.0
"""A stream that is silent for so long is broken: the server sends a heartbeat every 15 s."""

# Each retry would be a line on the standard output of the importing program; the error or warning
# that ends the retries says enough.
stamina.instrumentation.set_on_retry_hooks([])

T = TypeVar("T")


class BusyError(Exception):
    """The server asked for a retry; the last response is shown if all attempts fail."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"status {response.status_code}")
        self.response = response


class ConnectionBase:
    """The common part of both transports: the address, the headers, the retries.

    Raises:
        InvalidAddressError: If `url` is not an address.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        timeout_secs: float,
        attempts: int,
        is_offline: bool = False,
    ) -> None:
        host = _host(url)
        self.url = url.rstrip("/").removesuffix(API)
        self._is_offline = is_offline
        self._attempts = attempts
        self._options: dict[str, Any] = {
            "base_url": self.url + API,
            "headers": {"Authorization": f"Bearer {token}"} if token else {},
            "timeout": httpx2.Timeout(timeout_secs, connect=min(5.0, timeout_secs)),
            # A proxy from the environment can't reach this host's loopback.
            "trust_env": host not in _LOOPBACK,
        }

    def retries(self, call: HttpCall) -> Any:
        """Return the attempts of a request."""
        return stamina.retry_context(
            on=partial(_wait, may_repeat=call.may_repeat),
            attempts=self._attempts,
            timeout=LONGEST_WAIT_SECS,
            wait_max=2.0,
            wait_jitter=0.2,
        )

    @contextmanager
    def translated_errors(self, step: Step | Item[Any]) -> Iterator[None]:
        """Run a step; convert errors of the transport to errors of this package."""
        if isinstance(step, HttpCall | Download | Upload | Listen):
            if self._is_closed():
                raise ClientClosedError(
                    f"the client of {self.url} is closed: create another one, or use it only "
                    "within its `with` statement"
                )
            if self._is_offline:
                raise ServerUnreachableError(f"no request to {self.url}: the client is offline")
        try:
            yield
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            message = f"no answer from {self.url}: {reason}"
            raise ServerUnreachableError(message, _advice(self.url, error)) from error

    def _is_closed(self) -> bool:
        raise NotImplementedError


@dataclass
class _Opened:
    """The open resources of a running plan."""

    stack: ExitStack = field(default_factory=ExitStack)
    events: Iterator[httpx2.ServerSentEvent] = field(default_factory=lambda: iter(()))


class Connection(ConnectionBase):
    """A pool of connections to one server; safe to use from several threads."""

    def __init__(self, url: str, token: str | None, **options: Any) -> None:
        super().__init__(url, token, **options)
        self._http = httpx2.Client(**self._options)

    def _is_closed(self) -> bool:
        return self._http.is_closed

    def close(self) -> None:
        """Close the pool; a second call does nothing."""
        self._http.close()

    def run(self, plan: Plan[T]) -> T:
        """Run a plan, and return its result."""
        opened = _Opened()
        with opened.stack, PlanRunner(plan) as runner:
            while not runner.is_over:
                self._take(runner, opened)
            return runner.result

    def items(self, stream: Stream[T]) -> Iterator[T]:
        """Run a stream, and yield its items."""
        opened = _Opened()
        with opened.stack, PlanRunner(stream) as runner:
            while not runner.is_over:
                if isinstance(runner.step, Item):
                    yield runner.step.value
                    runner.resume(None)
                else:
                    self._take(runner, opened)

    def _take(self, runner: PlanRunner[Any], opened: _Opened) -> None:
        try:
            with self.translated_errors(runner.step):
                result = self._do(runner.step, opened)
        except Exception as error:
            runner.fail(error)
        else:
            runner.resume(result)

    def _do(self, step: Step | Item[Any], opened: _Opened) -> Any:
        match step:
            case HttpCall():
                return self._send(step)
            case Pause(secs):
                return time.sleep(secs)
            case LocalWork(act):
                return act()
            case Listen():
                opened.stack.close()
                opened.events = opened.stack.enter_context(self._listening(step))
                return None
            case NextEvent():
                return next(opened.events, None)
            case Download():
                return self._download(step)
            case Upload(path, file):
                with file.open("rb") as content:
                    return checked(self._http.post(path, content=content, **upload_options()))
            case Item():
                raise AssertionError("an item is for the user of a stream")

    def _send(self, call: HttpCall) -> httpx2.Response:
        try:
            for attempt in self.retries(call):
                with attempt:
                    response = not_busy(self._http.request(**arguments(call)))
        except BusyError as error:
            response = error.response
        return checked(response)

    @contextmanager
    def _listening(self, step: Listen) -> Iterator[Iterator[httpx2.ServerSentEvent]]:
        with self._http.stream("GET", step.path, **stream_options(step)) as response:
            if response.is_error:
                response.read()
            yield iter(httpx2.EventSource(checked(response)))

    def _download(self, step: Download) -> None:
        with self._http.stream("GET", step.path, params=present_params(step.params)) as response:
            if response.is_error:
                response.read()
            with atomic_file(step.file) as file:
                for chunk in checked(response).iter_bytes():
                    file.write(chunk)


def upload_options() -> dict[str, Any]:
    """Return the transport's arguments for the upload of a file."""
    timeout = httpx2.Timeout(_SILENT_SECS, connect=5.0, read=LONGEST_UPLOAD_SECS)
    return {"headers": {"Content-Type": "application/x-ndjson"}, "timeout": timeout}


def arguments(call: HttpCall) -> dict[str, Any]:
    """Return the transport's arguments for a request."""
    headers = dict(call.headers)
    content = None
    if call.body is not None:
        content = call.body.model_dump_json(exclude_none=True).encode()
        headers["Content-Type"] = "application/json"
    return {
        "method": call.method,
        "url": call.path,
        "params": present_params(call.params),
        "headers": headers,
        "content": content,
    }


def present_params(params: Params) -> dict[str, Any]:
    """Return the parameters of a query that have a value."""
    return {name: value for name, value in params.items() if value is not None}


def stream_options(step: Listen) -> dict[str, Any]:
    """Return the transport's arguments for a stream of events."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(step.after)}
    return {"headers": headers, "timeout": _SILENT_SECS}


def not_busy(response: httpx2.Response) -> httpx2.Response:
    """Return a response, unless it asks for a retry.

    Raises:
        BusyError: If it asks for a retry.
    """
    if response.status_code in _BUSY:
        raise BusyError(response)
    return response


def checked(response: httpx2.Response) -> httpx2.Response:
    """Return a response, unless it is an error.

    Raises:
        RequestError: If it is an error.
    """
    if response.is_error:
        problem = problem_from(
            _body(response), status=response.status_code, title=response.reason_phrase
        )
        raise error_for(problem)
    return response


def _host(url: object) -> str:
    if not isinstance(url, str):
        raise InvalidAddressError(f"a server's address is a text, not {url!r}")
    try:
        parts = urlsplit(url)
        _ = parts.port  # read to have it checked
        if parts.scheme in {"http", "https"} and parts.hostname:
            return parts.hostname
    except ValueError:
        pass
    hint = f": did you mean 'http://{url}'?" if re.fullmatch(r"[\w.-]+(:\d+)?/?", url) else ""
    raise InvalidAddressError(
        f"a server's address looks like http://127.0.0.1:8080, not {url!r}{hint}"
    )


def _advice(url: str, error: httpx2.TransportError) -> str:
    """Return what to try if client and server do not use the same protocol."""
    address = url.partition("://")[2]
    tls = _tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return "to trust a certificate of your own, name it in $SSL_CERT_FILE"
    if url.startswith("https:") and tls is not None:
        return f"the server may use plain HTTP: try http://{address}"
    if url.startswith("http:") and isinstance(error, httpx2.RemoteProtocolError):
        return f"the server may require TLS: try https://{address}"
    return ""


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """Return the error of the TLS library that led to an error of the transport, if one did."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


def _body(response: httpx2.Response) -> object:
    try:
        return response.json()
    except ValueError:
        return response.text[:1000]


def _wait(error: Exception, *, may_repeat: bool) -> bool | float:
    """Return whether to try again, or the seconds to wait if the server gave them."""
    if isinstance(error, BusyError):
        if not may_repeat and error.response.status_code not in _REFUSED:
            return False
        retry_secs = retry_after(error.response.headers.get("Retry-After", ""))
        if retry_secs is None:
            return True
        # Clients with the same Retry-After should not all retry at once.
        return retry_secs <= LONGEST_WAIT_SECS and retry_secs + random.uniform(0.0, 0.2)
    if isinstance(error, httpx2.UnsupportedProtocol):
        return False
    return isinstance(error, httpx2.TransportError) and (
        may_repeat or isinstance(error, _NEVER_SENT)
    )


def retry_after(text: str) -> float | None:
    """Return the seconds that a `Retry-After` header asks for: a number, or a date."""
    if text.isdecimal():
        return float(text)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
