"""Measure how well the cost model ranks candidates of tasks outside its training, on records.

Some shapes of every operator, some operators, each family of operators, or each CPU are held out in
turn. A model of all other recorded sets, trained as the base model is, ranks it, and a search that
starts with this model plays on it. See `docs/cost-model.md` for the metrics.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context

import numpy as np

from benchmarks.report import Metric, report
from benchmarks.tuner import splits
from benchmarks.tuner.splits import Fold, Judged
from compiler.executor.cores import available_cores
from tuner.cost_model import stored_model
from tuner.cost_model.boosting import boost, score
from tuner.cost_model.cost_model import Samples, Scores
from tuner.cost_model.quality import Quality, pairs_in_order, quality, top_score
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay.packaged import packaged_samples, packaged_sets
from tuner.replay.play import play
from tuner.search.evolutionary import Evolutionary
from tuner.search.searcher import Searcher
from tuner.space.features.features import FEATURE_NAMES
from tuner.space.search_space import Mask

SEEDS = range(3)
JOB_SAMPLES = 64
"""Samples of a job of a few rounds."""
CLEAR = 0.05
"""Pairs whose times differ by this share are clear: the halves of a recording agree on nearly all
of them.
"""
NUM_CALIBRATED = 500
"""Samples of a new CPU."""
AVX2, FAST_VECTORS = "znver3", "znver5"
"""CPUs with pipelines of 256 and of 512 bits: how far a model of the one serves the other."""
NUM_FOLDS = 6
"""Folds in which operators and shapes are held out, and operators of a new CPU."""
OWN_FOLDS = 4
"""Folds of the candidates of a set, for a model of the set alone."""
MIN_OWN = 60
"""The fewest candidates of such a set; three quarters of fewer teach a model little."""
TRIALS = (1, 5, 15)
"""After how many trials the loss is reported, beside the loss of the first guess, unmeasured: the
last one ends the first round.
"""
FAMILIES = {
    "products": "matmul dense batch_matmul mm_relu matmul_bias_relu linear_relu dense_int8"
    " dense_int4 quantized_dense",
    "convolutions": "conv1d conv2d conv2d_nchwc conv2d_winograd conv2d_transpose conv3d"
    " depthwise_conv2d quantized_conv2d",
    "pools": "max_pool2d avg_pool2d",
    "attention": "attention grouped_query_attention",
    "rows": "softmax layer_norm argmax row_sum log_softmax rms_norm group_norm sum transpose",
}
PARTS = ("drawn", "kept")
"""Parts of a set: a uniform sample of all candidates, and those that pass the static filter."""


@dataclass(frozen=True)
class Split:
    """A way to hold out sets.

    Attributes:
        folds: Returns the folds for a seed.
        goals: The goals of pairwise, top-1 and top-5; None for no goal.
    """

    name: str
    folds: Callable[[int], Iterator[Fold]]
    goals: tuple[float | None, float | None, float | None] = (None, None, None)


@dataclass(frozen=True)
class Outcome:
    """The scores of each judged set, and the losses of searches there, by a split with one seed."""

    scores: dict[int, Scores]
    losses: list[list[float]]
    secs: float


def main() -> None:
    """Evaluate the model on all recorded sets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuner.model_quality")
    parser.add_argument("--split", action="append", help="only splits whose names hold this text")
    parser.add_argument("--each", action="store_true", help="show each set, too")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes")
    args, _ = parser.parse_known_args()
    sets = _sets()
    every = all_splits(sets)
    chosen = [
        split
        for split in every
        if args.split is None or any(text in split.name for text in args.split)
    ]
    if not chosen:
        parser.error(f"no split is called {args.split}: {', '.join(s.name for s in every)}")
    metrics: list[Metric] = []
    # Forked processes have the sets already.
    with ProcessPoolExecutor(args.jobs, get_context("fork")) as pool:
        coming = [[pool.submit(_outcome, split.name, seed) for seed in SEEDS] for split in chosen]
        for split, futures in zip(chosen, coming, strict=True):
            outcomes = [future.result() for future in futures]
            metrics += _of_split(split, sets, outcomes, show_each=args.each)
    if args.split is None:
        metrics += _of_estimate(sets)
        metrics += _repeatability(sets)
        metrics += _of_own_candidates(sets)
        metrics += _training_costs([each.samples for each in sets])
    report("model_quality", metrics)


@cache
def _sets() -> list[Judged]:
    return [Judged(recorded, recorded.samples()) for recorded in packaged_sets()]


def all_splits(sets: Sequence[Judged]) -> list[Split]:
    """Return the splits, with the goals of each."""
    family = {op: name for name, members in FAMILIES.items() for op in members.split()}
    groups = [family[each.operator] for each in sets]
    cpus = sorted({each.cpu for each in sets})

    def held_out(names: Sequence[Hashable]) -> Callable[[int], Iterator[Fold]]:
        return lambda _: splits.by_group(sets, names, NUM_FOLDS)

    def unseen(cpu: str, num: int) -> Callable[[int], Iterator[Fold]]:
        return partial(splits.by_cpu, sets, cpu, num, NUM_FOLDS)

    return [
        Split("shape", held_out(splits.shapes(sets)), (0.90, 0.92, 0.97)),
        Split("operator", held_out(splits.operators(sets)), (0.87, 0.90, 0.96)),
        Split("family", held_out(groups)),
        *(
            Split(f"{cpu}, {num} samples of it", unseen(cpu, num), (None, goal, None))
            for cpu in cpus
            for num, goal in ((0, 0.85), (NUM_CALIBRATED, 0.90))
        ),
        Split(
            f"{FAST_VECTORS}, by {AVX2} alone,",
            lambda _: splits.by_other_cpu(sets, FAST_VECTORS, AVX2),
            (None, 0.85, None),
        ),
    ]


def _outcome(split_name: str, seed: int) -> Outcome:
    """Train and judge the models of a split."""
    sets = _sets()
    (split,) = (each for each in all_splits(sets) if each.name == split_name)
    start = time.process_time()
    scores: dict[int, Scores] = {}
    losses = []
    for fold in split.folds(seed):
        members = boost(fold.training, seed)
        base = stored_model.encode(members)
        for index in fold.judged:
            scores[index] = score(members, sets[index].samples.features)
            if np.isfinite(sets[index].recorded.kept.best_secs):
                losses.append(_losses(sets[index], scores[index], base, seed))
    return Outcome(scores, losses, time.process_time() - start)


def _losses(judged: Judged, scores: Scores, base: bytes, seed: int) -> list[float]:
    """Return the losses of a search against the best known, from 0 trials on."""
    recorded = judged.recorded.kept
    mask = np.concatenate(judged.recorded.is_kept)
    first = top_score(scores[mask], judged.samples.run_secs[mask], 1)
    model = XGBoostModel(seed, base=base)
    search = Searcher(Evolutionary, recorded.space, seed, model, task_key=recorded.task.key)
    curve = play(recorded, search, max(TRIALS) + 1)
    return [1 - first, *(1 - float(curve[trials]) for trials in TRIALS)]


def _of_split(
    split: Split, sets: Sequence[Judged], outcomes: Sequence[Outcome], *, show_each: bool
) -> list[Metric]:
    """Return the means of all measures over the judged sets, a sample a seed."""
    scores = [outcome.scores for outcome in outcomes]
    metrics = _ranking(split.name, sets, scores, split.goals, show_each=show_each)
    losses = np.array([outcome.losses for outcome in outcomes])
    for index, trials in enumerate((0, *TRIALS)):
        label = f"{split.name} out, kept: loss after {trials} trials"
        metrics.append(Metric(f"{label}, mean", "", tuple(losses[:, :, index].mean(axis=1))))
        worst = np.quantile(losses[:, :, index], 0.9, axis=1)
        metrics.append(Metric(f"{label}, worst tenth", "", tuple(worst)))
    secs = tuple(outcome.secs for outcome in outcomes)
    metrics.append(Metric(f"{split.name} out: training and judging", "s", secs))
    return metrics


def _ranking(
    title: str,
    sets: Sequence[Judged],
    scores: Sequence[dict[int, Scores]],
    goals: tuple[float | None, float | None, float | None] = (None, None, None),
    *,
    show_each: bool = False,
) -> list[Metric]:
    """Return how well scores order each part of the sets, a sample a seed."""
    metrics: list[Metric] = []
    for part in PARTS:
        columns: dict[str, list[float]] = {}
        for by_set in scores:
            rows = [_row(sets[index], own, part) for index, own in by_set.items()]
            for name in rows[0] or ():
                values = [row[name] for row in rows if row is not None]
                columns.setdefault(name, []).append(float(np.mean(values)))
        for name, values in columns.items():
            goal = dict(zip(("pairwise", "top1", "top5"), goals, strict=True)).get(name)
            text = "" if goal is None else f">= {goal}"
            label = f"{title} out, {part}: {name}, mean"
            metrics.append(Metric(label, "", tuple(values), goal=text))
        for index, own in scores[0].items() if show_each else ():
            row = _row(sets[index], own, part)
            if row is not None:
                text = " / ".join(f"{row[name]:.3f}" for name in ("pairwise", "top1", "top5"))
                label = f"  {sets[index].recorded.name}, {part}: {text}"
                metrics.append(Metric(label, "pairwise", (row["pairwise"],)))
    return metrics


def _row(judged: Judged, scores: Scores, part: str) -> dict[str, float] | None:
    """Return all measures of one set; None if too few of its candidates are correct."""
    recorded = judged.recorded
    mask = np.concatenate(recorded.is_drawn if part == "drawn" else recorded.is_kept)
    secs = judged.samples.run_secs[mask]
    found: Quality | None = quality(scores[mask], secs)
    if found is None:
        return None
    return {
        "pairwise": found.pairwise,
        f"pairwise of pairs {CLEAR:.0%} apart": pairs_in_order(scores[mask], secs, CLEAR),
        "pairwise of pairs beyond the noise": pairs_in_order(scores[mask], secs, _noise(judged)),
        "top1": found.top1,
        "top5": found.top5,
        "trials_saved": found.trials_saved,
    }


def _noise(judged: Judged) -> float:
    """Return the median difference between the times of a candidate in two halves of its turns."""
    spread: float = judged.recorded.provenance["repeatability"]["drawn"]["spread"]
    return spread


def _of_estimate(sets: Sequence[Judged]) -> list[Metric]:
    """Return how well the estimate alone orders candidates."""
    column = FEATURE_NAMES.index("cycles.total")
    by_estimate = {
        index: -each.samples.features[:, column].astype(np.float64)
        for index, each in enumerate(sets)
    }
    return _ranking("everything, roofline estimate alone", sets, [by_estimate])


def _repeatability(sets: Sequence[Judged]) -> list[Metric]:
    """Return how often two halves of a recording agree."""
    metrics = []
    for part in PARTS:
        agree = [each.recorded.provenance["repeatability"][part]["agreement"] for each in sets]
        label = f"{part}: two halves of the turns agree, mean"
        metrics.append(Metric(label, "", (float(np.mean(agree)),)))
    return metrics


def _of_own_candidates(sets: Sequence[Judged]) -> list[Metric]:
    """Return how well models order candidates of a set that were trained on others of it.

    It shows how far the features and so few samples go, beside the noise of the labels.
    """
    by_part: dict[str, list[float]] = {part: [] for part in PARTS}
    for each in sets:
        if len(each.samples.run_secs) < MIN_OWN:
            continue
        rng = np.random.default_rng(0)
        fold_of = rng.permutation(len(each.samples.run_secs)) % OWN_FOLDS
        for fold in range(OWN_FOLDS):
            held = fold_of == fold
            members = boost([_rows(each.samples, ~held)], 0)
            scores = score(members, each.samples.features)
            for part in PARTS:
                masks = each.recorded.is_drawn if part == "drawn" else each.recorded.is_kept
                judged = held & np.concatenate(masks)
                found = quality(scores[judged], each.samples.run_secs[judged])
                if found is not None:
                    by_part[part].append(found.pairwise)
    return [
        Metric(
            f"{part}: a model of other candidates of the set, pairwise",
            "",
            (float(np.mean(found)),),
        )
        for part, found in by_part.items()
    ]


def _rows(samples: Samples, mask: Mask) -> Samples:
    return replace(samples, features=samples.features[mask], run_secs=samples.run_secs[mask])


def _training_costs(samples: list[Samples]) -> list[Metric]:
    """Return the time to train the base model, and a model within a job."""
    start = time.process_time()
    base = packaged_samples()
    made = time.process_time()
    boost(base, 0)
    num = sum(len(s.run_secs) for s in base)
    metrics = [
        Metric(f"features of {num} samples", "s", (made - start,)),
        Metric(f"training on {num} samples", "s", (time.process_time() - made,)),
    ]
    largest = max(samples, key=lambda s: len(s.run_secs))
    num = min(JOB_SAMPLES, len(largest.run_secs))
    model = XGBoostModel(0)
    model.update(Samples(largest.task_key, largest.features[:num], largest.run_secs[:num]))
    start = time.process_time()
    model.predict(largest.features[:1])
    metrics.append(
        Metric(f"training on {num} samples of a job", "s", (time.process_time() - start,))
    )
    return metrics


if __name__ == "__main__":
    main()
