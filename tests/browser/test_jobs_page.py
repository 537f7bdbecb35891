"""The list of jobs: filters in the address, and the way to compare."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Route, expect
from typer.testing import CliRunner

import loopwright as lw
from examples.serving import Server
from loopwright.cli.main import app
from tests.browser.conftest import TARGET, OpenTab
from tests.browser.looks import wait_until


def test_a_job_is_told_in_figures(open_tab: OpenTab) -> None:
    row = open_tab("/?sort=created_at").get_by_role("row").nth(1)
    expect(row.get_by_role("link", name="matmul")).to_be_visible()
    for figure in ("32 x 32 x 32", "succeeded", "GFLOP/s", "20 / 20", "\N{MULTIPLICATION SIGN}"):
        expect(row).to_contain_text(figure)
    expect(row.locator(".sparkline path")).to_have_attribute("d", re.compile(r"^M0 .*H96"))


def test_filters_stand_in_the_address_and_are_read_from_it(open_tab: OpenTab) -> None:
    page = open_tab("/")
    expect(page.get_by_role("region", name="Jobs")).to_be_visible()
    page.get_by_role("button", name="failed").click()
    expect(page).to_have_url(re.compile(r"\?state=failed$"))
    expect(page.get_by_text("No matching jobs")).to_be_visible()
    page.get_by_role("button", name="succeeded").click()
    expect(page).to_have_url(re.compile(r"\?state=failed&state=succeeded$"))
    expect(page.get_by_role("region", name="Jobs")).to_be_visible()
    page.get_by_label("Text").fill("soft")
    expect(page).to_have_url(re.compile(r"&text=soft$"))
    expect(page.get_by_text("No matching jobs")).to_be_visible()
    page.get_by_role("link", name="All jobs").click()
    expect(page.get_by_role("region", name="Jobs")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Text")).to_have_value("soft")
    expect(page.get_by_role("button", name="failed")).to_have_attribute("aria-pressed", "true")


def test_jobs_with_a_tag_are_found(server: Server, open_tab: OpenTab) -> None:
    with lw.Client(server.url) as client:
        first = next(iter(client.jobs(state="succeeded")))
        client.job(first.id).describe(tags=["nightly"], name="the tagged one")
    page = open_tab("/?state=succeeded")
    rows = page.get_by_role("region", name="Jobs").get_by_role("checkbox")
    expect(rows.nth(1)).to_be_visible()
    page.get_by_label("Tag").fill("nightly")
    expect(page).to_have_url(re.compile(r"&tag=nightly$"))
    expect(rows).to_have_count(1)
    expect(page.get_by_role("region", name="Jobs")).to_contain_text("the tagged one #nightly")
    page.get_by_label("Tag").fill("nightl")
    expect(page.get_by_text("No matching jobs")).to_be_visible()


def test_jobs_are_sorted(open_tab: OpenTab) -> None:
    page = open_tab("/?state=succeeded")
    page.get_by_label("Sort").select_option("Oldest first")
    expect(page).to_have_url(re.compile(r"sort=created_at"))
    first = page.get_by_role("checkbox").first
    expect(first).to_have_accessible_name(re.compile("seed 0"))


def test_jobs_that_are_ticked_are_compared(open_tab: OpenTab) -> None:
    page = open_tab("/?sort=created_at")
    ticks = page.get_by_role("checkbox")
    ticks.nth(0).focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Select two or more")).to_be_visible()
    ticks.nth(1).check()
    page.get_by_role("link", name="Compare 2 jobs").click()
    expect(page).to_have_url(re.compile(r"/compare\?jobs=[0-9a-f-]{36},[0-9a-f-]{36}$"))
    expect(page.get_by_role("rowheader", name="Median of 2 seeds")).to_be_visible()


def test_on_a_phone_jobs_are_cards_and_still_a_table(open_tab: OpenTab) -> None:
    page = open_tab("/?sort=created_at")
    page.set_viewport_size({"width": 390, "height": 900})
    region = page.get_by_role("region", name="Jobs")
    row = region.get_by_role("row").nth(1)
    expect(row.get_by_role("cell")).to_have_count(9)
    expect(row.get_by_role("link", name="matmul")).to_be_in_viewport()
    expect(region.get_by_role("columnheader", name="Trials")).to_have_count(1)
    wait_until(page, "document.documentElement.scrollWidth <= window.innerWidth")
    width, inner = region.evaluate("element => [element.scrollWidth, element.clientWidth]")
    assert width <= inner


def test_the_command_of_the_empty_page_submits_a_job_to_this_server(
    server: Server, browser: Browser
) -> None:
    def without_jobs(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "items": []})

    page = browser.new_page()
    page.route("**/api/v1/jobs?*", without_jobs)
    page.goto(server.url)
    command = page.get_by_text("loopwright tune")
    expect(command).to_have_text(f"loopwright tune matmul:512,512,512 --url {server.url}")
    words = (command.text_content() or "").replace("512,512,512", "8,8,8").split()[1:]
    page.close()
    ran = CliRunner().invoke(app, [*words, "--target", TARGET, "--max-trials", "1"])
    assert ran.exit_code == 0, ran.stderr
    job = ran.stderr.removeprefix("job ").split()[0]
    with lw.Client(server.url) as client:
        assert client.job(job).read().workload_name == "matmul"
