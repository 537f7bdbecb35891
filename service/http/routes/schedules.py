"""`/schedules`: the fastest known schedule of each workload on each target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from service.common.errors import Flaw, UnprocessableError
from service.http.auth import CallerOf
from service.http.cache.answer_cache import IS_CURRENT
from service.http.cache.schedule_answers import ScheduleAnswer, ScheduleAnswers
from service.http.conditional import NOT_MODIFIED, has_it, quoted
from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.http.routes.enqueued import enqueued
from service.reading.queries import SchedulesQuery
from service.reading.schedule_list import list_schedules
from service.wire.models import BestRead, Page
from service.wire.readings import BestSummary
from service.wire.requests import ScheduleQuery

router = APIRouter(prefix="/schedules", tags=["schedules"])

IfNoneMatch = Annotated[str | None, Header(max_length=1000)]
_RESPONSES = {**responses(404, 422), **NOT_MODIFIED}
_NO_ENQUEUE = (
    "a GET changes nothing, so that it cannot queue a job: send the workload's text by "
    'POST /api/v1/schedules/best, with `"enqueue": true` in the body'
)


@router.get("", responses=responses(422))
def get_schedules(parts: PartsOf, query: Annotated[SchedulesQuery, Query()]) -> Page[BestSummary]:
    """List the best schedules, the newest first by default."""
    with parts.database.read() as session:
        return list_schedules(session, query)


@router.post("/best", response_model=BestRead, responses={**_RESPONSES, **responses(413)})
def post_best(
    request: Request,
    parts: PartsOf,
    caller: CallerOf,
    query: ScheduleQuery,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Find the best schedule of a workload given as text, because a script is too long for a URL.

    With `nearest`, a missing schedule is replaced by the adapted one of the operator's nearest
    shape. The answer has the distance of the shape and the expected loss of speed.

    With `enqueue`, which needs the scope `submit`, a job is queued if this exact workload has no
    schedule. Repeated requests queue only one job.
    """
    answers: ScheduleAnswers = request.app.state.schedule_answers
    with enqueued(parts, caller, query) as headers:
        return _sent(answers.find_by_text(query), if_none_match, headers)


@router.get("/best", response_model=BestRead, responses=_RESPONSES)
async def get_best(
    request: Request,
    workload_key: Annotated[str, Query(min_length=1, max_length=64)],
    target: Annotated[str, Query(min_length=1, max_length=1000)] = "cpu",
    *,
    nearest: bool = False,
    enqueue: Annotated[
        bool, Query(deprecated=True, description="refused: only a POST can queue a job")
    ] = False,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Find the best schedule of a workload given by its key; `nearest` as by POST."""
    if enqueue:
        raise UnprocessableError(_NO_ENQUEUE, Flaw(_NO_ENQUEUE, "query/enqueue"))
    answers: ScheduleAnswers = request.app.state.schedule_answers
    answer = await answers.find_shared(workload_key, target, nearest=nearest)
    request.scope[IS_CURRENT] = answer.is_current
    return _sent(answer, if_none_match)


def _sent(
    answer: ScheduleAnswer, if_none_match: str | None, headers: Mapping[str, str] | None = None
) -> Response:
    etag = quoted(answer.etag)
    headers = {"ETag": etag, **(headers or {})}
    if has_it(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    return Response(answer.body, media_type="application/json", headers=headers)
