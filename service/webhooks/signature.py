"""Signatures of events, as the specification "Standard Webhooks" (version 1) defines them."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from datetime import datetime

from service.store.webhooks import Attempt
from service.wire.requests import WEBHOOK_SECRET_PREFIX


def signed_headers(attempt: Attempt, now: datetime) -> dict[str, str]:
    """Return the headers that identify an event, and prove its origin and its time."""
    timestamp = str(int(now.timestamp()))
    key = b64decode(attempt.secret.removeprefix(WEBHOOK_SECRET_PREFIX))
    content = f"{attempt.event_id}.{timestamp}.{attempt.body}".encode()
    signature = b64encode(hmac.digest(key, content, "sha256")).decode()
    return {
        "webhook-id": str(attempt.event_id),
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }
