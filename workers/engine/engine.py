"""The port to whatever spreads candidates over workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from compiler.runtime.measurement import Measurement
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest


class NoWorkerError(LookupError):
    """No worker serves the target of a request."""


class WorkersGoneError(NoWorkerError):
    """All workers of an engine are gone, and none came back."""


class EngineStartError(RuntimeError):
    """The workers of an engine do not start, or can't measure."""


class CertificateError(EngineStartError):
    """The certificate of a cluster is not where it should be, or others may read its key."""


class EngineClosedError(RuntimeError):
    """The engine was closed."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """Where the scheduler of a cluster is, and the folder with the certificate that it wants."""

    url: str
    certificates: Path


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What an engine knows of one of its workers; `facts` is JSON-able."""

    name: str
    host: str
    label: str  # the kind of target it serves, such as "cpu/znver3"
    pid: int
    is_busy: bool
    last_seen: float  # seconds since the epoch
    facts: Mapping[str, Any]  # versions, the self-test, the task and the sample of its health
    other_labels: tuple[str, ...] = ()  # the further kinds of target it serves

    @property
    def labels(self) -> tuple[str, ...]:
        """All kinds of target that it serves."""
        return (self.label, *self.other_labels)


class Engine(Protocol):
    """Measures candidates on workers, each in a disposable child there.

    Safe to use from several threads.
    """

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each trace with its measurement, in the order of completion.

        Every index comes exactly once, whatever becomes of candidates and workers. The iterator
        may be closed before its end: what has not begun is then abandoned.

        Raises:
            NoWorkerError: If no worker serves the target.
            EngineClosedError: If the engine is closed, now or meanwhile.
        """
        ...

    def compare(self, request: CompareRequest) -> Iterator[list[Measurement]]:
        """Yield rounds in which all are timed side by side: one measurement a contestant.

        Each round is measured by one worker, in a child; a contestant that goes wrong is an error.
        With libraries there may be fewer rounds than asked for, and at least one.

        Raises:
            NoWorkerError: If no worker serves the target, or all that tried were lost.
            EngineClosedError: If the engine is closed, now or meanwhile.
        """
        ...

    def workers(self) -> list[WorkerFacts]:
        """Return the workers that are there now, by name."""
        ...

    def close(self) -> None:
        """End the workers; a second call does nothing."""
        ...
