"""Features of whole batches of candidates for GPUs, computed from tables, without scheduling.

Every column is a ratio, a flag or a base-2 logarithm, so that one model serves all shapes. The
meaning of columns may change only together with `SCHEMA_VERSION`; `docs/features.md` documents
them.
"""

from __future__ import annotations

import numpy as np

from compiler.target.cuda import CudaTarget
from tuner.space.features.columns import FeatureColumns, FeatureGroup
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.features.cuda.groups import (
    BUFFER_NAMES,
    CODE_NAMES,
    LAUNCH_NAMES,
    MEMORY_NAMES,
    SECONDS_NAMES,
    SKETCH_NAMES,
    TARGET_NAMES,
    buffer_columns,
    code_columns,
    launch_columns,
    memory_columns,
    seconds_columns,
    sketch_columns,
    target_columns,
)
from tuner.space.features.groups.blocks import BLOCK_NAMES, block_columns
from tuner.space.features.groups.knobs import KNOB_NAMES, knob_columns
from tuner.space.features.groups.levels import AXIS_NAMES, axis_columns
from tuner.space.search_space import FeatureMatrix
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats
from tuner.space.tables.sketch import Sketch

SCHEMA_VERSION = 3
"""Changes with the columns: a stored model of another version is refused."""
ESTIMATE = "secs.total"
"""The column that orders candidates before any measurement."""

_OF_SKETCH: tuple[FeatureGroup[CudaBatch], ...] = (
    (TARGET_NAMES, target_columns),
    (SKETCH_NAMES, sketch_columns),
    (KNOB_NAMES, knob_columns),
)
_OF_NEST: tuple[FeatureGroup[CudaBatch], ...] = (
    (BLOCK_NAMES, block_columns),
    (AXIS_NAMES, axis_columns),
    (LAUNCH_NAMES, launch_columns),
    (CODE_NAMES, code_columns),
    (MEMORY_NAMES, memory_columns),
    (BUFFER_NAMES, buffer_columns),
    (SECONDS_NAMES, seconds_columns),
)

_COLUMNS = FeatureColumns(_OF_SKETCH, _OF_NEST)
FEATURE_NAMES = _COLUMNS.names
NUM_FEATURES = len(FEATURE_NAMES)


def features(sketch: Sketch, choices: Ints, target: CudaTarget) -> FeatureMatrix:
    """Return a row of features for each row of choices; the columns are `FEATURE_NAMES`.

    A sketch without nests has only those of the sketch; the others are zeros.
    """
    batch = CudaBatch(sketch, choices, target)
    return _COLUMNS.matrix(batch, len(choices), has_nests=bool(sketch.nests))


def named_features(sketch: Sketch, choices: Ints, target: CudaTarget) -> dict[str, Floats]:
    """Return the columns of `features` by their names, for people and tests."""
    rows = features(sketch, choices, target).T.astype(np.float64)
    return dict(zip(FEATURE_NAMES, rows, strict=True))
