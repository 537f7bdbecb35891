"""What can go wrong between a user and a server.

LoopwrightError
├── InvalidAddressError         the text given as a server's address is none
├── ClientClosedError           the client was closed, and is asked for something
├── ServerUnreachableError      no answer: wrong address, not running, or the network is down
├── RequestError                the server answered with a problem document, kept in `.problem`
│   ├── InvalidRequestError     a bad script, operator or number, an unknown target (400, 413, 422)
│   ├── AccessDeniedError       the token is missing, unknown, or not allowed to do this (401, 403)
│   ├── NotFoundError           no such job, or nothing was tuned for that workload (404)
│   ├── ConflictError           what was asked contradicts the state of the thing (409)
│   └── ServerFailedError       the server is busy or broken (429, 5xx), after every retry
├── ProtocolError               the answer is not what this client understands
├── JobFailedError              the job ended without a correct kernel
├── WaitTimeoutError            the job goes on; the caller's patience ended
├── ArtifactRefusedError        a kernel that this host cannot run, or that is damaged
└── SignatureError              a kernel that is not signed by the key that the client was given

Mistakes in a program itself have the compiler's errors: `ScriptError`, `ScheduleError`,
`TargetError`, `BuildError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from service.wire.problems import Problem

if TYPE_CHECKING:
    from loopwright.local.tune_result import TuneResult


class LoopwrightError(Exception):
    """The root of the tree above."""


class InvalidAddressError(LoopwrightError, ValueError):
    """The text given as a server's address is none."""


class ClientClosedError(LoopwrightError, RuntimeError):
    """The client was closed, and is asked for something."""


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


class InvalidRequestError(RequestError):
    """The request is well-formed HTTP and means nothing."""


class AccessDeniedError(RequestError):
    """The token is missing, unknown, or not allowed to do this."""


class NotFoundError(RequestError):
    """There is no such thing."""


class ConflictError(RequestError):
    """The state of the thing forbids what was asked of it."""


class ServerFailedError(RequestError):
    """The server is overloaded or broken."""


class ProtocolError(LoopwrightError):
    """The answer is not what this client understands: another service, or another version."""


class JobFailedError(LoopwrightError):
    """A tuning job ended without a kernel.

    Attributes:
        results: What `lw.tune` found of each of its workloads, also of those that have a kernel.
    """

    def __init__(self, message: str, results: Sequence[TuneResult] = ()) -> None:
        super().__init__(message)
        self.results = tuple(results)


class WaitTimeoutError(LoopwrightError, TimeoutError):
    """A job did not end in the time given; it goes on."""


class ArtifactRefusedError(LoopwrightError):
    """A compiled kernel that must not be loaded here."""


class SignatureError(LoopwrightError):
    """A kernel without the signature that this client demands, or a public key that is none."""


class StaleAnswerWarning(UserWarning):
    """The server did not answer; what it answered some time ago is used."""


class FallbackWarning(UserWarning):
    """A kernel was built from the default schedule, because no tuned one could be had."""


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
    """Return the error that a problem document stands for."""
    fallback = ServerFailedError if problem.status >= 500 else RequestError
    return _BY_STATUS.get(problem.status, fallback)(problem)
