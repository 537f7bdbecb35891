"""Check every page by the rules of axe and at the width of a phone; take screenshots."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

from playwright.sync_api import Page

from tests.patience import PATIENCE_SECS

AXE = Path(__file__).parents[2] / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = os.environ.get("LOOPWRIGHT_SCREENSHOTS")


def look_at(page: Page, path: str, theme: str) -> None:
    """Check a loaded page by the rules, and take a screenshot at each width."""
    for width in (1280, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        # What is drawn follows the width a moment later.
        wait_until(page, "document.documentElement.scrollWidth <= window.innerWidth")
        assert not violations(page), (path, width)
        keep_screenshot(page, path, theme, width)


def wait_until(page: Page, claim: str) -> None:
    """Wait until an expression holds; `wait_for_function` evaluates it as the page may not."""
    deadline = time.monotonic() + PATIENCE_SECS
    while not page.evaluate(claim):
        assert time.monotonic() < deadline, claim
        page.wait_for_timeout(50)


def violations(page: Page) -> list[str]:
    """Return the violations that axe reports, as JSON."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    # All rules run, but a description of each element that passes one takes most of the time.
    violated = page.evaluate("axe.run({resultTypes: ['violations']}).then((r) => r.violations)")
    return [
        json.dumps({"id": v["id"], "nodes": [n["html"] for n in v["nodes"]][:3]}) for v in violated
    ]


def keep_screenshot(page: Page, path: str, theme: str, width: int) -> None:
    """Store a screenshot of the page, for inspection."""
    if SCREENSHOTS is None:
        return
    name = re.sub(r"[0-9a-f-]{36}", "job", path.strip("/")).replace("/", "-") or "jobs"
    Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
    page.screenshot(path=Path(SCREENSHOTS, f"{name}-{theme}-{width}.png"), full_page=True)
