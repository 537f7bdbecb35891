"""The arithmetic of the main nest's block, common to all candidates of a sketch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields

import numpy as np

from tuner.space.analysis.operations import Operations
from tuner.space.features.groups.batch import CandidateBatch
from tuner.space.tables.nest import Floats

_OPERATIONS = tuple(field.name for field in fields(Operations))
_BLOCK = ("flops", "flops_per_point", "reads", "item_bytes", "is_conditional", "is_affine", "nests")

BLOCK_NAMES = (*(f"ops.{name}" for name in _OPERATIONS), *_BLOCK)


def block_columns(batch: CandidateBatch) -> Floats:
    """The arithmetic of the main nest's block at a point, by kind, and its size."""
    facts = batch.main.nest.facts
    counts = asdict(facts.operations)
    values = [float(np.log2(1 + counts[name])) for name in _OPERATIONS]
    values += [
        float(np.log2(max(facts.flops_per_point, 1) * facts.points)),
        float(facts.flops_per_point),
        float(len(facts.reads)),
        float(np.log2(facts.write.item_bytes)),
        float(facts.is_conditional),
        float(facts.is_affine),
        float(len(batch.tables)),
    ]
    return constant_columns(values, batch)


def constant_columns(values: Sequence[float], batch: CandidateBatch) -> Floats:
    """Return a column for each value, which all candidates share."""
    return np.broadcast_to(np.array(values)[:, None], (len(values), len(batch)))
