"""The limits of connections, over real sockets, with limits that are small."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.http.limits.connections import ConnectionLimits, Connections, address_of
from service.http.limits.http_protocol import limited
from tests.patience import PATIENCE_SECS

LIMITS = ConnectionLimits(
    connections=12,
    per_address=8,
    head_bytes=8192,
    num_headers=20,
    pipelined=4,
    head_secs=1.0,
    body_secs=3.0,
    linger_secs=0.2,
)
LONG_BYTES = 4 << 20
HEAD = b"GET / HTTP/1.1\r\nHost: test\r\n"
Serve = Callable[[ConnectionLimits], "Service"]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Say how long a body is; below `/stream` send a piece each 0.3 s, below `/long` a lot."""
    request = Request(scope, receive)
    answer: Response
    if scope["path"] == "/stream":

        async def pieces() -> Any:
            for number in range(8):
                yield f"{number}\n"
                await asyncio.sleep(0.3)

        answer = StreamingResponse(pieces())
    elif scope["path"] == "/long":
        answer = Response(b"x" * LONG_BYTES)
    elif scope["path"] == "/refuse":
        answer = Response(status_code=413)
    else:
        try:
            answer = JSONResponse(len(await request.body()))
        except ClientDisconnect:  # there is no client to answer
            return
    await answer(scope, receive, send)


class Service:
    """A server in a thread."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        protocol = limited(limits)
        self.open: Connections = protocol.open_connections  # type: ignore[attr-defined]
        self.server = uvicorn.Server(
            uvicorn.Config(app, http=protocol, ws="none", log_config=None, lifespan="off")
        )
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],))
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(
            ("127.0.0.1", self.port), timeout=30, source_address=(source, 0)
        )

    def ask(self, source: str = "127.0.0.1", head: bytes = HEAD) -> bytes:
        """Return the whole answer to a request on a connection of its own."""
        with self.connect(source) as connection:
            connection.sendall(head + b"Connection: close\r\n\r\n")
            return read_all(connection)

    def num_open(self) -> int:
        return len(self.server.server_state.connections)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.listener.close()


def read_all(connection: socket.socket) -> bytes:
    """Read to the end; a connection that is reset has ended, too."""
    read = b""
    try:
        while piece := connection.recv(65536):
            read += piece
    except ConnectionError:
        pass
    return read


def read_answer(connection: socket.socket) -> bytes:
    """Read an answer whose length is small and stated."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += connection.recv(65536)
    return read


def refused(answer: bytes, status: int) -> dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"application/problem+json" in head
    return dict(json.loads(body))


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(limits: ConnectionLimits) -> Service:
            service = Service(limits)
            stack.callback(service.close)
            return service

        yield start


@pytest.fixture
def service(serve: Serve) -> Service:
    return serve(LIMITS)


# The buffers of two sockets take tens of MiB before a sender sees that its connection is closed.
MOST_SENT = 256 << 20


def send_for_ever(connection: socket.socket, piece: bytes, pause_secs: float = 0.0) -> int:
    """Send until the server ends that, and return how many bytes it took."""
    sent = 0
    try:
        while sent < MOST_SENT:
            connection.sendall(piece)
            sent += len(piece)
            time.sleep(pause_secs)
    except ConnectionError:
        pass
    return sent


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        (b"GET /", b"a" * 1000),  # an address without an end
        (HEAD, b"X: y\r\n" * 200),  # headers without end
        (HEAD + b"X-Long: ", b"y" * 1000),  # one header without an end
        (HEAD, b"X" * 1000),  # not even a name
    ],
)
def test_a_head_without_end_is_refused(service: Service, beginning: bytes, piece: bytes) -> None:
    with service.connect() as connection:
        connection.sendall(beginning)
        for _ in range(2 * LIMITS.head_bytes // len(piece)):
            connection.sendall(piece)
        assert "8192 bytes, in 20 headers" in refused(read_all(connection), 431)["detail"]
    with service.connect() as connection:
        connection.sendall(beginning)
        assert send_for_ever(connection, piece) < MOST_SENT
    assert service.ask().endswith(b"\r\n\r\n0")


def test_many_headers_are_refused_and_some_are_not(service: Service) -> None:
    assert service.ask(head=HEAD + b"X: y\r\n" * 18).startswith(b"HTTP/1.1 200 ")
    refused(service.ask(head=HEAD + b"X: y\r\n" * 19), 431)


@pytest.mark.parametrize(
    "tail", [b"X: y\r\n", b"X-Long: " + b"y" * 100, b"1;extension=" + b"e" * 100]
)
def test_a_body_of_chunks_ends_in_trailers_that_end(service: Service, tail: bytes) -> None:
    with service.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        if not tail.startswith(b"1"):
            connection.sendall(b"0\r\n")
        assert send_for_ever(connection, tail * 100) < MOST_SENT
    assert service.ask().endswith(b"\r\n\r\n0")


def test_what_is_no_http_is_refused(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert refused(read_all(connection), 400)["type"].endswith(":bad-request")


@pytest.mark.parametrize("sent", [b"", b"G", HEAD, HEAD + b"X-Slow: ", b"\r\n"])
def test_a_head_that_does_not_come_is_given_up(service: Service, sent: bytes) -> None:
    with service.connect() as connection:
        connection.sendall(sent)
        refused(read_all(connection), 408)


def test_a_head_that_comes_by_the_byte_is_given_up(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"GET /")
        began = time.monotonic()
        send_for_ever(connection, b"a", pause_secs=0.1)
        assert time.monotonic() - began >= LIMITS.head_secs


def test_a_second_request_has_its_time_too(service: Service) -> None:
    with service.connect() as connection:
        for _ in range(2):
            connection.sendall(HEAD + b"\r\n")
            assert read_answer(connection).startswith(b"HTTP/1.1 200 ")
        connection.sendall(HEAD)
        refused(read_all(connection), 408)


def test_a_body_that_stands_still_is_given_up(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 5000)
        assert "of the body arrived" in refused(read_all(connection), 408)["detail"]


def test_a_body_that_makes_progress_may_take_its_time(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 30000\r\n\r\n")
        for _ in range(15):
            connection.sendall(b"x" * 2000)
            time.sleep(0.3)
        assert read_answer(connection).endswith(b"\r\n\r\n30000")


def test_a_stream_may_take_its_time(service: Service) -> None:
    answer = service.ask(head=b"GET /stream HTTP/1.1\r\n")
    assert answer.endswith(b"\r\n2\r\n7\n\r\n0\r\n\r\n")


def test_a_body_that_was_refused_is_not_read_for_ever(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"POST /refuse HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n")
        assert read_answer(connection).startswith(b"HTTP/1.1 413 ")
        assert send_for_ever(connection, b"x" * 1000, pause_secs=0.01) < 1 << 20


def test_an_answer_that_is_not_taken_is_given_up(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"GET /long HTTP/1.1\r\n\r\n")
        deadline = time.monotonic() + PATIENCE_SECS
        while service.num_open() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert service.num_open() == 0


def test_an_answer_that_is_taken_slowly_is_sent_whole(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"GET /long HTTP/1.1\r\nConnection: close\r\n\r\n")
        read = 0
        while piece := connection.recv(LONG_BYTES // 8):
            read += len(piece)
            time.sleep(0.05)
        assert read > LONG_BYTES


def test_few_requests_wait_on_a_connection(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall((HEAD + b"\r\n") * 3 + HEAD + b"Connection: close\r\n\r\n")
        assert read_all(connection).count(b"HTTP/1.1 200 ") == 4
    with service.connect() as connection:
        connection.sendall((HEAD + b"\r\n") * 10_000)
        assert read_all(connection).count(b"HTTP/1.1 200 ") <= LIMITS.pipelined


def test_silent_connections_exclude_no_client(serve: Serve) -> None:
    service = serve(replace(LIMITS, head_secs=60.0))
    with ExitStack() as stack:
        # More than there may be, of one address and in all.
        silent = [stack.enter_context(service.connect()) for _ in range(2 * LIMITS.connections)]
        silent += [stack.enter_context(service.connect("127.0.0.2")) for _ in range(6)]
        for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            assert service.ask(source).endswith(b"\r\n\r\n0")
        assert service.num_open() <= LIMITS.connections
        # The oldest gave way.
        assert silent[0].recv(1) == b""
        silent[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            silent[-1].recv(1)


def test_connections_in_use_are_kept_and_others_refused(serve: Serve) -> None:
    service = serve(LIMITS)
    with ExitStack() as stack:
        used = [stack.enter_context(service.connect()) for _ in range(LIMITS.per_address)]
        for connection in used:
            connection.sendall(b"GET /stream HTTP/1.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert "too many connections" in refused(service.ask(), 503)["detail"]
        assert service.ask("127.0.0.2").endswith(b"\r\n\r\n0")
        for connection in used:
            assert connection.recv(65536)


def test_addresses_of_one_host_count_as_one() -> None:
    assert address_of("2001:db8::1") == address_of("2001:db8::ffff:2")
    assert address_of("2001:db8::1") != address_of("2001:db8:0:1::1")
    assert address_of("::ffff:192.0.2.1") == address_of("192.0.2.1") == "192.0.2.1"
    assert address_of("fe80::1%eth0") == address_of("fe80::2")
