"""The phases of measuring a candidate, and their time limits."""

from __future__ import annotations

from enum import StrEnum

from workers.wire.request import MeasureLimits

_SLOWDOWN = 50.0
"""A run may take this many times the incumbent's, then it is given up: how slow a loser is does not
matter. Chosen.
"""
_LEAST_RUN_SECS = 2.0
"""But at least so long: a busy host may delay a short run. Chosen."""


class Phase(StrEnum):
    """The phase of a candidate; the child announces each as it begins."""

    ORACLE = "oracle"  # the expected result is computed, once a workload
    BUILD = "build"
    CHECK = "check"  # the first run, compared with the expected result
    TIME = "time"

    @property
    def doing(self) -> str:
        """Return the phase in words, for the message of an error."""
        return {
            Phase.ORACLE: "the oracle",
            Phase.BUILD: "the build",
            Phase.CHECK: "the first run",
            Phase.TIME: "a timed run",
        }[self]


def deadline_secs(phase: Phase, limits: MeasureLimits, incumbent_secs: float | None) -> float:
    """Return the time limit of a phase in seconds.

    Without an incumbent the run has the whole limit: the default schedule, from which the search
    starts, may be slow.
    """
    match phase:
        case Phase.ORACLE:
            return limits.oracle_timeout_secs
        case Phase.BUILD:
            return limits.build_timeout_secs
        case Phase.CHECK | Phase.TIME:
            if incumbent_secs is None:
                return limits.run_timeout_secs
            return min(limits.run_timeout_secs, max(_LEAST_RUN_SECS, _SLOWDOWN * incumbent_secs))
