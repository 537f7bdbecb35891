"""What is asked of a server, made of what a user gave."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from compiler.target import Target
from loopwright.errors import InvalidRequestError
from loopwright.models import Problem, ScheduleQuery
from loopwright.workload import WorkloadLike, to_wire

RequestT = TypeVar("RequestT", bound=BaseModel)


def checked(model: type[RequestT], **fields: Any) -> RequestT:
    """Make a request body, or the error that the server would have answered."""
    try:
        return model(**fields)
    except ValidationError as error:
        flaws = "; ".join(map(_flaw, error.errors(include_url=False)))
        raise InvalidRequestError(
            Problem(status=422, title="invalid request", detail=flaws)
        ) from None


def _flaw(details: ErrorDetails) -> str:
    """Say what is wrong with a field, or with several that do not go together."""
    place = ".".join(map(str, details["loc"]))
    reason = details["msg"].removeprefix("Value error, ")
    return f"{place}: {reason}" if place else reason


def schedule_query(
    workload: WorkloadLike, target: Target | str, *, nearest: bool, enqueue: bool
) -> ScheduleQuery:
    """Ask for what is best known of a workload on a target."""
    return checked(
        ScheduleQuery,
        workload=to_wire(workload),
        target=target_text(target),
        nearest=nearest,
        enqueue=enqueue,
    )


def target_text(target: Target | str) -> str:
    """Return a target as it is sent."""
    return target.name if isinstance(target, Target) else target
