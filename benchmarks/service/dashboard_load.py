"""Measure how fast the page of a job of 100,000 trials opens in a browser, and how it scrolls.

A server runs on a generated database (`benchmarks.service.large_job`). Debian's Chromium opens the
page with an empty cache each time. Then its table is scrolled, frame by frame.
`requestAnimationFrame` times the frames, at most 60 per second without a display.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

import loopwright as lw
from benchmarks.report import Metric, report
from benchmarks.service.large_job import add_large_job
from examples.serving import serving
from service.store.database.database import open_database

NUM_TRIALS = 100_000
REPEATS = 5
SLOW_FRAME_MS = 33.4

# Notes when the first row of the table and the last of the plots are in the page.
_WATCH = """
    window.seen = {};
    new MutationObserver(() => {
        const now = performance.now();
        if (document.querySelector(".trials td a")) window.seen.table ??= now;
        if (document.querySelector(".axes canvas")) window.seen.plots ??= now;
    }).observe(document, { childList: true, subtree: true });
"""
_SCROLL = """
    async ([step, frames]) => {
        const table = document.querySelector(".trials");
        const longTasks = [];
        const observer = new PerformanceObserver((list) => {
            longTasks.push(...list.getEntries().map((entry) => entry.duration));
        });
        observer.observe({ type: "longtask" });
        const times = [];
        let before = await new Promise(requestAnimationFrame);
        for (let count = 0; count < frames; count++) {
            table.scrollTop += step;
            const now = await new Promise(requestAnimationFrame);
            times.push(now - before);
            before = now;
        }
        observer.disconnect();
        return { times, longTasks, at: table.scrollTop };
    }
"""
_JUMP = """
    async (place) => {
        const table = document.querySelector(".trials");
        const start = performance.now();
        table.scrollTop = place * table.scrollHeight;
        const near = () => [...table.querySelectorAll("td a")].some((link) => {
            const box = link.getBoundingClientRect();
            const own = table.getBoundingClientRect();
            return box.top > own.top && box.bottom < own.bottom;
        });
        do await new Promise(requestAnimationFrame); while (!near());
        return performance.now() - start;
    }
"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=NUM_TRIALS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    args = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        parser.error("there is no chromium on the PATH (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "large.db")
        database = open_database(f"sqlite:///{file}")
        job = add_large_job(database, args.trials)
        database.close()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serving(file) as server:
            with lw.Client(server.url) as client:
                assert client.job(job).read().num_measured == args.trials
            runs = [_visit(browser, f"{server.url}/jobs/{job}") for _ in range(args.repeats)]
        browser.close()
    report("dashboard_load", _metrics(runs))


def _visit(browser: Browser, url: str) -> dict[str, Any]:
    context = browser.new_context(
        viewport={"width": 1280, "height": 900},
        # Playwright waits with `eval`, which the page forbids.
        bypass_csp=True,
    )
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(url)
    page.wait_for_function("window.seen.table && window.seen.plots", timeout=60_000)
    seen = page.evaluate("window.seen")
    page.wait_for_load_state("networkidle")
    # A wheel turns by about 100 pixels; ten a frame is a page of rows in half a second.
    slow = page.evaluate(_SCROLL, [100, 180])
    fast = page.evaluate(_SCROLL, [3000, 180])
    jumps = [page.evaluate(_JUMP, place) for place in (0.1, 0.9, 0.5, 0.3)]
    context.close()
    return {**seen, "slow": slow, "fast": fast, "jumps": jumps}


def _metrics(runs: list[dict[str, Any]]) -> list[Metric]:
    opened = tuple(run["table"] / 1000 for run in runs)
    drawn = tuple(run["plots"] / 1000 for run in runs)
    jumps = tuple(jump for run in runs for jump in run["jumps"])
    metrics = [
        Metric("from the address to the table", "s", opened, goal="< 2"),
        Metric("to the last plot", "s", drawn),
        Metric("jump in the table, to its rows", "ms", jumps),
    ]
    for kind, name in (("slow", "scrolling"), ("fast", "flinging")):
        times = [run[kind]["times"] for run in runs]
        metrics += [
            Metric(f"{name}: frame", "ms", tuple(map(statistics.median, times)), goal="< 17"),
            Metric(f"{name}: 99 of 100 frames", "ms", tuple(map(_p99, times)), goal="< 34"),
            Metric(f"{name}: frames over two turns", "%", tuple(map(_slow_share, times))),
            Metric(
                f"{name}: tasks over 50 ms", "", tuple(len(run[kind]["longTasks"]) for run in runs)
            ),
        ]
    return metrics


def _p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[-1]


def _slow_share(times: list[float]) -> float:
    return 100 * sum(time > SLOW_FRAME_MS for time in times) / len(times)


if __name__ == "__main__":
    main()
