"""Problem documents (RFC 9457), the body of every answer that is no success."""

from __future__ import annotations

import contextlib
from typing import Any
from uuid import UUID

from pydantic import (
    ValidationError,
)

from service.wire.models import Response


class ProblemError(Response):
    """One thing that is wrong with a request, and where."""

    detail: str
    pointer: str | None = None  # a JSON pointer into the body
    line: int | None = None  # in the text of a script, from 1
    column: int | None = None


PROBLEM_TYPE = "urn:loopwright:problem:"
"""What the types of problems begin with; the rest never changes its meaning."""


class Problem(Response):
    """An error as RFC 9457 has it; `detail` is for people, and shows a script's place."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    instance: str | None = None
    errors: tuple[ProblemError, ...] = ()
    job_id: UUID | None = None  # of the job that looks for what was not found (`enqueue`)

    @property
    def code(self) -> str:
        """The stable name of the kind of error, such as `invalid-target`.

        An answer that another server gave, such as a proxy, has no type: its code is `error`.
        """
        is_of_service = self.type.startswith(PROBLEM_TYPE)
        return self.type.removeprefix(PROBLEM_TYPE) if is_of_service else "error"


def problem_from(body: Any, *, status: int, title: str) -> Problem:
    """Read a problem document, or make one of whatever else a server answered."""
    if isinstance(body, dict) and "title" in body:
        with contextlib.suppress(ValidationError):
            return Problem.model_validate({"status": status, **body})
    return Problem(title=title, status=status, detail=body if isinstance(body, str) else "")
