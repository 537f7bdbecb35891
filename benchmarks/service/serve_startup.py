"""Measure the time of `loopwright serve` to its first answer, and its memory when idle."""

from __future__ import annotations

import time

import psutil

from benchmarks.report import Metric, report
from examples.serving import serving

REPEATS = 3
SETTLE_SECS = 5.0


def main() -> None:
    """Run the benchmark, each time with a new process and a new database."""
    starts, resident, shared = [], [], []
    for _ in range(REPEATS):
        with serving() as server:
            starts.append(server.start_secs)
            time.sleep(SETTLE_SECS)
            root = psutil.Process(server.pid)
            memory = [p.memory_full_info() for p in (root, *root.children(recursive=True))]
            resident.append(sum(m.rss for m in memory) / 2**20)
            shared.append(sum(m.pss for m in memory) / 2**20)
    report(
        "serve_startup",
        [
            Metric("first answer", "s", tuple(starts), goal="< 5"),
            Metric("resident memory of the tree", "MiB", tuple(resident), goal="< 400"),
            Metric("the same, shared pages once", "MiB", tuple(shared)),
        ],
    )


if __name__ == "__main__":
    main()
