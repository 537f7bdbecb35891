"""The recorded sets that come with the package."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from tuner.cost_model.cost_model import Samples
from tuner.replay.recorded_set import SUFFIX, RecordedSet, read_sets

FOLDER = Path(__file__).parents[1] / "recorded"
ROWS = 128
"""Candidates of a set that models are trained on. With 192, 0.001 more of the pairs of held-out
shapes are in order, with 384 no more than that, and both cost time (`docs/cost-model.md`).
"""


@cache
def packaged_sets() -> tuple[RecordedSet, ...]:
    """Return all sets that come with the package, by name."""
    return tuple(read_sets(FOLDER))


def fingerprint() -> str:
    """Return the SHA-256 of the files of the sets, in hexadecimal."""
    digest = sha256()
    for path in sorted(FOLDER.glob(f"*{SUFFIX}")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def packaged_samples() -> list[Samples]:
    """Return training samples of all packaged sets: `ROWS` candidates of each large set."""
    return [thinned(recorded.samples(), ROWS) for recorded in packaged_sets()]


def thinned(samples: Samples, most: int) -> Samples:
    """Return `most` samples of a task: the fastest, and random others."""
    num = len(samples.run_secs)
    if num <= most:
        return samples
    order = np.random.default_rng(0).permutation(num)
    fastest = int(samples.run_secs.argmin())
    chosen = np.sort(np.append(order[order != fastest][: most - 1], fastest))
    weights = None if samples.weights is None else samples.weights[chosen]
    return replace(
        samples,
        features=samples.features[chosen],
        run_secs=samples.run_secs[chosen],
        weights=weights,
    )
