"""Caches, the curve of arithmetic intensity, and rough estimates of cycles."""

from __future__ import annotations

import numpy as np

from tuner.space.features.groups.cpu_batch import CpuBatch
from tuner.space.features.roofline import PARTS
from tuner.space.tables.nest import NUM_LEVELS, Floats

_CACHE = ("level", "fit1", "fit3", "fit4", "moved")
CURVE_BYTES = tuple(1 << power for power in range(12, 27, 2))
"""Sizes of caches, 4 KiB to 64 MiB, at which intensity is sampled."""
_CYCLES = (*PARTS, "total", "others", "all")

CACHE_NAMES = tuple(f"{cache}.{name}" for cache in ("l1", "l2", "l3") for name in _CACHE)
CURVE_NAMES = tuple(f"intensity.{size >> 10}k" for size in CURVE_BYTES)
CYCLE_NAMES = tuple(f"cycles.{name}" for name in _CYCLES)


def cache_columns(batch: CpuBatch) -> Floats:
    """Return how the main nest fits each cache of the target.

    `level` is the outermost level whose run fits. `fit` is the size of a run of a level relative to
    the cache, and `moved` the bytes a point that come from beyond it, both as logarithms.
    """
    target = batch.target
    columns = []
    for size in (target.l1_bytes, target.l2_bytes, target.l3_bytes):
        columns.append((batch.bytes > size).sum(axis=0)[None])
        columns.append(np.log2(batch.bytes[[1, 3, 4]] / size))
        columns.append(np.log2(_moved(batch, size) / batch.points)[None])
    return np.concatenate(columns)


def curve_columns(batch: CpuBatch) -> Floats:
    """Return points for each byte that comes from beyond a cache, by its size; a logarithm."""
    moved = np.stack([_moved(batch, size) for size in CURVE_BYTES])
    return np.log2(batch.points / moved)


def _moved(batch: CpuBatch, cache_bytes: int) -> Floats:
    """Return the bytes that move past a cache of this size: those of the first level that fits."""
    fits = batch.bytes <= cache_bytes
    level = np.where(fits.any(axis=0), fits.argmax(axis=0), NUM_LEVELS - 1)
    moved: Floats = np.take_along_axis(batch.traffic, level[None], axis=0)[0]
    return moved


def cycle_columns(batch: CpuBatch) -> Floats:
    """Return estimated cycles for each point of the main nest, as logarithms.

    Parts and `all` are sums over all nests, `total` is of the main nest and `others` of the rest.
    """
    of_nests = batch.rooflines
    parts = sum((each.fitted for each in of_nests[1:]), of_nests[0].fitted)
    total = of_nests[0].total
    others = sum((each.total for each in of_nests[1:]), np.ones(len(batch)))
    # One cycle more, since a logarithm has no zero.
    logarithms: Floats = np.log2(np.vstack([parts + 1, total, others, total + others]))
    logarithms -= np.log2(batch.points)
    return logarithms
