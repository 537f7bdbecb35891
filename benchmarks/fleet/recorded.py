"""The answers of simulated workers: outcomes of the recorded sets, without building anything."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compiler.ir.text.printer import script
from compiler.runtime.measurement import ErrorKind, Measurement
from tuner.replay.packaged import packaged_sets

Outcome: TypeAlias = float | str
"""The run time of a recorded candidate in seconds, or the kind of its error."""

_SHARES = (0.6, 0.1, 0.3)
"""Shares of build, check and timing in the time of a trial: `trial_rate` in
docs/benchmarks_parts.md.
"""
_ROUND_SHARE = 0.2
"""Time of a round of a comparison, as a share of that of a trial. Chosen."""
_OF_LARGE_SPACES = frozenset(
    {
        "avg_pool2d",
        "conv1d",
        "conv2d_nchwc",
        "conv2d_transpose",
        "conv2d_winograd",
        "conv3d",
        "depthwise_conv2d",
        "max_pool2d",
    }
)
"""Programs with 100,000 candidates or more, so that no job measures all."""
MAX_ROUNDS = 10
"""Rounds of one answer. Chosen: a real worker answers after two seconds."""


def outcomes() -> dict[str, list[Outcome]]:
    """Return the outcomes of recorded sets with large spaces, by the texts of their programs."""
    return {
        script(recorded.task.func): [
            secs if math.isfinite(secs) else str(recorded.errors[point])
            for point, secs in recorded.by_point.items()
        ]
        for recorded in packaged_sets()
        if recorded.task.func.name in _OF_LARGE_SPACES
    }


@dataclass(frozen=True)
class RecordedAnswers:
    """Answers requests from recorded outcomes.

    A candidate of a search is seldom in a set, so each gets the outcome of one of the recorded
    candidates of its program, always the same one.

    Attributes:
        outcomes: The outcomes of each program, by its text; see `outcomes`.
        trial_secs: The mean time of a trial; each takes between half and one and a half of it.
    """

    outcomes: Mapping[str, Sequence[Outcome]]
    trial_secs: float

    def secs(self, request: Mapping[str, Any]) -> float:
        """Return how long a worker takes for a request, in seconds."""
        secs = sum(self.trial_secs * (0.5 + _draw(trace)) for trace in request["traces"])
        if "num_rounds" in request:
            return secs * _ROUND_SHARE * _num_rounds(request)
        return secs

    def answer(self, request: Mapping[str, Any], worker: str) -> str:
        """Return the answer of a worker; see `workers.wire.answers`."""
        measured = [self._measurement(request, trace, worker) for trace in request["traces"]]
        found = [measured] * _num_rounds(request) if "num_rounds" in request else measured
        return json.dumps({"found": found})

    def _measurement(self, request: Mapping[str, Any], trace: str, worker: str) -> dict[str, Any]:
        known = self.outcomes[request["workload"]]
        outcome = known[zlib.crc32(trace.encode()) % len(known)]
        trial_secs = self.trial_secs * (0.5 + _draw(trace))
        build_secs, check_secs, time_secs = (share * trial_secs for share in _SHARES)
        return Measurement(
            run_secs=() if isinstance(outcome, str) else (outcome,) * 5,
            error=ErrorKind(outcome) if isinstance(outcome, str) else None,
            build_secs=build_secs,
            check_secs=check_secs,
            time_secs=time_secs,
            worker=worker,
        ).to_json()


def _num_rounds(request: Mapping[str, Any]) -> int:
    return min(int(request["num_rounds"]) - int(request["first_round"]), MAX_ROUNDS)


def _draw(trace: str) -> float:
    """Return a number in [0, 1) that a candidate determines."""
    return zlib.crc32(b"secs" + trace.encode()) / 2**32
