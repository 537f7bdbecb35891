"""The contract of `SessionEngine`. Subclass `SessionEngineContract`."""

from __future__ import annotations

import struct

import pytest

from compiler.remote.protocol import VERSION, Kind, encode, read_facts, read_frame
from tests.targets import here
from workers.engine.engine import NoWorkerError, SessionEngine, SessionOverError

HELLO = encode(Kind.HELLO, 1, struct.pack("<I", VERSION))


class SessionEngineContract:
    """Tests of sessions with a real worker of this host: override the fixture."""

    @pytest.fixture
    def sessions(self) -> SessionEngine:
        raise NotImplementedError

    def test_a_session_answers_its_owner_until_it_is_closed(self, sessions: SessionEngine) -> None:
        name = sessions.open_session(here().name, "a")
        header, body = read_frame(sessions.session_step(name, "a", HELLO))
        assert (header.kind, header.number) == (Kind.DONE, 1)
        assert read_facts(body).runner == "loopwright worker 1"
        with pytest.raises(SessionOverError):
            sessions.session_step(name, "b", HELLO)
        sessions.close_session(name, "a")
        with pytest.raises(SessionOverError):
            sessions.session_step(name, "a", HELLO)

    def test_a_target_without_workers_is_named(self, sessions: SessionEngine) -> None:
        with pytest.raises(NoWorkerError, match="no worker serves cpu/cortex-a9"):
            sessions.open_session("cpu -mcpu=cortex-a9", "a")
