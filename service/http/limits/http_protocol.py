"""HTTP/1.1 as uvicorn speaks it, with limits on what a client may take up.

Uvicorn has none on the size of a request's head, on how long head and body take, and on how many
connections there are: one client could take all memory, or all descriptors, without a token.
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
    """Where the request is that comes in last."""

    HEAD = auto()  # its head is waited for, or comes
    BODY = auto()
    WHOLE = auto()  # it is answered


class _RefusedError(Exception):
    """Ends the parser in the midst of a request."""


def limited(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return the protocol for one server."""

    class Limited(LimitedProtocol):
        pass

    Limited.limits = limits
    Limited.open_connections = Connections(limits)
    return Limited


class LimitedProtocol(HttpToolsProtocol):
    """One connection.

    A timer runs only while the client is to send something, and has not sent it with the first
    packet: a request that comes in one piece costs a few comparisons more than without limits.
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

    # What the transport says.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room for one more connection."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        if self.open_connections.admit(self, host):
            self._start(self.limits.head_secs, self._head_is_late)
        else:
            self._refuse(503, "too many connections are open: try again in a moment")

    def connection_lost(self, exc: Exception | None) -> None:
        """End, however it came to that."""
        self.open_connections.leave(self)
        self._stop()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sent, as long as it is not refused."""
        if self._is_refused:
            return
        self._has_progress = False
        super().data_received(data)
        if self._phase is _Phase.WHOLE or self.transport.is_closing() or self._is_over():
            return
        # The parser keeps a header, or a trailer, until it is whole, and says nothing of it.
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
        """Watch a client that is slow to take its answer."""
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """Stop to watch it."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_write_timer()

    def evict(self) -> None:
        """Close at once, for another connection."""
        self.transport.abort()

    # What the parser says.

    def on_message_begin(self) -> None:
        """Begin to count a head."""
        super().on_message_begin()
        self._phase = _Phase.HEAD
        self._head_bytes = self._num_headers = 0

    def on_url(self, url: bytes) -> None:
        """Count an address, or a piece of one."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header or a trailer."""
        self._num_headers += 1
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Have the request answered."""
        if len(self.pipeline) >= self.limits.pipelined:
            self._flaw = (429, f"more than {self.limits.pipelined} requests wait on a connection")
            raise _RefusedError
        super().on_headers_complete()
        self._phase = _Phase.BODY
        self._has_request = self._has_progress = True
        self._stop()
        self.open_connections.work(self)

    def on_body(self, body: bytes) -> None:
        """Note that a body makes progress."""
        self._has_progress = True
        self._num_body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        super().on_message_complete()
        self._stop()
        self._phase = _Phase.WHOLE
        if self.cycle.response_complete:
            self._wait_for_next()

    # What the answer says.

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to take the answer."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_write_timer()
        elif self._phase is _Phase.BODY and self.cycle.response_complete:
            # It was refused before it was whole. The rest is read for a moment, and not for ever.
            self._stop()
            self._start(self.limits.linger_secs, self.transport.abort)
        elif self._phase is _Phase.WHOLE and self.cycle.response_complete:
            self._wait_for_next()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which no further request comes."""
        super().timeout_keep_alive_handler()
        self._start_write_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser does not take."""
        self._refuse(*(self._flaw or (400, "not an HTTP/1.1 request")))

    # What follows from it.

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
        """Go on waiting for a body if enough of it came, or if it is we who do not read it."""
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
        """Drop a client that does not take its answer."""
        self._write_timer = None
        if num_before - self.transport.get_write_buffer_size() < self.limits.least_bytes:
            self.transport.abort()
        else:
            self._start_write_timer()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer, if no other answer is under way, and close."""
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
