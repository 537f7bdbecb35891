"""Sorting along one axis. Equal elements keep their order; NaN is greater than any number."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import show_extent
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.axes import check_axis
from compiler.graph.operators.elementwise.maps import widened
from compiler.graph.operators.sequential import Index, load, nest, store
from compiler.graph.operators.types import check_accepts
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.nodes import Buffer, If, Let, Stmt, Var, seq, static_shape
from compiler.ops.tensors.partial_sort import MAX_TOPK
from compiler.ops.tensors.partial_sort import topk as searched_topk


def _axis_last(x: te.Tensor, axis: int, name: str) -> te.Tensor:
    """Return a tensor with an axis moved to the end."""
    dims = static_shape(x.buffer)
    return te.compute(
        (*dims[:axis], *dims[axis + 1 :], dims[axis]),
        lambda *i: x[(*i[:axis], i[-1], *i[axis:-1])],
        name=name,
    )


def _sorted_positions(rows: te.Tensor, *, is_descending: bool) -> te.Tensor:
    """Return the positions of the elements of each row in order, as int32.

    Runs of 1, 2, 4, ... elements are merged, each level into a new tensor: n log n steps.
    """
    dims = static_shape(rows.buffer)
    positions: te.Tensor = te.compute(dims, lambda *i: i[-1], name="positions")
    width = 1
    while width < dims[-1]:
        positions = _merged(rows, positions, width, is_descending=is_descending)
        width *= 2
    return positions


def _merged(rows: te.Tensor, positions: te.Tensor, width: int, *, is_descending: bool) -> te.Tensor:
    """Return the positions after each two runs of `width` elements are merged."""
    *outer, extent = static_shape(rows.buffer)

    def steps(values: Buffer, before: Buffer, after: Buffer, heads: Buffer) -> Stmt:
        left, right = [te.const(0, "int32")], [te.const(1, "int32")]

        def element(row: Index, head: te.Value) -> te.Value:
            source = _clipped(load(before, (*row, _clipped(head, extent))), extent)
            return load(values, (*row, source))

        def merge(i: Index) -> Stmt:
            row, begin = i[:-1], i[-1] * (2 * width)

            def step(k: Index) -> Stmt:
                a, b = load(heads, left), load(heads, right)
                has_left = a < te.min(begin + width, extent)
                has_right = b < te.min(begin + 2 * width, extent)
                wins = _precedes(element(row, b), element(row, a), is_descending)
                is_right = te.all(has_right, te.any(te.logical_not(has_left), wins))
                taken = Var("taken", "int32")
                head = te.select(te.Value(taken) == 1, b, a)
                moves = seq(
                    store(
                        after, (*row, begin + k[0]), load(before, (*row, _clipped(head, extent)))
                    ),
                    store(heads, left, a + 1 - te.Value(taken)),
                    store(heads, right, b + te.Value(taken)),
                )
                merged = Let(taken, is_right.astype("int32").expr, moves)
                return If((begin + k[0] < extent).expr, merged)

            return seq(
                store(heads, left, begin),
                store(heads, right, begin + width),
                nest([2 * width], step, "k"),
            )

        return nest([*outer, -(-extent // (2 * width))], merge)

    merged, _ = te.extern(
        [(*outer, extent), (2,)],
        [rows, positions],
        lambda sources, targets: steps(*sources, *targets),
        name="merged",
        dtype="int32",
    )
    result: te.Tensor = merged
    return result


def _clipped(position: te.Value, extent: int) -> te.Value:
    return te.max(te.min(position, extent - 1), 0)


def _precedes(later: te.Value, earlier: te.Value, is_descending: bool) -> te.Value:
    """Return whether an element that comes later has to be moved before an earlier one."""
    precedes = later > earlier if is_descending else later < earlier
    if not is_float(later.dtype):
        return precedes
    number, other = (earlier, later) if is_descending else (later, earlier)
    return te.any(precedes, te.all(te.isnan(other), te.logical_not(te.isnan(number))))


def _first(
    x: te.Tensor, axis: int, k: int, *, is_descending: bool, name: str
) -> tuple[te.Tensor, te.Tensor]:
    """Return the first `k` elements in order along an axis, and their positions."""
    dims = static_shape(x.buffer)
    axis %= len(dims)
    rows = _axis_last(x, axis, "rows")
    if k <= MAX_TOPK and is_float(x.dtype) and k < dims[axis]:
        _, order = searched_topk(rows, k=k, largest=is_descending)
    else:
        order = _sorted_positions(rows, is_descending=is_descending)
    shape = (*dims[:axis], k, *dims[axis + 1 :])

    def source(i: Index) -> te.Value:
        return _clipped(order[(*i[:axis], *i[axis + 1 :], i[axis])], dims[axis])

    values = te.compute(
        shape, lambda *i: x[(*i[:axis], source(i), *i[axis + 1 :])], name=f"{name}_values"
    )
    return values, te.compute(shape, lambda *i: source(i).astype("int64"), name=f"{name}_indices")


def _first_reference(x: Array, axis: int, k: int, *, is_descending: bool) -> tuple[Array, Array]:
    wide, extent = widened(x), x.shape[axis]
    if is_descending:
        backwards = np.argsort(np.flip(wide, axis), axis, kind="stable")
        order = extent - 1 - np.flip(backwards, axis)
    else:
        order = np.argsort(wide, axis, kind="stable")
    order = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order


def _topk_tensors(x: te.Tensor, *, k: int, axis: int, largest: bool) -> tuple[te.Tensor, te.Tensor]:
    return _first(x, axis, k, is_descending=largest, name="topk")


def _topk_reference(x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    return _first_reference(x, axis, k, is_descending=largest)


@graph_operator("topk", "opaque", tensors=_topk_tensors, reference=_topk_reference)
def topk(
    x: TensorType, *, k: int, axis: int = -1, largest: bool = True
) -> tuple[TensorType, TensorType]:
    """Infer the `k` largest (or smallest) elements in order, and their positions as int64."""
    check_accepts("topk", "number", x)
    axis = check_axis("topk", axis, x.rank)
    extent = x.shape[axis]
    if k < 1 or (isinstance(extent, int) and k > extent):
        raise ModelError(f"topk: k is {k}: expected 1 to {show_extent(extent)}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return TensorType(shape, x.dtype), TensorType(shape, "int64")


def _sort_tensors(x: te.Tensor, *, axis: int, descending: bool) -> te.Tensor:
    extent = static_shape(x.buffer)[axis]
    return _first(x, axis, extent, is_descending=descending, name="sort")[0]


def _sort_reference(x: Array, *, axis: int, descending: bool) -> Array:
    return _first_reference(x, axis, x.shape[axis], is_descending=descending)[0]


@graph_operator("sort", "opaque", tensors=_sort_tensors, reference=_sort_reference)
def sort(x: TensorType, *, axis: int = -1, descending: bool = False) -> TensorType:
    """Infer a tensor that is sorted along an axis."""
    check_accepts("sort", "number", x)
    check_axis("sort", axis, x.rank)
    return x


def _argsort_tensors(x: te.Tensor, *, axis: int, descending: bool) -> te.Tensor:
    extent = static_shape(x.buffer)[axis]
    return _first(x, axis, extent, is_descending=descending, name="argsort")[1]


def _argsort_reference(x: Array, *, axis: int, descending: bool) -> Array:
    return _first_reference(x, axis, x.shape[axis], is_descending=descending)[1]


@graph_operator("argsort", "opaque", tensors=_argsort_tensors, reference=_argsort_reference)
def argsort(x: TensorType, *, axis: int = -1, descending: bool = False) -> TensorType:
    """Infer the positions, as int64, that sort a tensor along an axis."""
    check_accepts("argsort", "number", x)
    check_axis("argsort", axis, x.rank)
    return TensorType(x.shape, "int64")
