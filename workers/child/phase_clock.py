"""The phase of the current candidate, and its deadline."""

from __future__ import annotations

import time

from compiler.runtime.measurement import ErrorKind, Measurement
from workers.measure.compare import CompareRequest
from workers.wire.phase import Phase, deadline_secs
from workers.wire.request import MeasureRequest, SeatRequest


class PhaseClock:
    """The current phase of a candidate, with its beginning and its deadline."""

    def __init__(self, request: MeasureRequest | CompareRequest | SeatRequest) -> None:
        assert request.limits is not None, "the runner filled them in"
        self.limits = request.limits
        self._incumbent_secs = request.incumbent_secs
        self._secs: dict[Phase, float] = {}
        self._phase = Phase.BUILD
        self._since = time.monotonic()

    @property
    def is_of_the_oracle(self) -> bool:
        """Return whether the oracle runs in this phase, which is not the candidate's work."""
        return self._phase is Phase.ORACLE

    @property
    def allowed_secs(self) -> float:
        """Return the time limit of the phase in seconds."""
        return deadline_secs(self._phase, self.limits, self._incumbent_secs)

    @property
    def deadline(self) -> float:
        """Return the end of the phase's time limit, by `time.monotonic`."""
        return self._since + self.allowed_secs

    def enter(self, phase: Phase) -> None:
        """End a phase, begin another."""
        now = time.monotonic()
        self._secs[self._phase] = self._secs.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    def failed(self, kind: ErrorKind, reason: str) -> Measurement:
        """Return the measurement of a candidate that failed in this phase."""
        self.enter(self._phase)
        return Measurement(
            error=kind,
            message=f"{self._phase.doing} {reason}",
            build_secs=self._secs.get(Phase.BUILD, 0.0),
            check_secs=self._secs.get(Phase.CHECK, 0.0),
            time_secs=self._secs.get(Phase.TIME, 0.0),
        )
