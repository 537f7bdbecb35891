"""Build requests to a server from a user's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from compiler.keywords import suggestion
from compiler.target.error import TargetError
from compiler.target.target import Target
from loopwright.client.workload_request import to_wire
from loopwright.errors import InvalidRequestError
from loopwright.workload import WorkloadLike
from service.wire.models import JobState
from service.wire.problems import Problem
from service.wire.requests import ScheduleQuery

RequestT = TypeVar("RequestT", bound=BaseModel)


def checked(model: type[RequestT], /, **fields: Any) -> RequestT:
    """Make a request body, or raise the error that the server would answer."""
    try:
        return model(**fields)
    except ValidationError as error:
        flaws = "; ".join(map(_flaw, error.errors(include_url=False)))
        raise InvalidRequestError(
            Problem(status=422, title="invalid request", detail=flaws)
        ) from None


def _flaw(details: ErrorDetails) -> str:
    """Return what is wrong with a field, or with several that contradict each other."""
    field = ".".join(map(str, details["loc"]))
    reason = details["msg"].removeprefix("Value error, ")
    if not field:
        return reason
    value = details["input"]
    is_shown = isinstance(value, str | int | float | None) and not field.endswith("secret")
    shown = f" is {value!r}" if is_shown else ""
    return f"{field}{shown}: {reason}"


def schedule_query(
    workload: WorkloadLike, target: Target | str, *, nearest: bool, enqueue: bool
) -> ScheduleQuery:
    """Return the query for the best schedule of a workload on a target."""
    return checked(
        ScheduleQuery,
        workload=to_wire(workload),
        target=target_text(target),
        nearest=nearest,
        enqueue=enqueue,
    )


def target_text(target: object) -> str:
    """Return the text of a target for a request.

    Raises:
        TargetError: If it is neither a target nor a text.
    """
    if isinstance(target, str):
        return target  # the server parses it: "cpu" is the server's CPU
    if isinstance(target, Target):
        return target.name
    raise TargetError(f"a target is a Target or its text, such as 'cpu', not {target!r}")


def read_id(text_or_id: UUID | str, kind: str) -> UUID:
    """Return the id of a job or a group.

    Raises:
        ValueError: If the text is not an id.
    """
    if isinstance(text_or_id, UUID):
        return text_or_id
    try:
        return UUID(str(text_or_id))
    except ValueError:
        raise ValueError(
            f"{text_or_id!r} is not the id of a {kind}: expected one such as "
            "'123e4567-e89b-12d3-a456-426614174000'"
        ) from None


def read_states(names: JobState | str | Sequence[JobState | str]) -> list[str]:
    """Return states for a request.

    Raises:
        ValueError: If a state does not exist.
    """
    states = [names] if isinstance(names, str) else names
    valid = [state.value for state in JobState]
    for state in states:
        if state not in valid:
            raise ValueError(f"unknown state {state!r}: {suggestion(str(state), valid)}")
    return [JobState(state).value for state in states]
