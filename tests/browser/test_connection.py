"""A service that does not answer: one notice, the last answers, and back by itself."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.conftest import OpenTab
from tests.browser.looks import violations

NOTICE = "Connection lost"
# Longer than two polls of a list: what flaps, flaps within them.
WATCHED_MS = 7000
STEP_MS = 100
WATCH = """
(notice) => {
    window.seen = new Set();
    const look = () => {
        const text = document.querySelector("main").innerText;
        const words = [notice, "Loading", "32 x 32 x 32", "does not answer", "Failed to fetch"];
        window.seen.add(words.filter((word) => text.includes(word)).join(", "));
    };
    new MutationObserver(look).observe(document.body, {
        subtree: true, childList: true, characterData: true,
    });
    look();
}
"""


def cut(page: Page) -> None:
    """Let no request through, as if the service were gone."""
    for pattern in ("**/api/**", "**/livez"):
        page.route(pattern, lambda route: route.abort())


def restore(page: Page) -> None:
    for pattern in ("**/api/**", "**/livez"):
        page.unroute(pattern)


def open_with_clock(open_tab: OpenTab, path: str) -> Page:
    """Open a page whose timers the test can run early."""
    page = open_tab(path, is_cut=True)
    page.clock.install()
    page.reload()
    return page


def let_pass(page: Page, millis: int) -> None:
    """Run the timers of some time, with moments in between for the requests that they start."""
    polls = 0

    def count(_: Request) -> None:
        nonlocal polls
        polls += 1

    page.on("requestfailed", count)
    for _ in range(0, millis, STEP_MS):
        page.clock.run_for(STEP_MS)
        page.evaluate("new Promise(requestAnimationFrame)")
    assert polls >= 2


@pytest.mark.parametrize("path", ["/", "/best"])
def test_a_list_keeps_its_rows_and_the_notice_stands_still(open_tab: OpenTab, path: str) -> None:
    page = open_with_clock(open_tab, path)
    expect(page.get_by_text("32 x 32 x 32").first).to_be_visible()
    cut(page)
    expect(page.get_by_role("alert")).to_contain_text(NOTICE)
    page.evaluate(WATCH, NOTICE)
    let_pass(page, WATCHED_MS)
    assert page.evaluate("[...window.seen]") == [f"{NOTICE}, 32 x 32 x 32"]
    assert not violations(page)
    restore(page)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_list_without_rows_does_not_flap_and_is_read_later(open_tab: OpenTab) -> None:
    page = open_with_clock(open_tab, "/nowhere")
    cut(page)
    page.get_by_role("link", name="Best schedules").click()
    expect(page.get_by_role("alert")).to_contain_text(NOTICE)
    page.evaluate(WATCH, NOTICE)
    let_pass(page, 2 * WATCHED_MS)
    assert page.evaluate("[...window.seen]") == [f"{NOTICE}, Loading"]
    restore(page)
    expect(page.get_by_text("32 x 32 x 32").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_page_that_does_not_poll_comes_back_too(open_tab: OpenTab) -> None:
    page = open_tab("/nowhere", is_cut=True)
    page.get_by_role("link", name="New job").click()
    expect(page.get_by_text("legal")).to_be_visible()
    cut(page)
    page.get_by_label("Operator, shape and type").fill("relu:64,64")
    expect(page.get_by_role("alert").first).to_contain_text(NOTICE)
    restore(page)
    expect(page.get_by_text("legal")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
