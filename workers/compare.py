"""Time candidates side by side in this process, round by round, so that their times compare.

What a round draws by lot (who comes first, where arrays lie) does not depend on what the candidates
are: of two that are the same, each is the faster in a round with equal chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from compiler.ir.program import PrimFunc
from compiler.runtime.artifact import Artifact
from compiler.runtime.module import Module
from compiler.runtime.timing import calls_per_sample, time_calls
from compiler.target import Target
from workers.phase import Phase
from workers.prepared import Prepared
from workers.request import Limits

BATCH_SECS = 2.0
"""After so long a child has measured rounds enough; whoever asked may want no more."""
MIN_SAMPLE_SECS = 200e-6
# How many turns each has in a round, by what the longest run takes: long ones are calm.
_TURNS = ((200e-3, 1), (20e-3, 2), (1e-3, 3), (0.0, 5))

Announce: TypeAlias = Callable[[Phase, int | None], None]
"""Told of each phase as it begins, and which candidate is in it; None for all in turns."""


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Candidates of one workload to time side by side.

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
    """

    workload: str
    target: str
    traces: tuple[str, ...]
    num_rounds: int
    seed: int
    first_round: int = 0
    is_careful: bool = False
    limits: Limits | None = None
    request_id: str | None = None
    # No time is known that a finalist could be far from.
    incumbent_secs: None = None

    def __post_init__(self) -> None:
        """Take any sequence of traces."""
        object.__setattr__(self, "traces", tuple(self.traces))

    def rest(self, places: Sequence[int], first_round: int, *, is_careful: bool) -> CompareRequest:
        """Return the request for some of the candidates, from a later round on."""
        traces = tuple(self.traces[place] for place in places)
        return replace(self, traces=traces, first_round=first_round, is_careful=is_careful)

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
        return cls(**{**obj, "limits": None if limits is None else Limits(**limits)})

    @staticmethod
    def is_in(obj: Mapping[str, Any]) -> bool:
        """Tell whether a JSON object is such a request, or another one."""
        return "num_rounds" in obj


Build: TypeAlias = Callable[[PrimFunc, str, Target], Artifact]
"""Makes the artifact of a candidate."""


class FaultError(Exception):
    """A candidate went wrong; the cause says how."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


def compare(
    request: CompareRequest, prepared: Prepared, build: Build, announce: Announce
) -> Iterator[dict[int, Sequence[float]] | FaultError]:
    """Yield the samples of each candidate round by round; a fault instead where one drops out.

    After a fault its round begins again without the candidate. Nothing comes any more when all
    have dropped out, nor after `BATCH_SECS`: there is at least one round then.
    """
    side_by_side = SideBySide(request, prepared, announce)
    for place in range(len(request.traces)):
        try:
            side_by_side.build(place, build)
        except FaultError as fault:
            yield fault
    number, end = request.first_round, time.monotonic() + BATCH_SECS
    while number < request.num_rounds and side_by_side.num_candidates:
        try:
            yield side_by_side.round(number)
        except FaultError as fault:
            side_by_side.drop(fault.place)
            yield fault
        else:
            number += 1
            if time.monotonic() > end:
                return


class SideBySide:
    """Times artifacts in rounds; one that goes wrong is left out.

    Args:
        prepared: The workload with its expected result.
        announce: See `Announce`.
    """

    def __init__(self, request: CompareRequest, prepared: Prepared, announce: Announce) -> None:
        self._request = request
        self._arrays = prepared
        self._announce = announce
        self._artifacts: dict[int, Artifact] = {}
        self._checked: set[int] = set()

    @property
    def num_candidates(self) -> int:
        """How many are in."""
        return len(self._artifacts)

    def build(self, place: int, build: Build) -> None:
        """Build a candidate.

        Raises:
            FaultError: If it can't be built.
        """
        self._announce(Phase.BUILD, place)
        target = Target(self._request.target)
        try:
            self._artifacts[place] = build(self._arrays.func, self._request.traces[place], target)
        except Exception as error:
            raise FaultError(place) from error

    def drop(self, place: int) -> None:
        """Leave a candidate out."""
        del self._artifacts[place]

    def round(self, number: int) -> dict[int, Sequence[float]]:
        """Time those who are in; return the samples of each.

        Raises:
            FaultError: If a candidate goes wrong; the round does not count then.
        """
        rng = np.random.default_rng((self._request.seed, number))
        order = rng.permutation(list(self._artifacts)).tolist()
        # The arrays of the round before are still there, so these lie elsewhere.
        self._arrays = self._arrays.again()
        return self._take_turns({place: self._open(place) for place in order})

    def _open(self, place: int) -> _Run:
        """Load a candidate and run it once, which warms it up; the first time, check its result."""
        self._announce(Phase.CHECK, place)
        try:
            run = _Run(Module(self._artifacts[place]), self._arrays)
            if place not in self._checked:
                self._arrays.check()
                self._checked.add(place)
        except Exception as error:
            raise FaultError(place) from error
        return run

    def _take_turns(self, runs: Mapping[int, _Run]) -> dict[int, Sequence[float]]:
        self._announce(Phase.TIME, None)
        longest = max(run.first_secs for run in runs.values())
        num_turns = next(turns for secs, turns in _TURNS if longest >= secs)
        samples: dict[int, list[float]] = {place: [] for place in runs}
        order = list(runs)
        for _ in range(num_turns):
            for place in order:
                if self._request.is_careful:
                    self._announce(Phase.TIME, place)
                samples[place].append(runs[place].sample())
            order.reverse()
        return dict(samples)


class _Run:
    """A loaded candidate, bound to arrays."""

    def __init__(self, module: Module, arrays: Prepared) -> None:
        self._num_threads = module.num_threads
        self._run = module.bind(*arrays.fresh_arrays())
        self.first_secs = time_calls(self._run, self._num_threads, 1)
        self._calls = 0

    def sample(self) -> float:
        """Return the mean seconds a call over one turn."""
        if not self._calls:
            self._calls = calls_per_sample(self._run, self._num_threads, MIN_SAMPLE_SECS)
        return time_calls(self._run, self._num_threads, self._calls)
