"""Cost models: versions of what was learned from measurements."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Integer, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from service.store.base import Base, UtcDateTime


class CostModelRow(Base):
    """One version of the model of one kind of target."""

    __tablename__ = "cost_models"
    __table_args__ = (UniqueConstraint("label", "version"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    label: Mapped[str] = mapped_column(String(255))  # the kind of target, as in `targets.label`
    version: Mapped[int] = mapped_column(Integer)
    feature_version: Mapped[int] = mapped_column(Integer)
    trained_on: Mapped[int] = mapped_column(Integer)  # how many measurements
    quality: Mapped[dict[str, Any]] = mapped_column(JSON)
    blob: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
