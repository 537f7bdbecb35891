"""Workers by their last reports, and their health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import JSON, Integer, String, delete, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from compiler.executor.cores import available_cores
from service.store import targets, worker_samples
from service.store.database.base import Base, UtcDateTime, enum_column, utc_now
from service.store.database.bulk import insert_rows, update_rows
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from service.wire.server_models import Canary, DeviceRead, WorkerRead, WorkerState, WorkerTask
from workers.engine.engine import WorkerFacts

LOST_AFTER_SECS = 60.0
"""A worker without a report for so long is lost: Dask's `worker-ttl` in
`workers/engine/dask_settings.py`.
"""
_SEPARATE_FACTS = frozenset({"task", "sample", "utilisation", "device"})


class WorkerRow(Base):
    """A worker process on a host, and earlier processes of the same name."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    host: Mapped[str] = mapped_column(String(255))
    label: Mapped[str] = mapped_column(String(255))
    state: Mapped[WorkerState] = mapped_column(enum_column(WorkerState))
    last_seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)
    jobs_lost: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    restarts: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))


def record_facts(session: Session, seen: Sequence[WorkerFacts]) -> None:
    """Store the facts that an engine reports of its workers."""
    names = [worker.name for worker in seen]
    columns = (WorkerRow.name, WorkerRow.state, WorkerRow.jobs_lost, WorkerRow.restarts)
    query = select(*columns, WorkerRow.facts["pid"].as_integer().label("pid"))
    stored = {row.name: row for row in session.execute(query.where(WorkerRow.name.in_(names)))}
    new: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    peaks: dict[str, dict[str, float]] = {}
    for worker in seen:
        row = stored.get(worker.name)
        (new if row is None else changed).append(_reported(worker, row))
        peaks.setdefault(worker.label, {}).update(worker.facts.get("peak_flops", {}))
    table: Any = WorkerRow.__table__
    if new:
        insert_rows(session, table, new)
    if changed:
        update_rows(session, table, "name", changed)
    for label, peaks_of_label in peaks.items():
        if peaks_of_label:
            targets.learn_peaks(session, label, peaks_of_label)
    samples = {worker.name: worker.facts.get("sample") for worker in seen}
    worker_samples.keep(session, {name: sample for name, sample in samples.items() if sample})


def _reported(worker: WorkerFacts, stored: Any) -> dict[str, Any]:
    """Return the row of a worker that is seen; `stored` has columns of its row, or is None."""
    is_replaced = (
        stored is not None and stored.state is not WorkerState.RESTING and stored.pid != worker.pid
    )
    was_busy = is_replaced and stored.state is WorkerState.BUSY
    return {
        "name": worker.name,
        "host": worker.host,
        "label": worker.label,
        "state": WorkerState.BUSY if worker.is_busy else WorkerState.IDLE,
        "last_seen_at": datetime.fromtimestamp(worker.last_seen, UTC),
        "facts": {**worker.facts, "pid": worker.pid},
        "jobs_lost": (0 if stored is None else stored.jobs_lost) + was_busy,
        "restarts": (0 if stored is None else stored.restarts) + is_replaced,
    }


def forget_lost(session: Session, *, after: timedelta = timedelta(hours=1)) -> None:
    """Delete workers that have not reported for a long time.

    Resting workers are kept as long as their samples are.
    """
    is_resting = WorkerRow.state == WorkerState.RESTING
    for is_such, patience in ((~is_resting, after), (is_resting, worker_samples.KEPT)):
        is_old = WorkerRow.last_seen_at < utc_now() - patience
        session.execute(delete(WorkerRow).where(is_such, is_old))
    worker_samples.forget_old(session)


def record_resting(session: Session, names: Sequence[str]) -> None:
    """Store that workers were shut down."""
    for name in names:
        if (row := session.get(WorkerRow, name)) is not None:
            row.state = WorkerState.RESTING


def all_workers(session: Session) -> list[WorkerRead]:
    """Return all workers by name; one without a report for a minute is lost, unless it rests."""
    running = _running(session)
    rows = session.scalars(select(WorkerRow).order_by(WorkerRow.name))
    return [_read(row, worker_samples.of(session, row.name), running) for row in rows]


def states(session: Session) -> list[WorkerState]:
    """Return the state of each worker."""
    rows = session.execute(select(WorkerRow.state, WorkerRow.last_seen_at))
    return [_state(state, last_seen_at) for state, last_seen_at in rows]


def served(session: Session, *, now: bool) -> dict[str, int]:
    """Return each kind of target that workers serve, and the cores of the smallest such host.

    Any of them may get a job for its kind. One that refuses work serves nothing.

    Args:
        now: Omit lost and resting workers.
    """
    cores_by_label: dict[str, int] = {}
    for row in session.scalars(select(WorkerRow)):
        is_there = _state(row.state, row.last_seen_at) in {WorkerState.BUSY, WorkerState.IDLE}
        if "refuses" not in row.facts and (is_there or not now):
            # Workers of earlier versions, which do not report it, serve the cores of their own
            # host.
            cores = int(row.facts.get("num_cores", available_cores()))
            cores_by_label[row.label] = min(cores, cores_by_label.get(row.label, cores))
    return cores_by_label


def labels_now(session: Session) -> set[str]:
    """Return the kinds of target that connected workers serve; see `served`."""
    is_there = WorkerRow.state.in_((WorkerState.BUSY, WorkerState.IDLE)) & (
        WorkerRow.last_seen_at >= utc_now() - timedelta(seconds=LOST_AFTER_SECS)
    )
    accepts_work = WorkerRow.facts["refuses"].as_string().is_(None)
    return set(session.scalars(select(WorkerRow.label).where(is_there, accepts_work).distinct()))


def _read(
    row: WorkerRow, canary: Canary, running: Mapping[tuple[str, str], UUID | None]
) -> WorkerRead:
    state = _state(row.state, row.last_seen_at)
    details = row.facts.get("task") if state in {WorkerState.BUSY, WorkerState.IDLE} else None
    job_id = running.get((details["workload"], details["target"])) if details else None
    return WorkerRead(
        name=row.name,
        host=row.host,
        label=row.label,
        device=_device(row.facts.get("device")),
        state=state,
        last_seen_at=row.last_seen_at,
        task=WorkerTask(**details, job_id=job_id) if details else None,
        utilisation=row.facts.get("utilisation"),
        jobs_lost=row.jobs_lost,
        restarts=row.restarts,
        canary=canary,
        facts={name: fact for name, fact in row.facts.items() if name not in _SEPARATE_FACTS},
    )


def _device(facts: object) -> DeviceRead | None:
    """Read the facts of a device, which a worker reports; None if they are no such facts."""
    try:
        return DeviceRead.model_validate(facts)
    except ValidationError:
        return None


def _state(stored_state: WorkerState, last_seen_at: datetime) -> WorkerState:
    is_late = last_seen_at < utc_now() - timedelta(seconds=LOST_AFTER_SECS)
    return WorkerState.LOST if is_late and stored_state is not WorkerState.RESTING else stored_state


def _running(session: Session) -> dict[tuple[str, str], UUID | None]:
    """Return the running job of each workload's name and target; None if several run."""
    running_jobs: dict[tuple[str, str], UUID | None] = {}
    query = select(JobRow.id, JobRow.workload_name, JobRow.target).where(
        JobRow.state == JobState.RUNNING
    )
    for job_id, name, target in session.execute(query):
        running_jobs[name, target] = None if (name, target) in running_jobs else job_id
    return running_jobs
