"""What a device may answer: a session accepts what fits, and ends at anything else."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import numpy as np
import pytest

from compiler.remote.channel import Channel
from compiler.remote.error import (
    EmulatedDeviceError,
    RemoteError,
    RemoteFaultError,
    RemoteGoneError,
    RemoteRefusedError,
)
from compiler.remote.protocol import (
    DeviceFacts,
    DeviceFailure,
    Kind,
    Sample,
    Word,
    encode,
    read_frame,
    write_facts,
    write_samples,
)
from compiler.remote.remote import Remote
from compiler.remote.session import Session

FACTS = DeviceFacts(False, 2, 0, 1 << 20, "aarch64", "Features : fp asimd", "a test")
Answer = Callable[[int, int, bytes], bytes]


class ScriptedDevice(Channel):
    """A device of one region, whose answers a test changes."""

    def __init__(self, change: Callable[[int, bytes], bytes] = lambda number, reply: reply) -> None:
        self.change = change
        self.memory = bytearray(64)
        self.requests: list[int] = []
        self.num_closes = 0

    def exchange(self, request: bytes, timeout_secs: float) -> bytes:
        header, body = read_frame(request)
        self.requests.append(header.kind)
        return self.change(
            header.number, encode(Kind.DONE, header.number, self._body(header.kind, body))
        )

    def _body(self, kind: int, body: bytes) -> bytes:
        match kind:
            case Kind.HELLO:
                return write_facts(FACTS)
            case Kind.RESERVE:
                return struct.pack("<QQ", 1, 1 << 16)
            case Kind.READ:
                _, offset, size = struct.unpack("<QQQ", body)
                return bytes(self.memory[offset : offset + size])
            case Kind.WRITE:
                offset = struct.unpack_from("<Q", body, 8)[0]
                self.memory[offset : offset + len(body) - 16] = body[16:]
                return b""
            case Kind.RUN:
                return write_samples(
                    [Sample(2000, 1000, 0)] * struct.unpack_from("<I", body, 20)[0]
                )
            case _:
                return b""

    def close(self) -> None:
        self.num_closes += 1


def _failure(failure: int, text: bytes = b"a reason") -> Callable[[int, bytes], bytes]:
    return lambda number, _: encode(Kind.FAILED, number, struct.pack("<I", failure) + text)


def test_an_array_goes_there_and_back() -> None:
    device = ScriptedDevice()
    with Remote(device) as remote:
        array = remote.array(np.arange(8, dtype="float32"))
        np.testing.assert_array_equal(array.numpy(), np.arange(8))
        del array
        remote.empty((2,))
        assert device.requests[-2:] == [Kind.RELEASE, Kind.RESERVE]
    assert device.requests[-1] == Kind.BYE
    assert device.num_closes == 1


@pytest.mark.parametrize(
    ("failure", "error", "ends"),
    [
        (DeviceFailure.NO_MEMORY, RemoteRefusedError, False),
        (DeviceFailure.OUT_OF_RANGE, RemoteRefusedError, False),
        (DeviceFailure.EMULATED, EmulatedDeviceError, False),
        (DeviceFailure.FAULT, RemoteFaultError, True),
        (DeviceFailure.DEADLINE, RemoteFaultError, True),
        (DeviceFailure.BUSY, RemoteRefusedError, True),
        (99, RemoteGoneError, True),
    ],
)
def test_each_error_of_a_device_has_its_type(
    failure: int, error: type[RemoteError], ends: bool
) -> None:
    device = ScriptedDevice()
    session = Session(device)
    device.change = _failure(failure)
    with pytest.raises(error):
        session.reserve(8)
    assert session.is_over == ends
    device.change = lambda number, reply: reply
    if ends:
        with pytest.raises(RemoteGoneError, match="the session is over"):
            session.reserve(8)
        assert device.num_closes >= 1
    else:
        session.reserve(8)


def test_the_text_of_an_error_shows_no_control_characters() -> None:
    device = ScriptedDevice()
    session = Session(device)
    device.change = _failure(DeviceFailure.NO_MEMORY, b"\x1b[31mred\x00\xff\n")
    with pytest.raises(RemoteRefusedError) as caught:
        session.reserve(8)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "change",
    [
        lambda number, reply: b"SSH-2.0-OpenSSH_9.2\r\n",
        lambda number, reply: b"",
        lambda number, reply: reply[:-1],
        lambda number, reply: reply + b"x",
        lambda number, reply: encode(Kind.DONE, number + 1, reply[16:]),
        lambda number, reply: encode(Kind.HELLO, number, reply[16:]),
        lambda number, reply: encode(Kind.FAILED, number, b"no"),
        lambda number, reply: encode(Kind.DONE, number, reply[16:] + b"more"),
    ],
)
def test_an_answer_that_does_not_fit_ends_the_session(
    change: Callable[[int, bytes], bytes],
) -> None:
    device = ScriptedDevice()
    session = Session(device)
    region = session.reserve(8)
    device.change = change
    with pytest.raises(RemoteGoneError):
        session.run(region, 0, [Word(0)], samples=2)
    assert session.is_over
    assert device.num_closes == 1


def test_a_device_of_another_version_is_refused_and_closed() -> None:
    def newer(number: int, reply: bytes) -> bytes:
        return reply[:16] + struct.pack("<I", 2) + reply[20:]

    device = ScriptedDevice(newer)
    with pytest.raises(RemoteGoneError, match="speaks version 2 of the protocol"):
        Session(device)
    assert device.num_closes >= 1


def test_mutated_answers_raise_remote_errors_alone() -> None:
    rng = random.Random(0)
    num_errors = 0
    for _ in range(2000):

        def mutated(_: int, reply: bytes) -> bytes:
            content = bytearray(reply)
            if rng.random() < 0.4:
                content[rng.randrange(len(content))] = rng.randrange(256)
            return bytes(content[: rng.choice((len(content), len(content), rng.randrange(99)))])

        device = ScriptedDevice(mutated)
        try:
            with Remote(device) as remote:
                array = remote.array(np.arange(8, dtype="float32"))
                assert array.numpy().shape == (8,)
                samples = remote.session.run(array.region, 0, [Word(0)], samples=3)
                assert len(samples) == 3
        except RemoteError:
            num_errors += 1
        assert device.num_closes >= 1
    assert 500 < num_errors < 2000


def test_an_interrupted_request_ends_the_session() -> None:
    device = ScriptedDevice()
    session = Session(device)

    def interrupt(_: int, __: bytes) -> bytes:
        raise KeyboardInterrupt

    device.change = interrupt
    with pytest.raises(KeyboardInterrupt):
        session.reserve(8)
    with pytest.raises(RemoteGoneError, match="was interrupted"):
        session.reserve(8)
