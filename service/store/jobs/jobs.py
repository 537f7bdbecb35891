"""Jobs: the tuning requests of users, and their states.

    queued --claim--> running --finish--> succeeded | failed | cancelled
     |  ^                |  ^                                |
     |  |                |  +-- claimed again when its lease ran out or its owner is gone
     |  +----release-----+   (an orderly shutdown, or a budget that grew)
     |  +------------------ resume, or a larger budget ------+
     +--cancel, stop--> cancelled

Only the owner of the lease moves a running job on: `service.store.jobs.leases` holds its moves, and
`service.store.jobs.controls` those of users.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from sqlalchemy import (
    JSON,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    false,
    func,
    select,
    text,
)
from sqlalchemy.orm import Mapped, Session, column_property, mapped_column, relationship

from service.common import request_ids
from service.common.errors import ServiceNotFoundError
from service.store import targets, webhooks, workloads
from service.store.database.base import Base, UtcDateTime, enum_column, utc_now
from service.store.jobs import baselines, events
from service.store.jobs.baselines import BaselineRow
from service.store.shapes import ShapesRow
from service.store.targets import TargetRow
from service.store.webhooks import WebhookRow
from service.store.workloads import WorkloadRow
from service.wire.models import BaselineRead, EventKind, JobRead, JobState, WebhookRead
from service.wire.requests import Strategy
from service.wire.times import RunTime
from tuner.finish.contest import Outcome
from tuner.loop.budget import Budget, StopReason
from tuner.loop.progress import sparkline

if TYPE_CHECKING:
    from service.store.results.finals import FinalRow


def _read_with(column: Any, key: Any, foreign_key: Any) -> Any:
    """Return a column of the row that a job refers to, as a column of the job."""
    query = (
        select(column).where(key == foreign_key).correlate_except(column.class_).scalar_subquery()
    )
    # These columns never change while a job is written, and are read after its session has ended.
    return column_property(query, expire_on_flush=False)


class JobRow(Base):
    """A tuning job; its counters change in the transaction that adds its trials."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_state_created_at", "state", "created_at"),
        Index("ix_jobs_created_at_id", "created_at", "id"),
        Index("ix_jobs_workload_key_target", "workload_key", "target"),
        Index("ix_jobs_group_id", "group_id"),
        Index("ix_jobs_progress_at", "progress_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    state: Mapped[JobState] = mapped_column(enum_column(JobState))
    workload_key: Mapped[str] = mapped_column(ForeignKey("workloads.key"))
    workload_name: Mapped[str] = mapped_column(String(255))
    target: Mapped[str] = mapped_column(ForeignKey("targets.name"))
    max_trials: Mapped[int] = mapped_column(Integer)
    max_secs: Mapped[float | None]
    plateau: Mapped[int | None] = mapped_column(Integer)
    seed: Mapped[int] = mapped_column(Integer)
    strategy: Mapped[Strategy] = mapped_column(enum_column(Strategy))
    rules: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    num_measured: Mapped[int] = mapped_column(Integer, default=0)
    best_secs: Mapped[float | None]
    best_low_secs: Mapped[float | None]
    best_high_secs: Mapped[float | None]
    default_secs: Mapped[float | None]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    stop_reason: Mapped[StopReason | None] = mapped_column(enum_column(StopReason))
    error: Mapped[str | None] = mapped_column(Text)
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    owner: Mapped[str | None] = mapped_column(String(64))  # the name of a token
    request_id: Mapped[str | None] = mapped_column(String(64))  # of the request that submitted it
    lease_owner: Mapped[str | None] = mapped_column(String(255))  # a `service.common.owner.Owner`
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # See `service.store.jobs.blame`: claims and crashes since the last trial, ...
    fruitless_claims: Mapped[int] = mapped_column(Integer, default=0)
    crashes: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    claimed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    retry_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # not claimed before
    progress_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # ... and when that was
    # The time for which owners have run it, in seconds.
    active_secs: Mapped[float] = mapped_column(default=0.0, server_default=text("0"))
    active_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # up to which that is counted
    priority: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    group_id: Mapped[UUID | None] = mapped_column()  # of the jobs that it shares trials with
    weight: Mapped[float] = mapped_column(default=1.0, server_default=text("1"))  # among them
    # Texts of the user, to find the job.
    name: Mapped[str | None] = mapped_column(String(255))
    note: Mapped[str | None] = mapped_column(Text)
    tags: Mapped[list[str]] = mapped_column(JSON, default=list, server_default=text("'[]'"))
    webhook_id: Mapped[UUID | None]  # of the job, or of its group
    # The text of a `service.wire.windows.Window`. PostgreSQL has the word `window` for itself.
    window: Mapped[str | None] = mapped_column("window_text", String(100), key="window")
    stop_requested: Mapped[bool] = mapped_column(default=False, server_default=false())
    # The number of trials when a user raised the limit after a plateau.
    plateau_from: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    num_finishes: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    # The improvements of its best time: points of `tuner.loop.progress`.
    progress: Mapped[list[list[float]] | None] = mapped_column(JSON(none_as_null=True))
    # The fields of a `service.wire.models.SpaceClaimRead`.
    space: Mapped[dict[str, Any] | None] = mapped_column(
        "space_claim", JSON(none_as_null=True), key="space"
    )
    # Columns of its workload and its target, read with it.
    flops: Mapped[int | None] = _read_with(WorkloadRow.flops, WorkloadRow.key, workload_key)
    dtype: Mapped[str | None] = _read_with(WorkloadRow.dtype, WorkloadRow.key, workload_key)
    extents: Mapped[dict[str, Any] | None] = _read_with(
        WorkloadRow.shape, WorkloadRow.key, workload_key
    )
    float32_peak: Mapped[float | None] = _read_with(TargetRow.peak_flops, TargetRow.name, target)
    # The search over ranges that its group belongs to, if any.
    shapes_id: Mapped[UUID | None] = _read_with(ShapesRow.id, ShapesRow.group_id, group_id)
    baselines: Mapped[list[BaselineRow]] = relationship(viewonly=True, lazy="selectin")
    webhook_row: Mapped[WebhookRow | None] = relationship(
        viewonly=True, lazy="selectin", primaryjoin="foreign(JobRow.webhook_id) == WebhookRow.id"
    )
    # Rows of its last final comparison.
    finals: Mapped[list[FinalRow]] = relationship(
        viewonly=True,
        lazy="selectin",
        primaryjoin="and_(JobRow.id == foreign(FinalRow.job_id),"
        " JobRow.num_finishes == foreign(FinalRow.finish))",
        order_by="FinalRow.number",
    )

    @property
    def baseline(self) -> BaselineRead | None:
        """The fastest library that computes the same, timed beside the kept trial."""
        return baselines.fastest(self.baselines)

    @property
    def webhook(self) -> WebhookRead | None:
        """The webhook of the job, or of its group, with the state of its delivery."""
        return None if self.webhook_row is None else self.webhook_row.read()

    @property
    def shape(self) -> str | None:
        """The extents of its largest block, as text; None for a workload without blocks."""
        return workloads.in_words(self.extents)

    @property
    def peak_flops(self) -> float | None:
        """The peak of the target for the workload's type in operations a second, if it is known."""
        return targets.peak_of(self.target, self.float32_peak, self.dtype)

    @property
    def trials_per_sec(self) -> float | None:
        """The number of measured trials per second of run time."""
        return self.num_measured / self.active_secs if self.active_secs > 0 else None

    @property
    def sparkline(self) -> tuple[float, ...]:
        """The best time so far in up to 32 points."""
        return sparkline(self.progress or [], self.num_measured)

    @property
    def best_interval(self) -> tuple[float, float] | None:
        """The 95% interval of `best_secs`; None before a final comparison."""
        if self.best_low_secs is None or self.best_high_secs is None:
            return None
        return self.best_low_secs, self.best_high_secs

    @property
    def _kept(self) -> FinalRow | None:
        """The finalist that the last final comparison kept; None before one."""
        winners = (final for final in self.finals if final.outcome is Outcome.KEPT)
        return None if self.best_interval is None else next(winners, None)

    @property
    def best_number(self) -> int | None:
        """The trial that the last final comparison kept; None before one."""
        return None if self._kept is None else self._kept.number

    @property
    def best_provisional_secs(self) -> float | None:
        """The shortest sample of its best trial."""
        return self.provisional_secs if self._kept is None else self._kept.provisional_secs

    @property
    def provisional_secs(self) -> float | None:
        """The shortest sample of all its trials."""
        return self.progress[-1][1] if self.progress else self.best_secs

    @property
    def default_time(self) -> RunTime:
        """The time of its default schedule: confirmed if a final comparison timed it."""
        of_default = (final for final in self.finals if final.number == 0)
        final = next(of_default, None)
        if final is None or final.run_secs is None:
            return RunTime(self.default_secs, None, self.default_secs)
        return RunTime(final.run_secs, final.interval, self.default_secs)

    @property
    def budget(self) -> Budget:
        """The limits of the job, counted from its first trial."""
        return Budget(self.max_trials, self.max_secs, self.plateau, self.plateau_from)

    def count_time(self, now: datetime) -> None:
        """Add the time since the last count to the run time of the job.

        Args:
            now: The time of `shared_now`.
        """
        if self.active_at is not None:
            self.active_secs += max(0.0, (now - self.active_at).total_seconds())
        self.active_at = now


@dataclass(frozen=True)
class NewJob:
    """A job to submit; its workload and target are already stored."""

    workload_key: str
    workload_name: str
    target: str
    max_trials: int
    seed: int
    strategy: Strategy
    max_secs: float | None = None
    plateau: int | None = None
    rules: list[str] | None = None
    owner: str | None = None
    priority: int = 0
    group_id: UUID | None = None
    weight: float = 1.0
    name: str | None = None
    note: str | None = None
    tags: Collection[str] = ()
    window: str | None = None


def submit(session: Session, job: NewJob) -> JobRow:
    """Queue a job."""
    row = JobRow(
        id=uuid4(),
        state=JobState.QUEUED,
        workload_key=job.workload_key,
        workload_name=job.workload_name,
        target=job.target,
        max_trials=job.max_trials,
        max_secs=job.max_secs,
        plateau=job.plateau,
        seed=job.seed,
        strategy=job.strategy,
        rules=job.rules,
        priority=job.priority,
        group_id=job.group_id,
        weight=job.weight,
        name=job.name or None,
        note=job.note or None,
        tags=list(job.tags),
        window=job.window,
        owner=job.owner,
        request_id=request_ids.current(),
        num_measured=0,
        active_secs=0.0,
        created_at=utc_now(),
        cancel_requested=False,
        stop_requested=False,
        plateau_from=0,
        num_finishes=0,
        fruitless_claims=0,
        crashes=0,
    )
    session.add(row)
    session.flush()
    record_state(session, row)
    return row


def record_state(session: Session, row: JobRow, **more: Any) -> None:
    """Add an event with the current state of the job."""
    payload = {"state": row.state.value, "error": row.error, **more}
    events.append(session, row.id, EventKind.STATE, payload)
    if row.state.is_final and row.webhook_id is not None:
        _announce_end(session, row, row.webhook_id)


def _announce_end(session: Session, row: JobRow, webhook_id: UUID) -> None:
    """Queue the event of a webhook if the job has ended, or all jobs of its group."""
    query = select(JobRow).where(JobRow.group_id == row.group_id)
    query = query.order_by(JobRow.created_at, JobRow.id)
    together = [row] if row.group_id is None else session.scalars(query).all()
    if all(job.state.is_final for job in together):
        webhooks.queue_event(session, webhook_id, {"jobs": [_ended(job) for job in together]})


def _ended(row: JobRow) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "state": row.state.value,
        "stop_reason": None if row.stop_reason is None else row.stop_reason.value,
        "error": row.error,
        "workload_name": row.workload_name,
        "target": row.target,
        "name": row.name,
        "tags": list(row.tags),
        "num_measured": row.num_measured,
        "best_secs": row.best_secs,
    }


def get(session: Session, job_id: UUID, *, lock: bool = False) -> JobRow:
    """Return a job, with its row locked until the transaction ends if `lock` is set.

    Raises:
        ServiceNotFoundError: If the job does not exist.
    """
    row = session.get(JobRow, job_id, with_for_update=lock)
    if row is None:
        raise ServiceNotFoundError(f"no job {job_id}")
    return row


def newest(session: Session, *, limit: int) -> list[JobRow]:
    """Return up to `limit` jobs, newest first."""
    query = select(JobRow).order_by(JobRow.created_at.desc(), JobRow.id.desc()).limit(limit)
    return list(session.scalars(query))


def count_by_state(session: Session) -> Mapping[JobState, int]:
    """Return how many jobs are in each state."""
    rows = session.execute(select(JobRow.state, func.count()).group_by(JobRow.state))
    return {row[0]: row[1] for row in rows}


def read(row: JobRow) -> JobRead:
    """Return the job as the API shows it."""
    default = row.default_time
    return JobRead.model_validate(row, from_attributes=True).model_copy(
        update={
            "default_secs": default.secs,
            "default_interval": default.interval,
            "default_provisional_secs": default.provisional_secs,
        }
    )
