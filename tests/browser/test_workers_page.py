"""Workers: the one that measured the jobs, and one with a past."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.past import WORKER


def test_a_worker_s_past_is_told(open_tab: OpenTab) -> None:
    card = open_tab("/workers").get_by_role("region", name=WORKER)
    expect(card).to_contain_text("resting")
    expect(card.get_by_text(re.compile(r"1\.\d\d\u00d7 slower than usual"))).to_be_visible()
    expect(card).to_contain_text("75 %")
    expect(card).to_contain_text(re.compile(r"Jobs lost\s*1\s*Restarts\s*1"))
    expect(card.get_by_role("img", name=re.compile("last 31 samples"))).to_be_visible()
    card.get_by_text("Versions and self-test").click()
    expect(card).to_contain_text("3.11.2")


def test_the_worker_of_a_job_has_a_canary(open_tab: OpenTab) -> None:
    cards = open_tab("/workers").get_by_role("region")
    measured = cards.filter(has_not_text=WORKER).first
    alone = measured.get_by_text(re.compile(r"One sample: [\d.]+ [mµn]?s"))
    several = measured.get_by_role("img", name=re.compile(r"over the last \d+ samples"))
    expect(alone.or_(several)).to_be_visible()
