"""`kill -9` amid a finish, amid a group, and right after a user asked for something."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.acceptance.service.server import Server, serving
from tests.patience import PATIENCE_SECS

pytestmark = pytest.mark.slow

WORKLOADS = ("matmul:64,64,64", "matmul:32,64,64")
TRIALS = 16
MORE = 24
SHARED = 64


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    """Return what a query finds in the file, past the service."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def measured(database: Path) -> set[tuple[Any, ...]]:
    return set(rows(database, "SELECT job_id, number, candidate_key, created_at FROM trials"))


def kill(server: Server) -> None:
    _, alive = psutil.wait_procs(server.kill(), timeout=PATIENCE_SECS)
    assert not alive, "the workers of a dead service go on"


def in_its_finish(server: Server) -> str:
    """Return a job that has measured all its trials and compares the best of them."""
    for seed in range(9):
        job_id = server.submit(WORKLOADS[0], TRIALS, seed=seed)
        if server.wait(job_id, measured=TRIALS)["state"] == "running":
            return job_id
    raise AssertionError("each finish was over before it was seen")


def check_nothing_was_lost_or_repeated(database: Path, before: set[tuple[Any, ...]]) -> None:
    after = measured(database)
    assert before <= after
    candidates = Counter((job, key) for job, _, key, _ in after)
    assert set(candidates.values()) == {1}


def test_a_service_that_is_killed_in_a_finish_and_after_a_change(tmp_path: Path) -> None:
    database = tmp_path / "loopwright.db"
    with serving(database) as server:
        job_id = in_its_finish(server)
        kill(server)
    before = measured(database)
    assert rows(database, "SELECT count(*) FROM finals WHERE finish > 1") == [(0,)]

    with serving(database) as server:
        job = server.wait(job_id)
        assert (job["state"], job["stop_reason"]) == ("succeeded", "budget")
        low, high = job["best_interval"]
        assert low <= job["best_secs"] <= high
        assert measured(database) == before, "only the best are measured again"
        changed = server.http.patch(f"/jobs/{job_id}", json={"max_trials": MORE})
        assert changed.json()["state"] == "queued", changed.text
        kill(server)

    with serving(database) as server:
        job = server.wait(job_id)
        assert (job["state"], job["num_measured"]) == ("succeeded", MORE)
        assert [t["number"] for t in server.trials(job_id)] == list(range(MORE))
        assert job["best_interval"] is not None
    check_nothing_was_lost_or_repeated(database, before)
    finishes = f"SELECT DISTINCT finish FROM finals WHERE job_id = '{job_id.replace('-', '')}'"
    assert set(rows(database, finishes)) == {(1,), (2,)}


def test_a_service_that_is_killed_amid_a_group_and_after_a_stop(tmp_path: Path) -> None:
    database = tmp_path / "loopwright.db"
    tasks = [{"workload": {"operator": spec}} for spec in WORKLOADS]
    with serving(database) as server:
        group = server.http.post("/groups", json={"tasks": tasks, "max_trials": SHARED}).json()
        stopped, other = (job["id"] for job in group["jobs"])
        deadline = time.monotonic() + PATIENCE_SECS
        while server.http.get(f"/groups/{group['id']}").json()["num_measured"] < 20:
            assert time.monotonic() < deadline, "the group is late"
            time.sleep(0.02)
        assert server.http.post(f"/jobs/{stopped}/stop").status_code == 200
        kill(server)
    before = measured(database)
    assert 20 <= len(before) < SHARED

    with serving(database) as server:
        assert server.wait(stopped)["stop_reason"] == "stopped"
        assert server.wait(other)["stop_reason"] == "budget"
        after = server.http.get(f"/groups/{group['id']}").json()
        assert [job["state"] for job in after["jobs"]] == ["succeeded", "succeeded"]
        assert after["num_measured"] == SHARED
    check_nothing_was_lost_or_repeated(database, before)
