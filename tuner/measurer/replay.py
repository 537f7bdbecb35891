"""A measurer that returns recorded trials, to repeat a search without a clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compiler.runtime.measurement import Measurement
from tuner.candidate import Candidate
from tuner.task import Task
from tuner.trial import MeasuredTrial


class UnknownCandidateError(LookupError):
    """A candidate that is not in the recording."""


class ReplayMeasurer:
    """Returns the measurements of recorded trials of one task, by candidate key."""

    def __init__(self, recording: Iterable[MeasuredTrial]) -> None:
        self._measurements = {t.candidate.key: t.measurement for t in recording}

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield each candidate's recorded measurement; see `Measurer`.

        Raises:
            UnknownCandidateError: If a candidate was never recorded.
        """
        for index, candidate in enumerate(candidates):
            measurement = self._measurements.get(candidate.key)
            if measurement is None:
                raise UnknownCandidateError(
                    f"candidate {candidate.key[:12]} of sketch {candidate.sketch!r} is not among "
                    f"the {len(self._measurements)} recorded"
                )
            yield index, measurement
