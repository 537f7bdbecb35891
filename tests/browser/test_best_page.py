"""Best schedules: the search, and what can be taken along."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import loopwright as lw
from tests.browser.conftest import OpenTab
from tests.browser.looks import violations


def opened(page: Page) -> Page:
    page.get_by_role("button", name="Details of matmul").first.click()
    expect(page.get_by_role("button", name="Download trace")).to_be_visible()
    return page


def test_a_schedule_is_searched_by_operator_and_target(open_tab: OpenTab) -> None:
    page = open_tab("/best")
    table = page.get_by_role("region", name="Best schedules")
    expect(table).to_contain_text("32 x 32 x 32")
    page.get_by_label("Operator").fill("conv2d")
    expect(page).to_have_url(re.compile(r"\?operator=conv2d$"))
    expect(page.get_by_text("No matching schedule")).to_be_visible()
    page.get_by_label("Operator").fill("matmul")
    page.get_by_label("Target").fill("num-cores=1")
    expect(table.get_by_text("matmul").first).to_be_visible()
    expect(table).to_contain_text(re.compile(r"LLVM \d+"))


def test_trace_and_kernel_are_downloaded(open_tab: OpenTab) -> None:
    page = opened(open_tab("/best?operator=matmul"))
    with page.expect_download() as trace:
        page.get_by_role("button", name="Download trace").click()
    assert "instructions" in json.loads(Path(trace.value.path()).read_text(encoding="utf-8"))
    with page.expect_download() as kernel:
        page.get_by_role("button", name="Download kernel").click()
    assert Path(kernel.value.path()).stat().st_size > 0


def test_the_client_snippet_fetches_that_kernel(open_tab: OpenTab) -> None:
    page = open_tab("/best?operator=matmul")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page).get_by_role("button", name="Copy client snippet").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    found: dict[str, lw.Kernel] = {}
    exec(page.evaluate("navigator.clipboard.readText()"), found)
    assert found["kernel"].schedule == "best"


def test_a_schedule_stands_beside_a_library(open_tab: OpenTab) -> None:
    page = open_tab("/best?operator=matmul&sort=-baseline")
    cell = page.get_by_role("row").filter(has_text="32 x 32 x 32").first.get_by_role("cell").nth(3)
    expect(cell).to_contain_text(re.compile(r"[0-9.]+\u00d7"))
    expect(cell).to_contain_text(re.compile(r"[0-9.]+ to [0-9.]+"))
    expect(cell).to_contain_text(re.compile(r"NumPy \d|PyTorch \d"))
    expect(opened(page).get_by_role("rowheader", name="library", exact=True)).to_be_visible()


def test_an_opened_schedule_shows_the_scheduled_program(open_tab: OpenTab) -> None:
    page = opened(open_tab("/best?operator=matmul"))
    after = page.get_by_role("region", name="Before and after").locator("td.added")
    # The untuned program has one nest of three loops; a schedule has cut them.
    expect(after.filter(has_text=re.compile(r"T\.(vectorized|unroll)")).first).to_be_visible()
    page.get_by_role("tab", name="Trace").click()
    expect(page.get_by_role("region", name="Trace")).to_contain_text("sch.split")


@pytest.mark.parametrize("width", [1280, 1024, 768, 390])
def test_a_row_is_opened_at_any_width_without_scrolling(open_tab: OpenTab, width: int) -> None:
    page = open_tab("/best?operator=matmul")
    page.set_viewport_size({"width": width, "height": 900})
    button = page.get_by_role("button", name="Details of matmul").first
    expect(button).to_be_in_viewport(ratio=1)
    opened(page)
    assert not violations(page)
