"""Every search strategy keeps the contract, with and without a model; and what each one adds."""

from functools import cache

import numpy as np
import pytest

from compiler import ops
from compiler.runtime.measurement import ErrorKind, Measurement
from service.wire.models import Strategy
from tests.contracts.search_strategy import (
    MATMUL,
    TARGET,
    SearchStrategyContract,
    ThoroughContract,
    measured,
)
from tuner.cost_model.cost_model import CostModelError, Samples
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.search.evolutionary import Evolutionary
from tuner.search.make import PROPOSERS, STRATEGIES, make_strategy
from tuner.search.searcher import Searcher
from tuner.search.strategy import SearchStrategy
from tuner.space.design_space import DesignSpace
from tuner.space.features.features import FEATURE_NAMES
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import WarmStart

COLUMN = FEATURE_NAMES.index("cycles.total")


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


class Oracle:
    """A cost model that knows the answer: a feature; and keeps what it was told."""

    def __init__(self, column: int = COLUMN) -> None:
        self.told: list[Samples] = []
        self._column = column

    @property
    def is_trained(self) -> bool:
        return bool(self.told)

    def update(self, samples: Samples) -> None:
        self.told.append(samples)

    def predict(self, features: np.ndarray) -> np.ndarray:
        return features[:, self._column].astype(np.float64)

    def uncertainty(self, features: np.ndarray) -> np.ndarray:
        return np.full(len(features), 0.1)

    def to_bytes(self) -> bytes:
        return b""


@cache
def space_of(task: Task) -> DesignSpace:
    """Return a task's design space, which is the same for all searches."""
    return design_space(task)


@pytest.mark.parametrize(
    ("name", "model"),
    [*((name, None) for name in STRATEGIES), ("evolutionary", Oracle), ("local", Oracle)],
)
class TestProposer(SearchStrategyContract, ThoroughContract):
    """With a model that costs nothing, and with measurements only."""

    @pytest.fixture(autouse=True)
    def take_parts(self, name: str, model: type[Oracle] | None) -> None:
        self.proposer = PROPOSERS[name]
        self.model = model

    def make(self, task: Task, seed: int, warm_start: WarmStart) -> SearchStrategy:
        return Searcher(
            self.proposer(),
            space_of(task),
            seed,
            None if self.model is None else self.model(),
            task_key=task.key,
            first=warm_start.candidates,
        )


def test_an_unknown_strategy_is_refused_with_a_hint() -> None:
    with pytest.raises(
        ValueError, match=r"unknown search strategy .evolutionry.: did you mean .evo"
    ):
        make_strategy("evolutionry", MATMUL, 0)


def test_a_stored_model_that_is_none_is_refused() -> None:
    with pytest.raises(CostModelError):
        make_strategy("evolutionary", MATMUL, 0, WarmStart(b"no model"))


@pytest.fixture
def space() -> DesignSpace:
    return design_space(Task(ops.matmul(128, 128, 128), TARGET))


def searcher(space: DesignSpace, model: Oracle) -> Searcher:
    return Searcher(Evolutionary(), space, 0, model, task_key="task")


def test_a_share_of_the_proposals_stays_random(space: DesignSpace) -> None:
    """The model may be wrong: it has to see what it does not like."""
    search = searcher(space, Oracle(COLUMN))
    search.tell(measured(search.ask(16)))
    scores = [p.predicted or 0.0 for p in search.ask(16)]
    chosen, drawn = scores[:15], scores[15]
    assert min(chosen) > drawn


def test_proposals_climb_what_the_model_predicts(space: DesignSpace) -> None:
    column = 20
    search = searcher(space, Oracle(column))
    search.tell(measured(search.ask(16)))
    best = max(p.predicted or 0.0 for p in search.ask(16))
    rng = np.random.default_rng(1)
    drawn = max(
        float(space.features(i, space.draw(i, 300, rng))[:, column].max()) for i in range(2)
    )
    assert best >= drawn


def test_failures_teach_the_model_the_worst_time_and_lost_workers_nothing(
    space: DesignSpace,
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


def test_a_random_search_has_no_model() -> None:
    search = make_strategy("random", MATMUL, 0)
    search.tell(measured(search.ask(32)))
    assert search.learned() is None
    assert all(p.predicted is None for p in search.ask(8))


def test_a_stored_model_goes_on_learning(trained: bytes) -> None:
    search = make_strategy("evolutionary", MATMUL, 0, WarmStart(trained))
    first = search.ask(16)
    assert all(p.predicted is not None for p in first), "it knows something from the start"
    search.tell(measured(first))
    learned = search.learned()
    assert learned is not None
    assert learned != trained
    XGBoostModel(base=learned)


def test_jobs_may_have_every_strategy() -> None:
    assert {strategy.value for strategy in Strategy} == set(STRATEGIES)
