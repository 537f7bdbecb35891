"""The baselines: libraries that compute the same, timed beside the winner of the final comparison.

They take turns with the kernel in rounds, as finalists do, so that both run under the same
conditions of the machine. In each round the logarithm of the ratio of their times is one number.
The centre and the interval of these numbers are those of the signed-rank test. A rate above the
peak of the cores is an error of the clock, and is not recorded as a baseline.
"""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from compiler.backends.backend import backend_of
from compiler.ir.analysis.flops import flops
from compiler.ir.analysis.products import main_dtype
from compiler.runtime.measurement import LibraryFacts, Measurement, Setting
from tuner.finish.signed_rank import shift, shift_interval
from tuner.task import Task
from tuner.trial import MeasuredTrial

NUM_ROUNDS = 10
"""Rounds of a comparison with libraries, fewer for a slow kernel. An interval of 95% requires six
(`tuner.finish.signed_rank`); ten is the first analysis of a finish. Chosen.
"""
_ERROR_RATE = 0.05
"""The error rate of the interval of a speed-up: the usual 5%."""
_MOST_OF_PEAK = 1.05
"""A rate above this multiple of the measured peak is rejected. The peak is measured too, possibly
on a busy host, so a rate may exceed it a little. Chosen.
"""
_log = logging.getLogger(__name__)


class BaselineMeasurer(Protocol):
    """Times a candidate and the libraries that compute the same side by side."""

    def measure_baselines(
        self, task: Task, trial: MeasuredTrial, num_rounds: int, seed: int
    ) -> Iterator[tuple[Measurement, Mapping[str, Measurement]]]:
        """Yield rounds: a measurement of the trial's candidate, and one of each library by name.

        The toolchain of a library's measurement is its name and version. A library that is not
        installed, computes wrong results, crashes or takes far too long is an error, in each round
        from then on. There may be fewer rounds, and none if no library computes the task. The
        iterator may be closed before its end.
        """
        ...


@dataclass(frozen=True)
class Baseline:
    """A library beside the kernel.

    Attributes:
        library: Its name, such as "numpy".
        version: Its name and version for display.
        run_secs: The median over rounds, of the shortest sample of each.
        kernel_secs: The same of the kernel.
        speedup: The time of the library over that of the kernel.
        interval: The 95% confidence interval of the speed-up; None after too few rounds.
        worker: The worker that measured.
        toolchain: The toolchain of the kernel.
        kernel_set: The code that the library chose for this CPU, such as "Haswell"; empty if
            unknown.
        setting: The fastest of its settings, in words: the one that was timed.
        tried: All of its settings.
        is_below_cpu: Whether no setting used all of the CPU's instruction set.
        share_of_peak: The library's share of the measured peak of the cores; None if either is
            unknown.
    """

    library: str
    version: str
    run_secs: float
    kernel_secs: float
    speedup: float
    interval: tuple[float, float] | None
    worker: str
    toolchain: str
    kernel_set: str = ""
    setting: str = ""
    tried: tuple[Setting, ...] = ()
    is_below_cpu: bool = False
    share_of_peak: float | None = None


def _never() -> bool:
    return False


def measure_baselines(
    task: Task,
    trial: MeasuredTrial,
    measurer: BaselineMeasurer,
    *,
    seed: int = 0,
    should_stop: Callable[[], bool] = _never,
) -> list[Baseline]:
    """Time libraries beside a trial's candidate; return the correct ones, fastest first.

    The result is empty if the candidate failed, if `should_stop` returned true meanwhile, or if the
    candidate's time is below the limit of the measured peak.
    """
    kernel: list[Measurement] = []
    libraries: dict[str, list[Measurement]] = {}
    for kernel_round, others in measurer.measure_baselines(task, trial, NUM_ROUNDS, seed):
        if should_stop() or not kernel_round.ok:
            return []
        kernel.append(kernel_round)
        for name, measured in others.items():
            libraries.setdefault(name, []).append(measured)
    correct = {name: rounds for name, rounds in libraries.items() if all(m.ok for m in rounds)}
    baselines = [_baseline(task, name, rounds, kernel) for name, rounds in correct.items()]
    credible = [b for b in baselines if _is_possible(task, trial, b)]
    return sorted(credible, key=lambda baseline: baseline.speedup)


def _baseline(
    task: Task, name: str, rounds: Sequence[Measurement], kernel: Sequence[Measurement]
) -> Baseline:
    facts = rounds[-1].library or LibraryFacts()
    run_secs = statistics.median(m.best_secs for m in rounds)
    peak_flops = _peak(task, facts)
    pairs = zip(rounds, kernel, strict=True)
    ratios = [
        math.log(library_round.best_secs / kernel_round.best_secs)
        for library_round, kernel_round in pairs
    ]
    interval = tuple(map(math.exp, shift_interval(ratios, _ERROR_RATE)))
    is_known = math.isfinite(interval[1])
    return Baseline(
        library=name,
        version=rounds[-1].toolchain,
        run_secs=run_secs,
        kernel_secs=statistics.median(m.best_secs for m in kernel),
        speedup=math.exp(shift(ratios)),
        interval=(interval[0], interval[1]) if is_known else None,
        worker=rounds[-1].worker,
        toolchain=kernel[-1].toolchain,
        kernel_set=facts.kernel_set,
        setting=facts.setting,
        tried=facts.tried,
        is_below_cpu=facts.is_below_cpu,
        share_of_peak=None if peak_flops is None else flops(task.func) / run_secs / peak_flops,
    )


def _peak(task: Task, facts: LibraryFacts) -> float | None:
    """Return the peak rate of the cores for the program's type; None if it is unknown."""
    dtype = main_dtype(task.func)
    if facts.peak_flops is None or dtype is None:
        return None
    share = backend_of(task.target).peak_share(task.target, dtype)
    return None if share is None else facts.peak_flops * share


def _is_possible(task: Task, trial: MeasuredTrial, baseline: Baseline) -> bool:
    """Return whether both rates are within the peak, as far as it is known."""
    share = baseline.share_of_peak
    if share is None:
        return True
    of_kernel = share * baseline.run_secs / baseline.kernel_secs
    if of_kernel > _MOST_OF_PEAK:
        of_kernel *= _share_of_operations(task, trial)
    is_possible = max(share, of_kernel) <= _MOST_OF_PEAK
    if not is_possible:
        _log.warning(
            "%s: the baseline %s is left out: %.0f%% and %.0f%% of the measured peak",
            *(task.func.name, baseline.library, 100 * share, 100 * of_kernel),
        )
    return is_possible


def _share_of_operations(task: Task, trial: MeasuredTrial) -> float:
    """Return the share of the program's operations that a candidate does: Winograd's tiles save."""
    scheduled = trial.candidate.trace.apply_to(task.func).func
    return min(1.0, flops(scheduled) / flops(task.func))
