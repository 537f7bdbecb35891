"""The contract of `SessionDevice`. Subclass `SessionDeviceContract`."""

from __future__ import annotations

import struct

import pytest

from compiler.remote.protocol import VERSION, Kind, encode, read_facts, read_frame
from workers.child.process import ChildGoneError
from workers.remote.sessions import SessionDevice

HELLO = encode(Kind.HELLO, 7, struct.pack("<I", VERSION))


class SessionDeviceContract:
    """Tests of a device of this host: override `new`."""

    def new(self) -> SessionDevice:
        raise NotImplementedError

    def test_it_answers_until_it_is_closed(self) -> None:
        device = self.new()
        for _ in range(2):
            header, body = read_frame(device.answer(HELLO, 30.0))
            assert (header.kind, header.number) == (Kind.DONE, 7)
            assert read_facts(body).num_cores >= 1
        assert device.close() == ""
        with pytest.raises(ChildGoneError):
            device.answer(HELLO, 30.0)
