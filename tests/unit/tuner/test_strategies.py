"""What every search strategy must do, and what evolution adds."""

import numpy as np
import pytest

from compiler import ops
from compiler.ir.program import PrimFunc
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target import Target
from tuner.candidate import Candidate, default_candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.search.evolutionary import EvolutionaryStrategy
from tuner.search.make import STRATEGIES, make_strategy
from tuner.search.strategy import Proposal, SearchStrategy
from tuner.space.design_space import DesignSpace
from tuner.space.features import FEATURE_NAMES
from tuner.space.generate import design_space
from tuner.space.static_filter import passes
from tuner.task import Task
from tuner.trial import Trial
from tuner.tune import tune

TARGET = Target("cpu -mcpu=haswell -num-cores=1")
COLUMN = FEATURE_NAMES.index("register_use")


def cost(candidate: Candidate) -> float:
    """Prefer 8 rows of 16 columns, and a deep inner reduction loop."""
    if len(candidate.trace.decisions) != 3:
        return 1.0
    i, j, k = (np.array(d) for d in candidate.trace.decisions)
    misses = [np.log2(i[3] / 8), np.log2(j[3] / 16), np.log2(k[1] / 64), np.log2(j[0])]
    return 1e-3 * (1 + sum(float(m * m) for m in misses))


def measured(proposals: list[Proposal], start: int = 0) -> list[Trial]:
    return [
        Trial(start + n, p.candidate, Measurement((cost(p.candidate),)))
        for n, p in enumerate(proposals)
    ]


def make(name: str, func: PrimFunc | None = None, seed: int = 0) -> SearchStrategy:
    return make_strategy(name, Task(func or ops.matmul(64, 64, 64), TARGET), seed)


def keys(proposals: list[Proposal]) -> list[str]:
    return [p.candidate.key for p in proposals]


@pytest.mark.parametrize("name", STRATEGIES)
class TestEveryStrategy:
    def test_it_proposes_as_many_as_asked_all_different(self, name: str) -> None:
        assert len(set(keys(make(name).ask(16)))) == 16

    def test_it_never_proposes_what_was_measured(self, name: str) -> None:
        search = make(name)
        seen: set[str] = set()
        for _ in range(5):
            proposals = search.ask(16)
            assert seen.isdisjoint(keys(proposals))
            seen |= set(keys(proposals))
            search.tell(measured(proposals))

    def test_asking_twice_gives_the_same(self, name: str) -> None:
        search = make(name)
        assert search.ask(8) == search.ask(8)
        search.tell(measured(search.ask(16)))
        assert search.ask(8) == search.ask(8)

    def test_a_seed_decides(self, name: str) -> None:
        assert make(name, seed=4).ask(8) == make(name, seed=4).ask(8)
        assert make(name, seed=4).ask(8) != make(name, seed=5).ask(8)

    def test_it_proposes_only_what_passes_the_filter(self, name: str) -> None:
        space = design_space(Task(ops.matmul(64, 64, 64), TARGET))
        search = make(name)
        for _ in range(3):
            proposals = search.ask(16)
            for proposal in proposals:
                point = space.point(proposal.candidate)
                assert point is not None
                row = np.array([point.choices])
                assert passes(space.sketches[point.sketch], row, TARGET).all()
            search.tell(measured(proposals))

    def test_it_proposes_less_when_the_space_runs_out(self, name: str) -> None:
        search = make(name, ops.relu(96))
        first = search.ask(64)
        assert 0 < len(first) < 64
        search.tell(measured(first))
        assert search.ask(64) == []

    def test_foreign_trials_are_no_trouble(self, name: str) -> None:
        search = make(name)
        search.tell([Trial(0, default_candidate(), Measurement((1.0,)))])
        assert len(search.ask(8)) == 8

    def test_failures_are_no_trouble(self, name: str) -> None:
        search = make(name)
        for _ in range(3):
            proposals = search.ask(16)
            failed = Measurement(error=ErrorKind.CRASH)
            search.tell([Trial(n, p.candidate, failed) for n, p in enumerate(proposals)])
        assert len(search.ask(8)) == 8


def test_evolution_finds_better_candidates_than_chance() -> None:
    task = Task(ops.matmul(1024, 960, 6), TARGET)

    def found(strategy: str, seed: int) -> float:
        measurer = MemoryMeasurer(cost)
        return tune(task, measurer=measurer, trials=96, seed=seed, strategy=strategy).best.best_secs

    seeds = range(5)
    evolved = np.median([found("evolutionary", s) for s in seeds])
    drawn = np.median([found("random", s) for s in seeds])
    assert evolved < drawn


class Oracle:
    """A cost model that knows the answer, and counts what it was told."""

    def __init__(self, column: int) -> None:
        self.told = 0
        self._column = column

    @property
    def is_trained(self) -> bool:
        return self.told > 0

    def update(self, samples: object) -> None:
        self.told += 1

    def predict(self, features: np.ndarray) -> np.ndarray:
        return features[:, self._column].astype(np.float64)

    def to_bytes(self) -> bytes:
        return b""


@pytest.fixture
def space() -> DesignSpace:
    return design_space(Task(ops.matmul(128, 128, 128), TARGET))


def test_a_share_of_the_proposals_stays_random(space: DesignSpace) -> None:
    """The model may be wrong: it has to see what it does not like."""
    search = EvolutionaryStrategy(space, 0, Oracle(COLUMN), "task")
    search.tell(measured(search.ask(16)))
    scores = [p.predicted or 0.0 for p in search.ask(16)]
    chosen, drawn = scores[:14], scores[14:]
    assert min(chosen) > max(drawn)


def test_proposals_climb_what_the_model_predicts(space: DesignSpace) -> None:
    column = 20
    search = EvolutionaryStrategy(space, 0, Oracle(column), "task")
    search.tell(measured(search.ask(16)))
    best = max(p.predicted or 0.0 for p in search.ask(16))
    rng = np.random.default_rng(1)
    drawn = max(
        float(space.features(i, space.draw(i, 300, rng))[:, column].max()) for i in range(2)
    )
    assert best >= drawn


def test_failures_teach_the_model_the_worst_time(space: DesignSpace) -> None:
    told: list[float] = []

    class Recorder(Oracle):
        def update(self, samples: object) -> None:
            super().update(samples)
            told.extend(samples.run_secs.tolist())  # type: ignore[attr-defined]

    search = EvolutionaryStrategy(space, 0, Recorder(COLUMN), "task")
    first, second = search.ask(2)
    search.tell(
        [
            Trial(0, first.candidate, Measurement((0.5, 0.25))),
            Trial(1, second.candidate, Measurement(error=ErrorKind.TIMEOUT)),
        ]
    )
    assert sorted(told) == [0.25, float("inf")]
