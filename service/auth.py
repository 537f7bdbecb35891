"""Who may ask: whoever knows the token, if there is one."""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

_bearer = HTTPBearer(auto_error=False, description="Needed if the service was given a token.")


def digest(token: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).digest()


def check_token(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> None:
    """Refuse a request without the right token, with 401."""
    wanted: bytes | None = request.app.state.token_digest
    if wanted is None:
        return
    if given is None:
        detail = "this service wants a token: send it as `Authorization: Bearer TOKEN`"
    elif hmac.compare_digest(digest(given.credentials), wanted):
        return
    else:
        detail = "this is not the token of this service"
    raise HTTPException(401, detail, headers={"WWW-Authenticate": "Bearer"})
