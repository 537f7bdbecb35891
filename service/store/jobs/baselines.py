"""Baselines: libraries that compute the same as a job's best kernel, timed beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, Integer, String, delete, false, true
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.database.base import Base, UtcDateTime, utc_now
from service.wire.models import BaselineRead
from tuner.finish.baseline import Baseline


class BaselineRow(Base):
    """A library that was timed beside the trial that a job's last final comparison kept.

    `speedup` says how many times longer the library took. Its bounds are a 95% interval, None after
    too few rounds.
    """

    __tablename__ = "baselines"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    library: Mapped[str] = mapped_column(String(32), primary_key=True)
    trial_number: Mapped[int] = mapped_column(Integer)
    version: Mapped[str] = mapped_column(String(255))
    run_secs: Mapped[float]
    kernel_secs: Mapped[float]
    speedup: Mapped[float]
    low: Mapped[float | None]
    high: Mapped[float | None]
    worker: Mapped[str] = mapped_column(String(255))
    toolchain: Mapped[str] = mapped_column(String(255))  # that compiled the kernel
    # The library's settings; null for measurements of earlier versions.
    kernel_set: Mapped[str | None] = mapped_column(String(64))
    setting: Mapped[str | None] = mapped_column(String(255))
    tried: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    share_of_peak: Mapped[float | None]
    is_below_cpu: Mapped[bool] = mapped_column(default=False, server_default=false())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The bounds of `speedup`."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def keep(session: Session, job_id: UUID, trial_number: int, measured: Sequence[Baseline]) -> None:
    """Store the libraries timed beside a trial of a job, replacing earlier ones.

    If none was timed now, the earlier baselines of the same trial are kept.
    """
    is_stale = true() if measured else BaselineRow.trial_number != trial_number
    session.execute(delete(BaselineRow).where(BaselineRow.job_id == job_id, is_stale))
    for baseline in measured:
        low, high = baseline.interval or (None, None)
        row = BaselineRow(
            job_id=job_id,
            library=baseline.library,
            trial_number=trial_number,
            version=baseline.version,
            run_secs=baseline.run_secs,
            kernel_secs=baseline.kernel_secs,
            speedup=baseline.speedup,
            low=low,
            high=high,
            worker=baseline.worker,
            toolchain=baseline.toolchain,
            kernel_set=baseline.kernel_set or None,
            setting=baseline.setting or None,
            tried=[asdict(setting) for setting in baseline.tried] or None,
            share_of_peak=baseline.share_of_peak,
            is_below_cpu=baseline.is_below_cpu,
            created_at=utc_now(),
        )
        session.add(row)


def fastest(rows: Iterable[BaselineRow]) -> BaselineRead | None:
    """Return the fastest of some libraries as the API shows it, or None."""
    row = min(rows, key=lambda row: row.speedup, default=None)
    if row is None:
        return None
    names = [name for name in BaselineRead.model_fields if name != "tried"]
    fields = {name: getattr(row, name) for name in names}
    return BaselineRead.model_validate({**fields, "tried": row.tried or ()})
