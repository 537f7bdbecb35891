"""Operations that a schedule inserts among those of the tensors: copies and partial reductions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.core.dtypes import DType
from compiler.te.axis import Axis
from compiler.te.elements import ElementsOnly
from compiler.te.tensor import Operation, Tensor
from compiler.te.value import ReduceAxis

AnyAxis: TypeAlias = Axis | ReduceAxis


@dataclass(slots=True, eq=False)
class InsertedOperation:
    """An operation without an expression: a primitive of the schedule makes its block.

    Attributes:
        axis: The dimensions of its tensors.
        reduce_axis: The axes that it reduces over.
    """

    name: str
    axis: tuple[Axis, ...]
    reduce_axis: tuple[AnyAxis, ...] = ()
    outputs: tuple[InsertedTensor, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class InsertedTensor(ElementsOnly):
    """A tensor that a schedule inserted; it has a stage, as others have."""

    name: str
    dtype: DType
    op: InsertedOperation


AnyTensor: TypeAlias = Tensor | InsertedTensor
AnyOperation: TypeAlias = Operation | InsertedOperation


def insert(
    name: str,
    likes: tuple[AnyTensor, ...],
    axis: tuple[Axis, ...],
    reduce_axis: tuple[AnyAxis, ...] = (),
) -> InsertedOperation:
    """Return an operation, with a tensor for each of some others, of its type."""
    operation = InsertedOperation(name, axis, reduce_axis)
    names = [name] if len(likes) == 1 else [f"{name}_v{n}" for n in range(len(likes))]
    operation.outputs = tuple(
        InsertedTensor(title, like.dtype, operation)
        for title, like in zip(names, likes, strict=True)
    )
    return operation
