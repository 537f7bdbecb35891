"""Features of whole batches of candidates, computed from tables alone, without scheduling.

Every column is a ratio, a flag or a base-2 logarithm, so that one model serves all shapes. The
meaning of columns may change only together with `SCHEMA_VERSION`; `docs/features.md` documents
them.
"""

from __future__ import annotations

import numpy as np

from compiler.target.cpu import CpuTarget
from tuner.space.features.columns import FeatureColumns, FeatureGroup
from tuner.space.features.groups.blocks import BLOCK_NAMES, block_columns
from tuner.space.features.groups.buffers import BUFFER_NAMES, buffer_columns
from tuner.space.features.groups.costs import (
    CACHE_NAMES,
    CURVE_NAMES,
    CYCLE_NAMES,
    cache_columns,
    curve_columns,
    cycle_columns,
)
from tuner.space.features.groups.cpu_batch import CpuBatch
from tuner.space.features.groups.knobs import KNOB_NAMES, knob_columns
from tuner.space.features.groups.levels import (
    AXIS_NAMES,
    LEVEL_NAMES,
    PARALLEL_NAMES,
    axis_columns,
    level_columns,
    parallel_columns,
)
from tuner.space.features.groups.sketches import (
    SKETCH_NAMES,
    TARGET_NAMES,
    sketch_columns,
    target_columns,
)
from tuner.space.features.groups.tiles import OTHER_NAMES, TILE_NAMES, other_columns, tile_columns
from tuner.space.search_space import FeatureMatrix
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats
from tuner.space.tables.sketch import Sketch

SCHEMA_VERSION = 7
"""Changes with the columns: a stored model of another version is refused."""

_OF_SKETCH: tuple[FeatureGroup[CpuBatch], ...] = (
    (TARGET_NAMES, target_columns),
    (SKETCH_NAMES, sketch_columns),
    (KNOB_NAMES, knob_columns),
)
_OF_NEST: tuple[FeatureGroup[CpuBatch], ...] = (
    (BLOCK_NAMES, block_columns),
    (TILE_NAMES, tile_columns),
    (LEVEL_NAMES, level_columns),
    (AXIS_NAMES, axis_columns),
    (PARALLEL_NAMES, parallel_columns),
    (BUFFER_NAMES, buffer_columns),
    (CACHE_NAMES, cache_columns),
    (CURVE_NAMES, curve_columns),
    (CYCLE_NAMES, cycle_columns),
    (OTHER_NAMES, other_columns),
)

_COLUMNS = FeatureColumns(_OF_SKETCH, _OF_NEST)
FEATURE_NAMES = _COLUMNS.names
NUM_FEATURES = len(FEATURE_NAMES)


def features(sketch: Sketch, choices: Ints, target: CpuTarget) -> FeatureMatrix:
    """Return a row of features for each row of choices; the columns are `FEATURE_NAMES`.

    A sketch without nests has only those of the sketch; the others are zeros.
    """
    batch = CpuBatch(sketch, choices, target)
    return _COLUMNS.matrix(batch, len(choices), has_nests=bool(sketch.nests))


def named_features(sketch: Sketch, choices: Ints, target: CpuTarget) -> dict[str, Floats]:
    """Return the columns of `features` by their names, for people and tests."""
    rows = features(sketch, choices, target).T.astype(np.float64)
    return dict(zip(FEATURE_NAMES, rows, strict=True))
