"""Authentication and authorisation: access tokens and their scopes.

A service without tokens accepts every client, and listens on loopback only. From the first token
on, every request needs one. Every route of the API requires the scope `read`; routes that require
more declare it with `SUBMIT` or `ADMIN`, and the OpenAPI document shows it.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import structlog
from fastapi import Depends, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from compiler.bounded_cache import BoundedCache
from service.common.caller import ANYBODY, Caller
from service.http.rate_limit import RateLimit
from service.http.shared_reads import SharedReads
from service.store import tokens
from service.store.database.database import Database
from service.wire.server_models import Scope

_log = structlog.get_logger()

REMEMBERED_SECS = 1.0
"""How long a process caches a token, and so the longest time that a revoked one is accepted. Saves
a query for each request. Chosen.
"""
_MAX_REMEMBERED = 10_000
"""Number of cached tokens: bounds the memory that unknown tokens can take. Chosen."""
_LEVELS = list(Scope)
_MORE_COST = 9
"""Additional cost, in requests, of a request that does more than read: it may start work. Chosen.
"""


@dataclass(frozen=True)
class _CachedCaller:
    """The cached caller of a token, and when the entry expires."""

    until: float
    caller: Caller | None


class Tokens:
    """Identifies the callers of one service; safe to use from several threads.

    Args:
        bootstrap: A token with every scope that is not in the database.
    """

    def __init__(
        self,
        database: Database,
        bootstrap: str | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._bootstrap = None if bootstrap is None else tokens.digest(bootstrap)
        self._clock = clock
        self._callers: BoundedCache[str, _CachedCaller] = BoundedCache(_MAX_REMEMBERED)
        self._shared = SharedReads(self._identify_all)
        self._open_until = 0.0
        self._is_closed = bootstrap is not None

    def identify(self, token: str | None) -> Caller | None:
        """Return the caller with this token; None if the token is unknown or revoked."""
        if self._is_open():
            return ANYBODY
        return None if token is None else self._caller(token)

    def is_cached(self, token: str | None) -> bool:
        """Return whether `identify` needs no database query."""
        now = self._clock()
        if not self._is_closed:
            return now < self._open_until
        return token is None or self._recall(tokens.digest(token), now) is not None

    async def identify_shared(self, token: str | None) -> Caller | None:
        """Return the caller with this token; concurrent requests share the query.

        Returns:
            None also if the database does not respond: `identify` finds the reason.
        """
        return self.identify(token) if self.is_cached(token) else await self._shared.get(token)

    def forget(self) -> None:
        """Clear the cache after a token was revoked."""
        self._callers.clear()

    def _identify_all(self, texts: Collection[str | None]) -> dict[str | None, Caller | None]:
        return {token: self.identify(token) for token in texts}

    def _is_open(self) -> bool:
        """Return whether no token is needed. Once a token is needed, it stays so."""
        if not self._is_closed and self._clock() >= self._open_until:
            with self._database.read() as session:
                self._is_closed = tokens.any_was_made(session)
            self._open_until = self._clock() + REMEMBERED_SECS
        return not self._is_closed

    def _recall(self, digest: str, now: float) -> _CachedCaller | None:
        if self._bootstrap is not None and hmac.compare_digest(digest, self._bootstrap):
            return _CachedCaller(now, Caller(tokens.BOOTSTRAP, Scope.ADMIN))
        entry = self._callers.get(digest)
        return entry if entry is not None and now < entry.until else None

    def _caller(self, token: str) -> Caller | None:
        digest, now = tokens.digest(token), self._clock()
        entry = self._recall(digest, now)
        if entry is None:
            entry = _CachedCaller(now + REMEMBERED_SECS, self._look_up(token))
            self._callers.put(digest, entry)
        return entry.caller

    def _look_up(self, token: str) -> Caller | None:
        with self._database.read() as session:
            row = tokens.recognize(session, token)
        if row is None:
            return None
        if tokens.is_use_to_be_noted(row):
            try:
                with self._database.write() as session:
                    tokens.note_use(session, row.id)
            except SQLAlchemyError:
                # The next use stores it; this request must not fail for that reason.
                _log.warning("cannot store when a token was used", token=row.name, exc_info=True)
        scope = max((Scope(s) for s in row.scopes), key=_LEVELS.index)
        return Caller(row.name, scope, row.quota)


def token_in(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the token in the raw headers of a request, or None."""
    kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return text if kind.lower() == "bearer" else None


async def admits(tokens: Tokens, limit: RateLimit, headers: Mapping[bytes, bytes]) -> bool:
    """Admit the caller of a request that only reads, and count the request.

    Returns:
        Whether the caller may read. If False, the route of the request decides.
    """
    caller = await tokens.identify_shared(token_in(headers))
    if caller is None or caller is ANYBODY:
        return caller is not None
    return limit.take(_rate_key(caller), 1) <= 0


def _rate_key(caller: Caller) -> str:
    """Return the key of the rate limit of a caller with a token."""
    return f"token {caller.name}"


_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token, with the scopes that a route states: `read` < `submit` < `admin`, each "
    "with those before it. A service that never had a token, and listens on loopback, wants none.",
)


async def _authenticate(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Caller:
    """Return the caller, and count the request against its rate limit.

    Raises:
        HTTPException: 401 without a valid token, 429 for too many requests.
    """
    # Each scope that a route requires calls this.
    authenticated: Caller | None = getattr(request.state, "caller", None)
    if authenticated is not None:
        return authenticated
    known_tokens: Tokens = request.app.state.tokens
    token = None if credentials is None else credentials.credentials
    # A cached caller needs no thread; a database query must not block other requests.
    is_cached = known_tokens.is_cached(token)
    caller = (
        known_tokens.identify(token)
        if is_cached
        else await run_in_threadpool(known_tokens.identify, token)
    )
    if caller is not ANYBODY:
        _count(request, caller, 1)
    if caller is not None:
        request.state.caller = caller
        return caller
    if credentials is None:
        detail, error = (
            "this service requires an access token: send it as `Authorization: Bearer TOKEN`",
            "",
        )
    else:
        detail = "invalid access token: it is unknown or revoked"
        error = ' error="invalid_token"'
    raise HTTPException(401, detail, headers={"WWW-Authenticate": f"Bearer{error}"})


def is_still_known(request: Request) -> Callable[[], bool]:
    """Return a function that returns whether the request's token, or none, is still accepted.

    It queries the database once a second for each token.
    """
    known_tokens: Tokens = request.app.state.tokens
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    token = text.strip() if kind.lower() == "bearer" else None
    return lambda: known_tokens.identify(token) is not None


def _count(request: Request, caller: Caller | None, cost: int) -> None:
    limit: RateLimit = request.app.state.rate_limit
    address = request.client.host if request.client else "?"
    wait_secs = limit.take(f"address {address}" if caller is None else _rate_key(caller), cost)
    if wait_secs > 0:
        detail = f"too many requests: the limit is {limit.per_sec:g} per second for each caller"
        raise HTTPException(429, detail, headers={"Retry-After": str(int(wait_secs) + 1)})


CallerOf = Annotated[Caller, Depends(_authenticate)]


def refuse_unless(caller: Caller, scope: Scope) -> None:
    """Refuse a caller with insufficient scope.

    Raises:
        HTTPException: 403.
    """
    if not caller.may(scope):
        raise HTTPException(
            403,
            f"this needs a token with scope {scope.value!r}; {caller.name!r} has "
            f"{caller.scope.value!r}",
            headers={
                "WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope.value}"'
            },
        )


async def _check(request: Request, required: SecurityScopes, caller: CallerOf) -> None:
    """Refuse a caller with insufficient scope, with 403; count more for a scope beyond `read`."""
    for scope in map(Scope, required.scopes):
        refuse_unless(caller, scope)
        if scope is not Scope.READ and caller is not ANYBODY:
            _count(request, caller, _MORE_COST)


def _wants(scope: Scope) -> Any:
    return Security(_check, scopes=[scope.value])


READ, SUBMIT, ADMIN = map(_wants, _LEVELS)
