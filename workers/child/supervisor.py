"""Own one disposable child at a time: start it, ask it, explain its death, replace it.

With a spare, the next child starts while the current one works, so that a fault costs no start: a
child takes a second to import what it needs, and more to make a context on a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from signal import SIGKILL
from threading import Lock
from typing import TypeVar

from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.user_errors import NoResultError
from workers.child.diagnosis import OomCounter, explain_death, explain_kill
from workers.child.host import Host
from workers.child.phase_clock import PhaseClock
from workers.child.process import ChildGoneError, ChildProcess, DeadlineError, Death
from workers.wire.frames import FrameError, Message
from workers.wire.phase import Phase

ResultT = TypeVar("ResultT")

_START_TIMEOUT_SECS = 60.0
"""Time limit for the start of a child, which imports NumPy and LLVM; a busy host takes longer.
Chosen.
"""
_GRACE_SECS = 1.0
"""A child that closed its pipe has so long to write its last words. Chosen."""
# All errors that a child may cause: candidates are hostile input, and so are its messages.
FAULTS = (
    *(DeadlineError, ChildGoneError, FrameError),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
)


class ChildStartError(NoResultError, RuntimeError):
    """No child can be started: this host can't measure."""


class RunnerClosedError(RuntimeError):
    """The runner was closed."""


class ChildSupervisor:
    """Owns a child. Only one thread at a time may use it.

    Any other thread may call `close` and `suspended`.

    Args:
        module: The program of the child.
        inherited: Further descriptors for the child.
        settings: Further environment variables for the child.
        has_spare: Whether the next child starts as soon as the current one is ready.
    """

    def __init__(
        self,
        module: str,
        inherited: Sequence[int] = (),
        settings: Mapping[str, str] | None = None,
        *,
        has_spare: bool = False,
    ) -> None:
        self.host: Host | None = None
        self._module = module
        self._inherited = inherited
        self._settings = dict(settings or {})
        self._has_spare = has_spare
        self._state = Lock()
        self._child: ChildProcess | None = None
        self._spare: ChildProcess | None = None
        self._racing: list[ChildProcess] = []
        self._is_ready = False
        # Held during a start and during a suspension. A child that starts is never suspended: it
        # would outlive this process, if that were killed before the child has its death signal.
        self._start = Lock()
        self._is_closed = False
        self._peak_bytes = 0  # of the child, before the current candidate
        self._oom_counter = OomCounter()

    @property
    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        return self._is_closed

    @property
    def is_ready(self) -> bool:
        """Return whether there is a child that has started."""
        return self._is_ready

    @property
    def child_pid(self) -> int | None:
        """Return the process id of the child; None without a child."""
        with self._state:
            return None if self._child is None else self._child.pid

    def start_ahead(self) -> None:
        """Start a child without waiting for it, so that it is ready when it is needed.

        Raises:
            RunnerClosedError: If this is closed.
        """
        with self._state:
            self._raise_if_closed()
            if self._child is None and self._spare is None:
                self._spare = self._new()

    def close(self) -> None:
        """Kill all children, from any thread; the current request raises `RunnerClosedError`.

        The thread that uses this object calls `end` afterwards, which frees their pipes.
        """
        with self._state:
            self._is_closed = True
            for child in (self._child, self._spare, *self._racing):
                if child is not None:
                    child.kill()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the child while the body runs, without a spare; first wait for its start.

        No other child starts meanwhile, and deadlines are postponed.
        """
        with self._start:
            with self._state, suppress(ChildGoneError):  # the next answer is a death
                if self._child is not None:
                    self._child.suspend()
            try:
                yield
            finally:
                with self._state, suppress(ChildGoneError):
                    if self._child is not None:
                        self._child.resume()

    def end(self, grace_secs: float = 0.0) -> Death:
        """End the child; a spare stays."""
        with self._state:
            child, self._child = self._child, None
            self._is_ready = False
        return Death() if child is None else child.end(grace_secs)

    def end_all(self) -> None:
        """End the child and its spare."""
        self.end()
        with self._state:
            spare, self._spare = self._spare, None
        if spare is not None:
            spare.end()

    def ask(
        self,
        message: Message,
        attempt: PhaseClock,
        read: Callable[[Message], ResultT],
        *,
        is_last: bool,
    ) -> ResultT | Measurement | None:
        """Send a request, and read the answer that follows the phases.

        Args:
            message: The request.
            attempt: The clock of its phases.
            read: Parses the answer, which is not trusted.
            is_last: Whether this is the candidate's last attempt.

        Returns:
            The answer; a failed measurement if the child died, or did not answer in time; None if
            another process killed the child, and an attempt is left.
        """
        child = self.living()
        try:
            child.send(message, attempt.deadline)
            while "phase" in (answer := child.receive(attempt.deadline)):
                attempt.enter(Phase(answer["phase"]))
            result = read(answer)
            self.note(answer)
        except FAULTS as error:
            return self.failure(attempt, error, is_last=is_last)
        except BaseException:
            # Interrupted: the next answer of this child would be taken for another candidate's.
            self.end()
            raise
        return result

    def living(self) -> ChildProcess:
        """Return the child; start a new one if there is none, or if it died while idle.

        Raises:
            ChildStartError: If no child can be started.
            RunnerClosedError: If this is closed.
        """
        if self._child is not None and not self._child.is_alive():
            self.end()
        if self._child is not None:
            return self._child
        with self._start:
            return self._started()

    def _started(self) -> ChildProcess:
        child = self._next()
        try:
            greeting = child.receive(time.monotonic() + _START_TIMEOUT_SECS)
            self.host = Host.from_json(greeting["host"])
            self._peak_bytes = int(greeting["peak_bytes"])
        except FAULTS as error:
            death = self.end(_GRACE_SECS)
            self.raise_if_closed()
            cause = "no answer" if isinstance(error, DeadlineError) else death.cause
            raise ChildStartError(
                f"the child {self._module} can't start: {cause}: {death.last_words}"
            ) from error
        self._is_ready = True
        self._oom_counter.has_grown()  # kills before this child are not its candidates'
        if self._has_spare:
            with self._state:
                if not self._is_closed:
                    self._spare = self._new()
        return child

    def note(self, answer: Message) -> None:
        """Note the memory of the child; end one near its limit of CPU time.

        Raises:
            KeyError, TypeError, ValueError: If the answer does not say its memory.
        """
        self._peak_bytes = int(answer["peak_bytes"])
        if answer.get("is_spent") is True:
            self.end()

    def open_for_race(self, settings: Mapping[str, str]) -> ChildProcess:
        """Start a separate child, which `end_race` ends.

        Raises:
            RunnerClosedError: If this is closed.
        """
        with self._state:
            self._raise_if_closed()
            child = ChildProcess(self._module, self._inherited, {**self._settings, **settings})
            self._racing.append(child)
            return child

    def end_race(self) -> None:
        """End the separate children."""
        with self._state:
            racing, self._racing = self._racing, []
        for child in racing:
            child.end()

    def failure(
        self, attempt: PhaseClock, error: Exception, *, is_last: bool
    ) -> Measurement | None:
        """End the child, and return the error of its candidate.

        Returns:
            The measurement; None if another process killed the child, and an attempt is left.
        """
        match error:
            case DeadlineError():
                self.end()
                self.raise_if_closed()
                reason = f"took longer than {attempt.allowed_secs:g} s"
                return attempt.failed(ErrorKind.TIMEOUT, reason)
            case ChildGoneError():
                death = self.end(_GRACE_SECS)
                self.raise_if_closed()
                if death.exit_code == -SIGKILL and not death.was_alive:
                    ran_out = self._oom_counter.has_grown()
                    return explain_kill(attempt, death, ran_out=ran_out, is_last=is_last)
                return explain_death(attempt, death, self._used_bytes(death))
            case _:
                self.end()
                return attempt.failed(ErrorKind.CRASH, f"broke the pipe to its runner: {error}")

    def raise_if_closed(self) -> None:
        """Raise `RunnerClosedError` if this is closed."""
        if self._is_closed:
            raise RunnerClosedError("the runner was closed while it measured")

    def _next(self) -> ChildProcess:
        """Make the spare the child, or start a new one."""
        with self._state:
            self._raise_if_closed()
            spare, self._spare = self._spare, None
            if spare is not None and spare.is_alive():
                self._child = spare
                return spare
            child = self._child = self._new()
        if spare is not None:
            spare.end()
        return child

    def _new(self) -> ChildProcess:
        return ChildProcess(self._module, self._inherited, self._settings)

    def _used_bytes(self, death: Death) -> int:
        """Return the most memory that the last candidate had; 0 if it is unknown."""
        assert self.host is not None
        # A peak that did not rise belongs to an earlier candidate, or to this process at the fork.
        has_risen = death.peak_bytes > self._peak_bytes
        return death.peak_bytes - self.host.resident_bytes if has_risen else 0

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise RunnerClosedError("the runner is closed")
