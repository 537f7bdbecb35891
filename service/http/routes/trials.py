"""`/jobs/{id}/trials/{number}`: one trial, and its code."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path

from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.schedules.trial_code import show_code
from service.store.results import finals
from service.store.trials import trials
from service.wire.models import TrialCode, TrialRead

router = APIRouter(prefix="/jobs/{job_id}/trials/{number}", tags=["jobs"])

Number = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("", responses=responses(404, 422))
def get_trial(parts: PartsOf, job_id: UUID, number: Number) -> TrialRead:
    """Read a trial."""
    with parts.database.read() as session:
        row = trials.get(session, job_id, number)
        final = finals.of_trials(session, job_id, [number]).get(number)
        return trials.read(row, finals.read(final))


@router.get("/code", responses=responses(404, 422, 500, 503))
def get_code(parts: PartsOf, job_id: UUID, number: Number) -> TrialCode:
    """Show a trial's program before and after scheduling, recompiled by the current compiler."""
    return show_code(parts.database, parts.builder, job_id, number)
