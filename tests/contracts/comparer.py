"""The contract of `Comparer`. Subclass `ComparerContract` and define its fixtures."""

from __future__ import annotations

import pytest

from tuner.candidate import Candidate
from tuner.measurer.comparer import Comparer
from tuner.task import Task


class ComparerContract:
    """Tests of a comparer: override the fixtures. There are three candidates, all correct."""

    @pytest.fixture
    def comparer(self) -> Comparer:
        raise NotImplementedError

    @pytest.fixture
    def task(self) -> Task:
        raise NotImplementedError

    @pytest.fixture
    def candidates(self) -> list[Candidate]:
        raise NotImplementedError

    def test_a_round_has_a_measurement_of_each_candidate(
        self, comparer: Comparer, task: Task, candidates: list[Candidate]
    ) -> None:
        rounds = list(comparer.compare(task, candidates, 2, 0))
        assert [[m.ok for m in measured] for measured in rounds] == [[True] * 3] * 2
        assert all(m.run_secs for measured in rounds for m in measured)

    def test_no_rounds_are_none(
        self, comparer: Comparer, task: Task, candidates: list[Candidate]
    ) -> None:
        assert list(comparer.compare(task, candidates, 0, 0)) == []

    def test_it_compares_again_after_an_iterator_was_left(
        self, comparer: Comparer, task: Task, candidates: list[Candidate]
    ) -> None:
        rounds = comparer.compare(task, candidates, 2, 0)
        assert len(next(rounds)) == 3
        getattr(rounds, "close", lambda: None)()
        assert len(list(comparer.compare(task, candidates, 1, 0))) == 1
