"""The errors that the service raises on purpose.

ServiceError
├── ServeError             the service cannot start: the message tells the operator why
├── NotFoundError          what was asked for does not exist                            (404)
├── ForbiddenError         the caller's token does not allow what was asked for         (403)
├── ConflictError          what was asked for cannot be as things stand                 (409)
├── InvalidRequestError    the request is well-formed and means nothing we can do       (422)
├── QuotaError             the caller's token has too much in the queue                 (429)
├── BuildFailedError       the compiler died of a kernel, or took too long              (500)
├── BusyError              too many wait for the same thing already: come back          (503)
├── DatabaseLostError      what is written would be lost (service.store.database.error)
(503) └── LeaseLostError         another coordinator owns the job now: stop, write nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


class ServiceError(Exception):
    """The root of the tree above."""


class ServeError(ServiceError):
    """The service cannot start, and its operator can mend that."""


class ServiceNotFoundError(ServiceError):
    """What was asked for does not exist; `job_id` is that of a job that looks for it."""

    def __init__(self, reason: str, job_id: UUID | None = None, *, advice: str = "") -> None:
        super().__init__(f"{reason}; {advice}" if advice else reason)
        self.reason = reason
        self.job_id = job_id


class ForbiddenError(ServiceError):
    """The token of the caller does not allow what was asked for."""


class QuotaError(ServiceError):
    """The token of the caller has too much in the queue; that may be less later."""


class ServiceConflictError(ServiceError):
    """The request contradicts the stored state."""


@dataclass(frozen=True)
class Flaw:
    """One thing that is wrong with a request, and where."""

    detail: str
    pointer: str | None = None
    line: int | None = None
    column: int | None = None


class UnprocessableError(ServiceError):
    """A request that can be read and cannot be meant."""

    def __init__(self, detail: str, *flaws: Flaw) -> None:
        super().__init__(detail)
        self.detail = detail
        self.flaws = flaws


class BuildFailedError(ServiceError):
    """The compiler died of a kernel, or had to be killed; what it refuses is a bad request."""


class ServiceBusyError(ServiceError):
    """Too many requests wait for the same thing already; a later one may succeed."""


class LeaseLostError(ServiceError):
    """The job belongs to another coordinator, or is over; nothing was written."""
