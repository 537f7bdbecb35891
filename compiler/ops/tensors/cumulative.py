"""Cumulative sums and products: each step adds to the previous one."""

from __future__ import annotations

from typing import Literal

from compiler import te
from compiler.ir.core.dtypes import sum_dtype
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Cast,
    Compare,
    Conditional,
    Expr,
    IntImm,
    IterVar,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ops.tensors.epilogue import converted
from compiler.ops.tensors.operands import dims_of
from compiler.te.extern import block_nest, extern_blocks

Cumulative = Literal["cumsum", "cumprod"]


def cumulated(x: te.Tensor, axis: int, name: Cumulative) -> te.Tensor:
    """Return the cumulative sums or products of a tensor along an axis, which counts from 0."""
    dims = dims_of(name, x)

    def loops(source: Buffer, target: Buffer) -> Stmt:
        return _scan(source, target, dims, axis, name)

    running = extern_blocks(dims, [x], loops, name="B", dtype=sum_dtype(x.dtype))
    return converted(running, x.dtype)


def _scan(
    source: Buffer, target: Buffer, dims: tuple[int, ...], axis: int, name: Cumulative
) -> Stmt:
    """Return the loops of a scan along one axis."""
    iters = tuple(
        IterVar(Var(f"v_i{n}"), IntImm(extent), "scan" if n == axis else "spatial")
        for n, extent in enumerate(dims)
    )
    index: tuple[Expr, ...] = tuple(iter_var.var for iter_var in iters)
    step = iters[axis].var
    before = Load(target, (*index[:axis], BinOp("-", step, IntImm(1)), *index[axis + 1 :]))
    start = te.const(0 if name == "cumsum" else 1, target.dtype).expr
    so_far = Conditional(Compare("<", IntImm(0), step), before, start)
    term: Expr = Load(source, index)
    if source.dtype != target.dtype:
        term = Cast(target.dtype, term)
    total = BinOp("+" if name == "cumsum" else "*", so_far, term)
    return block_nest(name, iters, Store(target, index, total))
