"""Measure requests for plots and lists of a job of 100,000 trials, uncached and cached.

The application runs in this process, without a network and without other requests.
`benchmarks.service.large_job` generates the database.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

from fastapi.testclient import TestClient

from benchmarks.report import Metric, report
from benchmarks.service.large_job import add_large_job
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database, open_database
from workers.logs import configure_logs

TRIALS = int(os.environ.get("TRIALS", "100_000"))
REPEATS = 5
PATHS = {
    "curve": "curve",
    "columns, thinned to 5000": "columns",
    "summary": "summary",
    "decisions": "decisions",
    "the 50 fastest trials": "trials?sort=best_secs",
    "the last 50 failures": "trials?sort=-number&outcome=timeout&outcome=crash",
}


def main() -> None:
    """Run the benchmark."""
    configure_logs()
    with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
        url = f"sqlite:///{Path(folder, 'large.db')}"
        with closing(open_database(url)) as database:
            base = f"/api/v1/jobs/{add_large_job(database, TRIALS)}/"
            metrics = [
                Metric(f"{name}, {when}", "ms", samples, goal="< 200")
                for name, path in PATHS.items()
                for when, samples in _timed(database, base + path).items()
            ]
    report("reading", metrics)


def _timed(database: Database, path: str) -> dict[str, tuple[float, ...]]:
    """Return the times of the first answer of a new application, and of the next ones."""
    first, next_ones = [], []
    for _ in range(REPEATS):
        client = TestClient(create_app(Dependencies(database)))
        assert client.get("/api/v1/targets").status_code == 200  # warm up
        first.append(_once(client, path))
        next_ones.append(_once(client, path))
    return {"first": tuple(first), "again": tuple(next_ones)}


def _once(client: TestClient, path: str) -> float:
    begin = time.perf_counter()
    answer = client.get(path)
    secs = time.perf_counter() - begin
    assert answer.status_code == 200, answer.text
    return 1e3 * secs


if __name__ == "__main__":
    main()
