"""`lw.lock`: write tuned schedules to a lock file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import loopwright
from compiler.backends.backend import host_labels
from compiler.driver import compile_kernel
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.trace import Trace
from compiler.script import parse
from compiler.target.target import Target
from loopwright.client.best import Best
from loopwright.errors import LockError
from loopwright.locks.lock_file import LockedKernel, LockFile, TimeRecord, script_lines
from loopwright.locks.locked_kernel import code_digest, refused
from loopwright.workload import WorkloadLike, to_func
from service.wire.times import RunTime

if TYPE_CHECKING:
    from loopwright.local.tune_result import TuneResult


@runtime_checkable
class ScheduledPrograms(Protocol):
    """A compiled model: programs with their schedules, for one target."""

    def schedules(self) -> Iterable[tuple[PrimFunc, Target, Trace]]:
        """Return each program once."""
        ...


Tuned: TypeAlias = "TuneResult | tuple[WorkloadLike, Best] | ScheduledPrograms"


def lock(path: str | Path, *results: Tuned) -> tuple[LockedKernel, ...]:
    """Add the kernels of tuned schedules to a lock file, which is made if it does not exist.

    A kernel of the same function and target is replaced; other kernels stay.

    Args:
        path: The lock file.
        results: Results of `lw.tune`, pairs of a workload and its `client.best`, or models of
            `lw.compile`, whose programs have no recorded times.

    Returns:
        The added kernels.

    Raises:
        LockError: If the file is damaged, a schedule is not of its workload, or was not measured on
            it.
        ScheduleError: If a schedule does not fit its function.
        BuildError: If a kernel can't be built.
        OSError: If the file can't be written.
    """
    file = LockFile.load(path) if Path(path).exists() else LockFile()
    kernels = tuple(kernel for result in results for kernel in _locked(result))
    file.with_kernels(kernels).save(path)
    return kernels


def rebuild_lock(path: str | Path) -> list[str]:
    """Build all kernels of a lock file with this version, and write their digests.

    Schedules and recorded times stay.

    Returns:
        A line for each kernel that changed.

    Raises:
        LockError: If the file is damaged, or this version refuses a schedule.
        OSError: If the file can't be written.
    """
    file = LockFile.load(path)
    rebuilt = [_rebuilt(kernel) for kernel in file.kernels]
    file.with_kernels(rebuilt).save(path)
    return [
        f"rebuilt {old.label}: {old.toolchain} -> {new.toolchain}"
        for old, new in zip(file.kernels, rebuilt, strict=True)
        if old != new
    ]


def function_of(entry: LockedKernel) -> PrimFunc:
    """Return the function of a locked kernel.

    Raises:
        LockError: If its text is of another function.
    """
    func = parse("\n".join(entry.script))
    if structural_hash(func) != entry.workload_key:
        raise LockError(f"{entry.label}: its script is of another function than its key")
    return func


def _rebuilt(entry: LockedKernel) -> LockedKernel:
    try:
        return lock_schedule(function_of(entry), Target(entry.target), entry.schedule, entry.record)
    except ScheduleError as error:
        raise refused(entry, error) from error


def _locked(result: Tuned) -> list[LockedKernel]:
    if isinstance(result, tuple):
        workload, best = result
        return [_locked_best(to_func(workload), Target(best.record.target), best)]
    if isinstance(result, ScheduledPrograms):
        return [
            lock_schedule(func, target, trace, None) for func, target, trace in result.schedules()
        ]
    return [_locked_result(result)]


def _locked_result(result: TuneResult) -> LockedKernel:
    best_trial = result.best
    measurement = best_trial.measurement
    record = _record(
        best_trial.time,
        result.default_time,
        measurement.worker,
        measurement.toolchain,
        None,
    )
    return lock_schedule(result.func, result.target, best_trial.trace, record)


def _locked_best(func: PrimFunc, target: Target, best: Best) -> LockedKernel:
    if best.nearest is not None or best.record.workload_key != structural_hash(func):
        raise LockError(
            f"the schedule of {func.name} was not measured on it, but on workload"
            f" {best.record.workload_key[:12]}: tune {func.name} first"
        )
    provenance = best.provenance
    record = _record(
        best.record.best_time,
        best.record.default_time,
        str(provenance["worker"]),
        str(provenance["toolchain"]),
        datetime.fromisoformat(str(provenance["measured_at"])).astimezone(UTC),
    )
    return lock_schedule(func, target, best.trace, record)


def lock_schedule(
    func: PrimFunc, target: Target, trace: Trace, record: TimeRecord | None
) -> LockedKernel:
    """Return the locked kernel of a schedule.

    Raises:
        ScheduleError: If the schedule does not fit the function.
        BuildError: If it can't be built.
    """
    artifact = compile_kernel(trace.apply_to(func), target)
    # For another CPU than this one, instructions of a psABI level are used: that host has more.
    is_of_this_host = target.label in host_labels()
    return LockedKernel(
        name=func.name,
        target=target.name,
        workload_key=structural_hash(func),
        loopwright=loopwright.__version__,
        toolchain=artifact.toolchain,
        code_sha256=code_digest(artifact) if is_of_this_host else None,
        record=record,
        script=script_lines(func),
        trace_key=trace.key(),
        trace=json.loads(json.dumps(trace.to_json())),
    )


def _record(
    best: RunTime, default: RunTime, worker: str, toolchain: str, measured_at: datetime | None
) -> TimeRecord | None:
    if not best.secs or best.kind is None:
        return None
    default_secs = default.of(best.kind)
    return TimeRecord(
        run_secs=_rounded(best.secs),
        kind=best.kind,
        interval=best.interval and (_rounded(best.interval[0]), _rounded(best.interval[1])),
        default_secs=_rounded(default_secs) if default_secs else None,
        worker=worker,
        toolchain=toolchain,
        measured_at=None if measured_at is None else measured_at.isoformat(timespec="seconds"),
    )


def _rounded(secs: float) -> float:
    """Return a time with six digits: no measurement has more."""
    return float(f"{secs:.6g}")
