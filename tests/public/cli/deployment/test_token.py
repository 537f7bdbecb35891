"""`loopwright token`, on a database of the test's own."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

from loopwright.cli.main import app
from loopwright.cli.shared.failure import explain
from loopwright.errors import AccessDeniedError
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import open_database
from service.wire.problems import Problem


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/loopwright.db"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["token", *arguments])


def status(url: str, token: str) -> int:
    """Return what a service over the database answers to a token."""
    database = open_database(url)
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(create_app(Dependencies(database))) as client:
        answer = client.get("/api/v1/tokens", headers=headers).status_code
    database.close()
    return answer


def test_a_token_is_made_used_listed_and_revoked(url: str) -> None:
    made = run("create", "ops", "--scope", "admin", "--db", url)
    assert made.exit_code == 0, made.output
    token = made.stdout.strip()
    assert token.startswith("lw_")
    assert status(url, token) == 200

    shown = json.loads(run("list", "--db", url, "--json").stdout)
    assert [(t["name"], t["scopes"], t["revoked_at"]) for t in shown] == [("ops", ["admin"], None)]
    assert shown[0]["last_used_at"] is not None
    assert token not in run("list", "--db", url).stdout

    assert run("revoke", "ops", "--db", url).exit_code == 0
    assert status(url, token) == 401


def test_limits_of_a_token_are_listed(url: str) -> None:
    options = ["--max-jobs", "2", "--max-trials", "500", "--max-priority", "-1"]
    made = json.loads(run("create", "ci", *options, "--db", url, "--json").stdout)
    (shown,) = json.loads(run("list", "--db", url, "--json").stdout)
    for each in (made, shown):
        assert (each["max_jobs"], each["max_trials"], each["max_priority"]) == (2, 500, -1)
    assert "500 trials" in " ".join(run("list", "--db", url).stdout.split())


def test_a_token_is_revoked_by_its_id_too(url: str) -> None:
    made = json.loads(run("create", "ops", "--db", url, "--json").stdout)
    assert made["scopes"] == ["submit"]
    assert run("revoke", made["id"], "--db", url).exit_code == 0
    assert status(url, made["token"]) == 401


def test_who_has_no_token_is_told_how_to_give_one() -> None:
    problem = Problem(
        status=401, title="unauthorized", detail="this service requires an access token"
    )
    failure = explain(AccessDeniedError(problem))
    assert failure is not None
    assert failure.message.startswith(
        "this service requires an access token\npass one with --token"
    )


def test_a_name_that_is_taken_or_unknown_is_told(url: str) -> None:
    run("create", "ops", "--db", url)
    taken = run("create", "ops", "--db", url)
    assert taken.exit_code == 1
    assert "token 'ops' exists" in taken.stderr
    for name, code, message in (
        ("nobody", 2, "no active token 'nobody'"),
        (str(UUID(int=0)), 1, f"no token {UUID(int=0)}"),
    ):
        unknown = run("revoke", name, "--db", url)
        assert unknown.exit_code == code
        assert message in unknown.stderr
    assert run("create", "not a name", "--db", url).exit_code == 2


@pytest.mark.parametrize("arguments", [("list",), ("revoke", "ann")])
def test_who_looks_for_tokens_makes_no_database(
    url: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    result = run(*arguments, "--db", url)
    assert result.exit_code == 1
    assert "no database" in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []
