"""Models of remote sessions."""

from __future__ import annotations

from pydantic import Field

from service.wire.models import Response
from service.wire.requests import Request, StoredText


class RemoteCreate(Request):
    """A request for a session with a device."""

    target: StoredText = Field(
        default="cpu", max_length=255, description="The target whose workers may serve it."
    )


class RemoteCreated(Response):
    """A session; its id is a secret of its owner."""

    id: str
