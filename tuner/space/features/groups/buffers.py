"""The buffers of the main nest: the output, and the largest inputs."""

from __future__ import annotations

from math import gcd

import numpy as np

from tuner.space.analysis.block_facts import TensorAccess
from tuner.space.features.groups.batch import CandidateBatch
from tuner.space.tables.nest import LINE_BYTES, NUM_LEVELS, REGISTER_LEVEL, Floats, NestTables

NUM_BUFFERS = 4
"""Buffers that features describe: most operators have two inputs and an output. Chosen."""
PAGE_BYTES = 4096
"""The size of a page of memory on x86-64 and, mostly, on aarch64."""
MAX_STRIDE = 64
"""A larger stride counts as this: beyond a cache line, each lane loads a line of its own."""
_TILE_LEVELS = (1, 3, 4, REGISTER_LEVEL)
NO_REUSE, READ_AGAIN, UPDATED, OVERLAPS = range(4)
"""The types of reuse: none, by a loop that does not move it, as a sum, by overlapping windows."""

_BUFFER = (
    *(f"bytes{level}" for level in _TILE_LEVELS),
    *(f"lines{level}" for level in _TILE_LEVELS),
    *(f"reuse{level}" for level in range(NUM_LEVELS)),
    "reuse.type",
    "reuse.level",
    "reuse.count",
    "reuse.bytes",
    "reuse.points",
    "size",
    "is_packed",
    "stride",
    "row",
    "conflicts",
)
BUFFER_NAMES = tuple(f"buffer{index}.{name}" for index in range(NUM_BUFFERS) for name in _BUFFER)


def buffer_columns(batch: CandidateBatch) -> Floats:
    """Return the columns of each buffer; zeros if there are fewer.

    - `bytes`: of the elements that one run of a level touches, and `lines` of their cache lines.
    - `reuse` of a level: the number of times that its loops visit the same elements.
    - `reuse.level`: the innermost level with reuse, counted from the outside, 1 to 7; 0 for none.
      `reuse.count` is the number of visits, `reuse.bytes` the bytes touched between two visits, in
      all buffers, `reuse.points` the number of points between them.
    - `stride`: in elements, from lane to lane of a vector. `row`: the number of consecutive
      elements.
    - `conflicts`: rows at a distance of a power of two share the same few sets of a cache.

    All are logarithms, except types, levels, strides and conflicts.
    """
    columns = np.zeros((NUM_BUFFERS, len(_BUFFER), len(batch)))
    for index in range(min(NUM_BUFFERS, len(batch.main.nest.accesses))):
        _fill(columns[index], batch, index)
    return columns.reshape(len(BUFFER_NAMES), len(batch))


def _fill(out: Floats, batch: CandidateBatch, index: int) -> None:
    main = batch.main
    access, vector = main.nest.accesses[index], main.nest.vector_axis
    levels = list(_TILE_LEVELS)
    elements, row = main.elements[index], main.spans[index][-1][4]
    reuse = _reuse(main, access)
    out[0:4] = np.log2(elements[levels] * access.item_bytes)
    out[4:8] = np.log2(main.footprints[index][levels] / LINE_BYTES)
    out[8:15] = np.log2(reuse)
    out[15] = _reuse_type(main, index)
    out[16:20] = _nearest(batch, reuse)
    out[20] = np.log2(access.size_bytes)
    out[21] = index in main.nest.packed
    out[22] = 0 if vector is None else min(abs(access.strides[vector]), MAX_STRIDE)
    out[23] = np.log2(row)
    power = gcd(access.shape[-1] * access.item_bytes, PAGE_BYTES) / PAGE_BYTES
    out[24] = power * np.log2(elements[4] / row)


def _reuse(main: NestTables, access: TensorAccess) -> Floats:
    """Return, by level, the extents of the loops that do not move an access."""
    still = [i for i in range(len(access.strides)) if not any(r[i] for r in access.coefficients)]
    counts: Floats = np.prod(main.extents[:, still], axis=1)
    return counts


def _reuse_type(main: NestTables, index: int) -> int:
    access, axes = main.nest.accesses[index], main.nest.facts.axes
    long = [i for i, axis in enumerate(axes) if axis.extent > 1]
    still = [i for i in long if not any(row[i] for row in access.coefficients)]
    if index == 0 and any(axes[i].is_reduction for i in still):
        return UPDATED
    if any(sum(bool(row[i]) for i in long) > 1 for row in access.coefficients):
        return OVERLAPS
    return READ_AGAIN if still else NO_REUSE


def _nearest(batch: CandidateBatch, reuse: Floats) -> Floats:
    """Return level, count, bytes and points of the reuse that is nearest in time."""
    main = batch.main
    again = reuse > 1
    level = np.where(again.any(axis=0), NUM_LEVELS - 1 - again[::-1].argmax(axis=0), -1)
    one_point = sum(access.item_bytes for access in main.nest.accesses)
    touched = np.vstack([batch.bytes, np.full((1, len(batch)), one_point)])
    level_index = np.maximum(level, 0)[None]
    count = np.take_along_axis(reuse, level_index, axis=0)[0]
    distance = np.take_along_axis(touched, level_index + 1, axis=0)[0]
    points = main.trips[NUM_LEVELS] / np.take_along_axis(main.trips, level_index + 1, axis=0)[0]
    has_reuse = level >= 0
    logarithms = np.log2(np.stack([count, distance, points])) * has_reuse
    return np.vstack([(level + 1)[None], logarithms])
