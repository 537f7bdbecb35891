"""`kill -9` of whatever can be killed: nothing measured is lost or measured twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.acceptance.service.server import Server, serving
from tests.patience import PATIENCE_SECS

pytestmark = pytest.mark.slow

WORKLOAD = "matmul:64,64,64"
TRIALS = 40


def in_the_file(database: Path) -> dict[int, tuple[str, str]]:
    """Return each trial's candidate and when it was measured, past the service."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT number, candidate_key, created_at FROM trials")
        return {number: (key, created_at) for number, key, created_at in rows}


def extend_lease(database: Path) -> None:
    """Make the lease of the only job last for years."""
    with closing(sqlite3.connect(database)) as connection, connection:
        until = "9000-01-01 00:00:00.000000"
        assert connection.execute("UPDATE jobs SET lease_until = ?", (until,)).rowcount == 1


def check_whole(server: Server, job_id: str, database: Path) -> None:
    """Check that the job ended well, with each of its trials there once."""
    job = server.job(job_id)
    assert (job["state"], job["error"]) == ("succeeded", None)
    trials = server.trials(job_id)
    assert [t["number"] for t in trials] == list(range(TRIALS))
    assert job["num_measured"] == TRIALS
    keys = [key for key, _ in in_the_file(database).values()]
    assert len(set(keys)) == len(keys) == TRIALS
    assert any(t["error"] is None for t in trials)
    # What the finish measured, side by side with the other finalists.
    low, high = job["best_interval"]
    assert low <= job["best_secs"] <= high
    best = server.http.get(
        "/schedules/best",
        params={"workload_key": job["workload_key"], "target": job["target"]},
    ).json()
    assert best["run_secs"] == job["best_secs"]
    assert trials[best["trial_number"]]["error"] is None


def test_a_killed_service_resumes_its_job(tmp_path: Path) -> None:
    database = tmp_path / "loopwright.db"
    with serving(database) as server:
        job_id = server.submit(WORKLOAD, TRIALS)
        server.wait(job_id, measured=5)
        below = server.kill()
    _, alive = psutil.wait_procs(below, timeout=PATIENCE_SECS)
    assert not alive, "the workers of a dead service go on"
    before = in_the_file(database)
    assert 5 <= len(before) < TRIALS
    # A service that waits for the end of the dead owner's lease waits in vain.
    extend_lease(database)

    with serving(database) as server:
        server.wait(job_id)
        check_whole(server, job_id, database)
    after = in_the_file(database)
    assert {number: after[number] for number in before} == before


def test_a_stopped_service_resumes_its_job(tmp_path: Path) -> None:
    database = tmp_path / "loopwright.db"
    with serving(database) as server:
        job_id = server.submit(WORKLOAD, TRIALS)
        server.wait(job_id, measured=3)
        assert server.stop() == 0
    before = in_the_file(database)
    with serving(database) as server:
        server.wait(job_id)
        check_whole(server, job_id, database)
    after = in_the_file(database)
    assert {number: after[number] for number in before} == before


def test_killed_workers_cost_no_trial(tmp_path: Path) -> None:
    """Kills each process below the server once: nannies, workers, children."""
    database = tmp_path / "loopwright.db"
    with serving(database) as server:
        job_id = server.submit(WORKLOAD, TRIALS)
        server.wait(job_id, measured=3)
        # The deepest is the child, above it is the worker.
        for victim in reversed(server.tree()):
            if victim.is_running():
                victim.kill()
            num_measured = server.job(job_id)["num_measured"]
            server.wait(job_id, measured=num_measured + 2)
        server.wait(job_id)
        check_whole(server, job_id, database)
        assert not [t for t in server.trials(job_id) if t["error"] == "worker_lost"]


def test_two_services_on_one_file_share_its_jobs(tmp_path: Path) -> None:
    database = tmp_path / "loopwright.db"
    with serving(database) as one, serving(database) as two:
        ids = [one.submit(WORKLOAD, 16, seed=seed) for seed in range(3)]
        for job_id in ids:
            assert two.wait(job_id)["state"] == "succeeded"
            assert [t["number"] for t in one.trials(job_id)] == list(range(16))
            assert one.job(job_id) == two.job(job_id)
