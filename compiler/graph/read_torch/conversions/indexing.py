"""Operators that read and write elements at indices, and sort.

PyTorch refuses an index out of range when a program runs; graph operators clip it.
"""

from __future__ import annotations

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.operators.broadcasting import broadcast_shapes
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.registry import aten


@aten("embedding.default")
def _embedding(call: TorchCall) -> Operand:
    return call.add("take", call.operand("weight"), call.operand("indices"), axis=0)


@aten("index_select.default")
def _index_select(call: TorchCall) -> Operand:
    x = call.operand("self")
    axis = call.integer("dim") % x.type.rank
    result = call.add("take", x, call.operand("index"), axis=axis)
    return call.reshaped(result, call.result().static_shape)


@aten("gather.default")
def _gather(call: TorchCall) -> Operand:
    x = call.operand("self")
    axis = call.integer("dim") % x.type.rank
    return call.add("gather_elements", x, call.operand("index"), axis=axis)


@aten("index.Tensor")
def _index(call: TorchCall) -> Operand:
    x = call.operand("self")
    axes, indices = _indices(call)
    if len(axes) == 1:
        return call.add("take", x, indices[0], axis=axes[0])
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise ModelError(f"indices of the axes {axes}: expected axes that follow each other")
    rest = [axis for axis in range(x.type.rank) if axis not in axes]
    moved = call.add("permute_dims", x, axes=(*axes, *rest))
    places, count = _joined(call, indices)
    result = call.add("gather_nd", moved, places)
    # The axes of the indices come where the first indexed axis was.
    first = axes[0]
    order = (*range(count, count + first), *range(count), *range(count + first, result.type.rank))
    return call.add("permute_dims", result, axes=order)


def _indices(call: TorchCall) -> tuple[list[int], list[Operand]]:
    """Return the axes that have indices, and the indices."""
    given = call.optionals("indices")
    axes = [axis for axis, index in enumerate(given) if index is not None]
    indices = [index for index in given if index is not None]
    if any(index.type.dtype == "bool" for index in indices):
        raise ModelError(
            "a mask selects elements: the shape of the result depends on its values",
            advice="select by torch.where",
        )
    return axes, indices


def _joined(call: TorchCall, indices: list[Operand]) -> tuple[Operand, int]:
    """Return indices of several axes as one tensor of tuples, and the rank of each of them."""
    shape = broadcast_shapes(*(index.type.static_shape for index in indices))
    wide = [call.expanded(call.cast(index, "int64"), shape) for index in indices]
    parts = [call.reshaped(index, (*shape, 1)) for index in wide]
    joined = parts[0] if len(parts) == 1 else call.add("concat", *parts, axis=len(shape))
    return joined, len(shape)


@aten("index_put.default")
def _index_put(call: TorchCall) -> Operand:
    x, values = call.operand("self"), call.operand("values")
    axes, indices = _indices(call)
    if axes != list(range(len(axes))):
        raise ModelError(f"indices of the axes {axes}: expected the first axes")
    places, count = _joined(call, indices)
    shape = (*places.type.static_shape[:count], *x.type.static_shape[len(axes) :])
    reduction = "add" if call.flag("accumulate") else "update"
    return call.add("scatter_nd", x, places, call.expanded(values, shape), reduction=reduction)


@aten("scatter.src", "scatter.value", "scatter_add.default")
def _scatter(call: TorchCall) -> Operand:
    x, index = call.operand("self"), call.operand("index")
    shape = index.type.static_shape
    if call.overload == "scatter.value":
        updates = call.expanded(call.like(x, call.number("value")), shape)
    else:
        updates = call.operand("src")
        if updates.type.shape != shape:
            raise ModelError(f"updates {updates.type.shape} of indices {shape}: expected one shape")
    reduction = "add" if call.overload == "scatter_add.default" else "update"
    axis = call.integer("dim") % x.type.rank
    return call.add("scatter_elements", x, index, updates, axis=axis, reduction=reduction)


@aten("topk.default")
def _topk(call: TorchCall) -> tuple[Operand, ...]:
    x = call.operand("self")
    axis, is_largest = call.integer("dim") % x.type.rank, call.flag("largest")
    return call.add_all("topk", x, k=call.integer("k"), axis=axis, largest=is_largest)


@aten("sort.default", "sort.stable")
def _sort(call: TorchCall) -> tuple[Operand, Operand]:
    """Sort; equal elements keep their order in any case."""
    x = call.operand("self")
    axis, is_descending = call.integer("dim") % x.type.rank, call.flag("descending")
    return (
        call.add("sort", x, axis=axis, descending=is_descending),
        call.add("argsort", x, axis=axis, descending=is_descending),
    )
