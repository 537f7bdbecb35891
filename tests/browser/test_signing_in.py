"""A service that wants a token: signing in and out, looking only, and a token that is revoked."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from playwright.sync_api import Page, expect

from examples.serving import Server, serving
from tests.browser.conftest import OpenTab
from tests.browser.looks import look_at
from tests.patience import PATIENCE_SECS

JOB = {"workload": {"operator": "matmul:32,32,32:float32"}, "max_trials": 8}
NewToken = Callable[[str, str], tuple[str, str]]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service") / "loopwright.db"


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[Server]:
    """A server in the place of the usual one, that wants tokens and drives no job."""
    with serving(file, command="api") as running:
        yield running


@pytest.fixture(scope="module")
def admin(server: Server, file: Path) -> Iterator[httpx2.Client]:
    """Whoever made the first token, as the documentation says."""
    command = [sys.executable, "-m", "loopwright", "token", "create", "root", "--scope", "admin"]
    made = subprocess.run(
        [*command, "--db", f"sqlite:///{file}"], capture_output=True, text=True, check=True
    )
    address = f"{server.url}/api/v1"
    deadline = time.monotonic() + PATIENCE_SECS
    while httpx2.get(f"{address}/jobs", timeout=PATIENCE_SECS).status_code != 401:
        assert time.monotonic() < deadline, "the service never wanted a token"
        time.sleep(0.1)
    headers = {"Authorization": f"Bearer {made.stdout.split()[0]}"}
    with httpx2.Client(base_url=address, headers=headers, timeout=PATIENCE_SECS) as client:
        yield client


@pytest.fixture
def new_token(admin: httpx2.Client) -> NewToken:
    """Make tokens; returns each with the address at which it is revoked."""

    def make(name: str, scope: str) -> tuple[str, str]:
        body = {"name": name, "scopes": [scope]}
        made = admin.post("/tokens", json=body).raise_for_status().json()
        return made["token"], f"/tokens/{made['id']}"

    return make


@pytest.fixture(scope="module")
def job(admin: httpx2.Client) -> str:
    return str(admin.post("/jobs", json=JOB).raise_for_status().json()["id"])


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def kept(page: Page) -> str:
    return str(page.evaluate("JSON.stringify([{...localStorage}, document.cookie, location.href])"))


def test_a_token_is_asked_for_kept_in_the_tab_and_forgotten(
    open_tab: OpenTab, new_token: NewToken, job: str
) -> None:
    token, _ = new_token("ann", "submit")
    page = open_tab("/?sort=created_at")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    for wrong in ("lw_wrong", "\N{GREEK SMALL LETTER LAMDA}"):
        sign_in(page, wrong)
        expect(page.get_by_role("alert")).to_contain_text("Invalid access token")
    sign_in(page, token)
    expect(page.get_by_role("region", name="Jobs")).to_be_visible()
    expect(page.get_by_text("ann (submit)")).to_be_visible()
    assert page.url.endswith("/?sort=created_at")
    assert token not in kept(page)
    page.reload()
    expect(page.get_by_role("region", name="Jobs")).to_be_visible()
    expect(open_tab().get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("region", name="Jobs")).to_have_count(0)
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_who_may_only_look_sees_why_the_rest_is_not_to_be_had(
    open_tab: OpenTab, new_token: NewToken, job: str
) -> None:
    token, _ = new_token("guest", "read")
    page = open_tab(f"/jobs/{job}")
    sign_in(page, token)
    expect(page.get_by_text("The access token of guest is read-only")).to_be_visible()
    for name in ("Stop, keep the best", "Cancel", "Add trials"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    expect(page.get_by_role("button", name="Copy client snippet")).to_be_enabled()
    page.get_by_role("link", name="New job").click()
    start = page.get_by_role("button", name="Start tuning")
    expect(start).to_be_disabled()
    expect(start).to_have_accessible_description(re.compile("^The access token of guest"))
    expect(page.get_by_role("region", name="Parsed program")).to_contain_text("legal")


def test_a_revoked_token_leads_back_and_what_was_written_is_kept(
    open_tab: OpenTab, new_token: NewToken, admin: httpx2.Client
) -> None:
    first, place = new_token("bob", "submit")
    second, _ = new_token("eve", "submit")
    page = open_tab("/submit")
    sign_in(page, first)
    page.get_by_label("Operator, shape and type").fill("relu:64,64")
    expect(page.get_by_role("region", name="Parsed program")).to_contain_text("legal")
    admin.delete(place).raise_for_status()
    page.get_by_role("button", name="Start tuning").click()
    expect(page.get_by_role("alert")).to_contain_text("was revoked")
    sign_in(page, second)
    expect(page.get_by_label("Operator, shape and type")).to_have_value("relu:64,64")
    page.get_by_role("button", name="Start tuning").click()
    expect(page.get_by_role("heading", name="relu")).to_be_visible()
    expect(page.get_by_text("eve", exact=True)).to_be_visible()


def test_a_page_that_is_watched_leads_back_too(
    open_tab: OpenTab, new_token: NewToken, admin: httpx2.Client, job: str
) -> None:
    token, place = new_token("dan", "read")
    page = open_tab()
    sign_in(page, token)
    expect(page.get_by_role("region", name="Jobs")).to_be_visible()
    admin.delete(place).raise_for_status()
    expect(page.get_by_role("alert")).to_contain_text("was revoked")
    expect(page.get_by_role("region", name="Jobs")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_for_signing_in_is_readable(
    open_tab: OpenTab, job: str, theme: Literal["light", "dark"]
) -> None:
    page = open_tab(f"/jobs/{job}", theme=theme)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    look_at(page, "/sign-in", theme)
