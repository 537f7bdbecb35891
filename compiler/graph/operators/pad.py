"""Padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, add
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.types import check_choice
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors.windows import pad as padded

MODES = ("constant", "reflect", "edge", "wrap")


def _pad_tensors(
    x: te.Tensor, *, pad_width: tuple[tuple[int, int], ...], pad_value: float, pad_mode: str
) -> te.Tensor:
    dims = static_shape(x.buffer)
    before, after = [low for low, _ in pad_width], [high for _, high in pad_width]
    if pad_mode == "constant" and any((*before, *after)):
        value = te.const(pad_value, x.dtype)
        return padded(x, dims, before, after, value=value, name="PadInput")

    def source(*i: te.Value) -> te.Value:
        positions = zip(i, before, after, dims, strict=True)
        return x[tuple(_position(k, low, high, n, pad_mode) for k, low, high, n in positions)]

    shape = [low + n + high for low, n, high in zip(before, dims, after, strict=True)]
    return te.compute(shape, source, name="pad")


def _position(index: te.Value, low: int, high: int, extent: int, mode: str) -> te.Value:
    """Return the position in the tensor that an index of the result stands for."""
    if not low and not high:
        return index
    position = index - low
    if mode == "wrap":
        return position % extent
    if mode == "edge" or extent == 1:
        return te.max(te.min(position, extent - 1), 0)
    # The reflection has a period: there and back, each of the ends once.
    period = 2 * (extent - 1)
    phase = position % period
    return te.min(phase, period - phase)


def _pad_reference(
    x: Array, *, pad_width: tuple[tuple[int, int], ...], pad_value: float, pad_mode: str
) -> Array:
    options: dict[str, Any] = {"constant_values": pad_value} if pad_mode == "constant" else {}
    if not x.ndim:
        return x
    return np.pad(x, pad_width, pad_mode, **options)  # type: ignore[call-overload,no-any-return]


@graph_operator("nn.pad", "move", tensors=_pad_tensors, reference=_pad_reference)
def pad(
    x: TensorType,
    *,
    pad_width: tuple[tuple[int, int], ...],
    pad_value: float = 0,
    pad_mode: str = "constant",
) -> TensorType:
    """Infer a tensor with elements before and after it.

    Args:
        x: The tensor.
        pad_width: For each axis, how many elements are added before and after.
        pad_value: The value of the elements, in the mode "constant".
        pad_mode: "constant"; "reflect", about the first and last elements; "edge", which repeats
            these; or "wrap", which repeats the tensor.
    """
    check_choice("nn.pad", "pad_mode", pad_mode, MODES)
    if len(pad_width) != x.rank or any(n < 0 for pair in pad_width for n in pair):
        raise ModelError(
            f"nn.pad of {x.shape}: pad_width is {pad_width}: expected two numbers from 0 for each"
            " axis"
        )
    shape: list[Extent] = [
        add(add(n, low), high) for n, (low, high) in zip(x.shape, pad_width, strict=True)
    ]
    grows_from_nothing = any(
        n == 0 and pair != (0, 0) for n, pair in zip(x.shape, pad_width, strict=True)
    )
    if pad_mode != "constant" and grows_from_nothing:
        raise ModelError(f"nn.pad of {x.shape}: the mode {pad_mode} needs an element")
    return TensorType(tuple(shape), x.dtype)
