"""The operations that a schedule inserts, in the order in which they were asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from compiler.te_schedule.inserted import AnyAxis, AnyTensor, InsertedOperation
from compiler.te_schedule.stage import Stage
from compiler.te_schedule.transformations import Transformation


@dataclass(frozen=True, slots=True, eq=False)
class CacheRead:
    """A stage copies a tensor, for some stages that read the copy."""

    stage: Stage
    op: InsertedOperation
    tensor: AnyTensor
    scope: str
    readers: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CacheWrite:
    """A stage computes, by `op`, the tensors of another one, which now copies them by `copy`."""

    stage: Stage
    op: InsertedOperation
    copying: Stage
    copy: InsertedOperation
    scope: str


@dataclass(frozen=True, slots=True, eq=False)
class RFactor:
    """A stage computes, by `op`, the partial results that another one combines by `combination`.

    Attributes:
        transformations: What was done to the loops of the reduction before.
        leaves: Its loops at that time.
        axis: One of them: the factored one.
        factored: The same, as a dimension of the partial results.
        factor_axis: The position of that dimension.
    """

    stage: Stage
    op: InsertedOperation
    reducing: Stage
    combination: InsertedOperation
    transformations: tuple[Transformation, ...]
    leaves: tuple[AnyAxis, ...]
    axis: AnyAxis
    factored: AnyAxis
    factor_axis: int


Insertion: TypeAlias = CacheRead | CacheWrite | RFactor
