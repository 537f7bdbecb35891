"""The whole service over real HTTP, with real workers."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from compiler.backends.module import Module
from compiler.executor.artifact import Artifact
from tests.acceptance.service.server import Server, command, serving
from tests.patience import PATIENCE_SECS
from tests.service_fixtures import write_a_newer_one, write_text


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("serve") / "loopwright.db") as running:
        yield running


def test_idle_the_whole_tree_stays_under_400_megabytes(server: Server) -> None:
    """Runs first: the workers start with the first job."""
    deadline = time.monotonic() + PATIENCE_SECS
    while server.http.get("/health").json()["status"] != "ok" and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    tree = [psutil.Process(server.process.pid), *server.tree()]
    assert sum(process.memory_info().rss for process in tree) < 400 * 2**20


def test_from_a_workload_to_a_kernel_that_is_correct(server: Server) -> None:
    job_id = server.submit("matmul:64,48,32", max_trials=20)
    events = []
    with server.http.stream("GET", f"/jobs/{job_id}/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
    states = [e["payload"]["state"] for e in events if e["kind"] == "state"]
    assert states == ["queued", "running", "succeeded"]
    assert [e["id"] for e in events] == sorted({e["id"] for e in events})

    job = server.job(job_id)
    trials = server.trials(job_id)
    assert job["num_measured"] == len(trials) <= 20
    assert [t["number"] for t in trials] == list(range(len(trials)))
    assert (trials[0]["sketch"], trials[0]["error"]) == ("default", None)
    # The finish times the default schedule too, beside the finalists.
    assert job["default_kind"] == "confirmed"
    assert job["default_secs"] == trials[0]["final"]["run_secs"]
    # What the finish measured, side by side with the other finalists.
    low, high = job["best_interval"]
    assert low <= job["best_secs"] <= high
    assert job["best_secs"] < job["default_secs"]

    query = {"workload": {"operator": "matmul:64,48,32"}}
    response = server.http.post("/schedules/best", json=query)
    best = response.json()
    assert (best["job_id"], best["run_secs"]) == (job_id, job["best_secs"])
    assert best["trace"] == trials[best["trial_number"]]["trace"]
    headers = {"If-None-Match": response.headers["etag"]}
    assert server.http.post("/schedules/best", json=query, headers=headers).status_code == 304
    by_key = {"workload_key": job["workload_key"], "target": job["target"]}
    assert server.http.get("/schedules/best", params=by_key).json() == best

    response = server.http.post("/artifacts", json=query)
    assert response.headers["loopwright-schedule"] == "best"
    a, b = (np.random.default_rng(0).random(shape, np.float32) for shape in ((64, 32), (32, 48)))
    c = np.full((64, 48), np.nan, np.float32)
    module = Module(Artifact.from_bytes(response.content))
    module(a, b, c)
    module.close()
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)

    again = server.http.post("/artifacts", json=query)
    assert again.content == response.content
    headers = {"If-None-Match": response.headers["etag"]}
    not_modified = server.http.post("/artifacts", json=query, headers=headers)
    assert (not_modified.status_code, not_modified.content) == (304, b"")

    (worker,) = server.http.get("/workers").json()["items"]
    assert worker["label"].startswith("cpu/")
    assert worker["state"] in {"idle", "busy"}


def test_what_was_never_tuned_has_no_kernel_unless_asked_for(server: Server) -> None:
    query = {"workload": {"operator": "relu:64"}}
    for path in ("/schedules/best", "/artifacts"):
        response = server.http.post(path, json=query)
        assert response.status_code == 404
        assert "submit a job" in response.json()["detail"]
    response = server.http.post("/artifacts", params={"fallback": True}, json=query)
    assert response.status_code == 200
    assert response.headers["loopwright-schedule"] == "default"
    assert Artifact.from_bytes(response.content).name == "relu"


def test_a_job_that_runs_can_be_cancelled(server: Server) -> None:
    job_id = server.submit("matmul:96,96,96", max_trials=5000)
    server.wait(job_id, measured=3)
    server.http.post(f"/jobs/{job_id}/cancel").raise_for_status()
    job = server.wait(job_id)
    assert job["state"] == "cancelled"
    assert 3 <= job["num_measured"] == len(server.trials(job_id)) < 5000


def test_requests_are_answered_while_a_job_runs(server: Server) -> None:
    job_id = server.submit("matmul:128,128,128", max_trials=5000)
    server.wait(job_id, measured=1)
    for _ in range(20):
        server.http.get("/jobs").raise_for_status()
    assert server.job(job_id)["state"] == "running"
    server.http.post(f"/jobs/{job_id}/cancel").raise_for_status()
    assert server.wait(job_id)["state"] == "cancelled"


def test_a_stream_is_taken_up_where_it_broke(server: Server) -> None:
    job_id = server.submit("matmul:80,80,80", max_trials=16)
    seen: list[int] = []
    for _ in range(100):
        headers = {"Last-Event-ID": str(seen[-1])} if seen else {}
        with server.http.stream("GET", f"/jobs/{job_id}/events", headers=headers) as stream:
            ids = (int(line[4:]) for line in stream.iter_lines() if line.startswith("id: "))
            new = next(ids, None)  # one event, and the connection breaks
        if new is None:
            break
        seen.append(new)
    whole = server.http.get(f"/jobs/{job_id}/events").text
    assert seen == [int(line[4:]) for line in whole.splitlines() if line.startswith("id: ")]
    # Queued, running, the trials as they were stored together, the finish, succeeded.
    assert 2 + 1 + 2 <= len(seen) <= 2 + 16 + 2


def test_a_stream_from_now_on_tells_nothing_that_was_before(server: Server) -> None:
    job_id = server.submit("matmul:72,72,72", max_trials=5000)
    server.wait(job_id, measured=3)
    headers = {"Last-Event-ID": "now"}
    with server.http.stream("GET", f"/jobs/{job_id}/events", headers=headers) as stream:
        known = server.http.get(f"/jobs/{job_id}").json()["num_measured"]
        server.http.post(f"/jobs/{job_id}/cancel").raise_for_status()
        told = [line for line in stream.iter_lines() if line.startswith("data: ")]
    whole = server.http.get(f"/jobs/{job_id}/events").text.splitlines()
    assert told == [line for line in whole if line.startswith("data: ")][-len(told) :]
    assert '"cancelled"' in told[-1]
    # All that is not told was in the job when it was read.
    assert len(whole) // 4 - len(told) <= 2 + known


def test_a_listener_does_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    with serving(tmp_path / "loopwright.db") as server:
        job_id = server.submit("matmul:96,96,96", max_trials=5000)
        with server.http.stream("GET", f"/jobs/{job_id}/events") as stream:
            assert next(stream.iter_lines()) == "event: state"
            assert server.stop() == 0


@pytest.mark.parametrize(
    ("write", "message"),
    [(write_text, "is not an SQLite database"), (write_a_newer_one, "newer version of Loopwright")],
)
def test_a_file_that_cannot_be_used_is_said_to_be(
    tmp_path: Path, write: Callable[[Path], None], message: str
) -> None:
    database = tmp_path / "file.db"
    write(database)
    before = database.read_bytes()
    refused = subprocess.run(
        command(database), check=False, capture_output=True, text=True, timeout=60
    )
    assert refused.returncode != 0
    assert message in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.stderr
    assert database.read_bytes() == before


def test_a_second_server_on_the_port_says_so_and_ends(server: Server, tmp_path: Path) -> None:
    port = str(server.http.base_url.port)
    database = tmp_path / "second.db"
    second = subprocess.run(
        [*command(database), "--port", port],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode != 0
    assert f"port {port} of 127.0.0.1 is in use" in second.stderr.replace("\n", " ")
    assert "Traceback" not in second.stderr
    assert not database.exists()
    assert server.http.get("/health").status_code == 200
