"""The common properties of all candidates of a sketch for a CPU: target, tags, rules."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from compiler.target.cpu import CpuTarget
from tuner.space.features.groups.blocks import constant_columns
from tuner.space.features.groups.cpu_batch import CpuBatch
from tuner.space.rules.cpu.rule_names import CPU_RULE_NAMES
from tuner.space.tables.nest import Floats

TAGS = (
    "cached_write",
    "fused",
    "packed",
    "packed_left",
    "packed_right",
    "padded_at_root",
    "padded_at_tile",
    "spatial",
    "window_rows",
)
NUM_BUCKETS = 4
"""Buckets for the names of unknown rules and for the parts of a sketch's name: a fixed width of the
features, at the cost of collisions. Chosen.
"""

_SIZES = ("vector_bits", "num_vector_registers", "num_cores", "l1_bytes", "l2_bytes", "l3_bytes")

TARGET_NAMES = tuple(
    f"target.{name}" for name in (*_SIZES, "has_fma", "flops_per_cycle", "flops_per_byte")
)
SKETCH_NAMES = (
    *(f"tag.{tag}" for tag in TAGS),
    *(f"rule.{rule}" for rule in CPU_RULE_NAMES),
    *(f"rule.other{bucket}" for bucket in range(NUM_BUCKETS)),
    *(f"name.bucket{bucket}" for bucket in range(NUM_BUCKETS)),
)
MEMORY_BYTES_PER_CYCLE = 5.0
"""What a core gets from memory on the machines that were looked at."""


def target_columns(batch: CpuBatch) -> Floats:
    """Sizes as logarithms; rates are those of 32-bit floats in one core."""
    target = batch.target
    sizes = [float(np.log2(getattr(target, name))) for name in _SIZES]
    rate = np.log2(_flops_per_cycle(target))
    values = [*sizes, float(target.has_fma), rate, rate - np.log2(MEMORY_BYTES_PER_CYCLE)]
    return constant_columns(values, batch)


def _flops_per_cycle(target: CpuTarget) -> float:
    lanes = max(1, target.vector_bits // 32)
    return target.pipelines.fmas * lanes * (2 if target.has_fma else 1)


def sketch_columns(batch: CpuBatch) -> Floats:
    """Flags: which tags and rules a sketch has, and in which buckets the parts of its name are."""
    sketch = batch.sketch
    others = {_bucket(rule) for rule in sketch.rules if rule not in CPU_RULE_NAMES}
    name_buckets = {_bucket(name_part) for name_part in sketch.name.split("/")}
    flags = [tag in sketch.tags for tag in TAGS]
    flags += [rule in sketch.rules for rule in CPU_RULE_NAMES]
    flags += [bucket in others for bucket in range(NUM_BUCKETS)]
    flags += [bucket in name_buckets for bucket in range(NUM_BUCKETS)]
    return constant_columns([float(flag) for flag in flags], batch)


def _bucket(name: str) -> int:
    return crc32(name.encode()) % NUM_BUCKETS
