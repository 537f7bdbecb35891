"""One child process: its start, its pipes, its death.

The child leads a new session and process group, so that the whole group can be killed. Its output
goes to a pipe separate from its answers; the tail is kept as its last words.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from workers.child.child_environment import child_environment
from workers.child.suspension import Suspension
from workers.wire.frames import FrameDecoder, Message, encode

_READ_BYTES = 1 << 16
"""Bytes of one read of the pipe: the capacity of a pipe on Linux."""
_LAST_WORDS_BYTES = 2000
"""Of the child's standard error that an error message quotes. Chosen for a readable message."""
_STOP_SECS = 2.0
"""Time limit for a child to be stopped by SIGSTOP, which takes microseconds. Chosen for a busy
host.
"""
_LOOK_SECS = 50e-6
"""Pause between two looks at the state of a child that was stopped; a stop takes microseconds.
Chosen.
"""
_MAX_POLL_MILLIS = 1 << 30
"""The longest wait of one `poll`, whose argument is a C int."""


class ChildGoneError(Exception):
    """The child closed its pipe: it died, or will never answer."""


class DeadlineError(Exception):
    """The child did not answer in time."""


@dataclass(frozen=True, slots=True)
class Death:
    """The way in which a child ended.

    `exit_code` is negative for a signal, as in `subprocess`; None if another part of this process
    reaped it. `was_alive` means that it still ran, so that the signal is our own.
    """

    exit_code: int | None = None
    peak_bytes: int = 0
    last_words: str = ""
    was_alive: bool = False

    @property
    def cause(self) -> str:
        """Return the cause of death, such as `SIGSEGV`."""
        code = self.exit_code
        if code is None:
            return "an unknown cause"
        if code >= 0:
            return f"exit code {code}"
        return next((s.name for s in signal.Signals if s == -code), f"signal {-code}")


class ChildProcess:
    """A running `python -m MODULE`, which uses the frames of `workers.wire.frames`.

    Only one thread at a time may send or receive; `kill` is safe from any thread, at any time.

    Args:
        module: The program of the child.
        inherited: Further descriptors for the child.
        settings: Further environment variables for the child.
    """

    def __init__(
        self,
        module: str,
        inherited: Sequence[int] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._decoder = FrameDecoder()
        self._messages: deque[Message] = deque()
        self._last_words = b""
        self._death: Death | None = None
        self._life = threading.Lock()
        self._suspension = Suspension()
        self._process, self._requests, self._results = (
            _spawner().submit(_start, module, inherited, settings or {}).result()
        )
        assert self._process.stderr is not None
        self._words = self._process.stderr.fileno()
        # Shows its death even if a process that it started holds its pipes open.
        self._pulse = os.pidfd_open(self.pid)
        self._poll = select.poll()
        for fd in (self._results, self._words, self._pulse):
            self._poll.register(fd, select.POLLIN)

    @property
    def pid(self) -> int:
        """Return the id of the child's process, session and group."""
        return self._process.pid

    def send(self, message: Message, deadline: float) -> None:
        """Send a message.

        Args:
            deadline: By `time.monotonic`.

        Raises:
            ChildGoneError: If the child closed its pipe.
            DeadlineError: If it does not read.
            FrameError: If the message is too long.
        """
        content = memoryview(encode(message))
        end = self._postponed(deadline)
        while content:
            try:
                content = content[os.write(self._requests, content) :]
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._requests, select.POLLOUT)
                if not writable.poll(_millis_until(end())) and time.monotonic() > end():
                    raise DeadlineError from None
            except BrokenPipeError:
                raise ChildGoneError from None

    def receive(self, deadline: float) -> Message:
        """Return the next message.

        Args:
            deadline: By `time.monotonic`.

        Raises:
            ChildGoneError: If the child closed its pipe.
            DeadlineError: If nothing arrived in time.
            FrameError: If it sent bytes that are not frames.
        """
        end = self._postponed(deadline)
        while not self._messages:
            ready = {fd for fd, _ in self._poll.poll(_millis_until(end()))}
            # Endless output of a child wakes this loop, but does not extend the deadline.
            if self._results not in ready and time.monotonic() > end():
                raise DeadlineError
            if self._words in ready and not self._read_stderr():
                self._poll.unregister(self._words)
            if self._results in ready:
                self._messages.extend(self._read_messages())
            elif self._pulse in ready:
                raise ChildGoneError
        return self._messages.popleft()

    def pause(self) -> None:
        """Stop all threads of the group, wherever they are, until `resume`.

        Raises:
            ChildGoneError: If the child is dead.
        """
        self._signal(signal.SIGSTOP)
        end = time.monotonic() + _STOP_SECS
        # The last of its threads may still be on a core when the signal was sent.
        while not self._has_stopped():
            if self._dies_within(0) or time.monotonic() > end:
                raise ChildGoneError
            time.sleep(_LOOK_SECS)

    def _has_stopped(self) -> bool:
        try:
            return os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG) is not None
        except ChildProcessError:  # it died, or other code reaped it
            return False

    def suspend(self) -> None:
        """Stop all threads of the group until `resume`; postpone the deadlines of its answers.

        This does not wait until they have stopped, which takes microseconds.

        Raises:
            ChildGoneError: If the child is dead.
        """
        self._signal(signal.SIGSTOP)
        self._suspension.begin()

    def resume(self) -> None:
        """Continue all threads of the group.

        Raises:
            ChildGoneError: If the child is dead.
        """
        self._suspension.end()
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with self._life:
            if self._death is not None:
                raise ChildGoneError
            os.killpg(self.pid, number)

    def _postponed(self, deadline: float) -> Callable[[], float]:
        """Return what gives a deadline, postponed by the time suspended from now on."""
        before_secs = self._suspension.total_secs()
        return lambda: deadline + self._suspension.total_secs() - before_secs

    def kill(self) -> None:
        """Kill the whole group, without waiting; a reader then gets `ChildGoneError`."""
        with self._life:
            if self._death is None:
                self._kill_group()

    def is_alive(self) -> bool:
        """Return whether the child still runs."""
        return self._death is None and not self._dies_within(0)

    def end(self, grace_secs: float = 0.0) -> Death:
        """Kill the remaining processes, reap the child and close the pipes.

        A second call returns the same.

        Args:
            grace_secs: The time to wait for its exit: a child whose pipe has closed is dead, or
                about to be, unless it closed the pipe itself.
        """
        with self._life:
            if self._death is None:
                was_alive = not self._dies_within(grace_secs)
                self._kill_group()
                self._death = self._reap(was_alive)
            return self._death

    def _dies_within(self, secs: float) -> bool:
        ends = select.poll()
        ends.register(self._pulse, select.POLLIN)
        return bool(ends.poll(int(1000 * secs)))

    def _kill_group(self) -> None:
        # Until it is reaped, a dead leader keeps its id, so this can't hit another process.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _reap(self, was_alive: bool) -> Death:
        code, peak_bytes = None, 0
        with suppress(ChildProcessError):  # SIGCHLD is ignored, or other code reaped the child
            _, status, usage = os.wait4(self.pid, 0)
            code, peak_bytes = os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10
        self._process.returncode = code or 0  # what tells `Popen` that there is nothing to reap
        os.set_blocking(self._words, False)
        with suppress(BlockingIOError):  # a process that it started may hold the pipe open
            while self._read_stderr():
                pass
        assert self._process.stderr is not None
        self._process.stderr.close()
        for fd in (self._requests, self._results, self._pulse):
            os.close(fd)
        words = self._last_words.decode(errors="replace").strip()
        return Death(code, peak_bytes, words, was_alive)

    def _read_messages(self) -> Iterator[Message]:
        content = os.read(self._results, _READ_BYTES)
        if not content:
            raise ChildGoneError
        return self._decoder.feed(content)

    def _read_stderr(self) -> bool:
        """Read of what the child prints; return whether there may be more."""
        content = os.read(self._words, _READ_BYTES)
        self._last_words = (self._last_words + content)[-_LAST_WORDS_BYTES:]
        return bool(content)


def _start(
    module: str, inherited: Sequence[int], settings: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a child; return it, the pipe for requests and the pipe for results."""
    request_source, request_sink = os.pipe()
    result_source, result_sink = os.pipe()
    ends = (request_source, result_sink)
    fds = (*ends, *inherited)
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(os.getpid()), *map(str, fds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=fds,
            start_new_session=True,
            env={**child_environment(os.environ), **settings},
        )
    except BaseException:
        os.close(request_sink)
        os.close(result_source)
        raise
    finally:
        for fd in ends:
            os.close(fd)
    os.set_blocking(request_sink, False)
    return process, request_sink, result_source


@lru_cache(maxsize=1)
def _spawner() -> ThreadPoolExecutor:
    """Return the only thread that starts children.

    The parent-death signal is sent when the *thread* that started a child ends, so that thread must
    live as long as this process.
    """
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


# The thread does not exist in a fork: its children would never start.
os.register_at_fork(after_in_child=_spawner.cache_clear)


def _millis_until(deadline: float) -> int:
    return min(max(0, int(1000 * (deadline - time.monotonic())) + 1), _MAX_POLL_MILLIS)
