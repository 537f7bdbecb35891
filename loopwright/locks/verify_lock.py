"""Time locked kernels again, beside their records.

The time of a kernel alone does not say whether the kernel or the machine is slow. So the default
schedule is timed in the same rounds, if its time was recorded too: its time now, divided by its
recorded time, is the slowdown of the machine. A kernel counts as slower only if it is slower than
its record, and if it is also slower relative to the default schedule.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel

from compiler.backends.backend import host_targets
from compiler.runtime.measurement import Measurement
from compiler.target.target import Target
from loopwright.errors import LockError
from loopwright.locks.lock import function_of
from loopwright.locks.lock_file import LockedKernel, LockFile, TimeRecord
from loopwright.locks.locked_kernel import build_locked
from service.wire.times import Interval, TimeKind
from tuner.candidate import Candidate, default_candidate
from tuner.finish.contest import ERROR_RATE
from tuner.finish.signed_rank import median_interval, shift, shift_interval
from tuner.measurer.comparer import Comparer
from tuner.task import Task

BOUND = 1.25
"""The usual limit on a slowdown. Where arrays lie in memory alone can make a quarter of the time
(`tuner.finish.finish`).
"""
NUM_ROUNDS = 16
"""Rounds of each kernel: the second analysis of a final comparison has as many."""
_MAX_DEFAULT_SECS = 0.15
"""A default schedule with longer runs is not timed beside the kernel: it would take 7 s. Chosen."""


class LockVerdict(StrEnum):
    """The result for one kernel."""

    OK = "ok"  # not slower than the bound
    SLOWER = "slower"  # slower than the bound, with 95% confidence
    UNCLEAR = "unclear"  # the bound is within the interval of the slowdown
    FAILED = "failed"  # it crashes, or gives a wrong result
    NOT_COMPARED = "not_compared"  # `reason` says why


class KernelCheck(BaseModel):
    """The times of one kernel beside its record; null if it was not timed.

    Attributes:
        run_secs: The median over rounds.
        interval: Its 95% interval.
        slowdown: `run_secs` divided by the recorded time.
        relative_slowdown: The same, divided by the slowdown of the machine; null without a recorded
            time of the default schedule.
        machine_slowdown: The time of the default schedule divided by its recorded time.
    """

    name: str
    workload_key: str
    target: str
    verdict: LockVerdict
    reason: str | None = None
    record: TimeRecord | None
    worker: str | None = None
    run_secs: float | None = None
    interval: Interval | None = None
    slowdown: float | None = None
    slowdown_interval: Interval | None = None
    relative_slowdown: float | None = None
    relative_interval: Interval | None = None
    machine_slowdown: float | None = None


def verify_lock(
    path: str | Path, comparer: Comparer, bound: float = BOUND
) -> Iterator[KernelCheck]:
    """Yield the check of each kernel of a lock file.

    Args:
        path: The lock file.
        comparer: Times kernels on this host.
        bound: The largest slowdown that is accepted, such as 1.25.

    Raises:
        LockError: If the file is damaged, was written with another compiler, or has no kernel with
            a confirmed time for this host.
    """
    reasons = [(kernel, _not_compared(kernel)) for kernel in LockFile.load(path).kernels]
    if all(reason is not None for _, reason in reasons):
        listed = "; ".join(f"{kernel.label}: {reason}" for kernel, reason in reasons)
        raise LockError(f"no kernel of {path} can be compared here: {listed or 'it is empty'}")
    for kernel, reason in reasons:
        if reason is not None:
            yield _check(kernel, LockVerdict.NOT_COMPARED, reason=reason)
        else:
            yield _timed(kernel, comparer, bound, str(path))


def _not_compared(kernel: LockedKernel) -> str | None:
    """Return why a kernel can't be compared with its record on this host; None if it can."""
    target = Target(kernel.target)
    same = [here for here in host_targets() if here.label == target.label]
    if not same:
        return f"it is locked for {target.label}, which this host does not have"
    if target.num_cores > same[0].num_cores:
        return f"it is locked for {target.num_cores} cores; this process has {same[0].num_cores}"
    if kernel.record is None or kernel.record.kind is not TimeKind.CONFIRMED:
        kind = "no time" if kernel.record is None else f"a time that is {kernel.record.kind}"
        return f"it has {kind}: only confirmed times are compared"
    return None


def _timed(kernel: LockedKernel, comparer: Comparer, bound: float, path: str) -> KernelCheck:
    record = kernel.record
    assert record is not None
    func = function_of(kernel)
    build_locked(kernel, func, path, use_cache=False)  # it is the locked kernel that is timed
    task = Task(func, Target(kernel.target))
    candidates = [Candidate("locked", kernel.schedule)]
    has_reference = (record.default_secs or math.inf) <= _MAX_DEFAULT_SECS
    if has_reference and kernel.schedule.instructions:
        candidates.append(default_candidate())
    rounds = list(zip(*comparer.compare(task, candidates, NUM_ROUNDS, seed=0), strict=True))
    for measurement in rounds[0]:
        if not measurement.ok:
            reason = f"{measurement.error}: {measurement.message}"
            return _check(kernel, LockVerdict.FAILED, reason=reason, worker=measurement.worker)
    return _compared(kernel, record, rounds, bound)


def _compared(
    kernel: LockedKernel,
    record: TimeRecord,
    rounds: Sequence[Sequence[Measurement]],
    bound: float,
) -> KernelCheck:
    secs = [measurement.best_secs for measurement in rounds[0]]
    run_secs, interval = statistics.median(secs), median_interval(secs)
    least, most = record.interval or (record.run_secs, record.run_secs)
    slowdown_interval = (interval[0] / most, interval[1] / least)
    check = _check(
        kernel,
        _verdict([slowdown_interval], bound),
        worker=rounds[0][-1].worker,
        run_secs=run_secs,
        interval=interval,
        slowdown=run_secs / record.run_secs,
        slowdown_interval=slowdown_interval,
    )
    if len(rounds) < 2 or record.default_secs is None or not all(m.ok for m in rounds[1]):
        return check
    references = [measurement.best_secs for measurement in rounds[1]]
    recorded = math.log(record.run_secs / record.default_secs)
    ratios = [
        math.log(now / reference) - recorded
        for now, reference in zip(secs, references, strict=True)
    ]
    low, high = shift_interval(ratios, ERROR_RATE)
    relative_interval = (math.exp(low), math.exp(high))
    return check.model_copy(
        update={
            "verdict": _verdict([slowdown_interval, relative_interval], bound),
            "relative_slowdown": math.exp(shift(ratios)),
            "relative_interval": relative_interval,
            "machine_slowdown": statistics.median(references) / record.default_secs,
        }
    )


def _verdict(intervals: Sequence[Interval], bound: float) -> LockVerdict:
    """Return the verdict on slowdowns, each of which must exceed the bound."""
    if any(high <= bound for _, high in intervals):
        return LockVerdict.OK
    is_slower = all(low > bound for low, _ in intervals)
    return LockVerdict.SLOWER if is_slower else LockVerdict.UNCLEAR


def _check(kernel: LockedKernel, verdict: LockVerdict, **fields: object) -> KernelCheck:
    return KernelCheck.model_validate(
        {
            "name": kernel.name,
            "workload_key": kernel.workload_key,
            "target": kernel.target,
            "verdict": verdict,
            "record": kernel.record,
            **fields,
        }
    )
