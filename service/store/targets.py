"""Targets: the machines that workloads were tuned for, and their peak performance."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from sqlalchemy import ColumnElement, String, and_, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from compiler.backends.backend import backend_of
from compiler.target.target import COLD_OPTION, COLD_SUFFIX, Target
from service.store.database.base import Base, UtcDateTime, utc_now


class TargetRow(Base):
    """A target by its canonical text; `label` is its kind, such as `cpu/znver3`."""

    __tablename__ = "targets"

    name: Mapped[str] = mapped_column(String(1000), primary_key=True)
    label: Mapped[str] = mapped_column(String(255), index=True)
    peak_flops: Mapped[float | None]  # of float32, as a worker measured it
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


def has_timing_label(timing_label: str) -> ColumnElement[bool]:
    """Return the condition that a target has a timing label (`Target.timing_label`)."""
    label = timing_label.removesuffix(COLD_SUFFIX)
    is_cold = TargetRow.name.endswith(f" {COLD_OPTION}")
    return and_(TargetRow.label == label, is_cold if label != timing_label else ~is_cold)


def ensure(session: Session, name: str, label: str) -> None:
    """Store the target unless it exists."""
    if session.get(TargetRow, name) is None:
        session.add(TargetRow(name=name, label=label, created_at=utc_now()))
        session.flush()


def learn_peaks(session: Session, label: str, peaks: Mapping[str, float]) -> None:
    """Store the measured peaks of a label, by number of cores, for targets without a peak."""
    unknown = select(TargetRow).where(TargetRow.label == label, TargetRow.peak_flops.is_(None))
    for row in session.scalars(unknown):
        row.peak_flops = peaks.get(str(Target(row.name).num_cores))


def peak_of(name: str, float32_peak: float | None, dtype: str | None) -> float | None:
    """Return the peak of a target for a type, in operations a second; None if it is unknown."""
    if float32_peak is None or dtype is None:
        return None
    share = _peak_share(name, dtype)
    return None if share is None else float32_peak * share


@lru_cache(maxsize=1024)
def _peak_share(name: str, dtype: str) -> float | None:
    target = Target(name)
    return backend_of(target).peak_share(target, dtype)
