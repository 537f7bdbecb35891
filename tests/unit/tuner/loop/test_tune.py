from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler import ops
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.target import Target
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.loop.search_loop import ROUND_SIZE, MeasurerError
from tuner.loop.search_result import NothingMeasuredError, SearchResult
from tuner.loop.tune import tune
from tuner.measurer.memory import MemoryMeasurer
from tuner.measurer.replay import ReplayMeasurer, UnknownCandidateError
from tuner.search import searcher
from tuner.search.make import STRATEGIES, make_strategy
from tuner.task import Task
from tuner.trial import MeasuredTrial

TARGET = Target("cpu -mcpu=x86-64-v3 -num-cores=1")
NUM_TRIALS = 2 * ROUND_SIZE + 5


def cost(candidate: Candidate) -> Measurement | float:
    """Stand in for a clock: times that follow from the decisions; some candidates fail."""
    if candidate.sketch == DEFAULT_SKETCH:
        return 1.0
    factors = [np.log2(1 + np.array(d, float)) for d in candidate.trace.decisions.values()]
    secs = 1e-3 * (1 + sum(float(np.abs(f - 1.5).sum()) for f in factors))
    if int(candidate.key[:2], 16) % 7 == 0:
        return Measurement(error=ErrorKind.CRASH, message="injected")
    return secs


@pytest.fixture(scope="module")
def task() -> Task:
    return Task(ops.matmul(64, 64, 64), TARGET)


def run(task: Task, **options: object) -> SearchResult:
    return tune(task, **{"measurer": MemoryMeasurer(cost), "max_trials": NUM_TRIALS, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=("evolutionary", "random"))
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def whole(task: Task, strategy: str) -> SearchResult:
    """An uninterrupted job."""
    return run(task, strategy=strategy)


def test_trial_0_is_the_default_schedule(whole: SearchResult) -> None:
    assert whole.default is whole.trials[0]
    assert whole.default.candidate.sketch == DEFAULT_SKETCH
    assert whole.default.candidate.trace.instructions == ()


def test_the_budget_is_spent_on_consecutive_numbers(whole: SearchResult) -> None:
    assert [t.number for t in whole.trials] == list(range(NUM_TRIALS))
    assert [t.round for t in whole.trials] == [n // ROUND_SIZE for n in range(NUM_TRIALS)]


def test_no_candidate_is_measured_twice(whole: SearchResult) -> None:
    assert len({t.candidate.key for t in whole.trials}) == NUM_TRIALS


def test_the_best_is_the_fastest_right_one(whole: SearchResult) -> None:
    right = [t.best_secs for t in whole.trials if t.measurement.ok]
    assert len(right) < NUM_TRIALS, "some were to fail"
    assert whole.best.best_secs == min(right)


def test_the_same_seed_gives_the_same_search(
    task: Task, strategy: str, whole: SearchResult
) -> None:
    replay = ReplayMeasurer(whole.trials)
    assert run(task, strategy=strategy, measurer=replay) == whole


def test_another_seed_gives_another_search(task: Task, strategy: str, whole: SearchResult) -> None:
    with pytest.raises(UnknownCandidateError):
        run(task, strategy=strategy, measurer=ReplayMeasurer(whole.trials), seed=1)


def test_the_order_of_completion_changes_nothing(
    task: Task, strategy: str, whole: SearchResult
) -> None:
    shuffled = MemoryMeasurer(cost, completion_seed=7)
    assert run(task, strategy=strategy, measurer=shuffled) == whole


def test_a_larger_budget_begins_the_same(task: Task, strategy: str, whole: SearchResult) -> None:
    short = run(task, strategy=strategy, max_trials=ROUND_SIZE + 3)
    assert short.trials == whole.trials[: ROUND_SIZE + 3]


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stop=st.integers(0, NUM_TRIALS), data=st.data())
def test_a_resumed_job_goes_on_as_if_never_stopped(
    task: Task, strategy: str, whole: SearchResult, stop: int, data: st.DataObject
) -> None:
    """The last round of the history may have any holes: workers finish in any order."""
    begun = stop // ROUND_SIZE * ROUND_SIZE
    last_round = list(whole.trials[begun : begun + ROUND_SIZE])
    kept = data.draw(st.lists(st.sampled_from(last_round), unique_by=lambda t: t.number))
    history = [*whole.trials[:begun], *kept]
    measurer = MemoryMeasurer(cost)
    resumed = run(task, strategy=strategy, measurer=measurer, history=history)
    assert resumed == whole
    assert len(measurer.asked) == NUM_TRIALS - len(history), "nothing is measured again"


@pytest.mark.parametrize("num_left", [0, 1, ROUND_SIZE, ROUND_SIZE + 5])
def test_a_long_search_goes_on_as_if_never_stopped(
    task: Task, strategy: str, num_left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It proposes again only what it proposed since its last new proposer."""
    monkeypatch.setattr(searcher, "RESTART_AFTER", 30)
    num = 5 * ROUND_SIZE
    whole = run(task, strategy=strategy, max_trials=num)
    measurer = MemoryMeasurer(cost)
    history = whole.trials[: num - num_left]
    resumed = run(task, strategy=strategy, max_trials=num, measurer=measurer, history=history)
    assert resumed == whole
    assert len(measurer.asked) == num_left


def test_the_calls_before_the_last_new_proposer_are_skipped(
    task: Task, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searcher, "RESTART_AFTER", 30)
    first = make_strategy(strategy, task, 0)
    proposed = [[p.candidate for p in first.ask(ROUND_SIZE)] for _ in range(5)]
    num_skipped = [make_strategy(strategy, task, 0).skip(proposed[:num]) for num in range(6)]
    assert num_skipped == [0, 0, 2, 2, 4, 4]


def test_results_are_handed_on_as_they_arrive(task: Task) -> None:
    arrived: list[MeasuredTrial] = []
    measurer = MemoryMeasurer(cost, completion_seed=3)
    result = run(task, strategy="random", measurer=measurer, on_trials=arrived.extend)
    assert [t.candidate for t in arrived] == measurer.asked
    assert sorted(arrived, key=lambda t: t.number) == list(result.trials)
    assert [t.number for t in arrived] != [t.number for t in result.trials]


def test_a_job_stops_between_results_when_told(task: Task) -> None:
    arrived: list[MeasuredTrial] = []
    result = run(
        task,
        strategy="random",
        on_trials=arrived.extend,
        should_stop=lambda: len(arrived) >= 20,
    )
    assert len(result.trials) == len(arrived) == 20


def test_what_is_left_of_a_batch_is_abandoned_at_a_stop(task: Task) -> None:
    closed: list[bool] = []

    class Endless:
        def measure(
            self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
        ) -> Iterator[tuple[int, Measurement]]:
            try:
                for index in range(len(candidates)):
                    yield index, Measurement((1.0,))
            finally:
                closed.append(True)

    asked = iter([False, False, True])
    run(task, strategy="random", measurer=Endless(), should_stop=lambda: next(asked))
    assert closed == [True]


def test_the_incumbent_is_the_best_of_earlier_rounds(task: Task) -> None:
    incumbents: list[float | None] = []

    class Spy(MemoryMeasurer):
        def measure(
            self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
        ) -> Iterator[tuple[int, Measurement]]:
            incumbents.append(incumbent_secs)
            return super().measure(task, candidates, incumbent_secs)

    result = run(task, strategy="random", measurer=Spy(cost))
    rounds = [
        min(t.best_secs for t in result.trials if t.round < number)
        for number in range(1, len(incumbents))
    ]
    assert incumbents == [None, *rounds]


def test_only_a_trained_model_predicts(task: Task) -> None:
    trials = run(task, strategy="evolutionary").trials
    assert all(t.predicted is None for t in trials if t.round == 0)
    assert all(t.predicted is not None for t in trials if t.round > 0)
    assert all(t.predicted is None for t in run(task, strategy="random").trials)


def test_a_space_without_sketches_leaves_the_default_schedule() -> None:
    scalar = Task(ops.matmul(1, 1, 1), TARGET)
    result = run(scalar, measurer=MemoryMeasurer(lambda _: 0.5))
    assert result.best.best_secs == 0.5
    assert len(result.trials) < NUM_TRIALS, "the space is exhausted before the budget"


def test_a_small_space_is_measured_whole_and_once() -> None:
    tiny = Task(ops.matmul(2, 2, 2), TARGET)
    for strategy in STRATEGIES:
        measurer = MemoryMeasurer(lambda c: 1.0 + int(c.key[:4], 16))
        result = run(tiny, strategy=strategy, measurer=measurer, max_trials=4000)
        keys = {t.candidate.key for t in result.trials}
        assert len(keys) == len(result.trials) < 4000


def test_every_failure_leaves_no_best(task: Task) -> None:
    failed = Measurement(error=ErrorKind.BUILD_ERROR)
    result = run(task, measurer=MemoryMeasurer(lambda _: failed), max_trials=ROUND_SIZE + 4)
    assert len(result.trials) == ROUND_SIZE + 4
    assert result.default.measurement == failed
    with pytest.raises(NothingMeasuredError, match="none of 20 trials"):
        _ = result.best


def test_a_job_stopped_at_once_has_no_default(task: Task) -> None:
    result = run(task, should_stop=lambda: True)
    with pytest.raises(NothingMeasuredError, match="stopped before the default"):
        _ = result.default


@pytest.mark.parametrize("trials", [0, -1])
def test_a_budget_without_trials_is_refused(task: Task, trials: int) -> None:
    with pytest.raises(ValueError, match=f"must be positive, not {trials}"):
        run(task, max_trials=trials)


def test_a_negative_seed_is_refused(task: Task) -> None:
    with pytest.raises(ValueError, match="seed must not be negative, not -1"):
        run(task, seed=-1)


def test_an_unknown_strategy_is_refused_with_a_near_name(task: Task) -> None:
    with pytest.raises(ValueError, match="did you mean 'evolutionary'"):
        run(task, strategy="evolution")


def test_a_history_with_a_number_twice_is_refused(task: Task, whole: SearchResult) -> None:
    with pytest.raises(ValueError, match="twice in the history"):
        run(task, history=[whole.trials[0], whole.trials[0]])


def _measurer_answering(indices: Sequence[int]) -> object:
    class Broken:
        def measure(
            self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
        ) -> Iterator[tuple[int, Measurement]]:
            return ((index, Measurement((1.0,))) for index in indices)

    return Broken()


def test_a_measurer_that_leaves_candidates_out_is_found(task: Task) -> None:
    with pytest.raises(MeasurerError, match="left out 15 of 16"):
        run(task, measurer=_measurer_answering([0]))


def test_a_measurer_that_answers_twice_is_found(task: Task) -> None:
    with pytest.raises(MeasurerError, match="candidate 3 unasked or twice"):
        run(task, measurer=_measurer_answering([3, 3]))
