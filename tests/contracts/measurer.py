"""The contract of `Measurer`. Subclass `MeasurerContract` and define its fixtures."""

from __future__ import annotations

import pytest

from tuner.candidate import Candidate
from tuner.measurer.measurer import Measurer
from tuner.task import Task


class MeasurerContract:
    """Tests of a measurer: override the fixtures. There are three candidates, all correct."""

    @pytest.fixture
    def measurer(self) -> Measurer:
        raise NotImplementedError

    @pytest.fixture
    def task(self) -> Task:
        raise NotImplementedError

    @pytest.fixture
    def candidates(self) -> list[Candidate]:
        raise NotImplementedError

    def test_every_index_comes_once(
        self, measurer: Measurer, task: Task, candidates: list[Candidate]
    ) -> None:
        pairs = list(measurer.measure(task, candidates, None))
        assert sorted(index for index, _ in pairs) == [0, 1, 2]
        assert all(m.ok and m.run_secs for _, m in pairs)

    def test_an_incumbent_takes_no_candidate_away(
        self, measurer: Measurer, task: Task, candidates: list[Candidate]
    ) -> None:
        pairs = list(measurer.measure(task, candidates, 1.0))
        assert sorted(index for index, _ in pairs) == [0, 1, 2]

    def test_no_candidates_have_no_measurements(self, measurer: Measurer, task: Task) -> None:
        assert list(measurer.measure(task, [], None)) == []

    def test_it_measures_again_after_an_iterator_was_left(
        self, measurer: Measurer, task: Task, candidates: list[Candidate]
    ) -> None:
        results = measurer.measure(task, candidates, None)
        assert next(results)[1].ok
        getattr(results, "close", lambda: None)()
        assert len(list(measurer.measure(task, candidates, None))) == 3
