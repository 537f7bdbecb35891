"""`/cost-models`: what was learned."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from loopwright.models import CostModelRead, Page
from service.parts import PartsOf
from service.store import cost_models

router = APIRouter(prefix="/cost-models", tags=["cost models"])


@router.get("")
def get_cost_models(
    parts: PartsOf, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> Page[CostModelRead]:
    """List the newest cost models, with their quality on candidates they had not seen."""
    with parts.database.read() as session:
        return Page[CostModelRead](items=tuple(cost_models.newest_first(session, limit=limit)))
