"""The dashboard as people use it: a real browser, a real server, real jobs."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import expect

from examples.serving import Server
from tests.browser.conftest import OpenTab, newest_job
from tests.browser.looks import look_at

PAGES = ("/", "/submit", "/compare", "/best", "/models", "/cost-models", "/workers", "/nowhere")


def test_a_job_is_submitted_watched_to_its_end_and_opened(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_label("Operator, shape and type").fill("matmul:24,24,24:float32")
    page.get_by_label("Target").fill("cpu -num-cores=1")
    page.get_by_label("Trials", exact=True).fill("20")
    page.get_by_role("button", name="Start tuning").click()
    expect(page.get_by_role("heading", name="matmul")).to_be_visible()
    expect(page.get_by_text("succeeded")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("All trials (20)")).to_be_visible()
    page.get_by_role("region", name="Trials").get_by_role("link", name="0", exact=True).click()
    expect(page.get_by_role("heading", name="Trial 0")).to_be_visible()
    expect(page.get_by_text("default", exact=True)).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_violation_or_runs_off_a_phone(
    open_tab: OpenTab, server: Server, theme: Literal["light", "dark"]
) -> None:
    job = newest_job(server)
    for path in (*PAGES, f"/jobs/{job}", f"/jobs/{job}/trials/3"):
        page = open_tab(path, theme=theme)
        expect(page.get_by_role("heading").first).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        look_at(page, path, theme)
