"""Axes along which a program computes each slice from its own slices of buffers alone.

The rows of a matrix product are such an axis: row `i` of the result depends on row `i` of the first
matrix, and on the whole second one. On fewer slices, the program is the same with smaller extents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_stmt, walk, walk_stmts


@dataclass(frozen=True, slots=True)
class ParallelAxis:
    """An axis of a program.

    Attributes:
        extent: The number of its slices.
        dims: The dimension that it is, of each buffer that it runs along.
        variables: The loops and block iterators that run along it.
    """

    extent: int
    dims: Mapping[Buffer, int]
    variables: frozenset[Var]


def parallel_axis(func: PrimFunc, output: Buffer, dim: int) -> ParallelAxis | None:
    """Return the axis that a dimension of an output belongs to; None if its slices are related.

    Args:
        func: A program without symbolic variables.
        output: A parameter that it writes.
        dim: The dimension.
    """
    nodes = list(walk(func.body))
    accesses = [(n.buffer, n.indices) for n in nodes if isinstance(n, Load | Store)]
    bound = {
        iterator.var: value
        for node in nodes
        if isinstance(node, BlockRealize)
        for iterator, value in zip(node.block.iter_vars, node.iter_values, strict=True)
    }
    dims, variables = {output: dim}, set[Var]()
    num_known = 0
    while num_known != len(dims) + len(variables):
        num_known = len(dims) + len(variables)
        for buffer, indices in accesses:
            if buffer in dims:
                index = indices[dims[buffer]]
                if not isinstance(index, Var):
                    return None
                variables.add(index)
            for position, index in enumerate(indices):
                if index in variables and dims.setdefault(buffer, position) != position:
                    return None
        for iterator, value in bound.items():
            if iterator in variables and isinstance(value, Var):
                variables.add(value)
            if value in variables:
                variables.add(iterator)
    axis = ParallelAxis(static_shape(output)[dim], dims, frozenset(variables))
    return axis if _is_parallel(func, axis) else None


def _is_parallel(func: PrimFunc, axis: ParallelAxis) -> bool:
    """Return whether all uses of the axis are plain indices, and all of it has one extent."""
    num_uses = num_plain = 0
    bound: set[Var] = set()
    for node in walk(func.body):
        match node:
            case Var():
                num_uses += node in axis.variables
                if any(node is buffer.data for buffer in axis.dims):
                    return False  # a call uses the memory of a whole buffer
            case Load(buffer, _) | Store(buffer, _, _):
                num_plain += buffer in axis.dims
            case For(var, _, _) if var in axis.variables:
                bound.add(var)
                if not _is_loop_along(node, axis):
                    return False
            case BlockRealize(values, _, block):
                iterators = [i for i in block.iter_vars if i.var in axis.variables]
                bound.update(iterator.var for iterator in iterators)
                num_plain += sum(value in axis.variables for value in values)
                if block.match_buffers or not all(_is_along(i, axis) for i in iterators):
                    return False
            case _:
                pass
    has_extents = all(static_shape(b)[dim] == axis.extent for b, dim in axis.dims.items())
    return num_uses == num_plain and bound == axis.variables and has_extents


def _is_loop_along(loop: For, axis: ParallelAxis) -> bool:
    """Return whether all that a loop stores has a slice for each of its iterations."""
    stored = {stmt.buffer for stmt in walk_stmts(loop.body) if isinstance(stmt, Store)}
    return _has_extent(loop.extent, axis) and stored <= axis.dims.keys()


def _is_along(iterator: IterVar, axis: ParallelAxis) -> bool:
    return iterator.kind == "spatial" and _has_extent(iterator.extent, axis)


def _has_extent(extent: Expr, axis: ParallelAxis) -> bool:
    return isinstance(extent, IntImm) and extent.value == axis.extent


def slices_of_inputs(
    func: PrimFunc,
    inputs: Mapping[str, NDArray[Any]],
    axis: ParallelAxis,
    slices: NDArray[np.int64],
) -> dict[str, NDArray[Any]]:
    """Return the inputs of the program for these slices of an axis."""
    dims = {buffer.name: dim for buffer, dim in axis.dims.items() if buffer in func.buffers}
    return {n: a.take(slices, dims[n]) if n in dims else a for n, a in inputs.items()}


def with_extent(
    func: PrimFunc, axis: ParallelAxis, extent: int, dtype: DType | None = None
) -> PrimFunc:
    """Return the program for this many slices.

    Args:
        func: The program.
        axis: Its axis.
        extent: The number of slices.
        dtype: The type of all buffers along the axis; None for their own.
    """

    def resized(buffer: Buffer) -> Buffer:
        dim, shape = axis.dims[buffer], buffer.shape
        size = _sized(shape[dim], extent)
        return replace(
            buffer,
            shape=(*shape[:dim], size, *shape[dim + 1 :]),
            dtype=buffer.dtype if dtype is None else dtype,
        )

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, lambda expr: expr)
        match new:
            case For(var, old, _) if var in axis.variables:
                return replace(new, extent=_sized(old, extent))
            case BlockRealize(_, _, block):
                iter_vars = tuple(
                    replace(each, extent=_sized(each.extent, extent))
                    if each.var in axis.variables
                    else each
                    for each in block.iter_vars
                )
                return replace(new, block=replace(block, iter_vars=iter_vars))
            case _:
                return new

    buffers = {buffer: resized(buffer) for buffer in axis.dims}
    body = replace_buffers(visit(func.body), buffers)
    assert isinstance(body, BlockRealize)
    params = tuple(buffers.get(p, p) if isinstance(p, Buffer) else p for p in func.params)
    return replace(func, params=params, body=body)


def _sized(old: Expr, extent: int) -> IntImm:
    assert isinstance(old, IntImm), "the program has no symbolic variables"
    return replace(old, value=extent)
