"""Replay how trials are shared: by tasks of a group, and by workers of a job, on recorded sets.

Tasks: the schedule by expected gain against equal turns, by the sum of the times of all tasks
relative to that of their best. Workers: rounds of a job, which any number of workers measures at
once, against one trial at a time, by the best speed after as many trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.report import Metric, report
from compiler.runtime.measurement import Measurement
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.loop.budget import Budget
from tuner.loop.interleave import interleave
from tuner.loop.search_loop import ROUND_SIZE, SearchLoop
from tuner.replay.packaged import packaged_sets
from tuner.replay.play import play
from tuner.replay.recorded_set import RecordedSet
from tuner.search.evolutionary import Evolutionary
from tuner.search.searcher import Searcher
from tuner.task import Task
from tuner.trial import MeasuredTrial

SEEDS = range(3)
NUM_TASKS = 8
ROUNDS_A_TASK = (2, 3, 4)
"""Budgets of a group, in rounds for each task on the mean."""
LEAST = 150
"""Minimum number of candidates of a set in this benchmark: fewer are exhausted too soon."""
NUM_SETS = 5
TRIALS = (16, 32, 48)
MIN_SHARE = 0.9
"""Goal: the share of the serial search's speed after as many trials."""


class _Recorded:
    """Measures candidates of a recorded set; the default schedule takes the median time."""

    def __init__(self, recorded: RecordedSet) -> None:
        self._recorded = recorded
        secs = np.concatenate(recorded.secs)
        self._default = Measurement((float(np.median(secs[np.isfinite(secs)])),))

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        for index, candidate in enumerate(candidates):
            if candidate.sketch == DEFAULT_SKETCH:
                yield index, self._default
            else:
                [(_, measurement)] = self._recorded.measure(task, [candidate], incumbent_secs)
                yield index, measurement


def main() -> None:
    """Replay groups and jobs."""
    sets = [recorded.drawn for recorded in packaged_sets() if len(recorded.drawn) >= LEAST]
    metrics = []
    for rounds in ROUNDS_A_TASK:
        for name, is_fair in (("by expected gain", False), ("in turns", True)):
            sums = [_of_group(_chosen(sets, seed), rounds, seed, is_fair) for seed in SEEDS]
            label = f"{NUM_TASKS} tasks, {rounds} rounds each on the mean, {name}: time over best"
            metrics.append(Metric(label, "", tuple(sums)))
    shares = np.array([_of_rounds(sets[:NUM_SETS], seed) for seed in SEEDS])
    for trials, column in zip(TRIALS, shares.T, strict=True):
        label = f"rounds of {ROUND_SIZE} against single trials: speed after {trials} trials"
        metrics.append(Metric(label, "", tuple(column.tolist()), goal=f">= {MIN_SHARE}"))
    report("shared_budget", metrics)


def _chosen(sets: Sequence[RecordedSet], seed: int) -> list[RecordedSet]:
    order = np.random.default_rng(seed).permutation(len(sets))[:NUM_TASKS]
    return [sets[index] for index in order.tolist()]


def _of_group(sets: Sequence[RecordedSet], rounds: int, seed: int, is_fair: bool) -> float:
    """Return the times of the tasks of a group over their best, after its last trial."""
    budget = Budget(ROUND_SIZE * rounds * len(sets))
    searches = [
        SearchLoop(
            recorded.task,
            _Recorded(recorded),
            _searcher(recorded, seed),
            lambda: budget,
            history=(),
            on_trials=lambda _: None,
            interrupted=lambda: None,
            overlap=False,
        )
        for recorded in sets
    ]
    if is_fair:
        for _ in range(rounds):
            for search in searches:
                search.run_next()
    else:
        for _ in interleave(searches, lambda: budget.max_trials):
            pass
    found = 0.0
    for search in searches:
        with search:
            found += min(trial.best_secs for trial in search.trials())
    return found / sum(recorded.best_secs for recorded in sets)


def _of_rounds(sets: Sequence[RecordedSet], seed: int) -> list[float]:
    """Return the geometric mean over sets of the speed of rounds over that of single trials."""
    logs = []
    for recorded in sets:
        in_rounds = play(recorded, _searcher(recorded, seed), max(TRIALS) + 1)
        serial = _one_at_a_time(recorded, _searcher(recorded, seed), max(TRIALS) + 1)
        logs.append([np.log(in_rounds[n] / serial[n]) for n in TRIALS])
    means: list[float] = np.exp(np.mean(logs, axis=0)).tolist()
    return means


def _one_at_a_time(recorded: RecordedSet, search: Searcher, trials: int) -> list[float]:
    """Return the best speed by trial number of a search that learns after each trial."""
    speeds = [0.0]
    for number in range(1, trials):
        for proposal in search.ask(1):
            point = recorded.space.point(proposal.candidate)
            assert point is not None, "a search proposes candidates of its space only"
            trial = MeasuredTrial(number, proposal.candidate, recorded.measurement(point))
            search.tell([trial])
            speeds.append(max(speeds[-1], recorded.best_secs / trial.best_secs))
    return speeds


def _searcher(recorded: RecordedSet, seed: int) -> Searcher:
    return Searcher(
        Evolutionary, recorded.space, seed, XGBoostModel(seed), task_key=recorded.task.key
    )


if __name__ == "__main__":
    main()
