"""The API and coordinators as processes of their own, over one database."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import loopwright as lw
from loopwright.models import EventKind, JobState
from tests.acceptance.service.server import PATIENCE_SECS, serving

pytestmark = pytest.mark.slow


@contextmanager
def coordinating(database: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """Run a coordinator on `database` while the body runs."""
    with database.with_suffix(f".{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "loopwright", "coordinator", "--db", f"sqlite:///{database}"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    assert process.stdout is not None
    try:
        assert "drives jobs" in process.stdout.readline()
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECS)
        process.stdout.close()


def test_a_job_outlives_its_coordinator_and_the_api(tmp_path: Path) -> None:
    database = tmp_path / "loopwright.db"
    with serving(database, part="api") as first:
        client = lw.Client(str(first.http.base_url).removesuffix("/api/v1/"))
        assert client.health().status == "ok"
        handle = client.tune("matmul:64,64,64", target="cpu -num-cores=1", trials=32)
        assert handle.read().state is JobState.QUEUED
        with coordinating(database, "one") as one:
            for event in handle.events():
                if event.kind == EventKind.TRIALS:
                    break
            below = psutil.Process(one.pid).children(recursive=True)
            one.kill()
            one.wait()
        psutil.wait_procs(below, timeout=PATIENCE_SECS)
        seen = handle.read().num_measured
        assert 0 < seen < 32
        before = {trial.number: trial.created_at for trial in handle.trials()}
        assert client.workers()
        client.close()
    with (
        coordinating(database, "two"),
        serving(database, part="api") as second,
        lw.Client(str(second.http.base_url).removesuffix("/api/v1/")) as client,
    ):
        handle = client.job(handle.id)
        job = handle.wait(timeout_secs=120)
        assert (job.state, job.num_measured) == (JobState.SUCCEEDED, 32)
        after = {trial.number: trial.created_at for trial in handle.trials()}
        assert {number: after[number] for number in before} == before
        assert sorted(after) == list(range(32))


def test_events_go_on_when_the_server_is_killed_and_started_again(tmp_path: Path) -> None:
    """A client follows a job over the death of its server, on the same port."""
    database = tmp_path / "loopwright.db"
    with serving(database) as server:
        port = str(server.http.base_url.port)
        client = lw.Client(f"http://127.0.0.1:{port}")
        handle = client.tune("matmul:64,64,64", target="cpu -num-cores=1", trials=40)
        events = handle.events()
        seen = [next(events)]
        while seen[-1].kind != EventKind.TRIALS:
            seen.append(next(events))
        below = server.kill()
        psutil.wait_procs(below, timeout=PATIENCE_SECS)
    with serving(database, "--port", port):
        seen += events
        assert handle.read().num_measured == 40
    ids = [event.id for event in seen]
    assert ids == sorted(set(ids))
    counts = [event.payload["num_measured"] for event in seen if event.kind == EventKind.TRIALS]
    assert counts[-1] == 40
    assert counts == sorted(set(counts))
    assert seen[-1].payload["state"] == JobState.SUCCEEDED
    client.close()


def test_a_stopped_coordinator_puts_its_job_back(tmp_path: Path) -> None:
    database = tmp_path / "loopwright.db"
    with serving(database, part="api") as server:
        job_id = server.submit("matmul:64,64,64", 10_000)
        with coordinating(database, "one") as one:
            server.wait(job_id, measured=1)
            one.terminate()
            assert one.wait(PATIENCE_SECS) == 0
        deadline = time.monotonic() + PATIENCE_SECS
        while server.job(job_id)["state"] != "queued" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.job(job_id)["state"] == "queued"
