"""Operators that move elements: shapes, slices, joins, padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.operators.axes import check_axis
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.registry import aten


@aten(
    *("view.default", "_unsafe_view.default", "unsqueeze.default"),
    *("squeeze.dim", "squeeze.dims", "squeeze.default"),
)
def _reshape(call: TorchCall) -> Operand:
    return call.reshaped(call.operand("self"), call.result().static_shape)


@aten("permute.default")
def _permute(call: TorchCall) -> Operand:
    x = call.operand("self")
    return call.add("permute_dims", x, axes=tuple(k % x.type.rank for k in call.integers("dims")))


@aten("transpose.int", "t.default")
def _transpose(call: TorchCall) -> Operand:
    x = call.operand("self")
    axes = list(range(x.type.rank))
    if len(axes) < 2:
        return x
    is_matrix = call.overload == "t.default"
    first, second = (0, 1) if is_matrix else (call.integer("dim0"), call.integer("dim1"))
    axes[first], axes[second] = axes[second], axes[first]
    return call.add("permute_dims", x, axes=tuple(axes))


@aten("diagonal.default")
def _diagonal(call: TorchCall) -> Operand:
    """Select the elements of a diagonal from the rows of both axes, flattened."""
    x, offset, result = call.operand("self"), call.integer("offset"), call.result()
    first, second = (call.integer(name) % x.type.rank for name in ("dim1", "dim2"))
    rest = [axis for axis in range(x.type.rank) if axis not in {first, second}]
    moved = call.add("permute_dims", x, axes=(*rest, first, second))
    *outer, count = result.static_shape
    num_columns = moved.type.static_shape[-1]
    flat = call.reshaped(moved, (*outer, moved.type.static_shape[-2] * num_columns))
    begin = max(-offset, 0) * num_columns + max(offset, 0)
    places = begin + np.arange(count) * (num_columns + 1)
    return call.add("take", flat, call.constant(places), axis=len(outer))


@aten("expand.default")
def _expand(call: TorchCall) -> Operand:
    return call.expanded(call.operand("self"), call.result().static_shape)


def sliced(call: TorchCall, x: Operand, axis: int, begin: int, end: int) -> Operand:
    """Return a part of an axis, whose bounds lie within it."""
    if (begin, end) == (0, x.type.static_shape[axis]):
        return x
    return call.add("strided_slice", x, axes=(axis,), begin=(begin,), end=(end,), strides=(1,))


def _bounds(call: TorchCall, extent: int) -> tuple[int, int]:
    """Return where a slice begins and ends, within the axis."""
    begin = 0 if call.argument("start") is None else call.integer("start")
    end = extent if call.argument("end") is None else call.integer("end")
    first, last, _ = slice(begin, end).indices(extent)
    return first, max(first, last)


@aten("slice.Tensor")
def _slice(call: TorchCall) -> Operand:
    x = call.operand("self")
    axis = check_axis("slice", call.integer("dim"), x.type.rank)
    begin, end = _bounds(call, x.type.static_shape[axis])
    part, step = sliced(call, x, axis, begin, end), call.integer("step")
    if step == 1:
        return part
    return call.add("strided_slice", part, axes=(axis,), begin=(0,), end=(end,), strides=(step,))


@aten("select.int")
def _select(call: TorchCall) -> Operand:
    x = call.operand("self")
    axis = check_axis("select", call.integer("dim"), x.type.rank)
    index = call.integer("index") % x.type.static_shape[axis]
    part = sliced(call, x, axis, index, index + 1)
    return call.reshaped(part, call.result().static_shape)


@aten("slice_scatter.default", "select_scatter.default")
def _scatter_slice(call: TorchCall) -> Operand:
    """Join what is before a slice, what replaces it, and what follows it."""
    x, part = call.operand("self"), call.operand("src")
    axis = check_axis("slice_scatter", call.integer("dim"), x.type.rank)
    extent = x.type.static_shape[axis]
    if call.overload == "select_scatter.default":
        begin = call.integer("index") % extent
        end = begin + 1
        shape = x.type.static_shape
        part = call.reshaped(part, (*shape[:axis], 1, *shape[axis + 1 :]))
    else:
        begin, end = _bounds(call, extent)
        if call.integer("step") != 1:
            raise ModelError(f"step is {call.integer('step')}: expected 1")
    part = call.cast(part, x.type.dtype)
    before, after = sliced(call, x, axis, 0, begin), sliced(call, x, axis, end, extent)
    return _joined(call, (before, part, after), axis)


@aten("cat.default")
def _concat(call: TorchCall) -> Operand:
    dtype, rank = call.result().dtype, call.result().rank
    # Empty vectors are joined with tensors of any rank.
    parts = [call.cast(x, dtype) for x in call.operands("tensors") if x.type.rank == rank]
    return _joined(call, parts, check_axis("cat", call.integer("dim"), rank))


def _joined(call: TorchCall, parts: Sequence[Operand], axis: int) -> Operand:
    filled = [part for part in parts if part.type.shape[axis] != 0] or list(parts[:1])
    return filled[0] if len(filled) == 1 else call.add("concat", *filled, axis=axis)


@aten("stack.default")
def _stack(call: TorchCall) -> Operand:
    result = call.result()
    axis = check_axis("stack", call.integer("dim"), result.rank)
    shape = result.static_shape
    shape = (*shape[:axis], 1, *shape[axis + 1 :])
    parts = [call.cast(x, result.dtype) for x in call.operands("tensors")]
    return _joined(call, [call.reshaped(part, shape) for part in parts], axis)


@aten("split_with_sizes.default", "split.Tensor", "unbind.int")
def _split(call: TorchCall) -> list[Operand]:
    x = call.operand("self")
    axis = check_axis("split", call.integer("dim"), x.type.rank)
    sizes = _sizes(call, x.type.static_shape[axis])
    if len(sizes) == 1:
        parts = [x]
    elif 0 in sizes:
        ends = list(accumulate(sizes))
        parts = [sliced(call, x, axis, end - n, end) for n, end in zip(sizes, ends, strict=True)]
    else:
        places = tuple(accumulate(sizes[:-1]))
        parts = list(call.add_all("split", x, indices_or_sections=places, axis=axis))
    if call.overload != "unbind.int":
        return parts
    shape = x.type.static_shape
    return [call.reshaped(part, (*shape[:axis], *shape[axis + 1 :])) for part in parts]


def _sizes(call: TorchCall, extent: int) -> tuple[int, ...]:
    """Return the extents of the parts of an axis."""
    if call.overload == "unbind.int":
        return (1,) * extent
    if call.overload == "split_with_sizes.default":
        return call.integers("split_sizes")
    size = call.integer("split_size")
    return tuple(min(size, extent - begin) for begin in range(0, extent, size)) or (0,)


@aten("flip.default")
def _flip(call: TorchCall) -> Operand:
    x = call.operand("self")
    for axis in call.integers("dims"):
        x = call.add("flip", x, axis=axis % x.type.rank)
    return x


@aten("roll.default")
def _roll(call: TorchCall) -> Operand:
    x, axes, shifts = call.operand("self"), call.integers("dims"), call.integers("shifts")
    shape = x.type.static_shape
    if not axes:
        x, axes = call.reshaped(x, (x.type.num_elements,)), (0,)
    for axis, shift in zip(axes, shifts, strict=True):
        x = call.add("roll", x, shift=shift, axis=axis % x.type.rank)
    return call.reshaped(x, shape)


@aten("repeat.default")
def _tile(call: TorchCall) -> Operand:
    x, repeats = call.operand("self"), call.integers("repeats")
    shape = (1,) * (len(repeats) - x.type.rank) + x.type.static_shape
    return call.add("tile", call.reshaped(x, shape), repeats=repeats)


@aten("repeat_interleave.self_int")
def _repeat(call: TorchCall) -> Operand:
    x = call.operand("self")
    if call.argument("dim") is None:
        x = call.reshaped(x, (x.type.num_elements,))
    axis = 0 if call.argument("dim") is None else call.integer("dim") % x.type.rank
    return call.add("repeat", x, repeats=call.integer("repeats"), axis=axis)


@aten("tril.default", "triu.default")
def _triangle(call: TorchCall) -> Operand:
    op = call.overload.partition(".")[0]
    return call.add(op, call.operand("self"), k=call.integer("diagonal"))


@aten("pixel_shuffle.default", "pixel_unshuffle.default")
def _pixels(call: TorchCall) -> Operand:
    x = call.operand("self")
    if x.type.rank != 4:
        raise ModelError(f"the image has shape {x.type.shape}: expected 4 dimensions")
    if call.overload == "pixel_shuffle.default":
        size = call.integer("upscale_factor")
        return call.add("depth_to_space", x, block_size=size, mode="CRD")
    n, channels, height, width = x.type.static_shape
    size = call.integer("downscale_factor")
    blocks = (n, channels, height // size, size, width // size, size)
    moved = call.add("permute_dims", call.reshaped(x, blocks), axes=(0, 1, 3, 5, 2, 4))
    return call.reshaped(moved, call.result().static_shape)


_PADS = ("reflection_pad", "replication_pad")


@aten("constant_pad_nd.default")
@aten(*(f"{name}{rank}d.default" for name in _PADS for rank in (1, 2, 3)))
def _pad(call: TorchCall) -> Operand:
    x, rank = call.operand("self"), call.operand("self").type.rank
    pads = call.integers("pad" if call.overload.startswith("constant") else "padding")
    # PyTorch's numbers are those of the last axis first.
    pairs = [(pads[k], pads[k + 1]) for k in range(0, len(pads), 2)]
    pairs = [(0, 0)] * (rank - len(pairs)) + pairs[::-1]
    for axis, (low, high) in enumerate(pairs):
        extent = x.type.static_shape[axis]
        x = sliced(call, x, axis, max(-low, 0), extent - max(-high, 0))
    width = tuple((max(low, 0), max(high, 0)) for low, high in pairs)
    if not any(n for pair in width for n in pair):
        return x
    mode = {"reflection": "reflect", "replication": "edge"}.get(call.overload.split("_pad")[0])
    if mode is not None:
        return call.add("nn.pad", x, pad_width=width, pad_mode=mode)
    return call.add("nn.pad", x, pad_width=width, pad_value=float(call.number("value")))
