"""Uvicorn's HTTP/1.1 protocol with limits on the resources of a client.

Uvicorn does not limit the size of a request's head, the time for head and body, or the number of
connections. Without limits one client could use all memory or all file descriptors, without a
token.
"""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from enum import Enum, auto
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from service.http.limits.connections import ConnectionLimits, Connections
from service.http.problems import problem_response


class _Phase(Enum):
    """The state of the newest request of a connection."""

    HEAD = auto()  # its head is awaited or arriving
    BODY = auto()
    WHOLE = auto()  # it is complete and being answered


class _RefusedError(Exception):
    """Ends the parser before a request is complete."""


def limited(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return the protocol for one server."""

    class Limited(LimitedProtocol):
        pass

    Limited.limits = limits
    Limited.open_connections = Connections(limits)
    return Limited


class LimitedProtocol(HttpToolsProtocol):
    """One connection.

    A timer runs only while the client has data to send that did not arrive with the first packet. A
    request that arrives in one piece costs only a few comparisons.
    """

    limits: ClassVar[ConnectionLimits]
    open_connections: ClassVar[Connections]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._phase = _Phase.HEAD
        self._timer: TimerHandle | None = None
        self._write_timer: TimerHandle | None = None
        self._is_refused = False
        self._has_request = False
        self._flaw: tuple[int, str] | None = None
        self._head_bytes = 0
        self._num_headers = 0
        self._num_body_bytes = 0
        self._has_progress = False
        self._bytes_without_progress = 0

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Open the connection if the limits allow one more."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        if self.open_connections.admit(self, host):
            self._start(self.limits.head_secs, self._head_is_late)
        else:
            self._refuse(503, "too many connections are open: try again in a moment")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of a closed connection."""
        self.open_connections.leave(self)
        self._stop()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the received data, unless the request was refused."""
        if self._is_refused:
            return
        self._has_progress = False
        super().data_received(data)
        if self._phase is _Phase.WHOLE or self.transport.is_closing() or self._is_over():
            return
        # The parser buffers a header or a trailer until it is complete, and reports nothing before.
        self._bytes_without_progress += len(data)
        if self._has_progress:
            self._bytes_without_progress = 0
        elif self._bytes_without_progress > self.limits.head_bytes:
            self._refuse(*self._too_large())
            return
        if self._timer is None:
            if self._phase is _Phase.HEAD:
                self._start(self.limits.head_secs, self._head_is_late)
            else:
                self._start_body_timer()

    def pause_writing(self) -> None:
        """Start to time a client that is slow to receive its answer."""
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """Stop timing the client."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_write_timer()

    def drop(self) -> None:
        """Close at once to make room for another connection."""
        self.transport.abort()

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        """Start to count the bytes of a head."""
        super().on_message_begin()
        self._phase = _Phase.HEAD
        self._head_bytes = self._num_headers = 0

    def on_url(self, url: bytes) -> None:
        """Count the bytes of a URL, or of a part of one."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header or a trailer."""
        self._num_headers += 1
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the answer of the request."""
        if len(self.pipeline) >= self.limits.pipelined:
            self._flaw = (429, f"more than {self.limits.pipelined} requests wait on a connection")
            raise _RefusedError
        super().on_headers_complete()
        self._phase = _Phase.BODY
        self._has_request = self._has_progress = True
        self._stop()
        self.open_connections.work(self)

    def on_body(self, body: bytes) -> None:
        """Record that a part of the body arrived."""
        self._has_progress = True
        self._num_body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record that the request is complete."""
        super().on_message_complete()
        self._stop()
        self._phase = _Phase.WHOLE
        if self.cycle.response_complete:
            self._wait_for_next()

    # Callbacks of the answer.

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to receive the answer."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_write_timer()
        elif self._phase is _Phase.BODY and self.cycle.response_complete:
            # The request was refused before it was complete: read the rest for a limited time.
            self._stop()
            self._start(self.limits.linger_secs, self.transport.abort)
        elif self._phase is _Phase.WHOLE and self.cycle.response_complete:
            self._wait_for_next()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which no further request arrives."""
        super().timeout_keep_alive_handler()
        self._start_write_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that the parser rejects."""
        self._refuse(*(self._flaw or (400, "not an HTTP/1.1 request")))

    # State and timers.

    def _wait_for_next(self) -> None:
        self._phase = _Phase.HEAD
        self.open_connections.wait(self)

    def _is_over(self) -> bool:
        return self._is_refused

    def _count(self, num_bytes: int) -> None:
        self._head_bytes += num_bytes
        if self._head_bytes > self.limits.head_bytes or self._num_headers > self.limits.num_headers:
            self._flaw = self._too_large()
            raise _RefusedError

    def _too_large(self) -> tuple[int, str]:
        limits = self.limits
        return 431, (
            f"the head of the request is too large: the limit is {limits.head_bytes} bytes, in "
            f"{limits.num_headers} headers"
        )

    def _start(self, secs: float, act: Any) -> None:
        self._timer = self.loop.call_later(secs, act)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_is_late(self) -> None:
        self._refuse(408, f"no request arrived within {self.limits.head_secs:g} s")

    def _start_body_timer(self) -> None:
        num_before = self._num_body_bytes
        self._start(self.limits.body_secs, lambda: self._look_at_body(num_before))

    def _look_at_body(self, num_before: int) -> None:
        """Continue to wait if enough of the body arrived, or if the service has paused reading."""
        limits = self.limits
        if self.flow.read_paused or self._num_body_bytes - num_before >= limits.least_bytes:
            self._start_body_timer()
        else:
            self._refuse(
                408,
                f"less than {limits.least_bytes} bytes of the body arrived in "
                f"{limits.body_secs:g} s",
            )

    def _start_write_timer(self) -> None:
        if self._write_timer is None:
            num_before = self.transport.get_write_buffer_size()
            self._write_timer = self.loop.call_later(
                self.limits.body_secs, lambda: self._look_at_writes(num_before)
            )

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _look_at_writes(self, num_before: int) -> None:
        """Close the connection of a client that does not receive its answer."""
        self._write_timer = None
        if num_before - self.transport.get_write_buffer_size() < self.limits.least_bytes:
            self.transport.abort()
        else:
            self._start_write_timer()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer, unless another answer has begun, and close."""
        self._is_refused = True
        self._stop()
        self._unset_keepalive_if_required()
        is_first = True
        if self._has_request and not self.cycle.response_complete:
            is_first = self._phase is _Phase.BODY and not self.cycle.response_started
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if is_first and not self.pipeline:
            answer = problem_response(status, detail, headers={"Connection": "close"})
            head = b"".join(b"%s: %s\r\n" % pair for pair in answer.raw_headers)
            self.transport.write(b"".join([STATUS_LINE[status], head, b"\r\n", answer.body]))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._start(self.limits.linger_secs, self.transport.abort)
