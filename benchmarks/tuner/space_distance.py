"""Measure how often the estimated bound on the distance to the best of a space holds, on records.

A recorded set plays the space: the best of it is known. Searches begin with a model of other
operators, and the estimate is made from their first 16, 32 and 64 trials, if the set has at least
twice as many candidates. The factor of the bound is also calibrated anew, on other operators alone.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from benchmarks.report import Metric, report
from benchmarks.tuner import splits
from benchmarks.tuner.splits import Judged
from tuner.cost_model import stored_model
from tuner.cost_model.boosting import boost
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.finish.space_distance import BOUND_FACTOR, estimated
from tuner.replay.packaged import packaged_sets
from tuner.replay.play import played
from tuner.replay.recorded_set import RecordedSet
from tuner.search.evolutionary import Evolutionary
from tuner.search.searcher import Searcher

SEEDS = range(3)
TRIALS = (16, 32, 64)
NUM_FOLDS = 6
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """The estimate of one search after so many trials, and the true distance."""

    operator: str
    seed: int
    num_trials: int
    bound: float
    distance: float


def main() -> None:
    """Play all sets, and report the coverage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuner.space_distance")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    args, _ = parser.parse_known_args()
    sets = [Judged(recorded, recorded.samples()) for recorded in packaged_sets()]
    folds = splits.by_group(sets, splits.operators(sets), NUM_FOLDS)
    jobs = [
        (sets[index].recorded, stored_model.encode(boost(fold.training, 0)))
        for fold in folds
        for index in fold.judged
    ]
    with get_context("fork").Pool(args.jobs) as pool:
        estimates = [each for found in pool.imap(_of_set, jobs) for each in found]
    report("space_distance", list(_metrics(estimates)))


def _of_set(job: tuple[RecordedSet, bytes]) -> list[Estimate]:
    recorded, base = job
    return [
        found
        for part in (recorded, recorded.kept)
        for seed in SEEDS
        for found in _of_search(part, base, seed)
    ]


def _of_search(recorded: RecordedSet, base: bytes, seed: int) -> Iterator[Estimate]:
    wanted = [num for num in TRIALS if 2 * num <= len(recorded)]
    if not wanted or not np.isfinite(recorded.best_secs):
        return
    search = Searcher(
        Evolutionary,
        recorded.space,
        seed,
        XGBoostModel(seed, base=base),
        task_key=recorded.task.key,
    )
    trials = played(recorded, search, max(wanted) + 1)
    for num in wanted:
        first = trials[:num]
        estimate = estimated(first, len(recorded))
        if estimate is not None:
            best_secs = min(trial.best_secs for trial in first)
            distance = 1 - recorded.best_secs / best_secs
            yield Estimate(recorded.operator, seed, num, estimate.bound, distance)


def _metrics(estimates: Sequence[Estimate]) -> Iterator[Metric]:
    """Yield the coverage, a sample a seed, and the means."""
    by_trials: dict[int, list[Estimate]] = defaultdict(list)
    for each in estimates:
        by_trials[each.num_trials].append(each)
    for num, group in sorted(by_trials.items()):
        covered = tuple(
            100 * float(np.mean([e.distance <= e.bound for e in group if e.seed == seed]))
            for seed in SEEDS
        )
        goal = f">= {100 * CONFIDENCE:.0f}"
        yield Metric(f"{num} trials: the bound holds", "%", covered, goal=goal)
        bounds = tuple(100 * float(np.mean([e.bound for e in group if e.seed == s])) for s in SEEDS)
        yield Metric("  mean bound", "%", bounds)
        yield Metric("  mean distance", "%", (100 * float(np.mean([e.distance for e in group])),))
        yield Metric("  searches", "", (float(len(group)),))
        factor = BOUND_FACTOR * float(np.quantile(_ratios(group), CONFIDENCE))
        yield Metric(f"  the factor that holds for {100 * CONFIDENCE:.0f}%", "", (factor,))
        yield Metric("  it holds, calibrated on other operators", "%", (_held_out(group),))


def _held_out(group: Sequence[Estimate]) -> float:
    """Return how often a bound holds whose factor is calibrated without the operator."""
    held = []
    for operator in sorted({each.operator for each in group}):
        others = [each for each in group if each.operator != operator]
        factor = float(np.quantile(_ratios(others), CONFIDENCE))
        held += [e.distance <= factor * e.bound for e in group if e.operator == operator]
    return 100 * float(np.mean(held))


def _ratios(group: Sequence[Estimate]) -> list[float]:
    """Return the distances in units of their bounds."""
    return [each.distance / each.bound for each in group if each.bound > 0]


if __name__ == "__main__":
    main()
