"""Sessions of remote clients with a worker: its children are devices; their faults are errors."""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.remote.channel import Channel
from compiler.remote.protocol import ENDS_SESSION, DeviceFailure, Kind, encode, read_frame
from compiler.schedule.schedule import Schedule
from loopwright import rpc
from tests.integration.compiler.remote.test_mutated_frames import requests_of
from tests.targets import here
from workers.remote import sessions as limits
from workers.remote.device import DeviceSession
from workers.remote.sessions import ChildDevice, RemoteSessions, SessionError


class SessionChannel(Channel):
    """The frames of one session with sessions of this process."""

    def __init__(self, sessions: RemoteSessions, owner: str = "a") -> None:
        self.sessions, self.owner = sessions, owner
        self.name = sessions.open(owner)

    def exchange(self, request: bytes, timeout_secs: float) -> bytes:
        try:
            return self.sessions.step(self.name, self.owner, request)
        except SessionError as error:
            raise rpc.RemoteGoneError(str(error)) from error

    def close(self) -> None:
        with suppress(SessionError):
            self.sessions.close(self.name, self.owner)


@pytest.fixture(scope="module")
def sessions() -> Iterator[RemoteSessions]:
    opened = RemoteSessions()
    yield opened
    opened.close_all()


def _works(remote: rpc.Remote) -> None:
    relu = remote.load_module(lw.compile_kernel(lw.ops.relu(8), here()))
    x, y = remote.array(np.arange(-4, 4, dtype="float32")), remote.empty((8,))
    relu(x, y)
    np.testing.assert_array_equal(y.numpy(), np.maximum(np.arange(-4, 4), 0))


def test_kernels_run_and_are_timed_in_a_child(sessions: RemoteSessions) -> None:
    schedule = Schedule(lw.ops.add(512, 512))
    (block,) = schedule.get_child_blocks(schedule.get_block("root"))
    schedule.parallel(schedule.get_loops(block)[0])
    with rpc.Remote(SessionChannel(sessions)) as remote:
        assert remote.facts.runner == "loopwright worker 1"
        add = remote.load_module(lw.compile_kernel(schedule, here(2)))
        x, y = np.random.default_rng(0).random((2, 512, 512), "float32")
        z = remote.empty((512, 512))
        arrays = (remote.array(x), remote.array(y), z)
        timing = add.time_evaluator(number=3, repeat=4, min_repeat_ms=1)(*arrays)
        assert len(timing.secs) == 4
        assert all(0 < secs < 1 for secs in timing.secs)
        np.testing.assert_array_equal(z.numpy(), x + y)
        _works(remote)


def test_threads_of_a_kernel_rest_between_requests(sessions: RemoteSessions) -> None:
    # Its thread counts in the first array, without end.
    text = """declare i32 @pthread_create(ptr, ptr, ptr, ptr)
define internal ptr @count(ptr %at) {
entry:
 br label %again
again:
 %old = load volatile i64, ptr %at
 %new = add i64 %old, 1
 store volatile i64 %new, ptr %at
 br label %again
}
define void @lw_kernel(ptr %args) {
 %at = load ptr, ptr %args
 %thread = alloca i64
 %found = call i32 @pthread_create(ptr %thread, ptr null, ptr @count, ptr %at)
 ret void
}
"""
    kernel = lw.compile_kernel(lw.ops.relu(8), here())
    with rpc.Remote(SessionChannel(sessions)) as remote:
        x, y = remote.empty((8,)), remote.empty((8,))
        remote.load_module(replace(kernel, code=compile_object(text, here())))(x, y)
        first = _counted(x)
        while (second := _counted(x)) == first:  # the thread begins
            pass
        (device,) = (session.device for session in sessions._sessions.values())
        assert isinstance(device, ChildDevice)
        state = Path(f"/proc/{device.pid}/stat").read_text().rpartition(") ")[2][0]
        assert (state, second > first) == ("T", True)


def _counted(array: rpc.RemoteArray) -> int:
    return int(array.numpy().view("int64")[0])


def _faulty(body: str) -> lw.Artifact:
    text = f"define void @lw_kernel(ptr %args) {{\nentry:\n {body}\n}}\n"
    kernel = lw.compile_kernel(lw.ops.relu(8), here())
    return replace(kernel, code=compile_object(text, here()))


def test_a_kernel_that_crashes_or_never_ends_is_an_error_and_the_worker_goes_on(
    sessions: RemoteSessions,
) -> None:
    for body, message in (
        ("store i64 7, ptr inttoptr (i64 4096 to ptr)\n ret void", "ended by SIGSEGV"),
        ("br label %again\nagain:\n br label %again", "the deadline passed"),
    ):
        with rpc.Remote(SessionChannel(sessions)) as remote:
            module = remote.load_module(_faulty(body))
            x, y = remote.empty((8,)), remote.empty((8,))
            with pytest.raises(rpc.RemoteFaultError, match=message):
                module(x, y, deadline_secs=0.2)
            with pytest.raises(rpc.RemoteGoneError):
                y.numpy()
    with rpc.Remote(SessionChannel(sessions)) as remote:
        _works(remote)


CALLS = (
    "@socket(i32 2, i32 1, i32 0)",  # AF_INET, SOCK_STREAM
    "@fork()",
    "@open(ptr @path, i32 0)",
    "@creat(ptr @path, i32 384)",
    "@unlink(ptr @path)",
    "@shmget(i32 0, i64 4096, i32 896)",  # IPC_PRIVATE, IPC_CREAT | 0600
)


def _calling(call: str, path: Path) -> lw.Artifact:
    """Return a kernel that stores what a function of the system returns."""
    name, _, arguments = call[1:-1].partition("(")
    types = ", ".join(argument.split()[0] for argument in arguments.split(",") if argument)
    text = f"""@path = internal constant [{len(str(path)) + 1} x i8] c"{path}\\00"
declare i32 @{name}({types})
define void @lw_kernel(ptr %args) {{
 %at = load ptr, ptr %args
 %found = call i32 {call}
 %number = sitofp i32 %found to float
 store float %number, ptr %at
 ret void
}}
"""
    kernel = lw.compile_kernel(lw.ops.relu(8), here())
    return replace(kernel, code=compile_object(text, here()))


def test_a_kernel_reaches_nothing_outside(sessions: RemoteSessions, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("secret")
    with rpc.Remote(SessionChannel(sessions)) as remote:
        x, y = remote.empty((8,)), remote.empty((8,))
        for call in CALLS:
            x.copyfrom(np.zeros(8, "float32"))
            remote.load_module(_calling(call, path))(x, y)
            assert x.numpy()[0] == -1, call
    assert path.read_text() == "secret"


def test_a_session_has_one_owner_and_an_end(sessions: RemoteSessions) -> None:
    name = sessions.open("a")
    hello = encode(Kind.HELLO, 1, b"\1\0\0\0")
    with pytest.raises(SessionError, match="no such session"):
        sessions.step(name, "b", hello)
    with pytest.raises(SessionError):
        sessions.close(name, "b")
    assert read_frame(sessions.step(name, "a", hello))[0].kind == Kind.DONE
    assert read_frame(sessions.step(name, "a", b"no frame"))[0].kind == Kind.FAILED
    with pytest.raises(SessionError):
        sessions.step(name, "a", hello)


def test_a_client_of_another_version_is_refused() -> None:
    device = DeviceSession(8 << 20)
    header, body = read_frame(device.answer(encode(Kind.HELLO, 1, b"\2\0\0\0")))
    assert (header.kind, body[0]) == (Kind.FAILED, DeviceFailure.WRONG_VERSION)
    assert DeviceFailure.WRONG_VERSION in ENDS_SESSION


def test_there_are_so_many_sessions_and_no_more(sessions: RemoteSessions) -> None:
    names = [sessions.open("a") for _ in range(limits.MAX_SESSIONS)]
    with pytest.raises(SessionError, match="has 4 sessions"):
        sessions.open("b")
    for name in names:
        sessions.close(name, "a")
    sessions.close(sessions.open("b"), "b")


def test_an_idle_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "IDLE_SECS", 0.2)
    sessions = RemoteSessions()
    name = sessions.open("a")
    end = time.monotonic() + 20
    while sessions._sessions and time.monotonic() < end:
        time.sleep(0.05)
    with pytest.raises(SessionError):
        sessions.step(name, "a", encode(Kind.BYE, 1))


def test_a_call_beyond_the_limit_of_a_shared_worker_is_refused(sessions: RemoteSessions) -> None:
    with rpc.Remote(SessionChannel(sessions)) as remote:
        relu = remote.load_module(lw.compile_kernel(lw.ops.relu(8), here()))
        with pytest.raises(rpc.RemoteRefusedError, match="a call on a shared worker has 60 s"):
            relu(remote.empty((8,)), remote.empty((8,)), deadline_secs=61)
        _works(remote)


def test_memory_beyond_the_limit_is_refused(sessions: RemoteSessions) -> None:
    with rpc.Remote(SessionChannel(sessions)) as remote:
        with pytest.raises(rpc.RemoteRefusedError, match="no memory"):
            remote.empty((1 << 31,), "uint8")
        for _ in range(4):
            remote.empty((600 << 20,), "uint8")
        _works(remote)


def test_names_of_no_function_have_no_address() -> None:
    device = DeviceSession(8 << 20)
    names = b"__init__\0_handle\0\0no such\0exp\0"
    header, body = read_frame(device.answer(encode(Kind.RESOLVE, 1, names)))
    *none, exp = struct.unpack("<5Q", body)
    assert (header.kind, none, exp > 0) == (Kind.DONE, [0, 0, 0, 0], True)
    header, body = read_frame(device.answer(encode(Kind.RESOLVE, 2, bytes(1 << 20))))
    assert (header.kind, body[0]) == (Kind.FAILED, DeviceFailure.OUT_OF_RANGE)


def test_no_mutated_request_is_an_error_of_the_device() -> None:
    rng = random.Random(0)
    kinds: set[int] = set()
    for _ in range(400):
        device = DeviceSession(8 << 20)
        for frame in requests_of(rng):
            content = bytearray(frame)
            if content[4] == Kind.RUN:
                continue  # it would run what the bytes happen to be
            for _ in range(rng.choice((0, 0, 1))):
                content[rng.randrange(len(content))] = rng.randrange(256)
            if content[4] != Kind.RUN:
                kinds.add(read_frame(device.answer(bytes(content)))[0].kind)
    assert kinds == {Kind.DONE, Kind.FAILED}


def test_requests_of_several_threads_take_turns(sessions: RemoteSessions) -> None:
    with rpc.Remote(SessionChannel(sessions)) as remote:
        failures: list[BaseException] = []

        def use(number: int) -> None:
            try:
                for _ in range(10):
                    array = remote.array(np.full(3000, number))
                    assert (array.numpy() == number).all()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
