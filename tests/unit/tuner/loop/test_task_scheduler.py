"""Several tasks that share a budget, under times that follow from formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from compiler import ops
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.target import Target
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.loop.budget import StopReason
from tuner.loop.search_loop import ROUND_SIZE
from tuner.loop.search_result import SearchResult
from tuner.loop.task_scheduler import Progress, choose
from tuner.loop.tune import tune, tune_tasks
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task
from tuner.trial import MeasuredTrial

TARGET = Target("cpu -mcpu=x86-64-v3 -num-cores=1")
TOTAL = 12 * ROUND_SIZE


def share(candidate: Candidate) -> float:
    """Return a number from 0 to 1 that is fixed for a candidate."""
    return int(candidate.key[:8], 16) / 0xFFFFFFFF


class Machine:
    """Times the tasks of a model: one that hardly matters, one that is flat, one that is hard."""

    def __init__(self) -> None:
        self.num_asked: dict[str, int] = {}

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        self.num_asked[task.key] = self.num_asked.get(task.key, 0) + len(candidates)
        for index, candidate in enumerate(candidates):
            yield index, self.time(task, candidate)

    def time(self, task: Task, candidate: Candidate) -> Measurement:
        if candidate.sketch == DEFAULT_SKETCH:
            return Measurement((1.0,))
        if task.workload_key == MODEL[1].workload_key:
            return Measurement((0.5,))
        # The more trials, the better the best, without end.
        return Measurement((0.05 + share(candidate) ** 0.5,))


MODEL = [
    Task(ops.matmul(64, 64, 64), TARGET, weight=0.01),
    Task(ops.batch_matmul(2, 32, 64, 32), TARGET, weight=0.1),
    Task(ops.conv2d(1, 8, 16, 16, 8, 3), TARGET, weight=10.0),
]


def run(**options: object) -> list[SearchResult]:
    asked = {"measurer": Machine(), "max_trials": TOTAL, "strategy": "random", **options}
    return tune_tasks(MODEL, **asked)  # type: ignore[arg-type]


def total_secs(results: Sequence[SearchResult]) -> float:
    return sum(t.weight * r.best.best_secs for t, r in zip(MODEL, results, strict=True))


@pytest.fixture(scope="module")
def whole() -> list[SearchResult]:
    return run()


def test_the_budget_is_shared_and_each_task_has_a_round(whole: list[SearchResult]) -> None:
    counts = [len(result.trials) for result in whole]
    assert sum(counts) == TOTAL
    assert min(counts) >= ROUND_SIZE
    assert all(result.default.number == 0 for result in whole)
    assert {result.stop_reason for result in whole} == {StopReason.BUDGET}


def test_most_trials_go_where_they_gain_most(whole: list[SearchResult]) -> None:
    little, flat, hard = (len(result.trials) for result in whole)
    assert hard > 4 * max(little, flat)


def test_the_weighted_time_is_less_than_with_an_even_split() -> None:
    """Over a few seeds: which candidates are drawn is luck."""
    shared = even = 0.0
    for seed in range(4):
        shared += total_secs(run(seed=seed))
        even += total_secs(
            [
                tune(task, measurer=Machine(), max_trials=TOTAL // 3, seed=seed, strategy="random")
                for task in MODEL
            ]
        )
    assert shared < 0.98 * even


@pytest.mark.parametrize("num_kept", [1, ROUND_SIZE, 3 * ROUND_SIZE + 5, TOTAL - 1])
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not(
    whole: list[SearchResult], num_kept: int
) -> None:
    seen: list[tuple[Task, MeasuredTrial]] = []
    run(
        on_trials=lambda task, trials: seen.extend((task, t) for t in trials),
        should_stop=lambda: len(seen) >= num_kept,
    )
    history = {task.key: [t for other, t in seen if other is task] for task in MODEL}
    machine = Machine()
    assert run(measurer=machine, history=history) == whole
    assert sum(machine.num_asked.values()) == TOTAL - num_kept


def test_a_stop_is_the_reason_of_all_that_go_on() -> None:
    results = run(should_stop=lambda: True)
    assert [r.stop_reason for r in results] == [StopReason.CANCELLED] * 3


def test_a_task_that_is_exhausted_leaves_its_share_to_the_others() -> None:
    tasks = [Task(ops.matmul(1, 1, 1), TARGET, weight=100.0), MODEL[0]]
    small, large = tune_tasks(
        tasks, measurer=MemoryMeasurer(share), max_trials=6 * ROUND_SIZE, strategy="random"
    )
    assert small.stop_reason is StopReason.EXHAUSTED
    assert len(small.trials) < ROUND_SIZE
    assert len(small.trials) + len(large.trials) == 6 * ROUND_SIZE


def test_what_does_not_run_waits_for_the_others() -> None:
    failed = [
        MeasuredTrial(n, Candidate("s", None), Measurement(error=ErrorKind.CRASH))  # type: ignore[arg-type]
        for n in range(16)
    ]
    right = [MeasuredTrial(n, Candidate("s", None), Measurement((1.0,))) for n in range(16)]  # type: ignore[arg-type]
    progress = [Progress(MODEL[2], failed), Progress(MODEL[0], right)]
    assert choose(progress, [0, 1]) == 1
    assert choose(progress, [0]) == 0


def test_a_task_that_is_behind_its_likes_is_expected_to_catch_up_but_not_for_ever() -> None:
    def trials(secs: float, num: int) -> list[MeasuredTrial]:
        return [MeasuredTrial(n, Candidate("s", None), Measurement((secs,))) for n in range(num)]  # type: ignore[arg-type]

    fast, slow = Task(ops.matmul(64, 64, 64), TARGET), Task(ops.matmul(32, 64, 64), TARGET)
    assert choose([Progress(fast, trials(1.0, 64)), Progress(slow, trials(4.0, 64))], [0, 1]) == 1
    assert choose([Progress(fast, trials(1.0, 64)), Progress(slow, trials(4.0, 9999))], [0, 1]) == 0


@pytest.mark.parametrize(
    ("tasks", "trials", "message"),
    [
        ([], 100, "no tasks"),
        (MODEL, 3 * ROUND_SIZE - 1, "too few for 3 tasks"),
        ([MODEL[0], MODEL[0]], 100, "is duplicated"),
        ([Task(ops.matmul(2, 2, 2), TARGET, weight=-1.0)], 100, "must not be negative"),
    ],
)
def test_what_cannot_be_shared_is_refused(tasks: list[Task], trials: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tune_tasks(tasks, measurer=Machine(), max_trials=trials)


def test_tasks_without_operations_share_trials_too() -> None:
    tasks = [Task(ops.transpose(32, 48), TARGET), Task(ops.transpose(48, 64), TARGET, weight=4.0)]
    assert not any(task.flops for task in tasks)
    results = tune_tasks(tasks, measurer=Machine(), max_trials=4 * ROUND_SIZE)
    assert sum(len(result.trials) for result in results) == 4 * ROUND_SIZE
    assert len(results[1].trials) > len(results[0].trials)
