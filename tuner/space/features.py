"""Features of whole batches of candidates, from tables alone: nothing is scheduled or lowered.

Every column is a ratio, a flag or a base-2 logarithm, so that one model serves all shapes. What
the columns mean may change only together with `SCHEMA_VERSION`.
"""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.target import Target
from tuner.space.knob import Ints
from tuner.space.nest import (
    NUM_LEVELS,
    REGISTER_LEVEL,
    SPATIAL_LEVELS,
    UNROLLED_LEVEL,
    Floats,
    NestTables,
)
from tuner.space.register_tile import RegisterTile
from tuner.space.roofline import Roofline
from tuner.space.sketch import Sketch

SCHEMA_VERSION = 2
NUM_BUFFERS = 4
TAGS = (
    "cached_write",
    "fused",
    "packed_left",
    "packed_right",
    "padded_at_root",
    "padded_at_tile",
    "spatial",
)
PAGE_BYTES = 4096

_TARGET = ("vector_bits", "num_vector_registers", "num_cores", "l1_bytes", "l2_bytes", "l3_bytes")
_REGISTER_TILE = (
    "flops",
    "flops_per_point",
    "reads",
    "has_vectors",
    "vector_length",
    "vector_efficiency",
    "rows",
    "vectors_per_row",
    "accumulators",
    "register_use",
    "flops_per_load",
    "unrolled_steps",
    "unrolled_body",
    "inner_trip",
    "innermost_trip",
)
_LEVEL = ("extent", "trips", "bytes", "intensity", "traffic")
_TILE_LEVELS = (1, 3, 4, REGISTER_LEVEL)
_BUFFER = (
    *(f"bytes{level}" for level in _TILE_LEVELS),
    *(f"reuse{level}" for level in _TILE_LEVELS),
    "stride",
    "row",
    "conflicts",
)
_CACHE = ("level", "fit1", "fit3", "fit4")
_CYCLES = (
    "compute",
    "loads",
    "spills",
    "loops",
    "packing",
    "l2",
    "l3",
    "memory",
    "total",
    "others",
)

FEATURE_NAMES: tuple[str, ...] = (
    *(f"target.{name}" for name in _TARGET),
    *(f"tag.{tag}" for tag in TAGS),
    *_REGISTER_TILE,
    *(f"level{level}.{name}" for level in range(NUM_LEVELS) for name in _LEVEL),
    *(f"buffer{index}.{name}" for index in range(NUM_BUFFERS) for name in _BUFFER),
    *(f"{cache}.{name}" for cache in ("l1", "l2", "l3") for name in _CACHE),
    "parallel.extent",
    "parallel.balance",
    *(f"cycles.{name}" for name in _CYCLES),
)
NUM_FEATURES = len(FEATURE_NAMES)

FeatureMatrix: TypeAlias = npt.NDArray[np.float32]
Columns: TypeAlias = dict[str, Floats]


def features(sketch: Sketch, choices: Ints, target: Target) -> FeatureMatrix:
    """Return a row of features for each row of choices; the columns are `FEATURE_NAMES`."""
    columns = named_features(sketch, choices, target)
    assert tuple(columns) == FEATURE_NAMES, "the schema says what the columns are"
    matrix = np.empty((len(choices), NUM_FEATURES), np.float32)
    for index, column in enumerate(columns.values()):
        matrix[:, index] = column
    return matrix


def named_features(sketch: Sketch, choices: Ints, target: Target) -> Columns:
    """Return the columns of `features` by their names, for people and tests."""
    values = sketch.values(choices)
    tables = [nest.tables(values) for nest in sketch.nests]
    main = tables[0]
    one = np.ones(len(choices))
    columns: Columns = {f"target.{name}": np.log2(getattr(target, name)) * one for name in _TARGET}
    columns |= {f"tag.{tag}": one * (tag in sketch.tags) for tag in TAGS}
    _add_register_tile(columns, main, target)
    _add_levels(columns, main)
    _add_buffers(columns, main)
    _add_caches(columns, main, target)
    _add_parallel(columns, main, target)
    _add_estimates(columns, tables, target)
    return columns


def _add_register_tile(columns: Columns, main: NestTables, target: Target) -> None:
    tile = RegisterTile(main, target)
    facts = main.nest.facts
    one = np.ones_like(tile.rows)
    columns["flops"] = np.log2(max(facts.flops_per_point, 1) * facts.points) * one
    columns["flops_per_point"] = facts.flops_per_point * one
    columns["reads"] = len(facts.reads) * one
    columns["has_vectors"] = one * (main.nest.vector_axis is not None)
    columns["vector_length"] = np.log2(main.vector_length)
    columns["vector_efficiency"] = tile.efficiency
    columns["rows"] = np.log2(tile.rows)
    columns["vectors_per_row"] = tile.vectors
    columns["accumulators"] = np.log2(tile.accumulators)
    columns["register_use"] = tile.registers / target.num_vector_registers
    columns["flops_per_load"] = np.log2(tile.accumulators / tile.loads)
    columns["unrolled_steps"] = np.log2(main.level_extents[UNROLLED_LEVEL])
    columns["unrolled_body"] = np.log2(tile.unrolled_body)
    columns["inner_trip"] = np.log2(main.level_extents[4])
    innermost = main.extents[4, _last_reduction(main)] if facts.is_reduction else one
    columns["innermost_trip"] = np.log2(innermost)


def _last_reduction(main: NestTables) -> int:
    return max(i for i, a in enumerate(main.nest.facts.axes) if a.is_reduction)


def _add_levels(columns: Columns, main: NestTables) -> None:
    points = main.trips[NUM_LEVELS]
    total = main.footprints.sum(axis=0)
    for level in range(NUM_LEVELS):
        work = points / main.trips[level]
        columns[f"level{level}.extent"] = np.log2(main.level_extents[level])
        columns[f"level{level}.trips"] = np.log2(main.trips[level])
        columns[f"level{level}.bytes"] = np.log2(total[level])
        columns[f"level{level}.intensity"] = np.log2(work / total[level])
        columns[f"level{level}.traffic"] = np.log2(main.traffic[:, level].sum(axis=0) / points)


def _add_buffers(columns: Columns, main: NestTables) -> None:
    zero = np.zeros_like(main.trips[0])
    for index in range(NUM_BUFFERS):
        if index < len(main.nest.accesses):
            found = _buffer(main, index)
        else:
            found = dict.fromkeys(_BUFFER, zero)
        columns |= {f"buffer{index}.{name}": column for name, column in found.items()}


def _buffer(main: NestTables, index: int) -> Columns:
    access, vector = main.nest.accesses[index], main.nest.vector_axis
    points = main.trips[NUM_LEVELS]
    elements, row = main.elements[index], main.spans[index][-1][4]
    # Rows a large power of two apart fall into the same few cache sets.
    conflicts = gcd(access.shape[-1] * access.item_bytes, PAGE_BYTES) / PAGE_BYTES
    stride = 0 if vector is None else min(abs(access.strides[vector]), 64)
    found = {f"bytes{lv}": np.log2(main.footprints[index, lv]) for lv in _TILE_LEVELS}
    found |= {f"reuse{lv}": np.log2(points / main.trips[lv] / elements[lv]) for lv in _TILE_LEVELS}
    found["stride"] = np.full_like(row, stride)
    found["row"] = np.log2(row)
    found["conflicts"] = conflicts * np.log2(elements[4] / row)
    return found


def _add_caches(columns: Columns, main: NestTables, target: Target) -> None:
    total = main.footprints.sum(axis=0)
    for name, size in (("l1", target.l1_bytes), ("l2", target.l2_bytes), ("l3", target.l3_bytes)):
        columns[f"{name}.level"] = (total > size).sum(axis=0).astype(np.float64)
        for level in (1, 3, 4):
            columns[f"{name}.fit{level}"] = np.log2(total[level] / size)


def _add_parallel(columns: Columns, main: NestTables, target: Target) -> None:
    outer = main.level_extents[SPATIAL_LEVELS[0]]
    rounds = np.ceil(outer / target.num_cores)
    columns["parallel.extent"] = np.log2(outer)
    columns["parallel.balance"] = outer / (rounds * target.num_cores)


def _add_estimates(columns: Columns, tables: list[NestTables], target: Target) -> None:
    main = Roofline(tables[0], target)
    for name, cycles in main.parts.items():
        columns[f"cycles.{name}"] = np.log2(cycles / main.points)
    columns["cycles.total"] = np.log2(main.total / main.points)
    others = sum((Roofline(t, target).total for t in tables[1:]), np.zeros_like(main.total))
    columns["cycles.others"] = np.log2((others + 1) / main.points)
