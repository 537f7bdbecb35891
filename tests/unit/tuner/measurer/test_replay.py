"""`ReplayMeasurer` keeps the contract of measurers."""

import pytest

from compiler import ops
from compiler.target.target import Target
from tests.contracts.measurement_store import make_candidate, make_trial
from tests.contracts.measurer import MeasurerContract
from tuner.candidate import Candidate
from tuner.measurer.replay import ReplayMeasurer
from tuner.task import Task

TASK = Task(ops.matmul(8, 8, 8), Target("cpu"))


class TestReplayMeasurer(MeasurerContract):
    @pytest.fixture
    def measurer(self) -> ReplayMeasurer:
        return ReplayMeasurer([make_trial(TASK, number, 1e-3) for number in range(3)])

    @pytest.fixture
    def task(self) -> Task:
        return TASK

    @pytest.fixture
    def candidates(self) -> list[Candidate]:
        return [make_candidate(TASK, number) for number in range(3)]
