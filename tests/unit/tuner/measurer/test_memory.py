"""`MemoryMeasurer` keeps the contracts of measurers and comparers."""

import pytest

from compiler import ops
from compiler.target.target import Target
from tests.contracts.comparer import ComparerContract
from tests.contracts.measurement_store import make_candidate
from tests.contracts.measurer import MeasurerContract
from tests.contracts.module_measurer import ModuleMeasurerContract
from tuner.candidate import Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task


@pytest.mark.parametrize("completion_seed", [None, 0, 1])
class TestMemoryMeasurer(MeasurerContract, ComparerContract, ModuleMeasurerContract):
    @pytest.fixture
    def measurer(self, completion_seed: int | None) -> MemoryMeasurer:
        return MemoryMeasurer(lambda candidate: 1e-3 * len(candidate.key), completion_seed)

    @pytest.fixture
    def comparer(self, measurer: MemoryMeasurer) -> MemoryMeasurer:
        return measurer

    @pytest.fixture
    def module_measurer(self, measurer: MemoryMeasurer) -> MemoryMeasurer:
        return measurer

    @pytest.fixture
    def task(self) -> Task:
        return Task(ops.matmul(8, 8, 8), Target("cpu"))

    @pytest.fixture
    def candidates(self, task: Task) -> list[Candidate]:
        return [make_candidate(task, number) for number in range(3)]
