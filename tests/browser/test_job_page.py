"""The pages of a job and of a trial: watched, brushed, stopped and resumed in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from playwright.sync_api import Browser, Locator, Page, expect

import loopwright as lw
from examples.serving import Server, free_port, serving
from tests.browser.conftest import TARGET, OpenTab
from tests.browser.looks import look_at
from tests.patience import PATIENCE_SECS

LONG_MS = 120_000
SMALL = "matmul:32,32,32:float32"


def submit(server: Server, *, max_trials: int, seed: int, operator: str = SMALL) -> str:
    with lw.Client(server.url) as client:
        return str(client.tune(operator, target=TARGET, max_trials=max_trials, seed=seed).id)


def ended(server: Server) -> str:
    """Return the job that the server began with."""
    with lw.Client(server.url) as client:
        return str(list(client.jobs())[-1].id)


def read(server: Server, path: str, **query: str) -> dict[str, list[object]]:
    found = httpx2.get(f"{server.url}/api/v1{path}", params=query, timeout=PATIENCE_SECS)
    return dict(found.raise_for_status().json())


def state(page: Page) -> Locator:
    return page.locator("main .state").first


def numbers_in_table(page: Page) -> list[int]:
    links = page.get_by_role("region", name="Trials").get_by_role("link")
    return [int(text) for text in links.all_inner_texts()]


def drag(page: Page, place: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Press at one place within a box, given as shares of its size, and let go at another."""
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * start[0], box["y"] + box["height"] * start[1])
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end[0], box["y"] + box["height"] * end[1], steps=5)
    page.mouse.up()


def picture(canvas: Locator) -> str:
    return str(canvas.evaluate("canvas => canvas.toDataURL()"))


def test_a_job_is_watched_live_to_its_end_and_given_more_trials(
    open_tab: OpenTab, server: Server
) -> None:
    page = open_tab(f"/jobs/{submit(server, max_trials=34, seed=7)}")
    page.evaluate("window.wasNotLoadedAgain = true")
    expect(page.get_by_role("progressbar", name="Trials done")).to_be_visible()
    expect(state(page)).to_have_text("succeeded", timeout=LONG_MS)
    expect(page.get_by_text("All trials (34)")).to_be_visible()
    expect(page.get_by_text("34 of 34")).to_be_visible()
    expect(
        page.get_by_role(
            "img", name=re.compile("The shortest sample is .+s .provisional., of trial")
        )
    ).to_be_visible()
    expect(page.get_by_text("Rank correlation")).to_be_visible()
    page.get_by_label("Additional trials").fill("8")
    page.get_by_role("button", name="Add trials").click()
    expect(page.get_by_text("42 of 42")).to_be_visible(timeout=LONG_MS)
    expect(page.get_by_text("All trials (42)")).to_be_visible()
    expect(state(page)).to_have_text("succeeded", timeout=LONG_MS)
    assert page.evaluate("window.wasNotLoadedAgain")


def test_a_brush_selects_in_all_plots_in_the_table_and_in_the_address(
    open_tab: OpenTab, server: Server
) -> None:
    page = open_tab(f"/jobs/{ended(server)}")
    axes = page.locator(".axes canvas")
    expect(axes).to_be_visible()
    before = picture(axes)
    drag(page, page.locator(".u-over").first, (0.3, 0.5), (0.7, 0.5))
    expect(page.get_by_role("status", name="Selection")).to_contain_text("trials")
    (span,) = parse_qs(urlsplit(page.url).query)["trials"]
    low, high = (int(end) for end in span.split("~"))
    assert 0 < low < high < 19
    expect(page.get_by_text(f"Selected trials ({high - low + 1})")).to_be_visible()
    assert numbers_in_table(page) == list(range(low, high + 1))
    assert picture(axes) != before
    page.reload()
    expect(page.get_by_text(f"Selected trials ({high - low + 1})")).to_be_visible()
    page.get_by_role("status", name="Selection").get_by_role("button", name="Show all").click()
    expect(page.get_by_text("All trials (20)")).to_be_visible()
    assert "trials=" not in page.url


def test_an_axis_selects_the_trials_that_decided_so(open_tab: OpenTab, server: Server) -> None:
    job = ended(server)
    found = read(server, f"/jobs/{job}/decisions")
    decisions = [d for d in found["decisions"] if isinstance(d, dict)]
    place = next(n for n, d in enumerate(decisions) if len(d["values"]) > 1)
    least = decisions[place]["values"][0]
    wanted = [
        number
        for number, row in zip(found["number"], found["rows"], strict=True)
        if isinstance(row, list) and row[place] == least
    ]
    page = open_tab(f"/jobs/{job}")
    dots = page.locator(".plot canvas").first
    expect(page.locator(".axes canvas")).to_be_visible()
    before = picture(dots)
    drag(page, page.locator("[data-axis]").nth(place), (0.5, 0.99), (0.5, 0.9))
    expect(page.get_by_text(f"Selected trials ({len(wanted)})")).to_be_visible()
    assert set(numbers_in_table(page)) == set(wanted)
    assert picture(dots) != before


def test_what_is_dragged_can_be_typed(open_tab: OpenTab, server: Server) -> None:
    page = open_tab(f"/jobs/{ended(server)}")
    page.get_by_label("From trial").fill("5")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Selected trials (15)")).to_be_visible()
    page.get_by_label("To trial").fill("9")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Selected trials (5)")).to_be_visible()
    assert numbers_in_table(page) == [5, 6, 7, 8, 9]
    page.get_by_role("button", name="Select", exact=True).press("Enter")
    expect(page.get_by_role("status", name="Selection")).to_contain_text("trials 5 to 9")


def test_the_table_sorts_and_opens_a_trial(open_tab: OpenTab, server: Server) -> None:
    job = ended(server)
    with lw.Client(server.url) as client:
        trials = {t.number: t for t in client.job(job).trials()}
    page = open_tab(f"/jobs/{job}")
    page.get_by_role("button", name="Time", exact=True).click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Time")
    times = [trials[number].best_secs for number in numbers_in_table(page)]
    known = [secs for secs in times if secs is not None]
    assert known
    assert known == sorted(known)
    first = numbers_in_table(page)[0]
    page.get_by_role("region", name="Trials").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name=f"Trial {first}", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d+ samples from .* median"))).to_be_visible()
    expect(page.get_by_text(trials[first].worker).first).to_be_visible()
    page.locator("a[rel=next], a[rel=prev]").first.click()
    expect(page.get_by_role("heading", name=re.compile(f"^Trial ({first - 1}|1)$"))).to_be_visible()


def test_a_trial_shows_what_its_schedule_changed(open_tab: OpenTab, server: Server) -> None:
    page = open_tab(f"/jobs/{ended(server)}/trials/1")
    program = page.get_by_role("region", name="Before and after")
    expect(program.locator(".removed").first).to_be_visible()
    expect(program.locator(".added").first).to_contain_text("+ ")
    page.get_by_role("tab", name="Program").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Assembly")).to_be_focused()
    expect(page.get_by_role("region", name="Assembly")).to_contain_text("ret")
    page.get_by_role("tab", name="Trace").click()
    expect(page.get_by_role("region", name="Trace")).to_contain_text("sch.")


def test_a_job_is_stopped_resumed_and_cancelled(open_tab: OpenTab, server: Server) -> None:
    page = open_tab(f"/jobs/{submit(server, max_trials=20_000, seed=8)}")
    expect(page.get_by_text(re.compile(r"^All trials \(\d+\)"))).to_be_visible()
    page.get_by_role("button", name="Stop, keep the best").click()
    expect(state(page)).to_have_text("succeeded", timeout=LONG_MS)
    expect(page.get_by_text("stopped", exact=True)).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(state(page)).to_have_text(re.compile("queued|running"))
    page.get_by_role("button", name="Cancel").click()
    expect(state(page)).to_have_text("cancelled", timeout=LONG_MS)


def test_a_page_outlives_its_server(browser: Browser, tmp_path: Path) -> None:
    file, port = tmp_path / "loopwright.db", free_port()
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    with serving(file, port) as server:
        page.goto(f"{server.url}/jobs/{submit(server, max_trials=300, seed=0)}")
        expect(page.get_by_text(re.compile(r"^All trials \(\d+\)"))).to_be_visible()
    expect(page.get_by_role("alert").first).to_contain_text("service")
    with serving(file, port) as server:
        expect(page.get_by_role("alert")).to_have_count(0, timeout=LONG_MS)
        expect(state(page)).to_have_text(re.compile("running|succeeded"), timeout=LONG_MS)
        page.get_by_role("button", name="Stop, keep the best").click()
        expect(state(page)).to_have_text("succeeded", timeout=LONG_MS)
    page.close()
    assert errors == []


def test_a_selection_is_readable_in_both_themes(open_tab: OpenTab, server: Server) -> None:
    path = f"/jobs/{ended(server)}"
    for theme in ("light", "dark"):
        page = open_tab(f"{path}?trials=3~12&color=outcome", theme=theme)
        expect(page.get_by_text("Selected trials (10)")).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        look_at(page, f"{path}-selected", theme)
