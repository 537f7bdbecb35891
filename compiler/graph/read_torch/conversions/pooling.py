"""Pools and interpolation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.registry import aten


def _batched(call: TorchCall, x: Operand, rank: int) -> Operand:
    """Return images with a batch: PyTorch's pools also take a single image."""
    return x if x.type.rank == rank + 2 else call.reshaped(x, (1, *x.type.static_shape))


def _windows(call: TorchCall, rank: int) -> dict[str, Any]:
    size = call.spatial("kernel_size", rank)
    return {
        "pool_size": size,
        "strides": call.spatial("stride", rank) or size,
        "padding": call.spatial("padding", rank) * 2,
        "ceil_mode": call.flag("ceil_mode"),
    }


@aten("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def _max_pool(call: TorchCall) -> tuple[Operand, Operand | None]:
    rank = 2 if "pool2d" in call.overload else 3
    x = _batched(call, call.operand("self"), rank)
    attrs = {**_windows(call, rank), "dilation": call.spatial("dilation", rank)}
    shape = call.node.results[0] or call.node.results[1]
    assert shape is not None, "a node has results that are used"
    largest = call.reshaped(call.add(f"nn.max_pool{rank}d", x, **attrs), shape.static_shape)
    if not call.wants(1):
        return largest, None
    positions = call.add(f"nn.max_pool{rank}d_positions", x, **attrs)
    return largest, call.reshaped(positions, shape.static_shape)


@aten("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def _avg_pool(call: TorchCall) -> Operand:
    rank = int(call.overload.removeprefix("avg_pool")[0])
    x = _batched(call, call.operand("self"), rank)
    attrs = {**_windows(call, rank), "count_include_pad": call.flag("count_include_pad")}
    if rank > 1 and call.argument("divisor_override") is not None:
        raise ModelError("divisor_override is not supported")
    return call.reshaped(call.add(f"nn.avg_pool{rank}d", x, **attrs), call.result().static_shape)


@aten(
    "adaptive_avg_pool1d.default",
    "_adaptive_avg_pool2d.default",
    "_adaptive_avg_pool3d.default",
    "adaptive_max_pool2d.default",
    "adaptive_max_pool3d.default",
)
def _adaptive_pool(call: TorchCall) -> tuple[Operand, None]:
    rank = int(call.overload.partition("_pool")[2][0])
    x = _batched(call, call.operand("self"), rank)
    space, counts = x.type.static_shape[2:], call.spatial("output_size", rank)
    if call.wants(1):
        raise ModelError("the positions of the maxima are not supported")
    kind = "max" if "max" in call.overload else "avg"
    if any(n % count for n, count in zip(space, counts, strict=True)):
        result = _uneven_pool(call, x, counts, kind)
    else:
        size = tuple(n // count for n, count in zip(space, counts, strict=True))
        result = call.add(f"nn.{kind}_pool{rank}d", x, pool_size=size, strides=size)
    return call.reshaped(result, call.result().static_shape), None


def _uneven_pool(call: TorchCall, x: Operand, counts: tuple[int, ...], kind: str) -> Operand:
    """Pool one axis after the other by windows that differ in size."""
    for axis, count in enumerate(counts, start=2):
        extent = x.type.static_shape[axis]
        if extent == count:
            continue
        windows = [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]
        if kind == "avg":
            weights = np.zeros((count, extent))
            for row, (begin, end) in zip(weights, windows, strict=True):
                row[begin:end] = 1 / (end - begin)
            x = _weighted(call, x, axis, weights)
        else:
            width = max(end - begin for begin, end in windows)
            # The last element of a shorter window is repeated.
            places = [[min(begin + k, end - 1) for k in range(width)] for begin, end in windows]
            parts = call.add("take", x, call.constant(np.asarray(places)), axis=axis)
            x = call.add("max", parts, axis=(axis + 1,), keepdims=False)
    return x


@aten("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def _nearest(call: TorchCall) -> Operand:
    x = call.operand("input")
    shape = call.result().static_shape
    for axis in range(2, x.type.rank):
        before, after = x.type.static_shape[axis], shape[axis]
        if after % before == 0:
            x = x if after == before else call.add("repeat", x, repeats=after // before, axis=axis)
        else:
            positions = np.arange(after) * _scale(call, axis, before, after)
            nearest = np.minimum(positions.astype(np.int64), before - 1)
            x = call.add("take", x, call.constant(nearest), axis=axis)
    return x


@aten("upsample_linear1d.vec", "upsample_bilinear2d.vec")
def _linear(call: TorchCall) -> Operand:
    """Interpolate one axis after the other, by products with the matrices of the weights."""
    x = call.operand("input")
    shape = call.result().static_shape
    for axis in range(2, x.type.rank):
        before, after = x.type.static_shape[axis], shape[axis]
        if before == after:
            continue
        scale = _scale(call, axis, before, after)
        weights = _linear_weights(before, after, scale, is_aligned=call.flag("align_corners"))
        x = _weighted(call, x, axis, weights)
    return x


def _weighted(call: TorchCall, x: Operand, axis: int, weights: Array) -> Operand:
    """Return the sums of the elements of an axis with weights `[after, before]`."""
    last = x.type.rank - 1
    matrix = call.constant(weights.astype(x.type.dtype))
    if axis == last:
        return call.add("matmul", x, call.add("permute_dims", matrix, axes=(1, 0)))
    if axis == last - 1:
        return call.add("matmul", matrix, x)
    *before, extent = x.type.static_shape[: axis + 1]
    after = x.type.static_shape[axis + 1 :]
    rows = call.reshaped(x, (*before, extent, math.prod(after)))
    return call.reshaped(call.add("matmul", matrix, rows), (*before, len(weights), *after))


_SAMPLING = ("bilinear", "nearest", "bicubic")
_PADDING = ("zeros", "border", "reflection")


@aten("grid_sampler_2d.default", "grid_sampler_3d.default")
def _grid_sample(call: TorchCall) -> Operand:
    return call.add(
        "image.grid_sample",
        call.operand("input"),
        call.operand("grid"),
        method=_SAMPLING[call.integer("interpolation_mode")],
        padding_mode=_PADDING[call.integer("padding_mode")],
        align_corners=call.flag("align_corners"),
    )


def _scale(call: TorchCall, axis: int, before: int, after: int) -> float:
    """Return the step in the image for one of the result."""
    factors = call.argument("scale_factors")
    if isinstance(factors, tuple):
        factor = factors[axis - 2]
        assert isinstance(factor, int | float), "the schema says so"
        return 1 / factor
    return before / after


def _linear_weights(before: int, after: int, scale: float, *, is_aligned: bool) -> Array:
    """Return what each element of an axis adds to each one of the result."""
    if is_aligned:
        positions = np.arange(after) * ((before - 1) / max(after - 1, 1))
    else:
        positions = np.maximum((np.arange(after) + 0.5) * scale - 0.5, 0)
    low = np.minimum(positions.astype(np.int64), before - 1)
    high = np.minimum(low + 1, before - 1)
    weights = np.zeros((after, before))
    np.add.at(weights, (np.arange(after), low), 1 - (positions - low))
    np.add.at(weights, (np.arange(after), high), positions - low)
    return weights
