"""Every route of the OpenAPI document, without a token and with too small a scope."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import tokens
from service.store.database.database import Database
from service.wire.server_models import Scope
from tests.service_fixtures import problem

OPEN = {"/livez", "/readyz"}
# What is asked for by POST, because a script is too long for a URL, and changes nothing.
QUESTIONS = {"/api/v1/schedules/best", "/api/v1/workloads/check"}
LEVELS = list(Scope)


def operations(app: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Return method, path and description of all that the document has."""
    return [
        (method.upper(), path, operation)
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]


def needed(operation: dict[str, Any]) -> Scope:
    """Return the scope that an operation states."""
    (requirement,) = operation["security"]
    return max((Scope(s) for s in requirement["token"]), key=LEVELS.index)


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database), token="bootstrap", requests_per_sec=0)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def ask(client: TestClient, method: str, path: str, token: str | None = None) -> Any:
    """Send a request that gets no further than to the check of its token."""
    concrete = path.replace("{number}", "0").replace("{", "").replace("}", "")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return client.request(method, concrete, headers=headers)


def test_every_route_states_its_scope(client: TestClient) -> None:
    for method, path, operation in operations(client.app):
        if path in OPEN:
            assert "security" not in operation, path
            continue
        scope = needed(operation)
        if path.startswith("/api/v1/tokens"):
            assert scope is Scope.ADMIN, path
        elif method in {"GET", "HEAD"} or path in QUESTIONS:
            assert scope is Scope.READ, path
        else:
            assert scope is not Scope.READ, f"{method} {path} changes something"


def test_every_route_wants_a_token(client: TestClient) -> None:
    for method, path, operation in operations(client.app):
        if path in OPEN:
            assert ask(client, method, path).status_code == 204
            continue
        for token in (None, "wrong"):
            response = ask(client, method, path, token)
            assert response.status_code == 401, path
            if method != "HEAD":  # its answers have no body
                problem(response, 401)
            assert response.headers["www-authenticate"].startswith("Bearer"), path
        assert "401" in operation["responses"], path


@pytest.mark.parametrize("scope", [Scope.READ, Scope.SUBMIT])
def test_every_route_refuses_too_small_a_scope(
    client: TestClient, database: Database, scope: Scope
) -> None:
    with database.write() as session:
        _, token = tokens.create(session, "small", [scope])
    refused = 0
    for method, path, operation in operations(client.app):
        if path in OPEN or LEVELS.index(needed(operation)) <= LEVELS.index(scope):
            continue
        response = ask(client, method, path, token)
        problem(response, 403)
        assert f'scope="{needed(operation).value}"' in response.headers["www-authenticate"], path
        assert "403" in operation["responses"], path
        refused += 1
    assert refused >= 3


def texts(schema: dict[str, Any], schemas: dict[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    """Yield each text that a schema takes, with its place."""
    if (ref := schema.get("$ref")) is not None:
        schema = schemas[ref.rpartition("/")[2]]
    for choice in schema.get("anyOf", ()):
        yield from texts(choice, schemas, place)
    for name, each in schema.get("properties", {}).items():
        yield from texts(each, schemas, f"{place}/{name}")
    if isinstance(schema.get("items"), dict):
        yield from texts(schema["items"], schemas, f"{place}/-")
    if schema.get("type") == "string":
        yield place, schema


def test_every_text_that_is_taken_has_a_bound(client: TestClient) -> None:
    document = client.app.openapi()  # type: ignore[attr-defined]
    schemas = document["components"]["schemas"]
    found: list[tuple[str, Any]] = []
    for method, path, operation in operations(client.app):
        for parameter in operation.get("parameters", ()):
            place = f"{method} {path} {parameter['in']}/{parameter['name']}"
            found += texts(parameter["schema"], schemas, place)
        for kind, body in operation.get("requestBody", {}).get("content", {}).items():
            if kind == "application/json":
                found += texts(body["schema"], schemas, f"{method} {path} body")
    boundless = [
        place
        for place, text in found
        if not {"maxLength", "enum", "const", "format", "pattern"} & text.keys()
    ]
    # The server bounds all headers together, at 64 KiB.
    assert [place for place in boundless if " header/" not in place] == []
    assert len(found) > 20


def test_a_caller_is_told_who_it_is(client: TestClient, database: Database) -> None:
    with database.write() as session:
        _, token = tokens.create(session, "small", [Scope.READ])
    told = ask(client, "GET", "/api/v1/caller", token).json()
    assert (told["name"], told["scope"]) == ("small", "read")
    with TestClient(create_app(Dependencies(database), token="other")) as other:
        told = ask(other, "GET", "/api/v1/caller", "other").json()
    assert (told["name"], told["scope"]) == ("bootstrap", "admin")
