"""Failures of the service and of jobs: what the pages say of them, and what they still offer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from examples.serving import Server
from tests.browser.conftest import OpenTab, newest_job
from tests.browser.looks import keep_screenshot, violations, wait_until

LONG = "internal error: ScheduleError: " + "cannot be split: " * 200


def test_a_job_whose_check_failed_cannot_be_started(open_tab: OpenTab) -> None:
    page = open_tab("/submit", is_cut=True)
    start = page.get_by_role("button", name="Start tuning")
    expect(start).to_be_enabled()
    problem = {"type": "about:blank", "title": "Internal Server Error", "status": 500}
    page.route("**/api/v1/workloads/check", lambda route: route.fulfill(status=500, json=problem))
    page.get_by_label("Operator, shape and type").fill("matmul:64,32,16:float32")
    expect(start).to_have_accessible_description(re.compile("failed to check the task"))
    expect(start).to_be_disabled()
    keep_screenshot(page, "/submit-unchecked", "light", 1280)


@pytest.mark.parametrize("has_trials", [True, False])
def test_a_job_that_ended_with_failures_only(
    open_tab: OpenTab, server: Server, has_trials: bool
) -> None:
    def fail_job(route: Route) -> None:
        job = route.fetch().json()
        times = {name: None for name in job if name.startswith(("best", "default", "speedup"))}
        route.fulfill(json={**job, **times, "state": "failed", "error": LONG})

    def fail_trials(route: Route) -> None:
        columns = route.fetch().json()
        kept = len(columns["number"]) if has_trials else 0
        cut = {name: v[:kept] for name, v in columns.items() if isinstance(v, list)}
        times = {name: [None] * kept for name in cut if name.endswith("_secs")}
        named = {name: columns[name] for name in ("sketches", "outcomes")}
        route.fulfill(json={**columns, **cut, **named, **times})

    job_id = newest_job(server)
    page = open_tab("/", is_cut=True)
    page.route(f"**/api/v1/jobs/{job_id}", fail_job)
    page.route(f"**/api/v1/jobs/{job_id}/columns*", fail_trials)
    page.goto(f"{server.url}/jobs/{job_id}")
    expect(page.get_by_role("alert")).to_contain_text("The job failed.")
    wait_until(page, "document.documentElement.scrollWidth <= window.innerWidth")
    alert = page.get_by_role("alert").locator("pre")
    assert alert.evaluate("element => element.scrollWidth <= element.clientWidth")
    if has_trials:
        expect(page.get_by_role("img", name="No trial was correct.")).to_be_visible()
        expect(page.get_by_text("Dashed line")).to_have_count(0)
    else:
        expect(page.get_by_text("The job ended without trials.")).to_be_visible()
    assert not violations(page)
    keep_screenshot(page, f"/failed-{has_trials}", "light", 1280)
