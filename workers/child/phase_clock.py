"""A candidate in the hands of a child."""

from __future__ import annotations

import time

from compiler.runtime.measurement import ErrorKind, Measurement
from workers.measure.compare import CompareRequest
from workers.wire.phase import Phase, deadline_secs
from workers.wire.request import MeasureRequest, SeatRequest


class PhaseClock:
    """Which phase a candidate is in, since when, and until when it may be."""

    def __init__(self, request: MeasureRequest | CompareRequest | SeatRequest) -> None:
        assert request.limits is not None, "the runner filled them in"
        self.limits = request.limits
        self._incumbent_secs = request.incumbent_secs
        self._secs: dict[Phase, float] = {}
        self._phase = Phase.BUILD
        self._since = time.monotonic()

    @property
    def is_of_the_oracle(self) -> bool:
        """Whether the expected result is being computed, which no candidate has a part in."""
        return self._phase is Phase.ORACLE

    @property
    def allowed_secs(self) -> float:
        """How long the phase may last."""
        return deadline_secs(self._phase, self.limits, self._incumbent_secs)

    @property
    def deadline(self) -> float:
        """When the phase must have ended, by `time.monotonic`."""
        return self._since + self.allowed_secs

    def enter(self, phase: Phase) -> None:
        """End a phase, begin another."""
        now = time.monotonic()
        self._secs[self._phase] = self._secs.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    def failed(self, kind: ErrorKind, reason: str) -> Measurement:
        """Return the measurement of a candidate that went wrong in this phase."""
        self.enter(self._phase)
        return Measurement(
            error=kind,
            message=f"{self._phase.doing} {reason}",
            build_secs=self._secs.get(Phase.BUILD, 0.0),
            check_secs=self._secs.get(Phase.CHECK, 0.0),
            time_secs=self._secs.get(Phase.TIME, 0.0),
        )
