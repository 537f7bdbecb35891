"""Measure the load of one server process: look-ups of best schedules, and event streams.

The database is a SQLite file with a million trials. The server is `loopwright api`, and other
processes of the same machine load it. `TRIALS` in the environment reduces the database.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from uuid import UUID

import psutil

from benchmarks.report import Metric, report
from benchmarks.service.http_load import Load, run
from benchmarks.service.many_trials import add_many_trials
from examples.serving import Server, serving
from service.store.database.database import Database, open_database
from service.store.jobs import events
from service.wire.models import EventKind

TRIALS = int(os.environ.get("TRIALS", "1_000_000"))
SECS = float(os.environ.get("SECS", "20"))
NUM_TASKS = 200
NUM_STREAMS = 200
LOOKUPS_PER_SEC = 1500
REQUESTS_PER_SEC = 200
EVENTS_PER_SEC = 10


def main() -> None:
    """Run the benchmark on a new database."""
    with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
        file = Path(folder, "many.db")
        with closing(open_database(f"sqlite:///{file}")) as database:
            tasks, waiting = add_many_trials(database, TRIALS, NUM_TASKS)
            with serving(file, command="api") as server:
                metrics = [*_lookups(server.url, tasks), *_streams(server, database, waiting)]
    report("service_load", metrics)


def _lookups(url: str, tasks: list[tuple[str, str]]) -> Iterator[Metric]:
    paths = [
        "/api/v1/schedules/best?" + urlencode({"workload_key": key, "target": target})
        for key, target in tasks
    ]
    run(url, paths, secs=2, connections=4)
    fast = run(url, paths, secs=SECS, connections=16)
    paced = run(url, paths, secs=SECS, connections=64, per_sec=LOOKUPS_PER_SEC / 2)
    goal = f">= {LOOKUPS_PER_SEC}"
    yield Metric("look-ups of best schedules", "1/s", (fast.per_sec,), goal=goal)
    yield Metric("their p99 at 750/s", "ms", (1e3 * paced.percentile(0.99),), goal="< 20")
    yield _failures("look-ups that failed", fast, paced)


def _streams(server: Server, database: Database, job_id: UUID) -> Iterator[Metric]:
    process = psutil.Process(server.pid)
    before = process.memory_info().rss
    paths = ["/api/v1/jobs?limit=20", f"/api/v1/jobs/{job_id}", f"/api/v1/jobs/{job_id}/curve"]
    with ExitStack() as stack:
        seen = stack.enter_context(_open_streams(server.url, job_id))
        stack.enter_context(_events(database, job_id))
        load = run(server.url, paths, secs=SECS, connections=64, per_sec=REQUESTS_PER_SEC)
        after = process.memory_info().rss
    share = sum(seen) / (NUM_STREAMS * max(seen))
    yield Metric("memory of 200 event streams", "MiB", ((after - before) / 2**20,), goal="< 200")
    yield Metric("p99 at 200 requests/s beside them", "ms", (1e3 * load.percentile(0.99),), "< 100")
    yield Metric("events each stream got, of the most", "share", (share,))
    yield _failures("requests that failed", load)


def _failures(name: str, *loads: Load) -> Metric:
    return Metric(name, "", (float(sum(load.num_failed for load in loads)),), goal="0")


@contextmanager
def _events(database: Database, job_id: UUID) -> Iterator[None]:
    """Publish events of a job at a fixed rate while the body runs."""
    ended = threading.Event()

    def tell() -> None:
        number = 0
        while not ended.wait(1 / EVENTS_PER_SEC):
            number += 1
            payload = {"num_measured": number, "best_secs": 1e-3, "default_secs": 1e-2}
            with database.write() as session:
                events.append(session, job_id, EventKind.TRIALS, payload)

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _open_streams(url: str, job_id: UUID) -> Iterator[list[int]]:
    """Read that many streams in a thread; yield how many events each got so far."""
    seen = [0] * NUM_STREAMS
    loop = asyncio.new_event_loop()
    parts = urlsplit(url)
    request = f"GET /api/v1/jobs/{job_id}/events HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"

    async def listen(number: int) -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(request.encode())
        try:
            while line := await reader.readline():
                seen[number] += line.startswith(b"id: ")
        finally:
            writer.close()

    async def all_of_them() -> None:
        await asyncio.gather(*map(listen, range(NUM_STREAMS)))

    task = loop.create_task(all_of_them())
    task.add_done_callback(lambda _: loop.stop())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    deadline = time.monotonic() + 60
    while min(seen) == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    try:
        yield seen
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


if __name__ == "__main__":
    main()
