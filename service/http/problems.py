"""Errors as problem documents (RFC 9457): every error answer is one."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from uuid import UUID

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DatabaseError, OperationalError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from service.common.errors import (
    BuildFailedError,
    ForbiddenError,
    QuotaError,
    ServiceBusyError,
    ServiceConflictError,
    ServiceNotFoundError,
    UnprocessableError,
)
from service.store.database.database import Database
from service.store.database.error import DatabaseDamagedError, DatabaseLostError
from service.wire.problems import PROBLEM_TYPE, Problem, ProblemError
from service.wire.requests import MAX_NESTING

MEDIA_TYPE = "application/problem+json"
_USUAL = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "request-timeout",
    409: "conflict",
    413: "too-large",
    415: "unsupported-media-type",
    421: "misdirected",
    422: "invalid-request",
    429: "too-many-requests",
    431: "head-too-large",
    500: "internal",
    503: "unavailable",
}
_OF_POINTERS = {
    "/workload": "invalid-workload",
    "/tasks": "invalid-workload",
    "/model/": "invalid-model",
    "/target": "invalid-target",
    "query/cursor": "invalid-cursor",
    "header/Idempotency-Key": "invalid-idempotency-key",
}
_OTHERS = (
    "build-failed",
    "busy",
    "cross-origin",
    "database-busy",
    "database-lost",
    "error",
    "quota",
)
_NO_OBJECT = frozenset({"dict_type", "model_attributes_type", "model_type"})
"""Pydantic's errors for a value that is no object: their texts speak of Python."""
KINDS = frozenset({*_USUAL.values(), *_OF_POINTERS.values(), *_OTHERS})

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_log = structlog.get_logger()


def problem_response(
    status: int,
    detail: str = "",
    *,
    kind: str | None = None,
    instance: str | None = None,
    errors: tuple[ProblemError, ...] = (),
    job_id: UUID | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return a problem document.

    Args:
        kind: The end of the problem's type, one of `KINDS`; by default the usual one of the status.
    """
    problem = Problem(
        type=PROBLEM_TYPE + (kind or _USUAL.get(status, "error")),
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        instance=instance,
        errors=errors,
        job_id=job_id,
    )
    return JSONResponse(
        problem.model_dump(mode="json", exclude_none=True),
        status,
        headers=dict(headers or {}),
        media_type=MEDIA_TYPE,
    )


def install(app: FastAPI) -> None:
    """Answer every error of `app` with a problem document."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(ServiceNotFoundError, _not_found)
    app.add_exception_handler(ForbiddenError, _forbidden)
    app.add_exception_handler(QuotaError, _quota)
    app.add_exception_handler(ServiceConflictError, _conflict)
    app.add_exception_handler(UnprocessableError, _invalid)
    app.add_exception_handler(BuildFailedError, _build_failed)
    app.add_exception_handler(ServiceBusyError, _busy)
    app.add_exception_handler(OperationalError, _database_busy)
    app.add_exception_handler(DatabaseLostError, _database_lost)
    app.add_exception_handler(DatabaseError, _database_damaged)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description, for OpenAPI, of the problems of a route."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    detail = _unread(error.__cause__) or error.detail
    if error.status_code == HTTPStatus.NOT_FOUND and detail == HTTPStatus.NOT_FOUND.phrase:
        detail = f"there is nothing at {request.url.path}"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.url.path} does not take {request.method}"
    return problem_response(
        error.status_code, detail, instance=request.url.path, headers=error.headers
    )


def _unread(cause: BaseException | None) -> str | None:
    """Return why a body could not be read, if a cause is of that."""
    match cause:
        case RecursionError():
            return (
                "the body is nested too deeply to be read: no request has objects and lists in more"
                f" than {MAX_NESTING} levels"
            )
        case UnicodeDecodeError():
            return f"the body is not UTF-8 text at byte {cause.start}"
        case _:
            return None


def _validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = tuple(_flaw(request, flaw) for flaw in error.errors())
    detail = "; ".join(f"{flaw.pointer or 'body'}: {flaw.detail}" for flaw in errors)
    return problem_response(422, detail, instance=request.url.path, errors=errors)


def _flaw(request: Request, flaw: Mapping[str, Any]) -> ProblemError:
    match flaw["type"], flaw["loc"]:
        case "json_invalid", (_, position):  # a position in the text, not a JSON pointer
            reason = flaw["ctx"]["error"]
            return ProblemError(detail=f"not JSON at character {position}: {reason}")
        case _, ("body",) if "content-type" not in request.headers:  # and therefore no body
            return ProblemError(detail="expected JSON, with `Content-Type: application/json`")
        case kind, location if kind in _NO_OBJECT:
            return ProblemError(detail="expected a JSON object", pointer=_pointer(location))
        case _, location:
            text = str(flaw["msg"]).removeprefix("Value error, ")
            return ProblemError(detail=text, pointer=_pointer(location))


def _pointer(location: tuple[int | str, ...]) -> str:
    """Return a JSON pointer into the body, or the name of a parameter."""
    source, *path = location
    steps = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    return steps if source == "body" else f"{source}{steps}"


def _not_found(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceNotFoundError)
    return problem_response(404, str(error), instance=request.url.path, job_id=error.job_id)


def _forbidden(request: Request, error: Exception) -> JSONResponse:
    return problem_response(403, str(error), instance=request.url.path)


def _quota(request: Request, error: Exception) -> JSONResponse:
    # Jobs take minutes: clients do not retry a refusal of more than one minute.
    headers = {"Retry-After": "300"}
    return problem_response(
        429, str(error), kind="quota", instance=request.url.path, headers=headers
    )


def _conflict(request: Request, error: Exception) -> JSONResponse:
    return problem_response(409, str(error), instance=request.url.path)


def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, UnprocessableError)
    errors = tuple(
        ProblemError(detail=f.detail, pointer=f.pointer, line=f.line, column=f.column)
        for f in error.flaws
    )
    pointer = next((flaw.pointer for flaw in error.flaws if flaw.pointer), "")
    kind = next((k for prefix, k in _OF_POINTERS.items() if pointer.startswith(prefix)), None)
    return problem_response(422, error.detail, kind=kind, instance=request.url.path, errors=errors)


def _build_failed(request: Request, error: Exception) -> JSONResponse:
    _log.error("build failed", path=request.url.path, reason=str(error))
    return problem_response(500, str(error), kind="build-failed", instance=request.url.path)


def _busy(request: Request, error: Exception) -> JSONResponse:
    headers = {"Retry-After": "1"}
    return problem_response(
        503, str(error), kind="busy", instance=request.url.path, headers=headers
    )


def _database_busy(request: Request, error: Exception) -> JSONResponse:
    _log.error("database refused", path=request.url.path, exc_info=error)
    detail = "the database is busy or not writable; try again in a moment"
    headers = {"Retry-After": "5"}
    return problem_response(
        503, detail, kind="database-busy", instance=request.url.path, headers=headers
    )


def _database_lost(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, DatabaseDamagedError):
        request.app.state.parts.database.note_damage(str(error))
    return problem_response(503, str(error), kind="database-lost", instance=request.url.path)


def _database_damaged(request: Request, error: Exception) -> JSONResponse:
    """Answer for pages that SQLite cannot read; other errors of a statement are our own bugs."""
    reason = getattr(error, "orig", None)
    # The lowest byte is the kind of error; the others give the detail.
    if getattr(reason, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
        return _unexpected(request, error)
    database: Database = request.app.state.parts.database
    database.note_damage(f"the database is damaged ({reason}): restore a backup")
    return problem_response(
        503, database.loss() or str(reason), kind="database-lost", instance=request.url.path
    )


def _gone(request: Request, error: Exception) -> JSONResponse:
    """Answer a client that disconnected before its request was complete; it is not our error."""
    return problem_response(400, "the body is incomplete", instance=request.url.path)


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    _log.error("request failed", path=request.url.path, exc_info=error)
    detail = "internal error; the log of the service has the details"
    return problem_response(500, detail, instance=request.url.path)
