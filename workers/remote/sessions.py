"""The sessions of a worker: a child each, with an owner, limits of time, and an end.

A step is one request of a client, and its answer. Whatever a kernel does, the answer is a frame: a
crash and a passed deadline are errors of the protocol, after which the session is over.
"""

from __future__ import annotations

import base64
import secrets
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from compiler.backends.cpu.runner_devices import command_of_process
from compiler.remote.channel import ProcessChannel
from compiler.remote.error import RemoteGoneError
from compiler.remote.protocol import (
    ENDS_SESSION,
    DeviceFailure,
    DeviceFrameError,
    Kind,
    read_frame,
    write_failure,
)
from workers.child.process import ChildGoneError, ChildProcess, DeadlineError
from workers.wire.frames import FrameError

MAX_SESSIONS = 4
"""Sessions of one worker: each may hold a gibibyte. Chosen."""
IDLE_SECS = 300.0
"""A session without requests for so long ends. Chosen: a user types in between."""
MAX_RUN_SECS = 60.0
"""Deadline of one call: others wait for the slot meanwhile. Chosen."""
_ANSWER_SECS = 30.0
"""Time limit of other answers; the first one waits for the start of Python. Chosen."""
_NETWORK_SECS = 10.0
"""Further time limit of an answer of another machine, which has the deadline of a call. Chosen."""
_SLACK_SECS = 0.5
"""From a request in the pipe to its call in the child. Chosen for a busy host."""
_DEADLINE_OFFSET = 24  # in the body of RUN


class SessionError(LookupError):
    """No such session, or none more can begin."""


class SessionDevice(Protocol):
    """What answers the frames of one session."""

    def answer(self, frame: bytes, timeout_secs: float) -> bytes:
        """Return the answer to a request.

        Raises:
            ChildGoneError: If the device died.
            DeadlineError: If it did not answer in time.
        """
        ...

    def close(self) -> str:
        """End it; return why it died, if it did."""
        ...


class ChildDevice:
    """A sandboxed child of this process.

    It is stopped between requests, so that no thread of a kernel disturbs a measurement.
    """

    def __init__(self, module: str = "workers.remote.child") -> None:
        self._child = ChildProcess(module)

    @property
    def pid(self) -> int:
        """Return the id of its process."""
        return self._child.pid

    def answer(self, frame: bytes, timeout_secs: float) -> bytes:
        """Return the answer of the child to a request."""
        deadline = time.monotonic() + timeout_secs
        self._child.resume()
        self._child.send({"frame": base64.b64encode(frame).decode()}, deadline)
        try:
            answer = base64.b64decode(self._child.receive(deadline)["frame"], validate=True)
        except (FrameError, LookupError, TypeError, ValueError) as error:
            raise ChildGoneError from error  # a kernel wrote into the pipe
        with suppress(ChildGoneError):  # the next request will say so
            self._child.pause()
        return answer

    def close(self) -> str:
        """Kill the child."""
        death = self._child.end(grace_secs=0.2)
        return "" if death.was_alive else death.cause


class RunnerDevice:
    """A device behind a runner, which is started for the session."""

    def __init__(self, command: Sequence[str]) -> None:
        self._channel = ProcessChannel(command)

    def answer(self, frame: bytes, timeout_secs: float) -> bytes:
        """Return the answer of the device to a request."""
        try:
            return self._channel.exchange(frame, timeout_secs + _NETWORK_SECS)
        except RemoteGoneError as error:
            raise ChildGoneError from error

    def close(self) -> str:
        """End the runner."""
        self._channel.close()
        return ""


def start_device() -> SessionDevice:
    """Start the device of a session: that of a runner, if this process works for one."""
    command = command_of_process()
    return ChildDevice() if command is None else RunnerDevice(command)


@dataclass(slots=True)
class _Session:
    owner: str
    device: SessionDevice
    used_at: float
    turn: threading.Lock = field(default_factory=threading.Lock)


class RemoteSessions:
    """The sessions of a worker; safe to use from several threads.

    Args:
        start: Starts the device of a session.
    """

    def __init__(self, start: Callable[[], SessionDevice] = ChildDevice) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._timer: threading.Timer | None = None

    def open(self, owner: str) -> str:
        """Begin a session; return its secret name.

        Raises:
            SessionError: If there are too many.
        """
        with self._lock:
            if len(self._sessions) >= MAX_SESSIONS:
                raise SessionError(f"the worker has {MAX_SESSIONS} sessions: try again later")
            name = secrets.token_urlsafe(24)
            self._sessions[name] = _Session(owner, self._start(), time.monotonic())
            self._watch()
        return name

    def step(self, name: str, owner: str, frame: bytes) -> bytes:
        """Answer a request of a session.

        Raises:
            SessionError: If it is over, or has another owner.
        """
        session = self._find(name, owner)
        with session.turn:
            answer = self._answered(session, frame)
            session.used_at = time.monotonic()
        if _ends(frame, answer):
            self._end(name)
        return answer

    def close(self, name: str, owner: str) -> None:
        """End a session.

        Raises:
            SessionError: If it is over, or has another owner.
        """
        self._find(name, owner)
        self._end(name)

    def close_all(self) -> None:
        """End all sessions."""
        for name in list(self._sessions):
            self._end(name)

    def _find(self, name: str, owner: str) -> _Session:
        session = self._sessions.get(name)
        if session is None or session.owner != owner:
            raise SessionError("no such session: it ended, or its worker was restarted")
        return session

    def _answered(self, session: _Session, frame: bytes) -> bytes:
        number = 0
        try:
            header, body = read_frame(frame)
            number = header.number
            secs = _run_secs(body) if header.kind == Kind.RUN else 0.0
            if secs > MAX_RUN_SECS:
                text = f"a call on a shared worker has {MAX_RUN_SECS:.0f} s"
                return write_failure(number, DeviceFailure.OUT_OF_RANGE, text)
            return session.device.answer(frame, secs + _SLACK_SECS if secs else _ANSWER_SECS)
        except DeviceFrameError:
            return write_failure(number, DeviceFailure.MALFORMED)
        except DeadlineError:
            return write_failure(number, DeviceFailure.DEADLINE, "the deadline passed")
        except ChildGoneError:
            cause = session.device.close() or "a closed pipe"
            return write_failure(number, DeviceFailure.FAULT, f"the kernel was ended by {cause}")

    def _end(self, name: str) -> None:
        with self._lock:
            session = self._sessions.pop(name, None)
        if session is not None:
            session.device.close()

    def _watch(self) -> None:
        """End idle sessions later on; the lock is held."""
        if self._timer is None and self._sessions:
            self._timer = threading.Timer(IDLE_SECS / 4, self._look)
            self._timer.daemon = True
            self._timer.start()

    def _look(self) -> None:
        limit = time.monotonic() - IDLE_SECS
        with self._lock:
            self._timer = None
            idle = [
                name
                for name, session in self._sessions.items()
                if session.used_at < limit and not session.turn.locked()
            ]
        for name in idle:
            self._end(name)
        with self._lock:
            self._watch()


def _run_secs(body: bytes) -> float:
    """Return the deadline of a call."""
    try:
        return float(struct.unpack_from("<I", body, _DEADLINE_OFFSET)[0]) / 1000
    except struct.error:
        return 0.0  # the device refuses it


def _ends(frame: bytes, answer: bytes) -> bool:
    """Return whether a session is over after an answer."""
    try:
        header, body = read_frame(answer)
    except DeviceFrameError:
        return True
    if header.kind == Kind.FAILED:
        return len(body) < 4 or int.from_bytes(body[:4], "little") in ENDS_SESSION
    return int.from_bytes(frame[4:8], "little") == Kind.BYE
