"""`/workers`: who measures."""

from __future__ import annotations

from fastapi import APIRouter

from loopwright.models import Page, WorkerRead
from service.parts import PartsOf
from service.store import workers

router = APIRouter(prefix="/workers", tags=["workers"])


@router.get("")
def get_workers(parts: PartsOf) -> Page[WorkerRead]:
    """List the workers, by name."""
    with parts.database.read() as session:
        return Page[WorkerRead](items=tuple(workers.everyone(session)))
