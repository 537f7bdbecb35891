"""Who may change what."""

from __future__ import annotations

import pytest

from service.common.caller import ANYBODY, Caller
from service.common.errors import ForbiddenError
from service.wire.server_models import Scope


def test_scopes_contain_those_below() -> None:
    scopes = list(Scope)
    for held in scopes:
        allowed = [scope for scope in scopes if Caller("ann", held).may(scope)]
        assert allowed == scopes[: scopes.index(held) + 1]


def test_an_owner_and_an_admin_may_change_a_job() -> None:
    submit = Caller("ann", Scope.SUBMIT)
    submit.refuse_stranger(["ann", "ann"], "job 1")
    Caller("root", Scope.ADMIN).refuse_stranger(["ann", None], "job 1")
    ANYBODY.refuse_stranger(["ann"], "job 1")


@pytest.mark.parametrize(
    ("owners", "whose"), [(["bob"], "token 'bob'"), ([None], "no token"), (["ann", "bob"], "bob")]
)
def test_a_stranger_may_not(owners: list[str | None], whose: str) -> None:
    with pytest.raises(ForbiddenError, match=whose):
        Caller("ann", Scope.SUBMIT).refuse_stranger(owners, "job 1")
