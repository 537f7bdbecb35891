"""The dashboard as people use it: a real browser, a real server, real jobs."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

import loopwright as lw
from examples.serving import Server
from tests.browser.conftest import OpenTab

AXE = Path(__file__).parents[2] / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("/", "/submit", "/best", "/models", "/workers", "/nowhere")
SCREENSHOTS = os.environ.get("LOOPWRIGHT_SCREENSHOTS")


def newest_job(server: Server) -> str:
    with lw.Client(server.url) as client:
        return str(next(iter(client.jobs())).id)


def test_a_job_is_submitted_watched_to_its_end_and_opened(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_label("Operator, shape and type").fill("matmul:24,24,24:float32")
    page.get_by_label("Target").fill("cpu -num-cores=1")
    page.get_by_label("Trials").fill("20")
    page.get_by_role("button", name="Start tuning").click()
    expect(page.get_by_role("heading", name="matmul")).to_be_visible()
    expect(page.get_by_text("succeeded")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("All trials (20)")).to_be_visible()
    page.get_by_role("region", name="Trials").get_by_role("link", name="0", exact=True).click()
    expect(page.get_by_role("heading", name="Trial 0")).to_be_visible()
    expect(page.get_by_text("default", exact=True)).to_be_visible()


def test_a_trial_shows_what_its_schedule_changed(open_tab: OpenTab, server: Server) -> None:
    page = open_tab(f"/jobs/{newest_job(server)}/trials/1")
    program = page.get_by_role("region", name="Before and after")
    expect(program.locator(".removed").first).to_be_visible()
    expect(program.locator(".added").first).to_contain_text("+ ")
    page.get_by_role("tab", name="Program").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Assembly")).to_be_focused()
    expect(page.get_by_role("region", name="Assembly")).to_contain_text("ret")
    page.get_by_role("tab", name="Trace").click()
    expect(page.get_by_role("region", name="Trace")).to_contain_text("sch.")


def test_what_is_wrong_with_a_script_is_shown_with_its_place(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_label("Script", exact=True).check()
    page.get_by_label("Script of a program").fill("@T.prim_func\ndef f(a: T.handle):\n    x = (\n")
    page.get_by_role("button", name="Start tuning").click()
    expect(page.get_by_role("alert")).to_contain_text("3")


def test_dragging_over_the_plot_selects_trials_everywhere(
    open_tab: OpenTab, server: Server
) -> None:
    page = open_tab(f"/jobs/{newest_job(server)}")
    expect(page.get_by_text(re.compile(r"All trials"))).to_be_visible()
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=5)
    page.mouse.up()
    title = page.get_by_text(re.compile(r"^Trials \d+ to \d+"))
    expect(title).to_be_visible()
    numbers = [int(n) for n in re.findall(r"\d+", title.inner_text())]
    assert numbers[2] == numbers[1] - numbers[0] + 1
    shown = page.get_by_role("region", name="Trials").get_by_role("link").all_inner_texts()
    assert [int(n) for n in shown] == list(range(numbers[0], numbers[1] + 1))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_serious_violation_or_runs_off_a_phone(
    open_tab: OpenTab, server: Server, theme: Literal["light", "dark"]
) -> None:
    job = newest_job(server)
    for path in (*PAGES, f"/jobs/{job}", f"/jobs/{job}/trials/3"):
        page = open_tab(path, theme=theme)
        expect(page.get_by_role("heading").first).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        assert not serious_violations(page), path
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            # What is drawn follows the width a moment later.
            page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
            keep_screenshot(page, path, theme, width)


def serious_violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    return [
        json.dumps({"id": v["id"], "nodes": [n["html"] for n in v["nodes"]][:3]})
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]


def keep_screenshot(page: Page, path: str, theme: str, width: int) -> None:
    """Keep what the page looks like, for people to look at."""
    if SCREENSHOTS is None:
        return
    name = re.sub(r"[0-9a-f-]{36}", "job", path.strip("/")).replace("/", "-") or "jobs"
    with contextlib.suppress(FileExistsError):
        Path(SCREENSHOTS).mkdir(parents=True)
    page.screenshot(path=Path(SCREENSHOTS, f"{name}-{theme}-{width}.png"), full_page=True)
