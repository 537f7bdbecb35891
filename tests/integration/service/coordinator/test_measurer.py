"""Measurers over real workers keep the contracts of the tuner, also with a heartbeat."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from compiler import ops
from compiler.ir.core.program import IRModule
from service.common.owner import Owner
from service.coordinator.heartbeat import Heartbeat
from service.coordinator.heartbeat_measurer import HeartbeatMeasurer
from service.coordinator.measurer import WorkerMeasurer
from service.store.database.database import Database
from tests.contracts.baseline_measurer import BaselineMeasurerContract
from tests.contracts.comparer import ComparerContract
from tests.contracts.measurement_store import make_candidate
from tests.contracts.measurer import MeasurerContract
from tests.contracts.module_measurer import ModuleMeasurerContract
from tests.targets import here
from tuner.candidate import Candidate
from tuner.measurer.module_measurer import ModuleMeasurer
from tuner.task import Task
from workers.child.runner import ChildRunner

TASK = Task(ops.matmul(8, 8, 8), here())


@pytest.fixture(scope="module")
def workers() -> Iterator[WorkerMeasurer]:
    with ChildRunner() as runner:
        yield WorkerMeasurer(runner, libraries=["numpy"])


class AllFour(MeasurerContract, ComparerContract, BaselineMeasurerContract, ModuleMeasurerContract):
    @pytest.fixture
    def task(self) -> Task:
        return TASK

    @pytest.fixture
    def candidates(self) -> list[Candidate]:
        return [make_candidate(TASK, number) for number in range(3)]

    def test_a_module_that_computes_something_else_has_an_error(
        self, module_measurer: ModuleMeasurer, task: Task
    ) -> None:
        measurement = module_measurer.measure_module(task, IRModule((ops.matmul(8, 8, 16),)))
        assert not measurement.ok


class TestWorkerMeasurer(AllFour):
    @pytest.fixture
    def measurer(self, workers: WorkerMeasurer) -> WorkerMeasurer:
        return workers

    @pytest.fixture
    def comparer(self, measurer: WorkerMeasurer) -> WorkerMeasurer:
        return measurer

    @pytest.fixture
    def baseline_measurer(self, measurer: WorkerMeasurer) -> WorkerMeasurer:
        return measurer

    @pytest.fixture
    def module_measurer(self, measurer: WorkerMeasurer) -> WorkerMeasurer:
        return measurer


class TestHeartbeatMeasurer(AllFour):
    @pytest.fixture
    def measurer(self, workers: WorkerMeasurer, database: Database) -> HeartbeatMeasurer:
        job_id = uuid4()
        heartbeat = Heartbeat(database, [job_id], Owner("here", 1, 1, "n"), interrupt=lambda: None)
        return HeartbeatMeasurer(workers, workers, job_id, heartbeat)

    @pytest.fixture
    def comparer(self, measurer: HeartbeatMeasurer) -> HeartbeatMeasurer:
        return measurer

    @pytest.fixture
    def baseline_measurer(self, measurer: HeartbeatMeasurer) -> HeartbeatMeasurer:
        return measurer

    @pytest.fixture
    def module_measurer(self, measurer: HeartbeatMeasurer) -> HeartbeatMeasurer:
        return measurer
