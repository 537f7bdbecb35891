"""Jobs side by side, held against what the API says of them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

import loopwright as lw
from examples.serving import Server
from tests.browser.conftest import OpenTab


@pytest.fixture
def jobs(server: Server) -> list[lw.models.JobRead]:
    with lw.Client(server.url) as client:
        read = list(client.jobs())
    return [job for job in read if job.max_trials == 20 and job.workload_name == "matmul"][-2:]


def test_seeds_are_a_band_and_the_table_has_each(
    open_tab: OpenTab, jobs: list[lw.models.JobRead]
) -> None:
    page = open_tab(f"/compare?jobs={jobs[0].id},{jobs[1].id}")
    expect(
        page.get_by_role("img", name=re.compile("Shortest sample so far of 2 jobs"))
    ).to_be_visible()
    expect(page.get_by_text("band from minimum to maximum")).to_be_visible()
    table = page.get_by_role("region", name="Final results")
    for job in jobs:
        expect(table.get_by_text(f"seed {job.seed}", exact=True)).to_be_visible()
    expect(table).to_contain_text("Median of 2 seeds")
    best, other = sorted(job.best_secs or 0 for job in jobs)
    expect(table).to_contain_text("1.000\N{MULTIPLICATION SIGN}")
    expect(table).to_contain_text(f"{other / best:.3f}\N{MULTIPLICATION SIGN}")


def test_axes_are_chosen(open_tab: OpenTab, jobs: list[lw.models.JobRead]) -> None:
    page = open_tab(f"/compare?jobs={jobs[0].id},{jobs[1].id}")
    page.get_by_role("button", name="Seconds").click()
    expect(page.get_by_role("img", name=re.compile("by seconds"))).to_be_visible()
    page.get_by_role("group", name="Vertical axis").get_by_role("button", name="Speed-up").click()
    page.get_by_role("button", name="Logarithmic").click()
    expect(page.get_by_role("button", name="Logarithmic")).to_have_attribute(
        "aria-pressed", "false"
    )


def test_a_job_is_left_out(open_tab: OpenTab, jobs: list[lw.models.JobRead]) -> None:
    page = open_tab(f"/compare?jobs={jobs[0].id},{jobs[1].id}")
    page.get_by_role("button", name=f"Remove seed {jobs[0].seed}").click()
    expect(page).to_have_url(re.compile(rf"jobs={jobs[1].id}$"))
    expect(page.get_by_text("Median of")).to_have_count(0)


def test_nothing_to_compare_says_what_to_do(open_tab: OpenTab) -> None:
    page = open_tab("/compare")
    page.get_by_role("link", name="Choose jobs").click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
