"""Versions of the cost model, against the past that the service was given."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.past import LABEL


def test_the_newest_version_is_judged_by_task_with_its_drift(open_tab: OpenTab) -> None:
    page = open_tab("/cost-models")
    kind = page.get_by_role("region", name=LABEL)
    tasks = kind.get_by_role("region", name="Held-out tasks")
    expect(kind.get_by_role("heading", name="Held-out tasks, version 3")).to_be_visible()
    expect(tasks).to_contain_text("80.0 %")
    expect(tasks).to_contain_text("\N{MINUS SIGN}10.0 %")


def test_versions_tell_what_they_were_trained_on(open_tab: OpenTab) -> None:
    page = open_tab("/cost-models")
    versions = page.get_by_role("region", name=LABEL).get_by_role("region", name="Versions")
    expect(versions.get_by_role("row")).to_have_count(4)
    expect(versions).to_contain_text("1,200")
    expect(versions).to_contain_text("2 tasks")
    page.get_by_role("link", name="one job").first.click()
    expect(page.get_by_role("heading", name="matmul")).to_be_visible()
