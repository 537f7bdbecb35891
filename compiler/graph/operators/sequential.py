"""Tensors that loops compute in a fixed order, because their steps depend on data or on each other.

The loops are one block, which schedules leave as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Buffer, For, IntImm, Load, Stmt, Store, Var, seq

Index = tuple[te.Value, ...]


def sequential(
    shape: Sequence[int],
    inputs: Sequence[te.Tensor],
    steps: Callable[[list[Buffer], Buffer], Sequence[Stmt]],
    dtype: DType,
    name: str,
) -> te.Tensor:
    """Return a tensor that statements compute one after another.

    Args:
        shape: The shape of the tensor.
        inputs: The tensors that the statements read.
        steps: Takes their buffers and that of the result, and returns the statements.
        dtype: The type of the tensor.
        name: The name of the tensor.
    """
    result: te.Tensor = te.extern(
        tuple(shape),
        inputs,
        lambda sources, targets: seq(*steps(sources, targets[0])),
        name=name,
        dtype=dtype,
    )
    return result


def nest(extents: Sequence[int], body: Callable[[Index], Stmt], prefix: str = "i") -> Stmt:
    """Return loops around a body that takes their variables."""
    loops = [Var(f"{prefix}{axis}") for axis in range(len(extents))]
    stmt = body(tuple(te.Value(loop) for loop in loops))
    for loop, extent in reversed(list(zip(loops, extents, strict=True))):
        stmt = For(loop, IntImm(extent), stmt)
    return stmt


def load(buffer: Buffer, index: Sequence[te.Value]) -> te.Value:
    """Return an element."""
    return te.Value(Load(buffer, tuple(i.expr for i in index)))


def store(buffer: Buffer, index: Sequence[te.Value], value: te.Value) -> Stmt:
    """Return the assignment of an element."""
    return Store(buffer, tuple(i.expr for i in index), value.expr)


def position(index: te.Value, extent: int) -> te.Value:
    """Return an index as a position on an axis: a negative one counts from the end.

    One out of range, which ONNX calls an error, is clipped, so that no kernel leaves a tensor.
    """
    index = wide_index(index)
    if index.dtype.startswith("int"):
        index = te.select(index < 0, index + te.const(extent, index.dtype), index)
    return te.max(te.min(index, te.const(extent - 1, index.dtype)), te.const(0, index.dtype))


def wide_index(index: te.Value) -> te.Value:
    """Return an index in a type that has all extents: those of 8 and 16 bits have not."""
    return index if index.dtype.endswith(("32", "64")) else index.astype("int32")
