"""Every strategy keeps the contract; what they learn of failures, and from stored models."""

from __future__ import annotations

from functools import cache

import pytest

from compiler import ops
from compiler.runtime.measurement import ErrorKind, Measurement
from tests.contracts.search_strategy import (
    MATMUL,
    TARGET,
    SearchStrategyContract,
    ThoroughContract,
    measured,
)
from tests.unit.tuner.search.oracle_model import COLUMN, Oracle, searcher
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.search.make import PROPOSERS, STRATEGIES, make_strategy
from tuner.search.searcher import Searcher
from tuner.search.strategy import SearchStrategy
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import WarmStart


@pytest.fixture(scope="module")
def trained() -> bytes:
    """A model that learned from another search."""
    search = make_strategy("evolutionary", Task(ops.matmul(4, 16, 2), TARGET), 0)
    for _ in range(3):
        search.tell(measured(search.ask(16)))
    learned = search.learned()
    assert learned is not None
    return learned


@pytest.mark.parametrize("name", STRATEGIES)
class TestNamed(SearchStrategyContract):
    """As jobs use them: with a model that learns."""

    @pytest.fixture(autouse=True)
    def take_name(self, name: str) -> None:
        self.name = name

    def make(self, task: Task, seed: int, warm_start: WarmStart) -> SearchStrategy:
        return make_strategy(self.name, task, seed, warm_start)


@pytest.mark.parametrize(
    ("name", "model"),
    [*((name, None) for name in STRATEGIES), ("evolutionary", Oracle), ("local", Oracle)],
)
class TestSearcher(SearchStrategyContract, ThoroughContract):
    """With a model that costs nothing, and with measurements only."""

    @pytest.fixture(autouse=True)
    def take_parts(self, name: str, model: type[Oracle] | None) -> None:
        self.proposer = PROPOSERS[name]
        self.model = model

    def make(self, task: Task, seed: int, warm_start: WarmStart) -> SearchStrategy:
        return Searcher(
            self.proposer,
            space_of(task),
            seed,
            None if self.model is None else self.model(),
            task_key=task.key,
            first=warm_start.candidates,
        )


@cache
def space_of(task: Task) -> SketchSpace:
    return design_space(task)


def test_failures_teach_the_model_the_worst_time_and_lost_workers_nothing(
    space: SketchSpace,
) -> None:
    model = Oracle(COLUMN)
    search = searcher(space, model)
    fast, slow, lost = (p.candidate for p in search.ask(3))
    search.tell(
        [
            MeasuredTrial(0, fast, Measurement((0.5, 0.25))),
            MeasuredTrial(1, slow, Measurement(error=ErrorKind.TIMEOUT)),
            MeasuredTrial(2, lost, Measurement(error=ErrorKind.WORKER_LOST)),
        ]
    )
    told = [secs for samples in model.told for secs in samples.run_secs.tolist()]
    assert sorted(told) == [0.25, float("inf")]


def test_a_stored_model_goes_on_learning(trained: bytes) -> None:
    search = make_strategy("evolutionary", MATMUL, 0, WarmStart(trained))
    first = search.ask(16)
    assert all(p.predicted is not None for p in first), "it knows something from the start"
    search.tell(measured(first))
    learned = search.learned()
    assert learned is not None
    assert learned != trained
    XGBoostModel(base=learned)
