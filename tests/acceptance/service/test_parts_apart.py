"""The API and coordinators as processes of their own, over one database."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Thread
from uuid import UUID

import psutil
import pytest

import loopwright as lw
from service.wire.models import Event, EventKind, JobState
from tests.acceptance.service.server import coordinating, running, serving
from tests.patience import PATIENCE_SECS

pytestmark = pytest.mark.slow


def test_a_job_outlives_its_coordinator_and_goes_on_in_a_cluster(tmp_path: Path) -> None:
    """The first coordinator has workers of its own and is killed; the next uses a cluster's."""
    database, keys = tmp_path / "loopwright.db", tmp_path / "keys"
    with (
        serving(database, part="api") as server,
        lw.Client(str(server.http.base_url).removesuffix("/api/v1/")) as client,
    ):
        assert client.health().status == "ok"
        handle = client.tune("matmul:64,64,64", target="cpu -num-cores=1", max_trials=40)
        assert handle.read().state is JobState.QUEUED
        with coordinating(database) as one:
            for event in handle.events():
                if event.kind == EventKind.TRIALS:
                    break
            below = psutil.Process(one.pid).children(recursive=True)
            one.kill()
            one.wait()
        psutil.wait_procs(below, timeout=PATIENCE_SECS)
        before = {trial.number: trial.created_at for trial in handle.trials()}
        assert 0 < len(before) < 40
        with running(tmp_path, "scheduler", "--port", "0", "--certificates", str(keys)) as meeting:
            assert meeting.stdout is not None
            address = meeting.stdout.readline().split()[-1]
            with (
                running(tmp_path, "worker", address, "--certificates", str(keys)) as worker,
                coordinating(database, "--scheduler", address, "--certificates", str(keys)) as two,
            ):
                job = handle.wait(timeout_secs=PATIENCE_SECS)
                below = psutil.Process(worker.pid).children(recursive=True)
            assert (two.returncode, worker.returncode) == (0, 0)
        assert meeting.returncode == 0
        assert (job.state, job.num_measured) == (JobState.SUCCEEDED, 40)
        after = {trial.number: trial.created_at for trial in handle.trials()}
        assert {number: after[number] for number in before} == before
        assert sorted(after) == list(range(40))
        assert {w.facts["pid"] for w in client.workers()} & {process.pid for process in below}
        assert not psutil.wait_procs(below, timeout=PATIENCE_SECS)[1]
    assert (keys / "cluster.key").stat().st_mode & 0o077 == 0


async def follow(url: str, job_id: UUID, seen: list[Event]) -> None:
    async with lw.AsyncClient(url) as client:
        async for event in client.job(job_id).events():
            seen.append(event)


def test_events_go_on_when_the_server_is_killed_and_started_again(tmp_path: Path) -> None:
    """Both clients follow a job over the death of its server, on the same port."""
    database = tmp_path / "loopwright.db"
    with serving(database) as server:
        port = str(server.http.base_url.port)
        client = lw.Client(f"http://127.0.0.1:{port}")
        handle = client.tune("matmul:64,64,64", target="cpu -num-cores=1", max_trials=40)
        async_seen: list[Event] = []
        follower = Thread(target=lambda: asyncio.run(follow(client.url, handle.id, async_seen)))
        follower.start()
        events = handle.events()
        seen = [next(events)]
        while seen[-1].kind != EventKind.TRIALS:
            seen.append(next(events))
        below = server.kill()
        psutil.wait_procs(below, timeout=PATIENCE_SECS)
    with serving(database, "--port", port):
        seen += events
        follower.join(PATIENCE_SECS)
        assert handle.read().num_measured == 40
    assert async_seen == seen
    ids = [event.id for event in seen]
    assert ids == sorted(set(ids))
    counts = [
        int(str(event.payload["num_measured"])) for event in seen if event.kind == EventKind.TRIALS
    ]
    assert counts[-1] == 40
    assert counts == sorted(set(counts))
    assert seen[-1].payload["state"] == JobState.SUCCEEDED
    client.close()
