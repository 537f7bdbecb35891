"""`/cost-models`: the trained cost models."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.reading.lists import list_cost_models
from service.reading.queries import CostModelsQuery
from service.wire.models import CostModelRead, Page

router = APIRouter(prefix="/cost-models", tags=["cost models"])


@router.get("", responses=responses(422))
def get_cost_models(
    parts: PartsOf, query: Annotated[CostModelsQuery, Query()]
) -> Page[CostModelRead]:
    """List the cost models with their quality on held-out data, the newest first."""
    with parts.database.read() as session:
        return list_cost_models(session, query)
