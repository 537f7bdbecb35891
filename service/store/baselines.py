"""Baselines: libraries that compute what a job's best kernel does, timed beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Integer, String, delete, true
from sqlalchemy.orm import Mapped, Session, mapped_column

from loopwright.models import BaselineRead
from service.store.base import Base, UtcDateTime, utc_now
from tuner.finish.baseline import Baseline


class BaselineRow(Base):
    """A library beside one trial of a job, that which its last finish kept.

    `speedup` says how many times longer the library took, and has bounds, between which it is with
    a confidence of 95%; none where there were too few rounds for that.
    """

    __tablename__ = "baselines"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    library: Mapped[str] = mapped_column(String(32), primary_key=True)
    number: Mapped[int] = mapped_column(Integer)  # of the trial
    version: Mapped[str] = mapped_column(String(255))
    run_secs: Mapped[float]
    kernel_secs: Mapped[float]
    speedup: Mapped[float]
    low: Mapped[float | None]
    high: Mapped[float | None]
    worker: Mapped[str] = mapped_column(String(255))
    toolchain: Mapped[str] = mapped_column(String(255))  # that compiled the kernel
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The bounds of `speedup`."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def keep(session: Session, job_id: UUID, number: int, found: Sequence[Baseline]) -> None:
    """Keep what was timed beside a trial of a job, instead of what was before.

    Where nothing was timed now, what is known of the same trial still holds.
    """
    is_stale = true() if found else BaselineRow.number != number
    session.execute(delete(BaselineRow).where(BaselineRow.job_id == job_id, is_stale))
    for baseline in found:
        low, high = baseline.interval or (None, None)
        row = BaselineRow(
            job_id=job_id,
            library=baseline.library,
            number=number,
            version=baseline.version,
            run_secs=baseline.run_secs,
            kernel_secs=baseline.kernel_secs,
            speedup=baseline.speedup,
            low=low,
            high=high,
            worker=baseline.worker,
            toolchain=baseline.toolchain,
            created_at=utc_now(),
        )
        session.add(row)


def fastest(rows: Iterable[BaselineRow]) -> BaselineRead | None:
    """Return the fastest of some libraries as the API shows it; none if there is none."""
    row = min(rows, key=lambda row: row.speedup, default=None)
    return None if row is None else BaselineRead.model_validate(row, from_attributes=True)
