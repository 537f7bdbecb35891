"""The best schedule of a task, and its kernel. Independent of HTTP."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass

from compiler.driver import toolchain
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from service.common.errors import ServiceNotFoundError
from service.common.new_workload import NewWorkload
from service.intake.request_validation import parse_target, read_workload
from service.schedules.kernel_builder import KernelBuilder, KernelRequest
from service.schedules.nearest import adapt_nearest
from service.store import artifacts, targets, workloads
from service.store.artifacts import ArtifactRow
from service.store.database.database import Database
from service.store.results import best_schedules, finals, toolchains
from service.store.results.best_schedules import BestSchedule, TaskKey
from service.store.trials import trials
from service.wire.models import BestRead
from service.wire.requests import ScheduleQuery


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel to build or built already: its program, and the origin of its schedule.

    `key` is a digest of everything that the kernel depends on. `best` is None for the default
    schedule.
    """

    key: str
    request: KernelRequest
    workload: NewWorkload
    label: str
    toolchain: str
    best: BestRead | None

    @property
    def schedule(self) -> str:
        """Return the origin of its schedule: `best`, `nearest` (another shape) or `default`."""
        if self.best is None:
            return "default"
        return "best" if self.best.nearest is None else "nearest"


def find_best(
    database: Database, workload_key: str, target: str, operator: str | None = None
) -> BestRead:
    """Return the best schedule of a workload on a target.

    Args:
        operator: The workload as the user wrote it, for the message of an error.

    Raises:
        ServiceNotFoundError: If the workload has no correct measurement; the message says what to
            do.
    """
    best = _best(database, workload_key, target)
    if best is None:
        raise ServiceNotFoundError(
            f"no schedule of {_named(workload_key, operator)} on target {target!r}",
            advice="submit a job, or request the nearest shape (`nearest`)",
        )
    return best


def find_nearest(
    database: Database, workload: NewWorkload, target: Target, operator: str | None = None
) -> BestRead:
    """Return the best schedule of a workload, or the adapted one of the nearest shape.

    Args:
        operator: See `find_best`.

    Raises:
        ServiceNotFoundError: If no shape of the operator has a schedule that fits; the message says
            what to do.
    """
    best = _best(database, workload.key, target.name)
    best = best or adapt_nearest(database, workload, target)
    if best is None:
        raise ServiceNotFoundError(
            f"no schedule of {_named(workload.key, operator)} on target {target.name!r}, nor "
            "one of another shape of its operator that fits",
            advice="submit a job",
        )
    return best


def _named(workload_key: str, operator: str | None) -> str:
    return operator or f"workload {workload_key[:12]}"


def find_nearest_by_key(database: Database, workload_key: str, target: Target) -> BestRead:
    """Return the result of `find_nearest` for the key of a stored workload.

    Raises:
        ServiceNotFoundError: If the workload is unknown, or no schedule fits.
    """
    with database.read() as session:
        workload = workloads.find(session, workload_key)
    if workload is None:
        raise ServiceNotFoundError(
            f"no workload {workload_key[:12]} is known, so that its shape is not either; "
            "post its text to this address instead"
        )
    return find_nearest(database, workload, target)


def plan_kernel(database: Database, query: ScheduleQuery, *, fallback: bool) -> BuiltKernel:
    """Return the kernel that answers a query, without building it.

    Args:
        fallback: Whether to use the default schedule if nothing was measured.

    Raises:
        UnprocessableError: If the workload or the target is invalid.
        ServiceNotFoundError: If nothing was measured, and `fallback` is False.
    """
    workload, target = read_workload(query.workload), parse_target(query.target)
    best: BestRead | None = None
    try:
        if query.nearest:
            best = find_nearest(database, workload, target)
        else:
            best = find_best(database, workload.key, target.name)
    except ServiceNotFoundError:
        if not fallback:
            raise
    trace = Trace().to_json() if best is None else dict(best.trace)
    made_by = toolchain(target.kind)
    parts = [workload.key, target.name, made_by, json.dumps(trace, sort_keys=True)]
    return BuiltKernel(
        key=hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        request=KernelRequest(workload.script, trace, target.name),
        workload=workload,
        label=target.label,
        toolchain=made_by,
        best=best,
    )


def fetch_kernel(database: Database, builder: KernelBuilder, kernel: BuiltKernel) -> bytes:
    """Return the artifact of a kernel: the stored one, or a new one.

    Raises:
        UnprocessableError: If the compiler refuses the program.
        BuildFailedError: If the compiler crashes, or takes too long.
        ServiceBusyError: If too many kernels wait to be built.
    """
    with database.read() as session:
        stored = artifacts.find(session, kernel.key)
    if stored is not None:
        return stored
    content = builder.build(kernel.request)
    with database.write() as session:
        workloads.ensure(session, kernel.workload)
        targets.ensure(session, kernel.request.target, kernel.label)
        artifacts.keep(
            session,
            ArtifactRow(
                key=kernel.key,
                workload_key=kernel.workload.key,
                target=kernel.request.target,
                toolchain=kernel.toolchain,
                content=content,
            ),
        )
    return content


def find_all_best(database: Database, tasks: Collection[TaskKey]) -> dict[TaskKey, BestRead]:
    """Return the best schedules of those tasks that have one, by a few statements for all."""
    with database.read() as session:
        schedules = best_schedules.find_all(session, tasks)
        made_by = (
            finals.toolchains_of(session, [best.trial for best in schedules]) if schedules else {}
        )
    return {
        (best.row.workload_key, best.row.target): _read(
            best, made_by[best.trial.job_id, best.trial.number]
        )
        for best in schedules
    }


def _best(database: Database, workload_key: str, target: str) -> BestRead | None:
    task = workload_key, target
    return find_all_best(database, [task]).get(task)


def _read(best: BestSchedule, made_by: str) -> BestRead:
    """Return a best schedule as the API shows it, with the toolchain that measured it last."""
    trial, job, row = best
    default = job.default_time
    return BestRead(
        workload_key=row.workload_key,
        target=row.target,
        run_secs=row.run_secs,
        interval=row.interval,
        provisional_secs=trial.best_secs,
        default_secs=default.secs,
        default_interval=default.interval,
        default_provisional_secs=default.provisional_secs,
        trace=trial.trace,
        job_id=job.id,
        trial_number=trial.number,
        provenance={**trials.provenance(trial), "toolchain": made_by},
        baseline=best.baseline,
        is_outdated=toolchains.is_outdated(made_by),
    )
