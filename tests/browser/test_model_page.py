"""Models and searches over ranges: the lists, and the pages of what was tuned."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import expect

from examples.serving import Server, serving
from tests.browser import past
from tests.browser.conftest import OpenTab
from tests.browser.looks import look_at, violations
from tests.browser.past import MODEL, RANGE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a tuned model, and a search over a range that has ended."""
    file = tmp_path_factory.mktemp("service") / "loopwright.db"
    past.tune_model(file)
    past.tune_range(file)
    with serving(file) as running:
        yield running


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_model_leads_to_its_tasks_and_their_jobs(open_tab: OpenTab, theme: str) -> None:
    page = open_tab("/models", theme=theme)
    models = page.get_by_role("region", name="Models")
    link = models.get_by_role("link", name=MODEL)
    expect(link).to_be_visible()
    assert models.evaluate("table => table.scrollWidth <= table.clientWidth"), "columns are hidden"
    look_at(page, "/models", theme)
    page.set_viewport_size({"width": 1280, "height": 900})
    link.click()
    expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
    tasks = page.get_by_role("region", name="Tasks")
    expect(tasks.get_by_role("row")).to_have_count(4)
    expect(tasks).to_contain_text("conv2d+add+add+relu")
    latency = page.get_by_role("img", name="Projected latency over time")
    expect(latency).to_be_visible()
    graph = page.get_by_role("region", name="Calls of kernels")
    expect(graph.get_by_role("listitem")).to_have_count(4)
    look_at(page, "/model", theme)
    graph.get_by_role("link").nth(1).click()
    expect(page.get_by_role("heading", name="conv2d_add_add_relu")).to_be_visible()


def test_an_id_of_no_model_says_so(open_tab: OpenTab) -> None:
    page = open_tab("/models/abc")
    expect(page.get_by_role("heading", name="Model not found")).to_be_visible()
    assert not violations(page)


def test_models_that_are_filtered_out_are_not_missing(open_tab: OpenTab) -> None:
    page = open_tab("/models?text=nothing")
    expect(page.get_by_role("heading", name="No matching models")).to_be_visible()
    page.get_by_role("link", name="All models").click()
    expect(page.get_by_role("link", name=MODEL)).to_be_visible()


def test_all_jobs_of_a_model_are_cancelled_at_once(server: Server, open_tab: OpenTab) -> None:
    graph = """@R.function
def main(x: R.Tensor((64, 256), "float32")) -> R.Tensor((64, 64), "float32"):
    y = R.matmul(x, R.const("sha256:00", R.Tensor((256, 256), "float32")))
    z = R.matmul(R.nn.relu(y), R.const("sha256:01", R.Tensor((256, 64), "float32")))
    return R.nn.softmax(z)"""
    api = f"{server.url}/api/v1"
    body = {"name": "wanted no longer", "model": {"graph": graph}, "max_trials": 2000}
    model = httpx2.post(f"{api}/models", json=body).raise_for_status().json()
    page = open_tab(f"/models/{model['id']}")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("cancelled").first).to_be_visible(timeout=60_000)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    jobs = httpx2.get(f"{api}/jobs", params={"group": model["group_id"]}).json()["items"]
    assert {job["state"] for job in jobs} == {"cancelled"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_search_over_a_range_shows_which_kernel_runs_which_sizes(
    open_tab: OpenTab, theme: str
) -> None:
    page = open_tab("/shapes", theme=theme)
    searches = page.get_by_role("region", name="Ranges")
    link = searches.get_by_role("link", name=RANGE)
    expect(link).to_be_visible()
    expect(searches).to_contain_text("M = 1 to 48")
    look_at(page, "/shapes", theme)
    page.set_viewport_size({"width": 1280, "height": 900})
    link.click()
    expect(page.get_by_role("heading", name=RANGE)).to_be_visible()
    kernels = page.get_by_role("region", name="Kernels")
    expect(kernels.get_by_role("img", name="Time of a run by M")).to_be_visible()
    expect(kernels).to_contain_text("kernel 0")
    times = page.get_by_role("region", name="Times")
    expect(times.get_by_role("row").filter(has_text="M = 48")).to_have_count(1)
    expect(page.get_by_role("region", name="Text of the dispatcher")).to_contain_text("if M <= 1:")
    look_at(page, "/search", theme)
    page.get_by_role("region", name="Tuned sizes").get_by_role("link").last.click()
    expect(page.get_by_role("heading", name=RANGE)).to_be_visible()


def test_an_id_of_no_search_over_a_range_says_so(open_tab: OpenTab) -> None:
    page = open_tab("/shapes/abc")
    expect(page.get_by_role("heading", name="Search not found")).to_be_visible()
    assert not violations(page)


def test_searches_that_are_filtered_out_are_not_missing(open_tab: OpenTab) -> None:
    page = open_tab("/shapes?text=nothing")
    expect(page.get_by_role("heading", name="No matching searches")).to_be_visible()
    page.get_by_role("link", name="All searches").click()
    expect(page.get_by_role("link", name=RANGE)).to_be_visible()
