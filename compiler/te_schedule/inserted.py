"""Operations that a schedule inserts among those of the tensors: copies and partial reductions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.core.dtypes import DType
from compiler.te.axis import AxisKind, TensorAxis
from compiler.te.elements import ElementsOnly
from compiler.te.tensor import Compute, Operation, Scan, Tensor
from compiler.te.value import ReduceAxis

AnyAxis: TypeAlias = TensorAxis | ReduceAxis


@dataclass(slots=True, eq=False)
class InsertedOperation:
    """An operation without an expression: a primitive of the schedule makes its block.

    Attributes:
        axis: The dimensions of its tensors.
        reduce_axis: The axes that it reduces over.
    """

    name: str
    axis: tuple[TensorAxis, ...]
    reduce_axis: tuple[AnyAxis, ...] = ()
    outputs: tuple[AnyTensor, ...] = ()


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
    axis: tuple[TensorAxis, ...],
    reduce_axis: tuple[AnyAxis, ...] = (),
) -> tuple[InsertedTensor, ...]:
    """Return the tensors of a new operation: one for each of some others, of its type."""
    operation = InsertedOperation(name, axis, reduce_axis)
    names = [name] if len(likes) == 1 else [f"{name}_v{n}" for n in range(len(likes))]
    pairs = zip(names, likes, strict=True)
    tensors = tuple(InsertedTensor(title, like.dtype, operation) for title, like in pairs)
    operation.outputs = tensors
    return tensors


def axes_of(op: AnyOperation) -> tuple[AnyAxis, ...]:
    """Return the axes of an operation: its dimensions, then those that it reduces over."""
    match op:
        case Compute() | InsertedOperation():
            return (*op.axis, *op.reduce_axis)
        case Scan():
            return (op.scan_axis,)
        case _:
            return ()


def axis_name(axis: AnyAxis) -> str:
    """Return the name of an axis."""
    return axis.loop.name if isinstance(axis, ReduceAxis) else axis.name


def axis_kind(axis: AnyAxis) -> AxisKind:
    """Return what the iterations of an axis do."""
    return "reduce" if isinstance(axis, ReduceAxis) else axis.kind
