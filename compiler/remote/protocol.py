"""The frames of the protocol between a client and a device: `docs/remote_protocol.md`.

Both sides read what the other one sends without trust: lengths are checked before anything is read
or allocated, and a frame that does not fit ends the session.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

VERSION = 1
ABI_VERSION = 1
"""The version of the calls of kernels: one pointer to 64-bit words."""
MAGIC = b"LWR1"
HEADER = struct.Struct("<4sIII")
MAX_BODY_BYTES = 1 << 20
MAX_WORDS = 256
MAX_SAMPLES = 1000
MAX_CALLS = 1 << 24
MAX_DEADLINE_SECS = 600
_MAX_TEXT_BYTES = 8192
_WORD = struct.Struct("<QQQ")
_SAMPLE = struct.Struct("<QQQ")
_FACTS = struct.Struct("<IIIIIIQ")


class Kind(IntEnum):
    """The kinds of frames: requests, then replies."""

    HELLO = 1
    RESERVE = 2
    RELEASE = 3
    WRITE = 4
    READ = 5
    RESOLVE = 6
    SEAL = 7
    RUN = 8
    BYE = 9
    PROTECT = 10
    DONE = 0x80
    FAILED = 0x81


class DeviceFailure(IntEnum):
    """The errors of a device."""

    MALFORMED = 1
    WRONG_VERSION = 2
    DENIED = 3
    BUSY = 4
    UNKNOWN_REGION = 5
    OUT_OF_RANGE = 6
    NO_MEMORY = 7
    EMULATED = 8
    FAULT = 9
    DEADLINE = 10
    REFUSED = 11


ENDS_SESSION = frozenset(
    (
        *(
            DeviceFailure.MALFORMED,
            DeviceFailure.WRONG_VERSION,
            DeviceFailure.DENIED,
            DeviceFailure.BUSY,
        ),
        *(DeviceFailure.FAULT, DeviceFailure.DEADLINE),
    )
)
"""The errors after which a device ends the session."""


class DeviceFrameError(ValueError):
    """Bytes that are no frame, or no reply to the request."""


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """The beginning of a frame."""

    kind: int
    number: int
    body_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a device says of itself.

    Attributes:
        is_emulated: Whether its CPU is emulated: it reports no times.
        num_cores: The number of cores that it may use.
        vector_bits: Of RISC-V, the length of its vector registers; otherwise 0.
        memory_bytes: The limit of the memory of a session.
        arch: Its architecture by Linux's name.
        features: The line of `/proc/cpuinfo` that lists the features of its CPU.
        runner: The name and the version of its program.
    """

    is_emulated: bool
    num_cores: int
    vector_bits: int
    memory_bytes: int
    arch: str
    features: str
    runner: str


@dataclass(frozen=True, slots=True)
class Word:
    """An argument of a kernel: a number, or an address in a region."""

    offset: int
    region: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The time of some calls of a kernel in nanoseconds, and the preemptions of its thread."""

    wall_nanos: int
    cpu_nanos: int
    preemptions: int


def encode(kind: Kind, number: int, body: bytes = b"") -> bytes:
    """Return a frame."""
    assert len(body) <= MAX_BODY_BYTES, "callers cut their data into parts"
    return HEADER.pack(MAGIC, kind, number, len(body)) + body


def read_header(content: bytes) -> FrameHeader:
    """Return the header of a frame.

    Raises:
        DeviceFrameError: If it is none.
    """
    try:
        magic, kind, number, size = HEADER.unpack(content)
    except struct.error as error:
        raise DeviceFrameError(f"a header has {len(content)} bytes") from error
    if magic != MAGIC:
        raise DeviceFrameError(f"a frame begins with {content[:16]!r}")
    if size > MAX_BODY_BYTES:
        raise DeviceFrameError(f"a frame has {size} bytes: expected at most {MAX_BODY_BYTES}")
    return FrameHeader(kind, number, size)


def read_frame(content: bytes) -> tuple[FrameHeader, bytes]:
    """Return the header and the body of a whole frame.

    Raises:
        DeviceFrameError: If it is none.
    """
    header = read_header(content[: HEADER.size])
    body = content[HEADER.size :]
    if len(body) != header.body_bytes:
        raise DeviceFrameError(f"a frame has {len(body)} bytes: expected {header.body_bytes}")
    return header, body


def read_numbers(form: str, body: bytes) -> tuple[int, ...]:
    """Return the numbers that a body consists of, by their form for `struct`.

    Raises:
        DeviceFrameError: If it has another length.
    """
    try:
        return struct.unpack(f"<{form}", body)
    except struct.error as error:
        raise DeviceFrameError(f"a body has {len(body)} bytes: {error}") from error


def read_failure(body: bytes) -> tuple[int, str]:
    """Return the number of an error and its text, in which only printable characters are left.

    Raises:
        DeviceFrameError: If it is none.
    """
    if not 4 <= len(body) <= 4 + _MAX_TEXT_BYTES:
        raise DeviceFrameError(f"an error has {len(body)} bytes")
    text = body[4:].decode("ascii", "replace")
    return read_numbers("I", body[:4])[0], "".join(c for c in text if c.isprintable())


def write_failure(number: int, failure: DeviceFailure, text: str = "") -> bytes:
    """Return the frame of an error, whose text is that of its name by default."""
    shown = text or failure.name.lower().replace("_", " ")
    content = shown.encode("ascii", "replace")[:500]
    return encode(Kind.FAILED, number, struct.pack("<I", failure) + content)


def write_facts(facts: DeviceFacts) -> bytes:
    """Return the body of the reply to HELLO."""
    numbers = (VERSION, ABI_VERSION, facts.is_emulated, struct.calcsize("P"))
    body = _FACTS.pack(*numbers, facts.num_cores, facts.vector_bits, facts.memory_bytes)
    for text in (facts.arch, facts.features, facts.runner):
        content = text.encode("ascii", "replace")[:_MAX_TEXT_BYTES]
        body += struct.pack("<I", len(content)) + content
    return body


def read_facts(body: bytes) -> DeviceFacts:
    """Return what a device says of itself.

    Raises:
        DeviceFrameError: If the reply is malformed, or of another version.
    """
    try:
        version, abi, is_emulated, _, cores, vector_bits, memory = _FACTS.unpack_from(body)
    except struct.error as error:
        raise DeviceFrameError(f"a reply to HELLO has {len(body)} bytes") from error
    if (version, abi) != (VERSION, ABI_VERSION):
        raise DeviceFrameError(
            f"the device speaks version {version} of the protocol, with calls of version {abi}:"
            f" this client has {VERSION} and {ABI_VERSION}"
        )
    texts, at = [], _FACTS.size
    for _ in range(3):
        (size,) = read_numbers("I", body[at : at + 4])
        text = body[at + 4 : at + 4 + size]
        if len(text) != size or size > _MAX_TEXT_BYTES:
            raise DeviceFrameError(f"a text of a reply to HELLO has {size} bytes")
        texts.append(text.decode("ascii", "replace"))
        at += 4 + size
    if at != len(body) or not 1 <= cores <= 1 << 16 or vector_bits > 1 << 16:
        raise DeviceFrameError("a reply to HELLO is malformed")
    return DeviceFacts(bool(is_emulated), cores, vector_bits, memory, texts[0], texts[1], texts[2])


def write_words(words: Iterable[Word]) -> bytes:
    """Return the words of RUN."""
    return b"".join(_WORD.pack(w.region or 0, w.offset, w.region is not None) for w in words)


def read_words(body: bytes, count: int) -> list[Word]:
    """Return the words of RUN.

    Raises:
        DeviceFrameError: If there are not as many.
    """
    if count > MAX_WORDS or len(body) != count * _WORD.size:
        raise DeviceFrameError(f"{count} words have {len(body)} bytes")
    rows = _WORD.iter_unpack(body)
    return [Word(offset, region if is_address else None) for region, offset, is_address in rows]


def write_samples(samples: Iterable[Sample]) -> bytes:
    """Return the body of the reply to RUN."""
    rows = ((s.wall_nanos, s.cpu_nanos, s.preemptions) for s in samples)
    return b"".join(_SAMPLE.pack(*row) for row in rows)


def read_samples(body: bytes, count: int) -> list[Sample]:
    """Return the samples of the reply to RUN.

    Raises:
        DeviceFrameError: If there are not as many.
    """
    if len(body) != count * _SAMPLE.size:
        raise DeviceFrameError(f"{count} samples have {len(body)} bytes")
    return [Sample(*row) for row in _SAMPLE.iter_unpack(body)]
