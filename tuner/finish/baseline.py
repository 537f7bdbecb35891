"""The baseline: libraries that compute the same, timed beside the candidate that a finish kept.

They take turns with the kernel in rounds, as finalists do, so that both had the same arrays and the
same moments of the machine. In each round the logarithm of the ratio of their times is one number;
its centre and the interval around it are those that belong to the signed-rank test.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from compiler.runtime.measurement import Measurement
from tuner.finish.signed_rank import shift, shift_interval
from tuner.task import Task
from tuner.trial import Trial

NUM_ROUNDS = 10
"""So many rounds are asked for; a slow kernel has fewer."""
_ERROR_RATE = 0.05


class Rivals(Protocol):
    """Times a candidate and the libraries that compute the same side by side."""

    def against_libraries(
        self, task: Task, trial: Trial, num_rounds: int, seed: int
    ) -> Iterator[tuple[Measurement, Mapping[str, Measurement]]]:
        """Yield rounds: a measurement of the trial's candidate, and one of each library by name.

        The toolchain of a library's measurement is its name and version. A library that is not
        there, is wrong, crashes or takes far too long is an error, in each round from then on.
        There may be fewer rounds, and none if no library computes what the task does. The iterator
        may be closed before its end.
        """
        ...


@dataclass(frozen=True)
class Baseline:
    """A library beside the kernel.

    Attributes:
        library: Its name, such as "numpy".
        version: Its name and version as people say them.
        run_secs: The median over rounds, of the shortest sample of each.
        kernel_secs: The same of the kernel.
        speedup: How many times longer the library takes than the kernel.
        interval: Where that is with a confidence of 95%; none after too few rounds.
        worker: Where they ran.
        toolchain: What compiled the kernel.
    """

    library: str
    version: str
    run_secs: float
    kernel_secs: float
    speedup: float
    interval: tuple[float, float] | None
    worker: str
    toolchain: str


def _never() -> bool:
    return False


def against_libraries(
    task: Task,
    trial: Trial,
    rivals: Rivals,
    *,
    seed: int = 0,
    should_stop: Callable[[], bool] = _never,
) -> list[Baseline]:
    """Time libraries beside a trial's candidate; return those that were right, the fastest first.

    None come back where the candidate failed, or `should_stop` said so meanwhile.
    """
    kernel: list[Measurement] = []
    libraries: dict[str, list[Measurement]] = {}
    for own, others in rivals.against_libraries(task, trial, NUM_ROUNDS, seed):
        if should_stop() or not own.ok:
            return []
        kernel.append(own)
        for name, measured in others.items():
            libraries.setdefault(name, []).append(measured)
    right = {name: rounds for name, rounds in libraries.items() if all(m.ok for m in rounds)}
    found = [_baseline(name, rounds, kernel) for name, rounds in right.items()]
    return sorted(found, key=lambda baseline: baseline.speedup)


def _baseline(name: str, rounds: Sequence[Measurement], kernel: Sequence[Measurement]) -> Baseline:
    pairs = zip(rounds, kernel, strict=True)
    ratios = [math.log(theirs.best_secs / own.best_secs) for theirs, own in pairs]
    interval = tuple(map(math.exp, shift_interval(ratios, _ERROR_RATE)))
    is_known = math.isfinite(interval[1])
    return Baseline(
        library=name,
        version=rounds[-1].toolchain,
        run_secs=statistics.median(m.best_secs for m in rounds),
        kernel_secs=statistics.median(m.best_secs for m in kernel),
        speedup=math.exp(shift(ratios)),
        interval=(interval[0], interval[1]) if is_known else None,
        worker=rounds[-1].worker,
        toolchain=kernel[-1].toolchain,
    )
