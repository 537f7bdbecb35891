"""Join two axes of a tensor, in a block that keeps them apart."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Cast,
    Expr,
    IntImm,
    IterVar,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ops.tensors.operands import dims_of
from compiler.te.extern import block_nest, extern_blocks


def join_axes(x: te.Tensor, axis: int, dtype: DType, name: str) -> te.Tensor:
    """Return a tensor in a type, with one axis instead of an axis and the following one.

    The block has the axes of `x`, and stores to `i * extent + j`. An axis that is divided again,
    as in `x[..., c // extent, c % extent, ...]`, would hide the groups from schedules.

    Args:
        x: The tensor.
        axis: The first of the axes that are joined.
        dtype: The type of the result.
        name: The name of the result and of the block.
    """
    dims = dims_of(name, x)
    extent = dims[axis + 1]

    def loops(source: Buffer, target: Buffer) -> Stmt:
        iters = tuple(
            IterVar(Var(f"v_i{number}"), IntImm(size), "spatial")
            for number, size in enumerate(dims)
        )
        index: tuple[Expr, ...] = tuple(iterator.var for iterator in iters)
        element: Expr = Load(source, index)
        if source.dtype != dtype:
            element = Cast(dtype, element)
        joined = BinOp("+", BinOp("*", index[axis], IntImm(extent)), index[axis + 1])
        return block_nest(
            name, iters, Store(target, (*index[:axis], joined, *index[axis + 2 :]), element)
        )

    shape = (*dims[:axis], dims[axis] * extent, *dims[axis + 2 :])
    return extern_blocks(shape, [x], loops, name=name, dtype=dtype)
