"""`/groups`: jobs that share one trial limit, divided by expected gain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Response, status
from sqlalchemy.orm import Session

from service.common.caller import Caller
from service.http.auth import SUBMIT, CallerOf
from service.http.dependencies import Dependencies, PartsOf
from service.http.problems import responses
from service.http.routes.queued import note_queued
from service.jobs.groups import read, submit_group
from service.store.jobs import controls, groups, quotas
from service.wire.models import GroupRead
from service.wire.requests import GroupChange, GroupCreate

router = APIRouter(prefix="/groups", tags=["groups"])


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    responses=responses(413, 422),
    dependencies=[SUBMIT],
)
def post_group(
    parts: PartsOf,
    caller: CallerOf,
    request: GroupCreate,
    response: Response,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> GroupRead:
    """Queue a job for each task; repeated with the same `Idempotency-Key`, they are queued once.

    The jobs share the trials: each round goes to the job with the largest expected gain in weighted
    time.
    """
    group, is_new = submit_group(parts.database, request, idempotency_key, caller=caller)
    note_queued(parts, response, f"groups/{group.id}", is_new)
    return group


@router.get("/{group_id}", responses=responses(404, 422))
def get_group(parts: PartsOf, group_id: UUID) -> GroupRead:
    """Read a group and its jobs."""
    with parts.database.read() as session:
        return read(session, group_id)


@router.patch("/{group_id}", responses=responses(404, 409, 422), dependencies=[SUBMIT])
def change_group(
    parts: PartsOf, caller: CallerOf, group_id: UUID, request: GroupChange
) -> GroupRead:
    """Change the trials that the jobs of a group share.

    Jobs that ended at the trial limit continue. If all jobs have ended and none can continue, the
    request is refused (409).
    """
    return _changed(
        parts, caller, group_id, lambda s: controls.change_group(s, group_id, request.max_trials)
    )


@router.post("/{group_id}/cancel", responses=responses(404, 422), dependencies=[SUBMIT])
def cancel_group(parts: PartsOf, caller: CallerOf, group_id: UUID) -> GroupRead:
    """End the jobs of a group and keep their measurements; those that have ended do not change."""
    return _changed(
        parts, caller, group_id, lambda s: controls.end_group(s, group_id, controls.cancel)
    )


@router.post("/{group_id}/stop", responses=responses(404, 422), dependencies=[SUBMIT])
def stop_group(parts: PartsOf, caller: CallerOf, group_id: UUID) -> GroupRead:
    """End the search of a group now, then compare the finalists of each job and keep the fastest.

    Jobs that have ended, or are being cancelled, do not change.
    """
    return _changed(
        parts, caller, group_id, lambda s: controls.end_group(s, group_id, controls.stop)
    )


def _changed(
    parts: Dependencies, caller: Caller, group_id: UUID, act: Callable[[Session], object]
) -> GroupRead:
    """Change a group of the caller, within the caller's quota."""
    with parts.database.write() as session:
        groups.get(session, group_id)
        owners = [row.owner for row in groups.members(session, group_id)]
        caller.refuse_stranger(owners, f"group {group_id}")
        with quotas.held(session, caller):
            act(session)
        group = read(session, group_id)
    parts.wake()
    return group
