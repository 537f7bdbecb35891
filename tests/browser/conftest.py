from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

import loopwright as lw
from examples.serving import Server, serving
from tests.browser import past
from tests.patience import PATIENCE_SECS

# A machine may be busy with other tests: a page that is slow is right all the same.
expect.set_options(timeout=1000 * PATIENCE_SECS)
TARGET = "cpu -num-cores=1"
CHROMIUM = shutil.which("chromium")
BUILT = Path(__file__).parents[2] / "service" / "dashboard" / "index.html"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Give a browser; the test is skipped without one, or without the dashboard."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on the PATH (Debian: apt install chromium)")
    if not BUILT.exists():
        pytest.skip("the dashboard was not built (make dashboard)")
    with sync_playwright() as playwright:
        # Chromium's sandbox wants rights that a container does not have.
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


# Not for the session: while Playwright runs, `asyncio.run` refuses to, in all tests that follow.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server with a past, on which small jobs have ended that differ by their seed."""
    file = tmp_path_factory.mktemp("service") / "loopwright.db"
    past.write(file)
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("LOOPWRIGHT_BASELINES", "numpy")
            running = stack.enter_context(serving(file))
        with lw.Client(running.url) as client:
            jobs = [
                client.tune("matmul:32,32,32:float32", target=TARGET, max_trials=20, seed=seed)
                for seed in range(2)
            ]
            for job in jobs:
                job.wait()
        yield running


def newest_job(server: Server) -> str:
    with lw.Client(server.url) as client:
        return str(next(iter(client.jobs(state="succeeded"))).id)


@dataclass
class Tab:
    """A page, and its console lines and foreign requests, which are failures."""

    page: Page
    host: str
    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    # Whether the test cuts the page off from the service, which Chromium notes.
    is_cut: bool = False

    def watch(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        # Chromium itself notes every answer that refuses a request; the page shows what it says.
        is_failure = message.text.startswith("Failed to load resource")
        is_expected = is_failure and (self.is_cut or " 4" in message.text)
        if message.type in ("error", "warning") and not is_expected:
            self.console.append(message.text)

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != self.host:
            self.foreign.append(request.url)


OpenTab = Callable[..., Page]


@pytest.fixture
def open_tab(browser: Browser, server: Server) -> Iterator[OpenTab]:
    """Open pages of the server; at the end no console line and no foreign request may be left."""
    tabs: list[Tab] = []

    def open_at(
        path: str = "/", *, theme: Literal["light", "dark"] = "light", is_cut: bool = False
    ) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=theme)
        tab = Tab(context.new_page(), urlsplit(server.url).netloc, is_cut=is_cut)
        tab.watch()
        tabs.append(tab)
        tab.page.goto(server.url + path)
        return tab.page

    yield open_at
    for tab in tabs:
        tab.page.context.close()
    assert [line for tab in tabs for line in tab.console] == []
    assert [url for tab in tabs for url in tab.foreign] == []
