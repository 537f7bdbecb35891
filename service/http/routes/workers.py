"""`/workers`: the processes that measure."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.reading.lists import list_workers
from service.reading.queries import WorkersQuery
from service.wire.models import Page
from service.wire.server_models import WorkerRead

router = APIRouter(prefix="/workers", tags=["workers"])


@router.get("", responses=responses(422))
def get_workers(parts: PartsOf, query: Annotated[WorkersQuery, Query()]) -> Page[WorkerRead]:
    """List the workers, by name."""
    with parts.database.read() as session:
        return list_workers(session, query)
