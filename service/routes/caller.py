"""`/caller`: who the service takes the caller for."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from loopwright.server_models import CallerRead
from service.auth import CallerOf

router = APIRouter(prefix="/caller", tags=["tokens"])


@router.get("")
async def get_caller(caller: CallerOf) -> CallerRead:
    """Say whose token this is, and what it may do."""
    return CallerRead(name=caller.name, scope=caller.scope, **asdict(caller.quota))
