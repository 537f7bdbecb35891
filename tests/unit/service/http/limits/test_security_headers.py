"""Headers that every answer has."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from service.http.limits.security_headers import SecurityHeaders


def client_of(headers: dict[str, str]) -> TestClient:
    async def answer(_: Request) -> Response:
        return Response("{}", headers=headers)

    return TestClient(SecurityHeaders(Starlette(routes=[Route("/", answer)])))


@pytest.mark.parametrize("path", ["/", "/missing"])
def test_each_answer_forbids_frames_scripts_and_guessed_types(path: str) -> None:
    headers = client_of({}).get(path).headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_an_answer_with_an_etag_may_be_cached_and_checked() -> None:
    assert client_of({"ETag": '"1"'}).get("/").headers["cache-control"] == "private, no-cache"


def test_what_an_answer_says_itself_stays() -> None:
    headers = client_of({"Content-Security-Policy": "default-src 'self'"}).get("/").headers
    assert headers["content-security-policy"] == "default-src 'self'"
