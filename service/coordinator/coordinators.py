"""Several coordinators of one process, each with one job at a time.

The jobs of a cluster wait for its workers most of the time: one process has time to run many. Its
coordinators share the workers, a pulse, and the turn to poll the queue, so that the load of the
database does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from service.coordinator.coordinator import Coordinator


class Coordinators:
    """Starts and stops coordinators together."""

    def __init__(self, coordinators: Sequence[Coordinator]) -> None:
        self._coordinators = tuple(coordinators)

    def start(self) -> None:
        """Start to claim jobs."""
        for coordinator in self._coordinators:
            coordinator.start()

    @property
    def is_running(self) -> bool:
        """Return whether jobs are being claimed."""
        return all(coordinator.is_running for coordinator in self._coordinators)

    def wake(self) -> None:
        """Poll the queue now."""
        for coordinator in self._coordinators:
            coordinator.wake()

    def stop(self, timeout_secs: float) -> bool:
        """Return the current jobs to the queue; return whether all threads ended in time."""
        for coordinator in self._coordinators:
            coordinator.request_stop()
        end = monotonic() + timeout_secs
        ended = [
            coordinator.stop(max(0.0, end - monotonic())) for coordinator in self._coordinators
        ]
        return all(ended)
