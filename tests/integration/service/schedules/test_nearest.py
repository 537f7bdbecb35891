"""Schedules of the nearest shape, over the real application, database and compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from compiler.backends.module import Module
from compiler.driver import build
from compiler.executor.artifact import Artifact
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import Measurement
from compiler.target.target import Target
from loopwright.client.best import Best
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.intake.request_validation import read_workload
from service.learning.warm_start import warm_start_of_job
from service.schedules.expected_loss import MIN_OUTCOMES, expected_loss
from service.store import warm_starts
from service.store.database.database import Database
from service.store.results.sql_store import SqlStore
from service.store.trials import trials
from service.wire.models import BestRead
from service.wire.requests import Workload
from tests.integration.service.tuned import OWNER, claimed, task_of, tuned
from tuner.trial import MeasuredTrial

TARGET = "cpu -num-cores=1"
ASKED = "matmul:40,56,96"
NEAR = "matmul:40,56,48"
FAR = "matmul:12,12,12"


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


def query(spec: str = ASKED, *, nearest: bool = True, target: str = TARGET) -> dict[str, Any]:
    return {"workload": {"operator": spec}, "target": target, "nearest": nearest}


def check_product(kernel: Module) -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((40, 96), dtype="float32")
    b = rng.standard_normal((96, 56), dtype="float32")
    c = np.full((40, 56), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_the_nearest_shape_s_best_is_adapted(database: Database, client: TestClient) -> None:
    tuned(database, FAR)
    job_id, made = tuned(database, NEAR)
    response = client.post("/schedules/best", json=query())
    assert response.status_code == 200, response.text
    best = BestRead.model_validate(response.json())
    assert best.nearest is not None
    assert best.workload_key == task_of(ASKED).workload_key
    assert best.nearest.workload_key == task_of(NEAR).workload_key
    assert (best.nearest.distance, best.nearest.run_secs) == (1.0, made[1].best_secs)
    assert (best.job_id, best.trial_number) == (job_id, 1)
    assert (best.run_secs, best.default_secs) == (None, None), "nobody measured that"
    assert best.nearest.expected_loss is None
    assert best.nearest.basis.startswith("unknown: ")
    adapted = Best(best)
    assert adapted.trace.key() != made[1].candidate.key
    check_product(build(adapted.apply(from_spec(ASKED)), Target(TARGET)))

    again = client.post(
        "/schedules/best", json=query(), headers={"If-None-Match": response.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


def test_what_was_measured_goes_before(database: Database, client: TestClient) -> None:
    tuned(database, NEAR)
    job_id, made = tuned(database, ASKED)
    best = client.post("/schedules/best", json=query()).json()
    assert (best["job_id"], best["nearest"]) == (str(job_id), None)
    assert best["run_secs"] == made[1].best_secs


def test_who_did_not_ask_for_it_gets_none(database: Database, client: TestClient) -> None:
    tuned(database, NEAR)
    refused = client.post("/schedules/best", json=query(nearest=False))
    assert refused.status_code == 404
    detail = refused.json()["detail"]
    assert detail.startswith(f"no schedule of {ASKED} on target")
    assert "or request the nearest shape" in detail


def test_warm_and_cold_tasks_share_no_schedule(database: Database, client: TestClient) -> None:
    cold = f"{TARGET} -cache=cold"
    tuned(database, NEAR)
    warm_id, _ = tuned(database, ASKED)
    assert client.post("/schedules/best", json=query(target=cold)).status_code == 404
    cold_id, made = tuned(database, ASKED, best_secs=0.5, target=cold)
    best = client.post("/schedules/best", json=query(target=cold)).json()
    assert (best["job_id"], best["run_secs"]) == (str(cold_id), made[1].best_secs)
    assert best["target"] == Target(cold).name
    assert best["target"].endswith(" -cache=cold")
    warm = client.post("/schedules/best", json=query()).json()
    assert (warm["job_id"], warm["target"]) == (str(warm_id), Target(TARGET).name)


@pytest.mark.parametrize("other", ["dense:40,56,48", "matmul:40,56,48:float64"])
def test_another_operator_is_no_neighbour(
    database: Database, client: TestClient, other: str
) -> None:
    tuned(database, other)
    refused = client.post("/schedules/best", json=query())
    assert refused.status_code == 404
    assert "nor one of another shape of its operator" in refused.json()["detail"]
    assert "submit a job" in refused.json()["detail"]


def test_a_neighbour_that_does_not_fit_makes_way_for_the_next(
    database: Database, client: TestClient
) -> None:
    far_job, near_job = tuned(database, FAR)[0], tuned(database, NEAR)[0]
    # As if rules had changed since: what was kept is of no space that is known now.
    with database.write() as session:
        for row in trials.of_job(session, near_job):
            row.sketch = "a sketch of the past"
    best = client.post("/schedules/best", json=query("matmul:40,56,92"))
    assert best.status_code == 200, best.text
    assert best.json()["job_id"] == str(far_job)


def test_by_key_it_takes_a_known_workload(database: Database, client: TestClient) -> None:
    tuned(database, NEAR)
    key = task_of(ASKED).workload_key
    params: dict[str, str | bool] = {"workload_key": key, "target": TARGET, "nearest": True}
    unknown = client.get("/schedules/best", params=params)
    assert unknown.status_code == 404
    assert "post its text" in unknown.json()["detail"]
    client.post("/jobs", json={"workload": {"operator": ASKED}, "target": TARGET, "max_trials": 1})
    assert client.get("/schedules/best", params=params).json()["nearest"]["distance"] == 1.0


def test_the_kernel_of_a_neighbour_is_correct(database: Database, client: TestClient) -> None:
    tuned(database, NEAR)
    assert client.post("/artifacts", json=query(nearest=False)).status_code == 404
    response = client.post("/artifacts", json=query())
    assert response.status_code == 200, response.text
    assert response.headers["loopwright-schedule"] == "nearest"
    module = Module(Artifact.from_bytes(response.content))
    check_product(module)
    module.close()


def test_the_default_is_the_last_resort(client: TestClient) -> None:
    response = client.post("/artifacts", params={"fallback": True}, json=query("relu:64"))
    assert response.headers["loopwright-schedule"] == "default"


def measured_outcomes(database: Database, losses: list[float]) -> None:
    """Have jobs begin with a relative's best, and measure it at these losses."""
    for rows, loss in enumerate(losses, 41):
        spec = f"matmul:{rows},56,96"
        job, task = claimed(database, spec), task_of(spec)
        first = warm_start_of_job(database, OWNER, job, task).candidates[0]
        best = tuned(database, spec)[1][1].best_secs
        trial = MeasuredTrial(1, first, Measurement((best / (1 - loss),)))
        SqlStore(database).add(str(job.id), task, [trial])


def test_what_is_expected_is_what_became_of_others(database: Database, client: TestClient) -> None:
    tuned(database, NEAR)
    losses = [0.5, 0.125, 0.25]
    assert len(losses) == MIN_OUTCOMES
    label, key = Target(TARGET).label, read_workload(Workload(operator=NEAR)).operator_key
    assert key is not None
    with database.read() as session:
        assert expected_loss(session, label, key, 1.0).loss is None
    measured_outcomes(database, losses)
    with database.read() as session:
        found = warm_starts.outcomes(session, label, key)
        expected = expected_loss(session, label, key, found[0].distance)
        assert sorted(o.loss for o in found) == sorted(losses)
        assert expected.loss == pytest.approx(0.25)
        assert "the median of 3 schedules of this operator" in expected.basis
        assert "any operator" in expected_loss(session, label, "another", 0.1).basis
        assert expected_loss(session, label, key, 64.0).loss is None, "nobody went so far"
        assert expected_loss(session, "cpu/other", key, 1.0).loss is None
