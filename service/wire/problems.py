"""Problem documents (RFC 9457), the body of every error answer."""

from __future__ import annotations

import contextlib
from typing import Any
from uuid import UUID

from pydantic import (
    ValidationError,
)

from service.wire.models import Response


class ProblemError(Response):
    """One error of a request, and its location."""

    detail: str
    pointer: str | None = None  # a JSON pointer into the body
    line: int | None = None  # in the text of a script, from 1
    column: int | None = None


PROBLEM_TYPE = "urn:loopwright:problem:"
"""The prefix of the types of problems; the meaning of a type never changes."""


class Problem(Response):
    """An error in the form of RFC 9457; `detail` is for users, and may show a line of a script."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    instance: str | None = None
    errors: tuple[ProblemError, ...] = ()
    job_id: UUID | None = None  # of the job that searches for the missing schedule (`enqueue`)

    @property
    def code(self) -> str:
        """The stable name of the kind of error, such as `invalid-target`.

        An answer of another server, such as a proxy, has no type: its code is `error`.
        """
        is_of_service = self.type.startswith(PROBLEM_TYPE)
        return self.type.removeprefix(PROBLEM_TYPE) if is_of_service else "error"


def problem_from(body: Any, *, status: int, title: str) -> Problem:
    """Parse a problem document, or make one from any other answer."""
    if isinstance(body, dict) and "title" in body:
        with contextlib.suppress(ValidationError):
            return Problem.model_validate({"status": status, **body})
    return Problem(title=title, status=status, detail=body if isinstance(body, str) else "")
