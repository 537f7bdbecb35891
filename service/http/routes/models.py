"""`/models`: whole models, whose tasks share one trial limit."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response, status

from service.http.auth import SUBMIT, CallerOf
from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.http.routes.queued import note_queued
from service.models.reading import find, list_models, package
from service.models.submit import submit_model
from service.reading.queries import ModelsQuery
from service.wire.model_reads import ModelPackage, ModelRead, ModelSummary
from service.wire.models import Page
from service.wire.requests import ModelCreate

router = APIRouter(prefix="/models", tags=["models"])


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    responses=responses(413, 422),
    dependencies=[SUBMIT],
)
def post_model(
    parts: PartsOf,
    caller: CallerOf,
    request: ModelCreate,
    response: Response,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> ModelRead:
    """Queue jobs for the tasks of a model; repeated with the same `Idempotency-Key`, once.

    Tasks are the different programs of the model after fusion. Each job's weight is the number of
    the runs of its program. The jobs share the trials: each round goes to the job with the largest
    expected gain in the model's time. Tasks that take little of that time get no job.
    """
    model, is_new = submit_model(parts.database, request, idempotency_key, caller=caller)
    note_queued(parts, response, f"models/{model.id}", is_new)
    return model


@router.get("", responses=responses(422))
def get_models(parts: PartsOf, query: Annotated[ModelsQuery, Query()]) -> Page[ModelSummary]:
    """List models, the newest first by default."""
    with parts.database.read() as session:
        return list_models(session, query)


@router.get("/{model_id}", responses=responses(404, 422))
def get_model(parts: PartsOf, model_id: UUID) -> ModelRead:
    """Read a model: its tasks, its projected latency with its history, and its graph."""
    with parts.database.read() as session:
        return find(session, model_id)


@router.get("/{model_id}/package", responses=responses(404, 422))
def get_package(parts: PartsOf, model_id: UUID) -> ModelPackage:
    """Read the best schedules of the tasks so far, of which a client builds the package."""
    with parts.database.read() as session:
        return package(session, model_id)
