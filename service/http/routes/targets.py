"""`/targets`: the targets of all submitted jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.reading.lists import list_targets
from service.reading.queries import TargetsQuery
from service.wire.models import Page
from service.wire.readings import TargetRead

router = APIRouter(prefix="/targets", tags=["targets"])


@router.get("", responses=responses(422))
def get_targets(parts: PartsOf, query: Annotated[TargetsQuery, Query()]) -> Page[TargetRead]:
    """List the targets, by name by default."""
    with parts.database.read() as session:
        return list_targets(session, query)
