"""Operators that write elements at positions that follow from data.

Updates are applied in their order, one after another. A negative index counts from the end. One out
of range is clipped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import show_shape
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.axes import check_axis
from compiler.graph.operators.gather import check_along, in_range, tuple_length
from compiler.graph.operators.sequential import Index, load, nest, position, sequential, store
from compiler.graph.operators.types import check_accepts, check_choice, check_same_dtype
from compiler.ir.core.nodes import Buffer, Stmt, static_shape

REDUCTIONS = ("update", "add", "mul", "max", "min")
"""How an update is combined with the element: "update" replaces it."""

_COMBINE: dict[str, Callable[[te.Value, te.Value], te.Value]] = {
    "update": lambda _, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": te.max,
    "min": te.min,
}

_COMBINE_ARRAYS: dict[str, Callable[[Array, Array], Array]] = {
    "update": lambda _, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _scattered(  # noqa: PLR0917
    data: te.Tensor,
    indices: te.Tensor,
    updates: te.Tensor,
    reduction: str,
    target: Callable[[Buffer, Index], Index],
    name: str,
) -> te.Tensor:
    """Return data with updates.

    Args:
        data: The tensor.
        indices: The indices of the updates.
        updates: The new values.
        reduction: One of `REDUCTIONS`.
        target: Takes the buffer of the indices and an index of the updates; returns where the
            update goes.
        name: The name of the result.
    """

    def steps(sources: list[Buffer], result: Buffer) -> list[Stmt]:
        x, where, new = sources

        def copy(i: Index) -> Stmt:
            return store(result, i, load(x, i))

        def update(i: Index) -> Stmt:
            at = target(where, i)
            value = _COMBINE[reduction](load(result, at), load(new, i))
            return store(result, at, value)

        extents = static_shape(updates.buffer)
        return [nest(static_shape(data.buffer), copy), nest(extents, update, "u")]

    return sequential(static_shape(data.buffer), [data, indices, updates], steps, data.dtype, name)


def _scatter_elements_tensors(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, *, axis: int, reduction: str
) -> te.Tensor:
    dims = static_shape(data.buffer)
    axis %= len(dims)

    def target(where: Buffer, i: Index) -> Index:
        at = position(load(where, i), dims[axis]).astype("int32")
        return (*i[:axis], at, *i[axis + 1 :])

    return _scattered(data, indices, updates, reduction, target, "scatter_elements")


def _scatter_elements_reference(
    data: Array, indices: Array, updates: Array, *, axis: int, reduction: str
) -> Array:
    result = data.copy()
    where = in_range(indices, data.shape[axis])
    axis %= data.ndim
    for i in np.ndindex(*updates.shape):
        at = (*i[:axis], where[i], *i[axis + 1 :])
        result[at] = _COMBINE_ARRAYS[reduction](result[at], updates[i])
    return result


@graph_operator(
    "scatter_elements",
    "opaque",
    tensors=_scatter_elements_tensors,
    reference=_scatter_elements_reference,
)
def scatter_elements(
    data: TensorType,
    indices: TensorType,
    updates: TensorType,
    *,
    axis: int = 0,
    reduction: str = "update",
) -> TensorType:
    """Infer a tensor with updates: the index of each replaces its own position along the axis."""
    check_accepts("scatter_elements", "integer", indices)
    check_same_dtype("scatter_elements", data, updates)
    _check_reduction("scatter_elements", data, reduction)
    axis = check_axis("scatter_elements", axis, data.rank)
    check_along("scatter_elements", data, indices, axis)
    if indices.shape != updates.shape:
        raise ModelError(
            f"scatter_elements of {updates.shape} at indices {indices.shape}: expected one shape"
        )
    return data


def _check_reduction(name: str, data: TensorType, reduction: str) -> None:
    check_choice(name, "reduction", reduction, REDUCTIONS)
    if reduction != "update":
        check_accepts(name, "number", data)


def _scatter_nd_tensors(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, *, reduction: str
) -> te.Tensor:
    dims, (*which, count) = static_shape(data.buffer), static_shape(indices.buffer)

    def target(where: Buffer, i: Index) -> Index:
        at = i[: len(which)]
        picked = [
            position(load(where, (*at, te.const(k, "int32"))), dims[k]).astype("int32")
            for k in range(count)
        ]
        return (*picked, *i[len(which) :])

    return _scattered(data, indices, updates, reduction, target, "scatter_nd")


def _scatter_nd_reference(data: Array, indices: Array, updates: Array, *, reduction: str) -> Array:
    result = data.copy()
    for i in np.ndindex(*indices.shape[:-1]):
        pairs = zip(indices[i], data.shape, strict=False)
        at = tuple(int(in_range(n, extent)) for n, extent in pairs)
        result[at] = _COMBINE_ARRAYS[reduction](result[at], updates[i])
    return result


@graph_operator(
    "scatter_nd", "opaque", tensors=_scatter_nd_tensors, reference=_scatter_nd_reference
)
def scatter_nd(
    data: TensorType, indices: TensorType, updates: TensorType, *, reduction: str = "update"
) -> TensorType:
    """Infer a tensor with updates of slices at tuples of indices, `[..., count]`."""
    check_accepts("scatter_nd", "integer", indices)
    check_same_dtype("scatter_nd", data, updates)
    _check_reduction("scatter_nd", data, reduction)
    count = tuple_length("scatter_nd", data.rank, indices)
    expected = (*indices.shape[:-1], *data.shape[count:])
    if updates.shape != expected:
        raise ModelError(
            f"scatter_nd of {updates.shape} at indices {indices.shape} in {data.shape}: expected"
            f" updates of {show_shape(expected)}"
        )
    return data
