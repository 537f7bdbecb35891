"""Positions of extremes, and cumulative sums and products, along one axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler import te
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.axes import check_axis
from compiler.graph.operators.elementwise.maps import widened
from compiler.graph.operators.reductions import reduced_shape
from compiler.graph.operators.types import check_accepts
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors import reductions
from compiler.ops.tensors.cumulative import Cumulative, cumulated


def _reversed(x: te.Tensor, axis: int, name: str = "reversed") -> te.Tensor:
    last = static_shape(x.buffer)[axis] - 1
    return te.compute(x.shape, lambda *i: x[(*i[:axis], last - i[axis], *i[axis + 1 :])], name=name)


def _declare_position(
    name: str, find: Callable[..., te.Tensor], reference: Callable[..., Array]
) -> None:
    def tensors(x: te.Tensor, *, axis: int, keepdims: bool, select_last_index: bool) -> te.Tensor:
        axis %= x.ndim
        last = static_shape(x.buffer)[axis] - 1
        ordered = _reversed(x, axis) if select_last_index else x
        first = find(ordered, axis=axis, keepdims=keepdims)

        def position(*i: te.Value) -> te.Value:
            number = last - first[i] if select_last_index else first[i]
            return number.astype("int64")

        return te.compute(first.shape, position, name=name)

    def by_numpy(x: Array, *, axis: int, keepdims: bool, select_last_index: bool) -> Array:
        ordered = np.flip(x, axis) if select_last_index else x
        first = np.asarray(reference(widened(ordered), axis=axis, keepdims=keepdims))
        return x.shape[axis] - 1 - first if select_last_index else first

    @graph_operator(name, "reduce", tensors=tensors, reference=by_numpy)
    def infer(
        x: TensorType, *, axis: int, keepdims: bool = False, select_last_index: bool = False
    ) -> TensorType:
        check_accepts(name, "number", x)
        axis = check_axis(name, axis, x.rank)
        return TensorType(reduced_shape(x.shape, (axis,), keepdims), "int64")


_declare_position("argmax", reductions.argmax, np.argmax)
_declare_position("argmin", reductions.argmin, np.argmin)


def _declare_cumulative(name: Cumulative, reference: Callable[..., Array]) -> None:
    neutral = 0 if name == "cumsum" else 1

    def tensors(x: te.Tensor, *, axis: int, exclusive: bool, reverse: bool) -> te.Tensor:
        axis %= x.ndim
        total = cumulated(_reversed(x, axis) if reverse else x, axis, name)
        if exclusive:
            total = shifted(total, axis)
        return _reversed(total, axis, name) if reverse else total

    def shifted(total: te.Tensor, axis: int) -> te.Tensor:
        start = te.const(neutral, total.dtype)

        def value(*i: te.Value) -> te.Value:
            before = total[(*i[:axis], i[axis] - 1, *i[axis + 1 :])]
            return te.if_then_else(te.const(1, "int32") <= i[axis], before, start)

        return te.compute(total.shape, value, name="exclusive")

    def by_numpy(x: Array, *, axis: int, exclusive: bool, reverse: bool) -> Array:
        ordered = np.flip(widened(x), axis) if reverse else widened(x)
        if exclusive:
            first = np.full_like(ordered.take([0], axis), neutral)
            rest = ordered.take(range(x.shape[axis] - 1), axis)
            ordered = np.concatenate([first, rest], axis)
        total = reference(ordered, axis=axis, dtype=ordered.dtype)
        return np.asarray(np.flip(total, axis) if reverse else total).astype(x.dtype)

    @graph_operator(name, "opaque", tensors=tensors, reference=by_numpy)
    def infer(
        x: TensorType, *, axis: int, exclusive: bool = False, reverse: bool = False
    ) -> TensorType:
        check_accepts(name, "number", x)
        check_axis(name, axis, x.rank)
        return x


_declare_cumulative("cumsum", np.cumsum)
_declare_cumulative("cumprod", np.cumprod)
