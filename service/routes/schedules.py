"""`/schedules`: the fastest schedule known of each workload on each target."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from loopwright.models import BestRead, Page, ScheduleQuery
from loopwright.readings import BestSummary
from service.intake import read_target, read_workload
from service.parts import PartsOf
from service.problems import responses
from service.reading.queries import SchedulesQuery
from service.reading.schedule_list import list_schedules
from service.routes.conditional import has_it, quoted
from service.schedules import find_best, find_nearest, find_nearest_by_key

router = APIRouter(prefix="/schedules", tags=["schedules"])

IfNoneMatch = Annotated[str | None, Header()]


@router.get("", responses=responses(422))
def get_schedules(parts: PartsOf, query: Annotated[SchedulesQuery, Query()]) -> Page[BestSummary]:
    """List the best schedules, the newest first unless another order is asked for."""
    with parts.database.read() as session:
        return list_schedules(session, query)


@router.post(
    "/best", response_model=BestRead, responses={**responses(404, 422), 304: {"model": None}}
)
def post_best(
    parts: PartsOf, query: ScheduleQuery, response: Response, if_none_match: IfNoneMatch = None
) -> BestRead | Response:
    """Find the best schedule of a workload given as text: a script is too long for a URL.

    With `nearest`, that of the nearest shape of the operator will do: it is adapted, and the answer
    says how far off the shape is, and what that is expected to cost.
    """
    workload, target = read_workload(query.workload), read_target(query.target)
    if query.nearest:
        best = find_nearest(parts.database, workload, target)
    else:
        best = find_best(parts.database, workload.key, target.name)
    return _answer(best, response, if_none_match)


@router.get(
    "/best", response_model=BestRead, responses={**responses(404, 422), 304: {"model": None}}
)
def get_best(
    parts: PartsOf,
    workload_key: Annotated[str, Query(min_length=1, max_length=64)],
    response: Response,
    target: Annotated[str, Query(min_length=1, max_length=1000)] = "cpu",
    *,
    nearest: bool = False,
    if_none_match: IfNoneMatch = None,
) -> BestRead | Response:
    """Find the best schedule of a workload given by its key, or with `nearest` a like one."""
    where = read_target(target)
    if nearest:
        best = find_nearest_by_key(parts.database, workload_key, where)
    else:
        best = find_best(parts.database, workload_key, where.name)
    return _answer(best, response, if_none_match)


def _answer(best: BestRead, response: Response, if_none_match: str | None) -> BestRead | Response:
    # A trial never changes, so the trial that is best says all; of an adapted one, the shape it is
    # for and what is expected of it, too.
    tag = f"{best.job_id}.{best.trial_number}"
    if best.nearest is not None:
        tag += f".{best.workload_key}.{best.nearest.expected_loss}"
    etag = quoted(tag)
    if has_it(if_none_match, etag):
        return Response(status_code=304, headers={"ETag": etag})
    response.headers["ETag"] = etag
    return best
