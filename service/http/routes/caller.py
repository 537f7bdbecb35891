"""`/caller`: the identity of the caller."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from service.http.auth import CallerOf
from service.wire.server_models import CallerRead

router = APIRouter(prefix="/caller", tags=["tokens"])


@router.get("")
async def get_caller(caller: CallerOf) -> CallerRead:
    """Read the name, the scope and the quota of the caller's token."""
    return CallerRead(name=caller.name, scope=caller.scope, **asdict(caller.quota))
