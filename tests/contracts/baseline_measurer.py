"""The contract of `BaselineMeasurer`. Subclass `BaselineMeasurerContract`."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.runtime.measurement import Measurement
from compiler.script.parser import parse
from tests.faults.requests import COPY
from tests.targets import here
from tuner.candidate import default_candidate
from tuner.finish.baseline import BaselineMeasurer
from tuner.task import Task
from tuner.trial import MeasuredTrial

TRIAL = MeasuredTrial(0, default_candidate(), Measurement((1e-3,)))


class BaselineMeasurerContract:
    """Tests of a measurer with the library NumPy: override the fixture."""

    @pytest.fixture
    def baseline_measurer(self) -> BaselineMeasurer:
        raise NotImplementedError

    def test_a_round_has_the_candidate_and_each_library(
        self, baseline_measurer: BaselineMeasurer
    ) -> None:
        task = Task(ops.matmul(8, 8, 8), here())
        rounds = list(baseline_measurer.measure_baselines(task, TRIAL, 2, 0))
        assert 1 <= len(rounds) <= 2
        for kernel, libraries in rounds:
            assert kernel.ok
            assert list(libraries) == ["numpy"]
            assert libraries["numpy"].ok
            assert libraries["numpy"].toolchain.startswith("NumPy ")

    def test_a_task_of_no_operator_has_no_rounds(self, baseline_measurer: BaselineMeasurer) -> None:
        task = Task(parse(COPY), here())
        assert list(baseline_measurer.measure_baselines(task, TRIAL, 2, 0)) == []
