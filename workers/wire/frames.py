"""The wire between a runner and its child: JSON objects, each after its length in four bytes.

Data from a child is not trusted: a crashing kernel may write anything anywhere.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

MAX_FRAME_BYTES = 16 << 20
"""Limit of a message: a child may write anything, and its length is read first. Far above a
workload's text. Chosen.
"""
_LENGTH = struct.Struct(">I")


class FrameError(ValueError):
    """Bytes that are not a frame."""


def encode(message: Message) -> bytes:
    """Return a message as the bytes of a frame.

    Raises:
        FrameError: If the message is too long.
    """
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"the frame has {len(body)} bytes: expected {MAX_FRAME_BYTES} or fewer")
    return _LENGTH.pack(len(body)) + body


class FrameDecoder:
    """Cuts a stream of bytes, fed as they arrive, into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, content: bytes) -> Iterator[Message]:
        """Yield the messages that these bytes complete.

        Raises:
            FrameError: If the stream is not a sequence of frames; it can't be read any further.
        """
        self._buffer += content
        while len(self._buffer) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer)
            if size > MAX_FRAME_BYTES:
                raise FrameError(f"a frame claims {size} bytes")
            end = _LENGTH.size + size
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield _parse(body)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _parse(body: bytes) -> Message:
    try:
        message = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame is not JSON: {body[:40]!r}") from error
    if not isinstance(message, dict):
        raise FrameError(f"a frame is not a JSON object: {body[:40]!r}")
    return message
