"""The errors that the service raises on purpose.

ServiceError
├── ServeError             the service cannot start; the message says why
├── ServiceNotFoundError   the requested object does not exist                          (404)
├── ForbiddenError         the caller's token does not allow the request                (403)
├── ServiceConflictError   the request contradicts the stored state                     (409)
├── UnprocessableError     the request is well-formed, but its content is invalid       (422)
├── QuotaError             the jobs in the queue exceed the quota of the caller's token (429)
├── BuildFailedError       the compiler crashed on a kernel, or took too long           (500)
├── ServiceBusyError       too many requests wait for the same resource: try again      (503)
├── DatabaseLostError      the database would lose what is written; its class is in
│                          `service.store.database.error`                               (503)
└── LeaseLostError         another coordinator owns the job now: stop, write nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from compiler.user_errors import NoResultError, UsageError


class ServiceError(NoResultError):
    """The root of the tree above."""


class ServeError(ServiceError):
    """The service cannot start; its operator can correct the cause."""


class ServiceNotFoundError(ServiceError):
    """The requested object does not exist; `job_id` is the job that searches for it, if any."""

    def __init__(self, reason: str, job_id: UUID | None = None, *, advice: str = "") -> None:
        super().__init__(f"{reason}; {advice}" if advice else reason)
        self.reason = reason
        self.job_id = job_id


class ForbiddenError(ServiceError):
    """The token of the caller does not allow the request."""


class QuotaError(ServiceError):
    """The jobs in the queue exceed the quota of the caller's token; a later request may succeed."""


class ServiceConflictError(ServiceError):
    """The request contradicts the stored state."""


@dataclass(frozen=True)
class Flaw:
    """One error of a request, and its location."""

    detail: str
    pointer: str | None = None
    line: int | None = None
    column: int | None = None


class UnprocessableError(ServiceError, UsageError):
    """A well-formed request with invalid content."""

    def __init__(self, detail: str, *flaws: Flaw) -> None:
        super().__init__(detail)
        self.detail = detail
        self.flaws = flaws


class BuildFailedError(ServiceError):
    """The compiler crashed on a kernel, or was killed."""


class ServiceBusyError(ServiceError):
    """Too many requests wait for the same resource; a later one may succeed."""


class LeaseLostError(ServiceError):
    """The job belongs to another coordinator, or has ended; nothing was written."""
