"""Time candidates side by side in this process, round by round, so that their times compare.

Libraries that compute the same are timed elsewhere, see `workers.child.race`: their threads would
be in the way.

What a round draws by lot (who comes first, where arrays lie) does not depend on what the
contestants are: of two that are the same, each is the faster in a round with equal chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from compiler.backends.trial_arrays import TrialArrays
from compiler.ir.core.program import PrimFunc
from compiler.runtime.artifact import Artifact
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

Announce: TypeAlias = Callable[[Phase, int | None], None]
"""Called when a phase begins, with its contestant; None for all in turns."""


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Candidates of one workload to time side by side, and libraries that compute the same.

    The contestants are known by their places: the candidates, then the libraries. With libraries
    there may be fewer rounds than were asked for: as many as `BATCH_SECS` allow.

    Attributes:
        workload: The script text of the program.
        target: The name of the target.
        traces: One trace a candidate, as JSON text.
        num_rounds: How many rounds, counted from 0.
        first_round: Where to begin.
        seed: What is drawn by lot in a round follows from it and the round's number.
        is_careful: Whether to announce each turn, which costs time, to see who crashes.
        limits: What each candidate may take; by default what the worker grants.
        request_id: That of the request whose job this is for; it stands in the worker's log.
        libraries: The names of libraries to time in the same rounds; see `workers.libraries`.
        operator: What the program computes, in the words of `compiler.ops.spec`, for the libraries.
        incumbent_secs: The best time known; what takes far longer is given up.
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
        """Take any sequences of traces and libraries."""
        object.__setattr__(self, "traces", tuple(self.traces))
        object.__setattr__(self, "libraries", tuple(self.libraries))

    @property
    def num_contestants(self) -> int:
        """How many candidates and libraries there are."""
        return len(self.traces) + len(self.libraries)

    def is_contest(self, indices: Collection[int]) -> bool:
        """Tell whether there is something to time if those in some places are left.

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
        """Tell whether a JSON object is such a request, or another one."""
        return "num_rounds" in obj


Build: TypeAlias = Callable[[PrimFunc, str, Target], Artifact]
"""Makes the artifact of a candidate."""


class FaultError(Exception):
    """A contestant went wrong; the cause says how."""

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
    """Yield what each round measured; a fault instead where a contestant drops out.

    After a fault its round begins again without the contestant. Nothing comes any more when too
    few are left, nor after `BATCH_SECS`: there is at least one round then.
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
    """Times contestants in rounds; one that goes wrong is left out.

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
        """Who is in."""
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
        """Time those who are in.

        Raises:
            FaultError: If one goes wrong; the round does not count then.
        """
        rng = np.random.default_rng((self._request.seed, number))
        order = rng.permutation(list(self._open_in)).tolist()
        # The arrays of the round before are still there, so these lie elsewhere.
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
