"""`/cache`: a cache that other tools use by plain HTTP, such as compilers of kernels.

Its entries are executable for those who load them. A service without tokens therefore has no cache:
every account of its host could write one.
"""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from service.common.caller import Caller
from service.common.errors import ForbiddenError
from service.http.auth import ADMIN, SUBMIT, CallerOf
from service.http.conditional import NOT_MODIFIED, has_it, quoted
from service.http.dependencies import PartsOf
from service.http.limits.content_types import BYTES
from service.http.problems import responses
from service.store import cache_entries
from service.store.cache_entries import QUOTA, CacheEntryRow

_log = structlog.get_logger()

router = APIRouter(prefix="/cache", tags=["cache"])

_Key = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=cache_entries.MAX_KEY_CHARS)
]
_CONTENT = {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}


def _headers(row: CacheEntryRow) -> dict[str, str]:
    return {"ETag": quoted(row.sha256), "Content-Length": str(row.size_bytes)}


def _owner(caller: Caller) -> str:
    """Return the name of the caller's token.

    Raises:
        ForbiddenError: If the service has no tokens.
    """
    if caller.name is None:
        raise ForbiddenError(
            "the cache requires tokens, because its entries are executed: create one with "
            "`loopwright token create`"
        )
    return caller.name


@router.head("/{key}", response_class=Response, responses=responses(403, 404, 422))
def head_entry(parts: PartsOf, caller: CallerOf, key: _Key) -> Response:
    """Look for an entry: its `ETag` is its SHA-256."""
    _owner(caller)
    with parts.database.read() as session:
        return Response(headers=_headers(cache_entries.get(session, key)), media_type=BYTES)


@router.get(
    "/{key}",
    response_class=Response,
    responses={
        **responses(403, 404, 422),
        **NOT_MODIFIED,
        200: {"description": "The entry; its `ETag` is its SHA-256", **_CONTENT},
    },
)
def get_entry(
    parts: PartsOf,
    caller: CallerOf,
    key: _Key,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Read an entry."""
    _owner(caller)
    with parts.database.read() as session:
        row = cache_entries.get(session, key)
        is_known = has_it(if_none_match, quoted(row.sha256))
        content = b"" if is_known else row.content
    if row.is_use_to_be_noted:
        try:
            with parts.database.write() as session:
                cache_entries.note_use(session, key)
        except SQLAlchemyError:
            # The next use stores it; this request must not fail for that reason.
            _log.warning("cannot store when an entry was used", key=key, exc_info=True)
    if is_known:
        return Response(status_code=304, headers={"ETag": quoted(row.sha256)})
    return Response(content, headers=_headers(row), media_type=BYTES)


@router.put(
    "/{key}",
    status_code=201,
    response_class=Response,
    dependencies=[SUBMIT],
    responses={
        **responses(403, 409, 413, 422),
        200: {"model": None, "description": "The entry has this content already"},
    },
    openapi_extra={"requestBody": {"required": True, **_CONTENT}},
)
async def put_entry(parts: PartsOf, caller: CallerOf, key: _Key, request: Request) -> Response:
    """Store an entry. It never changes: the same key with another content is refused."""
    owner = _owner(caller)
    content = await request.body()
    quota = cache_entries.quota_bytes()
    if len(content) > quota:
        raise HTTPException(
            413, f"the entry has {len(content)} bytes, and the cache {quota} ({QUOTA})"
        )

    def put() -> tuple[bool, str]:
        with parts.database.write() as session:
            is_new = cache_entries.put(session, key, content, owner, quota)
            return is_new, cache_entries.get(session, key).sha256

    is_new, sha256 = await run_in_threadpool(put)
    return Response(status_code=201 if is_new else 200, headers={"ETag": quoted(sha256)})


@router.delete("/{key}", status_code=204, dependencies=[ADMIN], responses=responses(403, 404, 422))
def delete_entry(parts: PartsOf, caller: CallerOf, key: _Key) -> None:
    """Remove an entry, for example one that a revoked token stored."""
    _owner(caller)
    with parts.database.write() as session:
        cache_entries.remove(session, key)
