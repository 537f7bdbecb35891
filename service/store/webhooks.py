"""Webhooks, and the outbox of their events.

An event is stored in the transaction that ends its job, so that neither exists without the other.
A sender takes due events, and stores the result of each attempt. It postpones the next attempt
before it begins one: if the sender dies, the event is sent again. A receiver may therefore get an
event more than once, each time with the same id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, Index, Integer, String, Text, bindparam, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column, relationship

from service.store.database.base import Base, UtcDateTime, enum_column, utc_now
from service.store.database.single_reads import SingleReads
from service.wire.models import WebhookRead, WebhookState

MAX_ATTEMPTS = 16
"""An event that could not be delivered so often has failed, after seven hours. Chosen."""
_FIRST_DELAY_SECS = 10
_MAX_DELAY_SECS = 3600
"""The delay doubles from attempt to attempt up to this. Chosen."""
LEASE_SECS = 120
"""An attempt without a result is repeated after so long: it is longer than any attempt takes,
even if the resolver of names does not respond.
"""
Clock = Callable[[], datetime]


class WebhookRow(Base):
    """An address of a submission. Its secret is in clear text: it signs each event."""

    __tablename__ = "webhooks"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))  # of what ends: job, group or model
    subject_id: Mapped[UUID]
    url: Mapped[str] = mapped_column(Text)
    host: Mapped[str] = mapped_column(String(255))
    secret: Mapped[str] = mapped_column(String(100))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # The last one alone is of interest; there are several if a job was resumed.
    events: Mapped[list[WebhookEventRow]] = relationship(
        viewonly=True, lazy="selectin", order_by="WebhookEventRow.created_at"
    )

    def read(self) -> WebhookRead:
        """Return the webhook as the API shows it."""
        if not self.events:
            return WebhookRead(host=self.host, state=WebhookState.WAITING)
        last = self.events[-1]
        return WebhookRead(
            host=self.host,
            state=last.state,
            event_id=last.id,
            num_attempts=last.num_attempts,
            error=last.error,
            next_attempt_at=last.next_at if last.state is WebhookState.PENDING else None,
            delivered_at=last.delivered_at,
        )


class WebhookEventRow(Base):
    """An event of a webhook; all attempts send the same body."""

    __tablename__ = "webhook_events"
    __table_args__ = (
        Index(
            "ix_webhook_events_pending",
            "next_at",
            sqlite_where=text("state = 'pending'"),
            postgresql_where=text("state = 'pending'"),
        ),
        Index("ix_webhook_events_webhook_id", "webhook_id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    webhook_id: Mapped[UUID] = mapped_column(ForeignKey("webhooks.id"))
    state: Mapped[WebhookState] = mapped_column(enum_column(WebhookState))
    body: Mapped[str] = mapped_column(Text)
    num_attempts: Mapped[int] = mapped_column(Integer, default=0)
    next_at: Mapped[datetime] = mapped_column(UtcDateTime)
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    delivered_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


@dataclass(frozen=True)
class Attempt:
    """An attempt to deliver an event."""

    event_id: UUID
    number: int  # from 1
    url: str
    secret: str
    body: str


def add(
    session: Session, *, kind: str, subject_id: UUID, url: str, host: str, secret: str
) -> WebhookRow:
    """Store the webhook of a submission."""
    row = WebhookRow(
        id=uuid4(),
        kind=kind,
        subject_id=subject_id,
        url=url,
        host=host,
        secret=secret,
        created_at=utc_now(),
    )
    session.add(row)
    session.flush()
    return row


def queue_event(session: Session, webhook_id: UUID, data: Mapping[str, Any]) -> None:
    """Queue the event that a subject has ended; it is sent once this transaction commits."""
    webhook = session.get_one(WebhookRow, webhook_id)
    now = utc_now()
    body = {
        "type": f"{webhook.kind}.ended",
        "timestamp": now.isoformat(),
        "data": {"id": str(webhook.subject_id), **data},
    }
    session.add(
        WebhookEventRow(
            id=uuid4(),
            webhook_id=webhook_id,
            state=WebhookState.PENDING,
            body=json.dumps(body),
            num_attempts=0,
            next_at=now,
            created_at=now,
        )
    )


_DUE = (
    select(WebhookEventRow.id)
    .where(
        WebhookEventRow.state == WebhookState.PENDING, WebhookEventRow.next_at <= bindparam("now")
    )
    .limit(1)
)


def has_due(reads: SingleReads, now: datetime) -> bool:
    """Return whether an event is due."""
    return bool(reads.rows(_DUE, {"now": now}))


def begin_attempts(session: Session, now: datetime, limit: int) -> list[Attempt]:
    """Take due events, those with the fewest attempts first; no other sender takes them."""
    query = (
        select(WebhookEventRow, WebhookRow)
        .join(WebhookRow, WebhookRow.id == WebhookEventRow.webhook_id)
        .where(WebhookEventRow.state == WebhookState.PENDING, WebhookEventRow.next_at <= now)
        .order_by(WebhookEventRow.num_attempts, WebhookEventRow.next_at, WebhookEventRow.id)
        .limit(limit)
    )
    attempts = []
    for event, webhook in session.execute(query):
        event.num_attempts += 1
        event.next_at = now + timedelta(seconds=LEASE_SECS)
        attempts.append(
            Attempt(event.id, event.num_attempts, webhook.url, webhook.secret, event.body)
        )
    return attempts


def end_attempt(session: Session, attempt: Attempt, error: str | None, now: datetime) -> None:
    """Store the result of an attempt; None is a success."""
    event = session.get_one(WebhookEventRow, attempt.event_id, with_for_update=True)
    if error is None:
        event.state, event.error, event.delivered_at = WebhookState.DELIVERED, None, now
    elif event.num_attempts == attempt.number and event.state is WebhookState.PENDING:
        event.error = error
        event.next_at = now + _delay(attempt.number)
        if attempt.number >= MAX_ATTEMPTS:
            event.state = WebhookState.FAILED


def _delay(num_attempts: int) -> timedelta:
    return timedelta(seconds=min(_FIRST_DELAY_SECS * 2 ** (num_attempts - 1), _MAX_DELAY_SECS))
