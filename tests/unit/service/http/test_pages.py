"""The dashboard's files over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient

from service.http.pages import Pages


def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse("refused", error.status_code)


def _client(built: Path) -> TestClient:
    app = Starlette(exception_handlers={HTTPException: _refuse})
    app.router.default = Pages(built)
    return TestClient(app)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    built = tmp_path / "dashboard"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("the page")
    (built / "icon.svg").write_text("<svg/>")
    (built / "assets" / "index-abc.js").write_text("the code")
    (tmp_path / "secret").write_text("not for the web")
    with _client(built) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/jobs/7", "/no/such/page", "/%00", "/index.html"])
def test_the_page_itself_answers_for_its_addresses(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.text) == (200, "the page")
    assert response.headers["cache-control"] == "no-cache"
    assert "default-src 'none'" in response.headers["content-security-policy"]


def test_assets_are_kept_by_browsers_since_their_names_change(client: TestClient) -> None:
    response = client.get("/assets/index-abc.js")
    assert response.text == "the code"
    assert "immutable" in response.headers["cache-control"]


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/v1",
        "/api/v1/nothing",
        "/api/v2/jobs",
        "/assets/index-old.js",
        "/healthz",
        "/docs",
        "/redoc",
        "/openapi.json",
        "/.env",
        "/wp-login.php",
        "/.git/config.bak",
    ],
)
def test_what_is_missing_is_not_the_page(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_browser_finds_the_icon_where_it_looks_for_one(client: TestClient) -> None:
    response = client.get("/favicon.ico")
    assert (response.status_code, response.text) == (200, "<svg/>")
    assert response.headers["content-type"] == "image/svg+xml"


def test_robots_are_sent_away(client: TestClient) -> None:
    response = client.get("/robots.txt")
    assert response.headers["content-type"].startswith("text/plain")
    assert response.text == "User-agent: *\nDisallow: /\n"


def test_nothing_is_sent_to_the_page(client: TestClient) -> None:
    assert client.post("/").status_code == 404


@pytest.mark.parametrize(
    "path", ["/../secret", "/..%2fsecret", "/assets/..%2f..%2fsecret", "//secret"]
)
def test_no_path_leaves_the_folder(client: TestClient, path: str) -> None:
    assert "not for the web" not in client.get(path).text


def test_a_service_without_its_pages_says_how_to_build_them(tmp_path: Path) -> None:
    with _client(tmp_path / "nothing") as client:
        response = client.get("/")
    assert response.status_code == 503
    assert "make dashboard" in response.text


def test_pages_that_are_built_while_the_service_runs_are_found(tmp_path: Path) -> None:
    with _client(tmp_path) as client:
        assert client.get("/").status_code == 503
        (tmp_path / "assets").mkdir()
        (tmp_path / "index.html").write_text("the page")
        assert client.get("/").text == "the page"
        (tmp_path / "assets" / "index-new.js").write_text("the code")
        assert client.get("/assets/index-new.js").text == "the code"
