"""`StoredTimings` keeps the contract of measurers, and measures nothing twice."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from compiler import ops
from compiler.target.target import Target
from service.common.owner import Owner
from service.coordinator.stored_timings import StoredTimings
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import shapes
from service.store.database.database import Database
from service.store.jobs import claims
from tests.contracts.comparer import ComparerContract
from tests.contracts.measurement_store import make_candidate
from tests.contracts.measurer import MeasurerContract
from tests.integration.service.shapes.test_shapes import submit
from tuner.candidate import Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task

TASK = Task(ops.matmul(8, 8, 8), Target("cpu -mcpu=znver3 -num-cores=1"))


class TestStoredTimings(MeasurerContract, ComparerContract):
    @pytest.fixture
    def behind(self) -> MemoryMeasurer:
        return MemoryMeasurer(lambda _: 1e-3)

    @pytest.fixture
    def task(self) -> Task:
        return TASK

    @pytest.fixture
    def candidates(self) -> list[Candidate]:
        return [make_candidate(TASK, number) for number in range(3)]

    @pytest.fixture
    def measurer(self, database: Database, behind: MemoryMeasurer) -> StoredTimings:
        app = create_app(Dependencies(database))
        with TestClient(app, base_url="http://test/api/v1") as client:
            submit(client)
        owner = Owner.here()
        with database.write() as session:
            job = claims.claim(session, owner)[0]
            job_id, group_id = job.id, job.group_id
            assert group_id is not None
            row = shapes.of_group(session, group_id)
            assert row is not None
            shapes_id = row.id
        return StoredTimings(
            database,
            owner,
            shapes_id=shapes_id,
            job_id=job_id,
            measurer=behind,
            gives_up=lambda: False,
        )

    @pytest.fixture
    def comparer(self, measurer: StoredTimings) -> StoredTimings:
        return measurer

    def test_what_is_stored_is_not_measured_again(
        self,
        measurer: StoredTimings,
        behind: MemoryMeasurer,
        task: Task,
        candidates: list[Candidate],
    ) -> None:
        first = dict(measurer.measure(task, candidates[:2], None))
        again = dict(measurer.measure(task, candidates, None))
        assert {index: again[index] for index in (0, 1)} == first
        assert sorted(again) == [0, 1, 2]
        assert behind.asked == candidates
