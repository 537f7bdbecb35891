"""Addresses: each page has a title, and an address that names nothing says so."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from examples.serving import Server
from tests.browser.conftest import OpenTab, newest_job
from tests.browser.looks import violations


def test_each_page_has_a_title_of_its_own(open_tab: OpenTab, server: Server) -> None:
    job = newest_job(server)
    titles = {
        "/": "Jobs",
        "/submit": "New job",
        "/best": "Best schedules",
        "/models": "Models",
        "/cost-models": "Cost model",
        "/workers": "Workers",
        "/compare": "Compare jobs",
        "/nowhere": "Page not found",
        "/jobs/abc": "Job not found",
        f"/jobs/{job}": r"matmul 32 x 32 x 32 \(succeeded\)",
        f"/jobs/{job}/trials/3": "Trial 3 of matmul",
    }
    page = open_tab("/")
    for path, title in titles.items():
        page.goto(server.url + path)
        expect(page).to_have_title(re.compile(f"^{title} \N{MIDDLE DOT} Loopwright$"))


@pytest.mark.parametrize("job", ["abc", "01234567-89ab-4def-8123-456789abcdef", "%F0%9F%92%A9"])
def test_an_id_of_no_job_leads_back_to_the_jobs(open_tab: OpenTab, job: str) -> None:
    for path in (f"/jobs/{job}", f"/jobs/{job}/trials/0"):
        page = open_tab(path)
        expect(page.get_by_role("heading", name="Job not found")).to_be_visible()
        expect(page.get_by_text("validation")).to_have_count(0)
        assert not violations(page)
        page.get_by_role("link", name="Show all jobs").click()
        expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()


@pytest.mark.parametrize("number", ["9999", "abc", "-1"])
def test_a_number_of_no_trial_leads_back_to_its_job(
    open_tab: OpenTab, server: Server, number: str
) -> None:
    page = open_tab(f"/jobs/{newest_job(server)}/trials/{number}")
    expect(page.get_by_role("heading", name="Trial not found")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="matmul").click()
    expect(page.get_by_role("heading", name="matmul")).to_be_visible()


def test_unknown_jobs_are_left_out_of_a_comparison(open_tab: OpenTab, server: Server) -> None:
    page = open_tab(f"/compare?jobs=abc,{newest_job(server)}")
    expect(page.get_by_role("alert")).to_contain_text("no job with the id abc")
    expect(page.get_by_role("region", name="Final results")).to_contain_text("matmul")
    assert not violations(page)
    page.get_by_role("alert").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("alert")).to_have_count(0)
