"""`/tokens`: create, list and revoke tokens."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response, status

from service.common.quota import Quota
from service.http.auth import ADMIN
from service.http.dependencies import PartsOf
from service.http.problems import responses
from service.reading.lists import list_tokens
from service.reading.queries import TokensQuery
from service.store import tokens
from service.wire.models import Page
from service.wire.server_models import TokenCreate, TokenCreated, TokenRead

router = APIRouter(prefix="/tokens", tags=["tokens"], dependencies=[ADMIN])


@router.post("", status_code=status.HTTP_201_CREATED, responses=responses(409, 422))
def post_token(parts: PartsOf, request: TokenCreate) -> TokenCreated:
    """Create a token, and show it once. From the first token on, every request needs one."""
    with parts.database.write() as session:
        quota = Quota(request.max_jobs, request.max_trials, request.max_priority)
        row, token = tokens.create(session, request.name, request.scopes, quota)
        return TokenCreated(**tokens.read(row).model_dump(), token=token)


@router.get("", responses=responses(422))
def get_tokens(parts: PartsOf, query: Annotated[TokensQuery, Query()]) -> Page[TokenRead]:
    """List the tokens, including revoked ones, the newest first by default."""
    with parts.database.read() as session:
        return list_tokens(session, query)


@router.delete(
    "/{token_id}",
    status_code=status.HTTP_204_NO_CONTENT,
    response_class=Response,
    responses=responses(404, 422),
)
def delete_token(parts: PartsOf, request: Request, token_id: UUID) -> None:
    """Revoke a token; revoking it again changes nothing."""
    with parts.database.write() as session:
        tokens.revoke(session, token_id)
    request.app.state.tokens.forget()
