"""The search space of GPUs: their rules, features and static filter."""

from __future__ import annotations

import numpy as np

from compiler.target.cuda import CudaTarget
from compiler.target.target import Target
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.flat_blocks import FlatBlocks
from tuner.space.rules.cuda.levels import BLOCK, REGISTER, THREAD
from tuner.space.rules.decompose_reductions import DecomposeReductions
from tuner.space.search_space import FeatureMatrix, Mask, SearchSpace
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

FEATURE_NAMES = ("threads", "blocks", "elements", "idle_threads")


def _features(sketch: Sketch, choices: Ints, _: Target) -> FeatureMatrix:
    """Return the logarithms of sizes of the main nest; zeros without one."""
    rows = np.zeros((len(choices), len(FEATURE_NAMES)), np.float32)
    if sketch.nests:
        tables = sketch.nests[0].tables(sketch.values(choices))
        threads, blocks, elements = tables.level_extents[[THREAD, BLOCK, REGISTER]]
        rows[:, :3] = np.log2([threads, blocks, elements]).T
        # Fewer threads than two warps of a multiprocessor hide no latency; 256 are a usual size.
        rows[:, 3] = np.abs(np.log2(threads / 256))
    return rows


def _passes(sketch: Sketch, choices: Ints, target: Target) -> Mask:
    """Return which rows respect the limits of threads and of shared memory."""
    limits = CudaTarget.of(target).limits
    values = sketch.values(choices)
    mask = np.ones(len(choices), np.bool_)
    for nest in sketch.nests:
        mask &= nest.tables(values).level_extents[THREAD] <= limits.max_threads
    return mask


CUDA_SPACE = SearchSpace(
    kind="cuda",
    first_rules=(AutoInline(),),
    rules=(FlatBlocks(), DecomposeReductions()),
    feature_version=1,
    feature_names=FEATURE_NAMES,
    estimate="idle_threads",
    features=_features,
    passes=_passes,
)
