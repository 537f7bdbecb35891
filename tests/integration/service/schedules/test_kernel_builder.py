"""Best schedules and their kernels, from trials that a test made up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from fastapi.testclient import TestClient

from compiler.backends.module import Module
from compiler.executor.artifact import Artifact
from compiler.ir.text.printer import script
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import Measurement
from compiler.schedule.schedule import Schedule
from compiler.target.target import Target
from service.common.errors import BuildFailedError, UnprocessableError
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.jobs.jobs import submit_job
from service.schedules.kernel_builder import KernelBuilder, KernelRequest, ModuleRequest
from service.store.database.database import Database
from service.store.results.sql_store import SqlStore
from service.wire.requests import JobCreate, Workload
from tests.patience import PATIENCE_SECS
from tuner.candidate import Candidate, default_candidate
from tuner.task import Task
from tuner.trial import MeasuredTrial

OPERATOR = "relu:64"
QUERY = {"workload": {"operator": OPERATOR}}


class CountingBuilder(KernelBuilder):
    """Counts what it builds."""

    num_builds = 0

    def build(self, request: KernelRequest) -> bytes:
        self.num_builds += 1
        return super().build(request)


@pytest.fixture
def builder() -> CountingBuilder:
    return CountingBuilder()


@pytest.fixture
def client(database: Database, builder: CountingBuilder) -> Iterator[TestClient]:
    app = create_app(Dependencies(database, builder=builder))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


def task_and_candidate() -> tuple[Task, Candidate]:
    task = Task(from_spec(OPERATOR), Target("cpu"))
    schedule = Schedule(task.func)
    (loop,) = schedule.get_loops(schedule.get_block("B"))
    schedule.vectorize(loop)
    return task, Candidate("vectorized", schedule.trace)


def measure(database: Database, *trials: MeasuredTrial) -> UUID:
    """Keep trials of a new job of `OPERATOR`."""
    request = JobCreate(workload=Workload(operator=OPERATOR), max_trials=10)
    job = submit_job(database, request)[0]
    SqlStore(database).add(str(job.id), Task(from_spec(OPERATOR), Target("cpu")), trials)
    return job.id


def request_for(text: str, trace: dict[str, Any] | None = None) -> KernelRequest:
    schedule = Schedule(from_spec(OPERATOR))
    return KernelRequest(text, trace or schedule.trace.to_json(), Target("cpu").name)


def test_the_best_schedule_and_where_it_is_from(database: Database, client: TestClient) -> None:
    _, vectorized = task_and_candidate()
    job_id = measure(
        database,
        MeasuredTrial(0, default_candidate(), Measurement((0.5,))),
        MeasuredTrial(1, vectorized, Measurement((0.25, 0.375), worker="w", toolchain="t")),
    )
    response = client.post("/schedules/best", json=QUERY)
    best = response.json()
    assert best["job_id"] == str(job_id)
    assert (best["trial_number"], best["run_secs"], best["default_secs"]) == (1, 0.25, 0.5)
    assert best["trace"] == json.loads(json.dumps(vectorized.trace.to_json()))
    assert (best["provenance"]["worker"], best["provenance"]["toolchain"]) == ("w", "t")

    etag = response.headers["etag"]
    for tag in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = client.post("/schedules/best", json=QUERY, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
    other = client.post("/schedules/best", json=QUERY, headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


def test_a_better_trial_changes_the_tag(database: Database, client: TestClient) -> None:
    _, vectorized = task_and_candidate()
    measure(database, MeasuredTrial(0, default_candidate(), Measurement((0.5,))))
    before = client.post("/artifacts", json=QUERY).headers["etag"]
    measure(database, MeasuredTrial(0, vectorized, Measurement((0.25,))))
    headers = {"If-None-Match": before}
    after = client.post("/artifacts", json=QUERY, headers=headers)
    assert after.status_code == 200
    assert after.headers["etag"] != before


def test_a_kernel_is_built_once(
    database: Database, client: TestClient, builder: CountingBuilder
) -> None:
    _, vectorized = task_and_candidate()
    measure(database, MeasuredTrial(0, vectorized, Measurement((0.5,))))
    first, second = (client.post("/artifacts", json=QUERY) for _ in range(2))
    assert first.status_code == 200, first.text
    assert first.headers["content-type"] == "application/octet-stream"
    assert first.content == second.content
    assert builder.num_builds == 1

    x = np.linspace(-1, 1, 64, dtype=np.float32)
    y = np.full(64, np.nan, np.float32)
    module = Module(Artifact.from_bytes(first.content))
    module(x, y)
    module.close()
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_without_a_trial_there_is_a_hint_or_the_default(client: TestClient) -> None:
    refused = client.post("/artifacts", json=QUERY)
    assert refused.status_code == 404
    assert "submit a job" in refused.json()["detail"]
    default = client.post("/artifacts", params={"fallback": "true"}, json=QUERY)
    assert default.headers["loopwright-schedule"] == "default"
    assert Artifact.from_bytes(default.content).name == "relu"


def test_what_the_compiler_refuses_is_a_bad_request() -> None:
    text = script(from_spec(OPERATOR))
    with pytest.raises(UnprocessableError, match="cannot build the kernel: "):
        KernelBuilder().build(request_for(text, {"format": "none of ours"}))


def test_a_build_that_takes_too_long_is_killed() -> None:
    text = script(from_spec(OPERATOR))
    with pytest.raises(BuildFailedError, match=r"took longer than 0.05 s"):
        KernelBuilder(timeout_secs=0.05).build(request_for(text))


def test_a_build_that_takes_too_much_memory_is_an_error() -> None:
    text = script(from_spec(OPERATOR))
    with pytest.raises(BuildFailedError, match=r"the compiler (died|ended)"):
        KernelBuilder(memory_bytes=1 << 20).build(request_for(text))


def test_a_compiler_that_dies_costs_one_request(
    database: Database, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "service.schedules.kernel_child.__name__", "tests.integration.service.schedules.crash_child"
    )
    refused = client.post("/artifacts", params={"fallback": "true"}, json=QUERY)
    assert refused.status_code == 500
    assert "the compiler died of SIGSEGV" in refused.json()["detail"]
    assert client.get("/jobs").status_code == 200


def test_more_builds_than_can_wait_are_sent_away(database: Database) -> None:
    begun, go_on = Barrier(2), Event()

    class Slow(KernelBuilder):
        def _run_child(self, request: KernelRequest | ModuleRequest, wanted: str) -> bytes:
            begun.wait(PATIENCE_SECS)
            assert go_on.wait(PATIENCE_SECS)
            return b"a kernel"

    app = create_app(Dependencies(database, builder=Slow(at_once=1, waiting=0)))
    with (
        TestClient(app, base_url="http://test/api/v1") as client,
        ThreadPoolExecutor(1) as pool,
    ):
        post = partial(client.post, "/artifacts", params={"fallback": True}, json=QUERY)
        first = pool.submit(post)
        begun.wait(PATIENCE_SECS)
        refused = post()
        go_on.set()
        assert first.result(10).content == b"a kernel"
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert "too many kernels in the build queue" in refused.json()["detail"]
