"""A session with a device: its requests as methods, and checks of what the device answers."""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from compiler.executor.error import ArgumentError
from compiler.remote.channel import Channel
from compiler.remote.error import (
    EmulatedDeviceError,
    RemoteError,
    RemoteFaultError,
    RemoteGoneError,
    RemoteRefusedError,
)
from compiler.remote.protocol import (
    ENDS_SESSION,
    MAX_BODY_BYTES,
    MAX_DEADLINE_SECS,
    VERSION,
    DeviceFailure,
    DeviceFrameError,
    Kind,
    Sample,
    Word,
    encode,
    read_facts,
    read_failure,
    read_frame,
    read_numbers,
    read_samples,
    write_words,
)

ResultT = TypeVar("ResultT")

REPLY_SECS = 60.0
"""Time limit of a reply. Chosen for slow networks: a frame has at most one mebibyte."""
_PART_BYTES = MAX_BODY_BYTES - 64
"""Bytes of an array in one frame, with room for the numbers before them."""


@dataclass(frozen=True, slots=True)
class DeviceRegion:
    """Memory of a device."""

    number: int
    address: int
    size_bytes: int


class Session:
    """A session: memory, code and calls on one device.

    It may be used from several threads, whose requests take turns. After a `RemoteGoneError` or a
    `RemoteFaultError` it is over, and each later request raises a `RemoteGoneError`.

    Args:
        channel: How frames reach the device; this session closes it.
        token: What the device requires of its client; empty if nothing.

    Attributes:
        reply_secs: The time limit of a reply, beyond that of the kernel that it waits for.

    Raises:
        RemoteError: If the device refuses the session, or vanished.
    """

    def __init__(self, channel: Channel, token: str = "") -> None:
        self._channel = channel
        self.reply_secs = REPLY_SECS
        self._turn = threading.RLock()
        self._number = 0
        self._end: str | None = None
        self._abandoned: deque[int] = deque()
        try:
            body = self._ask(Kind.HELLO, struct.pack("<I", VERSION) + token.encode())
            self.facts = self._checked(read_facts, body)
        except BaseException:
            self.close()
            raise

    @property
    def is_over(self) -> bool:
        """Return whether no request can succeed any more."""
        return self._end is not None

    def reserve(self, size_bytes: int, *, is_code: bool = False) -> DeviceRegion:
        """Reserve memory, which holds zeros."""
        body = self._ask(Kind.RESERVE, struct.pack("<QI", size_bytes, is_code))
        number, address = self._checked(lambda content: read_numbers("QQ", content), body)
        return DeviceRegion(number, address, size_bytes)

    def release(self, region: DeviceRegion) -> None:
        """Give memory back."""
        self._ask(Kind.RELEASE, struct.pack("<Q", region.number))

    def abandon(self, region: DeviceRegion) -> None:
        """Give memory back with the next request: for finalizers, which must not wait."""
        self._abandoned.append(region.number)

    def write(self, region: DeviceRegion, content: bytes | memoryview, offset: int = 0) -> None:
        """Write bytes into memory."""
        view = memoryview(content).cast("B")
        for start in range(0, view.nbytes, _PART_BYTES):
            head = struct.pack("<QQ", region.number, offset + start)
            self._ask(Kind.WRITE, head + view[start : start + _PART_BYTES])

    def read(self, region: DeviceRegion, size_bytes: int, offset: int = 0) -> bytes:
        """Read bytes of memory."""
        parts = []
        for start in range(0, size_bytes, _PART_BYTES):
            size = min(_PART_BYTES, size_bytes - start)
            part = self._ask(Kind.READ, struct.pack("<QQQ", region.number, offset + start, size))
            if len(part) != size:
                self._fail(f"it sent {len(part)} bytes of {size}")
            parts.append(part)
        return b"".join(parts)

    def resolve(self, names: Sequence[str]) -> dict[str, int]:
        """Return the addresses of functions of the device; 0 for those that it does not have."""
        body = self._ask(Kind.RESOLVE, b"".join(name.encode() + b"\0" for name in names))
        addresses = self._checked(lambda b: read_numbers(f"{len(names)}Q", b), body)
        return dict(zip(names, addresses, strict=True))

    def seal(self, region: DeviceRegion, code_bytes: int, constant_bytes: int) -> None:
        """Make memory executable: its first bytes are code, the next ones constants."""
        self._ask(Kind.SEAL, struct.pack("<QQQ", region.number, code_bytes, constant_bytes))

    def protect(self, region: DeviceRegion) -> None:
        """Make memory read-only: a kernel that writes into it crashes."""
        self._ask(Kind.PROTECT, struct.pack("<Q", region.number))

    def run(
        self,
        code: DeviceRegion,
        entry: int,
        words: Sequence[Word],
        *,
        calls: int = 1,
        samples: int = 0,
        deadline_secs: float = 60.0,
    ) -> list[Sample]:
        """Call a kernel.

        Args:
            code: The sealed region of the kernel.
            entry: The offset of its function.
            words: Its arguments.
            calls: The number of calls, of each sample.
            samples: The number of timed samples; without any, the calls are not timed.
            deadline_secs: The time after which the device ends the session.

        Raises:
            ArgumentError: If the deadline is out of range.
            RemoteError: If the device refuses it, crashed, or vanished.
        """
        if not 0 < deadline_secs <= MAX_DEADLINE_SECS:
            raise ArgumentError(
                f"deadline_secs is {deadline_secs}: expected more than 0, at most"
                f" {MAX_DEADLINE_SECS}"
            )
        millis = max(1, int(1000 * deadline_secs))
        head = struct.pack("<QQIIII", code.number, entry, calls, samples, millis, len(words))
        body = self._ask(Kind.RUN, head + write_words(words), deadline_secs)
        return self._checked(lambda content: read_samples(content, samples), body)

    def close(self) -> None:
        """End the session, and release what the device holds; a second call does nothing."""
        with self._turn:
            if self._end is None:
                with suppress(RemoteError):
                    self._exchange(Kind.BYE, b"", 2.0)
                self._end = "it was closed"
            self._channel.close()

    def _ask(self, kind: Kind, body: bytes, extra_secs: float = 0.0) -> bytes:
        """Return the body of the answer to a request.

        Raises:
            RemoteError: If the device refuses it, crashed, or vanished.
        """
        with self._turn:
            if self._end is not None:
                raise RemoteGoneError(f"the session is over: {self._end}")
            for number in self._taken():
                self._exchange(Kind.RELEASE, struct.pack("<Q", number), self.reply_secs)
            return self._exchange(kind, body, self.reply_secs + extra_secs)

    def _taken(self) -> Iterator[int]:
        while self._abandoned:
            yield self._abandoned.popleft()

    def _exchange(self, kind: Kind, body: bytes, timeout_secs: float) -> bytes:
        self._number += 1
        try:
            reply = self._channel.exchange(encode(kind, self._number, body), timeout_secs)
        except RemoteGoneError as error:
            self._over(str(error))
            raise
        except BaseException:
            # An interrupted exchange may have left half a frame behind.
            self._over("a request was interrupted")
            raise
        header, content = self._checked(read_frame, reply)
        if header.kind == Kind.FAILED:
            self._refused(*self._checked(read_failure, content))
        if header.kind != Kind.DONE or header.number != self._number:
            self._fail(f"it answered request {self._number} by kind {header.kind} of another one")
        return content

    def _refused(self, number: int, text: str) -> NoReturn:
        """Raise the error that a device reports."""
        if number not in list(DeviceFailure):
            self._fail(f"it reports the unknown error {number}")
        failure = DeviceFailure(number)
        if failure in ENDS_SESSION:
            self._over(text)
        match failure:
            case DeviceFailure.EMULATED:
                raise EmulatedDeviceError(
                    "the device is emulated: its results can be checked, and its times say nothing"
                )
            case DeviceFailure.FAULT | DeviceFailure.DEADLINE:
                raise RemoteFaultError(f"{text}; connect again: the session is over")
            case DeviceFailure.BUSY:
                raise RemoteRefusedError(f"{text}: try again when it has ended")
            case _:
                raise RemoteRefusedError(f"the device refused a request: {text}")

    def _checked(self, read: Callable[[bytes], ResultT], content: bytes) -> ResultT:
        """Return what an answer says; one that is malformed ends the session."""
        try:
            return read(content)
        except DeviceFrameError as error:
            self._fail(str(error))

    def _fail(self, reason: str) -> NoReturn:
        """End the session because of a wrong answer."""
        self._over(reason)
        raise RemoteGoneError(f"the device does not follow the protocol: {reason}")

    def _over(self, reason: str) -> None:
        if self._end is None:
            self._end = reason
        self._channel.close()
