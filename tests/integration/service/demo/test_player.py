"""The demo: recorded jobs are there at once, and run again; they can be stopped and go on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select

import loopwright as lw
from service.coordinator.coordinator import Coordinator
from service.demo import player
from service.demo.recorded import import_recorded
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow
from service.wire.models import JobRead, JobState
from tests.integration.service.coordinating import cost
from tuner.measurer.memory import MemoryMeasurer

_WAIT_SECS = 120.0
PLAYED = ("workload_key", "num_measured", "stop_reason", "best_secs", "best_interval", "baseline")


@contextmanager
def _demo(folder: Path) -> Iterator[lw.Client]:
    command = [sys.executable, "-m", "loopwright", "serve", "--demo", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        with lw.Client(words[-1]) as client:
            yield client
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _wait(client: lw.Client, is_so: Callable[[list[JobRead]], bool]) -> list[JobRead]:
    end = time.monotonic() + _WAIT_SECS
    while True:
        found = list(client.jobs())
        if is_so(found):
            return found
        assert time.monotonic() < end, [(job.id, job.state, job.num_measured) for job in found]
        time.sleep(0.1)


def test_recorded_jobs_run_once_more(tmp_path: Path) -> None:
    with _demo(tmp_path) as client:
        recorded = list(client.jobs(state=JobState.SUCCEEDED))
        assert recorded
        assert all(job.best_secs for job in recorded)
        known = {job.id for job in recorded}

        def played(jobs: list[JobRead]) -> list[JobRead]:
            return [job for job in jobs if job.id not in known and job.num_measured > 2]

        [job] = played(_wait(client, lambda jobs: bool(played(jobs))))
        [source] = [
            other
            for other in recorded
            if (other.workload_key, other.seed) == (job.workload_key, job.seed)
        ]
        assert job.state is JobState.RUNNING
        assert job.max_trials == source.max_trials
        again, before = (
            {trial.number: trial for trial in client.job(of.id).trials()} for of in (job, source)
        )
        assert all(again[n].run_secs == before[n].run_secs for n in again)

        client.job(job.id).stop()
        found = _wait(client, lambda jobs: any(j.id == job.id and j.state.is_final for j in jobs))
        [stopped] = [j for j in found if j.id == job.id]
        assert stopped.state is JobState.SUCCEEDED
        assert stopped.stop_reason == "stopped"
        assert stopped.num_measured < source.num_measured
    assert list(tmp_path.iterdir()) == []  # nothing is kept


def test_what_is_played_is_what_was_recorded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "MAX_PAUSE_SECS", 0.0)
    import_recorded(database)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    plays = player.Player(database, coordinator.owner, coordinator.driver)
    plays.submit_all()
    coordinator.driver = plays
    with database.read() as session:
        rows = session.scalars(select(JobRow).order_by(JobRow.created_at)).all()
    recorded, queued = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    assert any(source.baseline is not None for source in recorded)
    for _ in queued:
        assert coordinator.run_one()
    assert not coordinator.run_one()
    with database.read() as session:
        for source, again in zip(recorded, (jobs.get(session, q.id) for q in queued), strict=True):
            assert again.state is JobState.SUCCEEDED
            for name in PLAYED:
                assert getattr(again, name) == getattr(source, name)


def test_a_demo_has_a_database_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loopwright", "serve", "--demo", "--db", "sqlite://"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "leave out --db or --demo" in " ".join(ended.stderr.replace("│", " ").split())
