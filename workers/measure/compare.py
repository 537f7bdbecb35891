"""Time candidates side by side in this process, round by round, so that their times compare.

Libraries that compute the same are timed in `workers.child.race`, because their threads would
disturb the candidates.

The random choices of a round (the order, the addresses of arrays) do not depend on the contestants:
of two equal ones, each is the faster in a round with equal chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from compiler.backends.trial_arrays import TrialArrays
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.target.target import Target
from workers.measure.timed_run import TimedRun, run_of_kernel
from workers.wire.phase import Phase
from workers.wire.request import MeasureLimits

BATCH_SECS = 2.0
"""Time limit of a child's rounds; after it the caller may stop."""
_TURNS = ((200e-3, 1), (20e-3, 2), (1e-3, 3), (0.0, 5))
"""Turns of each contestant in a round, by the seconds of the longest run: long runs vary less.
Chosen.
"""
_LONG_SECS = 20e-3
"""The first run of a contestant that is alone is its sample, if it takes longer: cold caches and
new pages of its arrays cost less than a hundredth of it.
"""

Announce: TypeAlias = Callable[[Phase, int | None], None]
"""Called when a phase begins, with its contestant; None for all in turns."""


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Candidates of one workload to time side by side, and libraries that compute the same.

    Contestants are numbered: the candidates, then the libraries. With libraries there may be fewer
    rounds than requested: as many as `BATCH_SECS` allow.

    Attributes:
        workload: The script text of the program.
        target: The name of the target.
        traces: One trace a candidate, as JSON text.
        num_rounds: The number of rounds, counted from 0.
        first_round: The first round to measure.
        seed: With the round's number, it determines all random choices of a round.
        is_careful: Whether to announce each turn, which costs time, to find who crashes.
        limits: The limits of each candidate; by default those of the worker.
        request_id: The id of the request that submitted the job, for the worker's log.
        libraries: The names of libraries to time in the same rounds; see `workers.libraries`.
        operator: The operator of the program as text (`compiler.ops.spec`), for the libraries.
        incumbent_secs: The best known time; candidates that take far longer are given up.
    """

    workload: str
    target: str
    traces: tuple[str, ...]
    num_rounds: int
    seed: int
    first_round: int = 0
    is_careful: bool = False
    limits: MeasureLimits | None = None
    request_id: str | None = None
    libraries: tuple[str, ...] = ()
    operator: str = ""
    incumbent_secs: float | None = None

    def __post_init__(self) -> None:
        """Convert any sequences of traces and libraries to tuples."""
        object.__setattr__(self, "traces", tuple(self.traces))
        object.__setattr__(self, "libraries", tuple(self.libraries))

    @property
    def num_contestants(self) -> int:
        """Return the number of candidates and libraries."""
        return len(self.traces) + len(self.libraries)

    def is_contest(self, indices: Collection[int]) -> bool:
        """Return whether the remaining contestants are worth timing.

        A library is of interest beside a candidate, and the other way round.
        """
        num_candidates = sum(index < len(self.traces) for index in indices)
        return num_candidates > 0 and (not self.libraries or len(indices) > num_candidates)

    def remainder(
        self, indices: Sequence[int], first_round: int, *, is_careful: bool
    ) -> CompareRequest:
        """Return the request for some of the contestants, from a later round on."""
        num = len(self.traces)
        return replace(
            self,
            traces=tuple(self.traces[index] for index in indices if index < num),
            libraries=tuple(self.libraries[index - num] for index in indices if index >= num),
            first_round=first_round,
            is_careful=is_careful,
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> CompareRequest:
        """Read what `to_json` wrote.

        Raises:
            TypeError: If a field is unknown or missing.
            ValueError: If a value is out of its domain.
        """
        limits = obj.get("limits")
        return cls(**{**obj, "limits": None if limits is None else MeasureLimits(**limits)})

    @staticmethod
    def is_in(obj: Mapping[str, Any]) -> bool:
        """Return whether a JSON object is such a request, or another one."""
        return "num_rounds" in obj


Build: TypeAlias = Callable[[PrimFunc, str, Target], Artifact]
"""Makes the artifact of a candidate."""


class FaultError(Exception):
    """A contestant failed; the cause has the error."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


@dataclass(frozen=True, slots=True)
class Round:
    """The samples of a round by contestant, in seconds a run."""

    samples: Mapping[int, Sequence[float]]


def compare(
    request: CompareRequest,
    prepared: TrialArrays,
    build: Build,
    announce: Announce,
) -> Iterator[Round | FaultError]:
    """Yield the samples of each round, or a fault if a contestant drops out.

    After a fault its round is repeated without the contestant. The iterator ends if too few are
    left, or after `BATCH_SECS`; at least one round is measured.
    """
    side_by_side = SideBySide(request, prepared, announce)
    for index in range(request.num_contestants):
        try:
            side_by_side.build(index, build)
        except FaultError as fault:
            yield fault
    number, end = request.first_round, time.monotonic() + BATCH_SECS
    while number < request.num_rounds and request.is_contest(side_by_side.indices):
        try:
            yield side_by_side.round(number)
        except FaultError as fault:
            side_by_side.drop(fault.index)
            yield fault
        else:
            number += 1
            if time.monotonic() > end:
                return


class SideBySide:
    """Times contestants in rounds; one that fails is left out.

    Args:
        prepared: The workload with its expected result.
        announce: See `Announce`.
    """

    def __init__(self, request: CompareRequest, prepared: TrialArrays, announce: Announce) -> None:
        self._request = request
        self._arrays = prepared
        self._announce = announce
        self._target = Target(request.target)
        self._open_in: dict[int, Callable[[TrialArrays], TimedRun]] = {}
        self._checked: set[int] = set()

    @property
    def indices(self) -> Collection[int]:
        """Return the indices of the remaining contestants."""
        return self._open_in

    def build(self, index: int, build: Build) -> None:
        """Build a candidate.

        Raises:
            FaultError: If it can't be built.
        """
        self._announce(Phase.BUILD, index)
        try:
            trace = self._request.traces[index]
            artifact = build(self._arrays.func, trace, self._target)
        except Exception as error:
            raise FaultError(index) from error
        self._open_in[index] = partial(run_of_kernel, artifact)

    def drop(self, index: int) -> None:
        """Leave a contestant out."""
        del self._open_in[index]

    def round(self, number: int) -> Round:
        """Time the remaining contestants.

        Raises:
            FaultError: If one fails; the round does not count then.
        """
        rng = np.random.default_rng((self._request.seed, number))
        order = rng.permutation(list(self._open_in)).tolist()
        # The arrays of the previous round still exist, so these get other addresses.
        self._arrays = self._arrays.again()
        samples = self._take_turns({index: self._open(index) for index in order})
        return Round(samples)

    def _open(self, index: int) -> TimedRun:
        """Load a contestant and run it once, which warms it up; at first, check its result."""
        self._announce(Phase.CHECK, index)
        try:
            run = self._open_in[index](self._arrays)
            if index not in self._checked:
                run.check()
                self._checked.add(index)
        except Exception as error:
            raise FaultError(index) from error
        return run

    def _take_turns(self, runs: Mapping[int, TimedRun]) -> dict[int, Sequence[float]]:
        self._announce(Phase.TIME, None)
        longest = max(run.first_secs for run in runs.values())
        if len(runs) == 1 and longest >= _LONG_SECS:
            return {index: [longest] for index in runs}
        num_turns = next(turns for secs, turns in _TURNS if longest >= secs)
        samples: dict[int, list[float]] = {index: [] for index in runs}
        order = list(runs)
        for _ in range(num_turns):
            for index in order:
                if self._request.is_careful:
                    self._announce(Phase.TIME, index)
                samples[index].append(runs[index].sample())
            order.reverse()
        return dict(samples)
