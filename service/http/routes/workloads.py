"""`/workloads`: stored workloads, and checks of workloads before their submission."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from service.common.errors import ServiceNotFoundError
from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.intake.check import check
from service.reading.lists import list_workloads
from service.reading.queries import WorkloadsQuery
from service.store.workloads import WorkloadRow
from service.wire.models import Page
from service.wire.readings import CheckRequest, WorkloadCheck, WorkloadRead, WorkloadText

router = APIRouter(prefix="/workloads", tags=["workloads"])


@router.get("", responses=responses(422))
def get_workloads(parts: PartsOf, query: Annotated[WorkloadsQuery, Query()]) -> Page[WorkloadRead]:
    """List the workloads, the newest first by default."""
    with parts.database.read() as session:
        return list_workloads(session, query)


@router.get("/{key}", responses=responses(404, 422))
def get_workload(
    parts: PartsOf, key: Annotated[str, Path(min_length=1, max_length=64)]
) -> WorkloadText:
    """Read a workload with its program."""
    with parts.database.read() as session:
        row = session.get(WorkloadRow, key)
        if row is None:
            raise ServiceNotFoundError(f"no workload {key}")
        return WorkloadText.model_validate(row, from_attributes=True)


@router.post("/check", responses=responses(413, 422))
def post_check(parts: PartsOf, request: CheckRequest) -> WorkloadCheck:
    """Check a workload, and return its parsed form and the size of its design space; store nothing.

    Suitable for calls from an editor: the workload is neither run nor compiled.
    """
    return check(parts.database, request)
