"""A notice of the browser when a job ends."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import loopwright as lw
from examples.serving import Server
from tests.browser.conftest import TARGET, OpenTab

# What the page shows outside itself is noted on the way to the browser.
NOTE = """
window.notices = [];
window.Notification = class extends window.Notification {
    constructor(title, options) {
        super(title, options);
        window.notices.push([title, options.body]);
    }
};
"""


@pytest.mark.parametrize("is_allowed", [True, False])
def test_the_end_of_a_job_is_told_to_who_asked_for_it(
    open_tab: OpenTab, server: Server, *, is_allowed: bool
) -> None:
    page = open_tab("/")
    page.add_init_script(NOTE)
    if is_allowed:
        page.context.grant_permissions(["notifications"], origin=server.url)
    with lw.Client(server.url) as client:
        job = client.tune("matmul:96,96,96:float32", target=TARGET, max_trials=2000)
        page.goto(f"{server.url}/jobs/{job.id}")
        tell_me = page.get_by_role("button", name="Notify me when it finishes")
        tell_me.click()
        if is_allowed:
            expect(tell_me).to_have_attribute("aria-pressed", "true")
        else:
            expect(page.get_by_text("blocks notifications from this page")).to_be_visible()
        # A job without a trial would be cancelled by it.
        while not job.read().num_measured:
            page.wait_for_timeout(100)
        job.stop()
        expect(page.get_by_text("succeeded", exact=True)).to_be_visible(timeout=60_000)
        expect(tell_me).to_have_count(0)
        ended = job.read()
    if is_allowed:
        page.wait_for_function("window.notices.length > 0")
    notices = page.evaluate("window.notices")
    if is_allowed:
        [(title, body)] = notices
        assert title == "matmul: succeeded"
        assert f"after {ended.num_measured} trials" in body
    else:
        assert notices == []
