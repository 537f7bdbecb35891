"""Errors between a user and a server.

LoopwrightError
├── InvalidAddressError         the server's address is not valid
├── ClientClosedError           the client was closed before the call
├── ServerUnreachableError      no answer: wrong address, not running, or the network is down
├── RequestError                the server answered with a problem document, kept in `.problem`
│   ├── InvalidRequestError     a bad script, operator or number, an unknown target (400, 413, 422)
│   ├── AccessDeniedError       the token is missing, unknown, or lacks the scope (401, 403)
│   ├── NotFoundError           no such job, or nothing was tuned for that workload (404)
│   ├── ConflictError           the request contradicts the current state (409)
│   └── ServerFailedError       the server is busy or broken (429, 5xx), after every retry
├── ProtocolError               the answer does not match this client's protocol
├── JobFailedError              the job ended without a kernel that builds, runs and is correct
├── WaitTimeoutError            the job did not end within the caller's timeout; it continues
├── ArtifactRefusedError        a kernel that this host cannot run, or that is damaged
├── SignatureError              a kernel that is not signed by the key that the client was given
├── LockError                   a lock file that is damaged, or does not fit this kernel or host
└── ManifestError               a manifest of kernels that is not valid

Mistakes in a program itself have the compiler's errors: `ScriptError`, `ScheduleError`,
`TargetError`, `BuildError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compiler.user_errors import NoResultError, UsageError

if TYPE_CHECKING:
    # Not at run time: a process that loads a kernel needs the errors, and no model of the wire.
    from loopwright.local.tune_result import TuneResult
    from service.wire.problems import Problem


class LoopwrightError(NoResultError):
    """The root of the tree above."""


class InvalidAddressError(LoopwrightError, UsageError, ValueError):
    """The server's address is not valid."""


class ClientClosedError(LoopwrightError, RuntimeError):
    """The client was closed before the call."""


class ServerUnreachableError(LoopwrightError):
    """No server answers at the address; `advice` says what to try, if the answer gives a hint."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.advice = advice


class RequestError(LoopwrightError):
    """The server refused a request; `problem` is its RFC 9457 document.

    Programs read `code`, which never changes its meaning: the text of the error is for people.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail or problem.title)
        self.problem = problem
        self.code = problem.code


class InvalidRequestError(RequestError, UsageError):
    """The request is well-formed HTTP, but its contents are invalid."""


class AccessDeniedError(RequestError, UsageError):
    """The token is missing, unknown, or lacks the required scope."""


class NotFoundError(RequestError):
    """The job, schedule or other object does not exist."""


class ConflictError(RequestError):
    """The current state of the object forbids the request."""


class ServerFailedError(RequestError):
    """The server is overloaded or broken."""


class ProtocolError(LoopwrightError):
    """The answer does not match this client's protocol: another service, or another version."""


class JobFailedError(LoopwrightError):
    """A tuning job ended without a kernel.

    Attributes:
        results: The results of `lw.tune` for all workloads, including those that have a kernel.
    """

    def __init__(self, message: str, results: Sequence[TuneResult] = ()) -> None:
        super().__init__(message)
        self.results = tuple(results)


class WaitTimeoutError(LoopwrightError, TimeoutError):
    """A job did not end within the given time; it continues."""


class ArtifactRefusedError(LoopwrightError):
    """A compiled kernel that must not be loaded here."""


class SignatureError(LoopwrightError):
    """A kernel without a valid signature by the given key, or an invalid public key."""


class LockError(LoopwrightError, UsageError):
    """A lock file that is damaged, lacks a kernel, or was written for another host or version."""


class ManifestError(LoopwrightError, UsageError, ValueError):
    """A manifest of kernels that cannot be read, or names an invalid workload."""


class StaleAnswerWarning(UserWarning):
    """The server did not answer; an earlier answer is used."""


class FallbackWarning(UserWarning):
    """A kernel was built from the default schedule, because no tuned kernel is available."""


_BY_STATUS: dict[int, type[RequestError]] = {
    400: InvalidRequestError,
    401: AccessDeniedError,
    403: AccessDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    429: ServerFailedError,
}


def error_for(problem: Problem) -> RequestError:
    """Return the error for a problem document."""
    fallback = ServerFailedError if problem.status >= 500 else RequestError
    return _BY_STATUS.get(problem.status, fallback)(problem)
