"""The contract of `ModuleMeasurer`. Subclass `ModuleMeasurerContract` and define its fixtures."""

from __future__ import annotations

import pytest

from compiler.ir.core.program import IRModule
from tuner.measurer.module_measurer import ModuleMeasurer
from tuner.task import Task


class ModuleMeasurerContract:
    """Tests of a measurer of modules: override the fixtures."""

    @pytest.fixture
    def module_measurer(self) -> ModuleMeasurer:
        raise NotImplementedError

    @pytest.fixture
    def task(self) -> Task:
        raise NotImplementedError

    def test_a_module_that_computes_the_program_has_times(
        self, module_measurer: ModuleMeasurer, task: Task
    ) -> None:
        module = IRModule((task.func,))
        for _ in range(2):
            measurement = module_measurer.measure_module(task, module)
            assert measurement.ok, measurement.message
            assert measurement.run_secs
