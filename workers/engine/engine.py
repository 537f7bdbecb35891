"""The contract of engines, which spread candidates over workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from compiler.runtime.measurement import Measurement
from compiler.user_errors import NoResultError
from workers.measure.compare import CompareRequest
from workers.measure.request_measurer import RequestMeasurer
from workers.wire.request import MeasureRequest


class NoWorkerError(LookupError):
    """No worker serves the target of a request."""


class WorkersGoneError(NoWorkerError):
    """All workers of an engine are gone, and none came back."""


class EngineStartError(NoResultError, RuntimeError):
    """The workers of an engine do not start, or cannot measure."""


class CertificateError(EngineStartError):
    """The certificate of a cluster is missing, or other users may read its key."""


class SessionOverError(LookupError):
    """A remote session is over: it was closed, or its worker is gone."""


class NoSessionError(LookupError):
    """All workers of a target have too many remote sessions; a later attempt may succeed."""


class EngineClosedError(RuntimeError):
    """The engine was closed."""


class RequestInterruptedError(RuntimeError):
    """The requester of a request interrupted it."""


def never() -> bool:
    """Return False: a request is not interrupted."""
    return False


@dataclass(frozen=True, slots=True)
class Standing:
    """What the batches of a request are entitled to beside those of others.

    Attributes:
        owner: Whom the request belongs to: owners share the workers evenly.
        priority: Batches of a higher priority go first.
    """

    owner: str = ""
    priority: int = 0


def alone() -> Standing:
    """Return the standing of a request beside which there are no others."""
    return Standing()


@dataclass(frozen=True, slots=True)
class Requester:
    """Who makes a request.

    Attributes:
        is_interrupted: Called twice a second or more often; if it returns True, a
            `RequestInterruptedError` is raised.
        standing: Returns what the request is entitled to now, beside others.
        name: Requests of one name get the part of one, in the order in which they were made.
    """

    is_interrupted: Callable[[], bool] = never
    standing: Callable[[], Standing] = alone
    name: str = "anyone"


ANYONE = Requester()
"""A requester that interrupts nothing, beside whom there are no others."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """The address of the scheduler of a cluster, and the folder of its certificates."""

    url: str
    certificates: Path


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """The facts of one worker of an engine; `facts` is JSON-able."""

    name: str
    host: str
    label: str  # the kind of target it serves, such as "cpu/znver3"
    pid: int
    is_busy: bool
    last_seen: float  # seconds since the epoch
    facts: Mapping[str, Any]  # versions, the self-test, the task and the sample of its health

    @property
    def refusal(self) -> str:
        """Return why it does not accept work; empty if it does."""
        return str(self.facts.get("refuses", ""))


class SessionEngine(Protocol):
    """Has sessions of remote clients on its workers; may be used from several threads.

    A session has one owner. A step of another one raises a `SessionOverError`, as one after its
    end does.
    """

    def open_session(self, target: str, owner: str) -> str:
        """Open a session on a worker of a target; return its name, which is a secret.

        Raises:
            NoWorkerError: If no worker serves the target.
            NoSessionError: If all that do have too many sessions, or are starting.
            TargetError: If the target is unknown.
        """
        ...

    def session_step(self, session: str, owner: str, frame: bytes) -> bytes:
        """Pass a request of a client to its device, and return the answer.

        Raises:
            SessionOverError: If the session, or its worker, is gone.
        """
        ...

    def close_session(self, session: str, owner: str) -> None:
        """End a session.

        Raises:
            SessionOverError: If the session, or its worker, is gone.
        """
        ...


class Engine(RequestMeasurer, SessionEngine, Protocol):
    """Measures requests on workers; may be used from several threads.

    `measure` and `compare` raise a `NoWorkerError` if no worker serves the target, or if all tried
    workers were lost, and an `EngineClosedError` if the engine is closed, also meanwhile.
    """

    def measure(
        self, request: MeasureRequest, requester: Requester = ANYONE
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each trace with its measurement; see `RequestMeasurer`."""
        ...

    def compare(
        self, request: CompareRequest, requester: Requester = ANYONE
    ) -> Iterator[list[Measurement]]:
        """Yield rounds; see `RequestMeasurer` and `measure`."""
        ...

    def share(self, target: str, owner: str) -> float:
        """Return how many workers a request of an owner may expect beside the others.

        It is 1 before the first request for a target, and 0 while it has no workers.
        """
        ...

    def workers(self) -> list[WorkerFacts]:
        """Return the current workers, by name."""
        ...

    def close(self) -> None:
        """End the workers; a second call does nothing."""
        ...
