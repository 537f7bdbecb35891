"""Decisions that the columns of the main nest do not cover."""

from __future__ import annotations

import numpy as np

from tuner.space.features.groups.batch import CandidateBatch
from tuner.space.tables.nest import Floats
from tuner.space.tables.sketch import Sketch

NUM_KNOBS = 8
"""Free knobs that features describe; others are ignored. Chosen."""
KNOB_NAMES = tuple(f"knob{index}" for index in range(NUM_KNOBS))


def knob_columns(batch: CandidateBatch) -> Floats:
    """Return the chosen option of each free knob, from 0 for the first option to 1 for the last.

    Zeros if there are fewer. A knob is free if the main nest has none of its columns.
    """
    columns = np.zeros((NUM_KNOBS, len(batch)))
    for row, knob in enumerate(free_knobs(batch.sketch)[:NUM_KNOBS]):
        columns[row] = batch.choices[:, knob] / max(batch.sketch.num_options[knob] - 1, 1)
    return columns


def free_knobs(sketch: Sketch) -> list[int]:
    """Return the indices of the knobs that the main nest does not cover."""
    main = sketch.nests[:1]
    used = {column for nest in main for row in nest.columns for column in row if column is not None}
    free = []
    first = 0
    for index, knob in enumerate(sketch.knobs):
        width = knob.options.shape[1]
        if not used.intersection(range(first, first + width)):
            free.append(index)
        first += width
    return free
