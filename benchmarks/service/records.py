"""Measure export and import of records: time for each trial, memory, and delay of writers.

Each runs in a new child process, on a job of `benchmarks.service.large_job`. Times are CPU times.
The delay is wall time: the longest of many small write transactions during the operation.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

from sqlalchemy import text

from benchmarks.report import Metric, report
from benchmarks.service.large_job import add_large_job
from service.records.check import lines_of
from service.records.merge import import_records
from service.records.write import Selection, export
from service.store.database.database import Database, open_database

TRIALS = int(os.environ.get("TRIALS", "20_000"))
_PAUSE_SECS = 0.01


def main() -> None:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
        file, source, sink = (Path(folder, name) for name in ("records.jsonl", "a.db", "b.db"))
        with closing(open_database(f"sqlite:///{source}")) as database:
            add_large_job(database, TRIALS)
        metrics = []
        for name, act, path in (
            ("export", _export, source),
            ("import", _import, sink),
            ("import again", _import, sink),
        ):
            secs, peak, waited = _in_a_child(act, f"sqlite:///{path}", file)
            metrics.append(Metric(f"{name}, a trial", "ms", (secs / TRIALS * 1e3,)))
            metrics.append(Metric(f"{name}, memory more than before", "MB", (peak / 1e6,)))
            metrics.append(Metric(f"{name}, others wait at most", "s", (waited,)))
        metrics.append(Metric("file, a trial", "bytes", (file.stat().st_size / TRIALS,)))
    report("records", metrics)


def _in_a_child(act: object, url: str, file: Path) -> tuple[float, float, float]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, act, url, file).result()


def _measured(act: object, url: str, file: Path) -> tuple[float, float, float]:
    """Return CPU seconds, additional bytes of memory, and the longest delay of a writer (s)."""
    assert callable(act)
    with closing(open_database(url)) as database:
        is_over = Event()
        waits = [0.0]
        writer = Thread(target=_write, args=(database, is_over, waits))
        writer.start()
        before, begin = _peak_bytes(), time.process_time()
        act(database, file)
        secs = time.process_time() - begin
        is_over.set()
        writer.join()
        return secs, _peak_bytes() - before, max(waits)


def _export(database: Database, file: Path) -> None:
    with file.open("wb") as opened:
        opened.writelines(piece.encode() for piece in export(database, Selection()))


def _import(database: Database, file: Path) -> None:
    with file.open("rb") as opened:
        import_records(database, lines_of(opened))


def _write(database: Database, is_over: Event, waits: list[float]) -> None:
    while not is_over.wait(_PAUSE_SECS):
        begin = time.monotonic()
        with database.write() as session:
            session.execute(text("UPDATE tokens SET name = name"))
        waits.append(time.monotonic() - begin)


def _peak_bytes() -> float:
    # The peak memory of a child in `resource` includes the peak of its parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return float(peak.split()[1]) * 1024


if __name__ == "__main__":
    main()
