"""The steps that a stage records: transformations of its loops, and how each loop runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from compiler.te.axis import TensorAxis
from compiler.te_schedule.inserted import AnyAxis, axis_name


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A loop became two; one of `factor` and `nparts` is given."""

    parent: AnyAxis
    outer: TensorAxis
    inner: TensorAxis
    factor: int | None
    nparts: int | None

    def __str__(self) -> str:
        return f"split({axis_name(self.parent)})"


@dataclass(frozen=True, slots=True, eq=False)
class Fuse:
    """Nested loops became one; of none, a loop of one iteration."""

    parts: tuple[AnyAxis, ...]
    fused: TensorAxis

    def __str__(self) -> str:
        return f"fuse({', '.join(map(axis_name, self.parts))})"


@dataclass(frozen=True, slots=True, eq=False)
class Reorder:
    """All loops of a stage, in their new order."""

    order: tuple[AnyAxis, ...]

    def __str__(self) -> str:
        return f"reorder({', '.join(map(axis_name, self.order))})"


Transformation: TypeAlias = Split | Fuse | Reorder
MarkKind: TypeAlias = Literal["bind", "parallel", "vectorize", "unroll", "pragma", "tensorize"]


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """How a loop runs; `value` is the thread, the intrinsic, or the key and value of a pragma."""

    kind: MarkKind
    axis: AnyAxis
    value: Any = None
