"""Channels: how the frames of a session reach a device."""

from __future__ import annotations

import os
import select
import socket
import ssl
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress

from compiler.remote.error import RemoteGoneError
from compiler.remote.protocol import HEADER, DeviceFrameError, read_header

CONNECT_SECS = 15.0
"""Time limit for a connection and its TLS. Chosen, as for the scheduler of a cluster."""
_END_SECS = 2.0
"""Time for a program to end, once its input has ended. Chosen."""
_LAST_WORDS_BYTES = 500
"""Of what a program prints, for a message. Chosen."""
_READ_BYTES = 1 << 16


class Channel(ABC):
    """Sends one request at a time, and returns its reply; a lock of the session orders callers."""

    @abstractmethod
    def exchange(self, request: bytes, timeout_secs: float) -> bytes:
        """Send a frame, and return the frame that answers it, unread.

        Raises:
            RemoteGoneError: If the device vanished, or did not answer in time.
        """

    @abstractmethod
    def close(self) -> None:
        """Release everything that the channel holds; a second call does nothing."""


class StreamChannel(Channel):
    """A channel over a stream of bytes, which a subclass reads and writes."""

    def exchange(self, request: bytes, timeout_secs: float) -> bytes:
        """Send a frame, and return the frame that answers it."""
        deadline = time.monotonic() + timeout_secs
        self._send(request, deadline)
        header = self._receive(HEADER.size, deadline)
        try:
            size = read_header(header).body_bytes
        except DeviceFrameError as error:
            raise self._gone(f"the device answered with no frame: {error}") from error
        return header + self._receive(size, deadline)

    def _receive(self, size: int, deadline: float) -> bytes:
        """Return exactly so many bytes."""
        parts: list[bytes] = []
        while size:
            part = self._read(min(size, _READ_BYTES), deadline)
            if not part:
                raise self._gone("the device closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _gone(self, reason: str) -> RemoteGoneError:
        return RemoteGoneError(reason)

    @abstractmethod
    def _send(self, content: bytes, deadline: float) -> None:
        """Write all bytes before a deadline by `time.monotonic`, or raise a `RemoteGoneError`."""

    @abstractmethod
    def _read(self, most: int, deadline: float) -> bytes:
        """Return some bytes, none at the end; after the deadline raise a `RemoteGoneError`."""


class ProcessChannel(StreamChannel):
    """A program on this host that serves its standard input, such as `ssh board loopwright-runner`.

    Args:
        command: The program and its arguments. No shell reads them.
        is_in_group: Whether signals to the process group of this process reach it too; by default
            it has its own.

    Raises:
        RemoteGoneError: If it can't be started.
    """

    def __init__(self, command: Sequence[str], *, is_in_group: bool = False) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                start_new_session=not is_in_group,
            )
        except OSError as error:
            self._words.close()
            raise RemoteGoneError(f"{command[0]} can't be started: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._input, False)

    def _send(self, content: bytes, deadline: float) -> None:
        rest = memoryview(content)
        while rest:
            _await(self._input, select.POLLOUT, deadline)
            try:
                rest = rest[os.write(self._input, rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone("the program of the device ended") from error

    def _read(self, most: int, deadline: float) -> bytes:
        _await(self._output, select.POLLIN, deadline)
        return os.read(self._output, most)

    def _gone(self, reason: str) -> RemoteGoneError:
        if self._words.closed:
            return RemoteGoneError("the channel was closed")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECS)
        self._words.seek(max(0, self._words.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
        words = self._words.read().decode(errors="replace").strip()
        code = self._process.poll()
        ended = "" if code is None else f" (exit code {code})"
        return RemoteGoneError(f"{reason}{ended}{f': {words}' if words else ''}")

    def close(self) -> None:
        """End the program."""
        if self._words.closed:
            return
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()
        try:
            self._process.wait(_END_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._words.close()


class SocketChannel(StreamChannel):
    """A connection to a runner, with TLS if a context is given.

    Args:
        host, port: Where it listens, or its proxy.
        context: The certificates of both sides.

    Raises:
        RemoteGoneError: If there is no connection.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        plain: socket.socket | None = None
        try:
            plain = socket.create_connection((host, port), timeout=CONNECT_SECS)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = plain if context is None else context.wrap_socket(plain)
        except OSError as error:
            if plain is not None:
                plain.close()
            reason = error.strerror or str(error)
            raise RemoteGoneError(f"no connection to {host}:{port}: {reason}") from error

    def _send(self, content: bytes, deadline: float) -> None:
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(content)
        except OSError as error:
            raise self._gone(f"the connection broke: {error}") from error

    def _read(self, most: int, deadline: float) -> bytes:
        try:
            self._socket.settimeout(_left(deadline))
            return self._socket.recv(most)
        except TimeoutError as error:
            raise _late() from error
        except OSError as error:
            raise self._gone(f"the connection broke: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 1e-3)


def _late() -> RemoteGoneError:
    return RemoteGoneError("the device did not answer in time")


def _await(fd: int, event: int, deadline: float) -> None:
    """Wait until a descriptor is ready.

    Raises:
        RemoteGoneError: If it is not before the deadline.
    """
    poll = select.poll()
    poll.register(fd, event)
    if not poll.poll(1000 * _left(deadline)):
        raise _late()
