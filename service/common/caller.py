"""The caller of a request: a token's name, scope and quota. Independent of HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from service.common.errors import ForbiddenError
from service.common.quota import NO_LIMITS, Quota
from service.wire.server_models import Scope

_LEVELS = list(Scope)


@dataclass(frozen=True)
class Caller:
    """The holder of a token; `name` is the token's name, or None on a service without tokens."""

    name: str | None
    scope: Scope
    quota: Quota = NO_LIMITS

    def may(self, scope: Scope) -> bool:
        """Return whether the caller's scope includes `scope`."""
        return _LEVELS.index(scope) <= _LEVELS.index(self.scope)

    def refuse_stranger(self, owners: Iterable[str | None], what_changes: str) -> None:
        """Refuse a caller who changes an object of another token.

        A token that replaces a revoked one of the same name owns the jobs of the revoked one.

        Args:
            owners: The names of the tokens that submitted the object; None if the service had no
                tokens.
            what_changes: The noun for the object in the message.

        Raises:
            ForbiddenError: If the caller is neither the owner nor an admin.
        """
        if self.may(Scope.ADMIN):
            return
        for owner in owners:
            if owner is None or owner != self.name:
                whose = "no token" if owner is None else f"token {owner!r}"
                raise ForbiddenError(
                    f"{what_changes} belongs to {whose}, and you are {self.name!r}: ask its "
                    "owner, or use a token with scope 'admin'"
                )


ANYBODY = Caller(None, Scope.ADMIN)
"""The caller of a service without tokens, which has every right."""
