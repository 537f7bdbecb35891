"""A job of more trials than a page draws: rows are fetched as they are seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID

import httpx2
import pytest
from playwright.sync_api import Page, Request, expect

import loopwright as lw
from benchmarks.service.large_job import FAILURES, add_large_job
from examples.serving import Server, serving
from service.store.database.database import open_database
from tests.browser.conftest import OpenTab
from tests.browser.looks import look_at
from tests.patience import PATIENCE_SECS

NUM_TRIALS = 6000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one job of many trials, in the place of the usual one."""
    file = tmp_path_factory.mktemp("service") / "loopwright.db"
    database = open_database(f"sqlite:///{file}")
    add_large_job(database, NUM_TRIALS)
    database.close()
    with serving(file) as running:
        yield running


@pytest.fixture(scope="module")
def job(server: Server) -> UUID:
    with lw.Client(server.url) as client:
        return next(iter(client.jobs())).id


def scroll_to_end(page: Page) -> None:
    table = page.get_by_role("region", name="Trials")
    table.evaluate("table => { table.scrollTop = table.scrollHeight }")


def test_rows_come_as_they_are_seen(open_tab: OpenTab, job: UUID) -> None:
    page = open_tab()
    rows: list[str] = []

    def note(request: Request) -> None:
        if "offset=" in request.url:
            rows.append(request.url)

    page.on("request", note)
    page.get_by_role("link", name="matmul").click()
    expect(page.get_by_text(f"All trials ({NUM_TRIALS:,})")).to_be_visible()
    table = page.get_by_role("region", name="Trials")
    expect(table.get_by_role("link", name="0", exact=True)).to_be_visible()
    scroll_to_end(page)
    expect(table.get_by_role("link", name=str(NUM_TRIALS - 1), exact=True)).to_be_visible()
    assert 0 < len(rows) <= 4, rows
    assert table.get_by_role("row").count() < 60


def test_sorted_rows_are_the_services_own(open_tab: OpenTab, server: Server, job: UUID) -> None:
    with lw.Client(server.url) as client:
        trials = list(client.job(job).trials())
    best = min(trials, key=lambda trial: trial.best_secs or float("inf"))
    page = open_tab(f"/jobs/{job}")
    page.get_by_role("button", name="Time", exact=True).click()
    table = page.get_by_role("region", name="Trials")
    expect(table.get_by_role("link").first).to_have_text(str(best.number))
    kind = FAILURES[0][0].value
    failed = [trial.number for trial in trials if trial.error == kind]
    page.get_by_label("Outcome").select_option(kind)
    page.get_by_role("button", name="Trial", exact=True).click()
    expect(table.get_by_role("link").first).to_have_text(str(failed[0]))
    expect(page.get_by_text(re.compile(rf"Selected trials \({len(failed)}\)"))).to_be_visible()
    scroll_to_end(page)
    expect(table.get_by_role("link", name=str(failed[-1]), exact=True)).to_be_visible()


def test_a_failure_is_counted_explained_and_opened(
    open_tab: OpenTab, server: Server, job: UUID
) -> None:
    with lw.Client(server.url) as client:
        failed = [trial for trial in client.job(job).trials() if trial.error is not None]
    kind, _, message = FAILURES[0]
    first = next(trial for trial in failed if trial.error == kind)
    count = sum(trial.error == kind for trial in failed)
    page = open_tab(f"/jobs/{job}")
    page.get_by_text(f"timeout {count}").click()
    expect(page.get_by_text(message)).to_be_visible()
    page.get_by_role("link", name=f"First: trial {first.number}").click()
    expect(page.get_by_role("heading", name=f"Trial {first.number}")).to_be_visible()
    expect(page.get_by_text(message)).to_be_visible()
    expect(page.get_by_text("A step exceeded its time limit")).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)
    look_at(page, "/trial-failed", "light")


def test_a_brush_selects_among_all_trials(open_tab: OpenTab, server: Server, job: UUID) -> None:
    with lw.Client(server.url) as client:
        trials = list(client.job(job).trials())
    times = sorted(trial.best_secs for trial in trials if trial.best_secs is not None)
    low, high = times[len(times) // 4], times[len(times) // 2]
    wanted = [t for t in trials if t.best_secs is not None and low <= t.best_secs <= high]
    page = open_tab(f"/jobs/{job}?time={low}~{high}")
    expect(page.get_by_text(f"Selected trials ({len(wanted):,})")).to_be_visible()
    page.get_by_role("button", name="Score", exact=True).click()
    table = page.get_by_role("region", name="Trials")
    least = min(wanted, key=lambda t: float("inf") if t.predicted is None else t.predicted)
    expect(table.get_by_role("link").first).to_have_text(str(least.number))
    scroll_to_end(page)
    expect(table.locator(f"tr[aria-rowindex='{len(wanted) + 1}']")).to_be_visible()
    page.goto(f"{server.url}/jobs/{job}?place=0.9~1&speed=0.5~1")
    query = {
        "from_predicted_percentile": 0.9,
        "to_predicted_percentile": 1,
        "from_relative_speed": 0.5,
        "to_relative_speed": 1,
    }
    answer = httpx2.get(
        f"{server.url}/api/v1/jobs/{job}/selection", params=query, timeout=PATIENCE_SECS
    )
    count = answer.raise_for_status().json()["num_trials"]
    assert 0 < count < len(trials) / 5
    expect(page.get_by_text(f"Selected trials ({count:,})")).to_be_visible()


def test_what_was_measured_over_time_is_a_small_line_in_the_list(open_tab: OpenTab) -> None:
    expect(open_tab().locator(".sparkline path")).to_have_attribute("d", re.compile(r"H"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_large_job_is_readable(open_tab: OpenTab, job: UUID, theme: str) -> None:
    page = open_tab(f"/jobs/{job}", theme=theme)
    expect(page.get_by_text("5,000 are drawn")).to_be_visible()
    expect(page.locator(".axes canvas")).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)
    look_at(page, "/large", theme)
