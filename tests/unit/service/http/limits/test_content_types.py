"""Bodies by type, through the middleware alone."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from service.http.limits.content_types import ContentTypes


@pytest.fixture
def client() -> TestClient:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{len(await request.body())}")

    routes = [Route("/{path:path}", answer, methods=["GET", "POST"])]
    return TestClient(ContentTypes(Starlette(routes=routes)))


JSON_PATH, RECORDS_PATH = "/api/v1/jobs", "/api/v1/import"


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        (JSON_PATH, "application/json"),
        (JSON_PATH, "Application/JSON; charset=utf-8"),
        (JSON_PATH, "application/merge-patch+json"),
        (RECORDS_PATH, "application/x-ndjson"),
        (RECORDS_PATH, "application/jsonl"),
    ],
)
def test_the_types_of_a_route_are_read(client: TestClient, path: str, media_type: str) -> None:
    answer = client.post(path, content=b"{}", headers={"Content-Type": media_type})
    assert (answer.status_code, answer.text) == (200, "2")


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        (JSON_PATH, "text/plain"),
        (JSON_PATH, "application/x-www-form-urlencoded"),
        (JSON_PATH, "application/x-ndjson"),
        (JSON_PATH, "text/json"),
        (RECORDS_PATH, "application/json"),
        (RECORDS_PATH, "text/plain"),
    ],
)
def test_another_type_is_refused_with_the_one_to_send(
    client: TestClient, path: str, media_type: str
) -> None:
    answer = client.post(path, content=b"{}", headers={"Content-Type": media_type})
    assert answer.status_code == 415
    assert "Content-Type: application/" in answer.json()["detail"]
    assert media_type in answer.json()["detail"]


def test_a_compressed_body_is_refused(client: TestClient) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = client.post(JSON_PATH, content=b"{}", headers=headers)
    assert answer.status_code == 415
    assert "Content-Encoding" in answer.json()["detail"]


def test_requests_without_a_body_need_no_type(client: TestClient) -> None:
    assert client.post(JSON_PATH).status_code == 200
    assert client.get(JSON_PATH, headers={"Content-Type": "text/plain"}).status_code == 200
