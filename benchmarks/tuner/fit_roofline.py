"""Fit the weights of the roofline estimate: `python -m benchmarks.tuner.fit_roofline`.

It prints `FITTED` of `tuner/space/features/roofline.py`, for the recorded sets. Fast candidates
count most, each set counts alike, and weights stay near 1 where the sets say little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tuner.replay.packaged import packaged_sets
from tuner.replay.recorded_set import RecordedSet
from tuner.space.features.groups.cpu_batch import CpuBatch
from tuner.space.features.roofline import OVERLAP, OVERLAPPING, PARTS
from tuner.space.tables.nest import Floats

FIRST = dict.fromkeys(PARTS, 1.0) | {
    "broadcasts": 0.5,
    "stores": 0.5,
    "tiles": 2.0,
    "results": 0.5,
    "blocks": 5.0,
    "l2": 0.5,
    "l3": 0.5,
    "memory": 0.5,
    "pieces": 6.0,
}
"""Weights to start from: orders of magnitude of recent cores."""
STAY = 0.003
"""The weight of the squared distance from them, in logarithms. With a sixth or seven times of it,
the factors of other operators order those of a held-out one a little worse.
"""
MOST = 80
"""Candidates of each set: more make the fit slower, not better."""
SLOW = 3.0
"""Doublings of the best time beyond which candidates count as equally slow."""
ITERATIONS = 120
UNSEEN = "-mcpu=emeraldrapids"
"""The CPU whose sets are left out, so that they show how the weights suit an unseen one."""


@dataclass(frozen=True)
class Timed:
    """Parts of some candidates of a set, by nest, and the logarithms of their relative times."""

    parts: Floats
    doublings: Floats


def timed(recorded: RecordedSet) -> Timed:
    """Return correct candidates of a set."""
    most_nests = max(len(sketch.nests) for sketch in recorded.sketches)
    by_sketch = []
    for sketch, rows in zip(recorded.sketches, recorded.rows, strict=True):
        parts = np.zeros((most_nests, len(PARTS), len(rows)))
        batch = CpuBatch(sketch, rows, CpuTarget.of(Target(recorded.target)))
        for index, roofline in enumerate(batch.rooflines):
            parts[index] = roofline.parts
        by_sketch.append(parts)
    secs = np.concatenate(recorded.secs)
    correct = np.flatnonzero(np.isfinite(secs))
    rows = np.random.default_rng(0).permutation(correct)[:MOST]
    doublings = np.clip(np.log2(secs[rows] / secs[correct].min()), 0, SLOW)
    return Timed(np.concatenate(by_sketch, axis=2)[:, :, rows], doublings)


def fit(sets: Sequence[Timed]) -> Floats:
    """Return the weights that predict the ratios of times within each set best."""
    first = np.log([FIRST[part] for part in PARTS])

    def loss(logarithms: Floats) -> float:
        distance = STAY * float(((logarithms - first) ** 2).sum())
        weights = np.exp(logarithms)[:, None]
        return float(np.mean([_error(each, weights) for each in sets])) + distance

    found = minimize(loss, first, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    weights: Floats = np.exp(found.x)
    return weights


def _error(sample: Timed, weights: Floats) -> float:
    counted = sample.parts * weights
    num = len(OVERLAPPING)
    busy = (counted[:, :num] ** OVERLAP).sum(axis=1) ** (1 / OVERLAP)
    cycles = (busy + counted[:, num:].sum(axis=1) + 1).sum(axis=0)
    importance = 2.0**-sample.doublings
    importance /= importance.sum()
    difference = sample.doublings - np.log2(cycles)
    difference -= importance @ difference
    return float(importance @ difference**2)


def main() -> None:
    """Print the weights."""
    sets = [timed(each) for each in packaged_sets() if UNSEEN not in each.target]
    for part, weight in zip(PARTS, fit(sets), strict=True):
        print(f'    "{part}": {weight:.3g},')


if __name__ == "__main__":
    main()
