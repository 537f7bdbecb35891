"""Blocks that compute what an operator of a library computes: matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    Buffer,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Store,
    static_shape,
)

_TYPES = ("float32", "float64")
_ZERO, _ONE = IntImm(0), IntImm(1)


@dataclass(frozen=True)
class LibraryOperator:
    """A block as an operator of a library.

    Attributes:
        left, right: The buffers that it reads, each whole.
        output: The buffer that it writes, whole.
        options: The numbers that follow the arrays in a call.
    """

    left: Buffer
    right: Buffer
    output: Buffer
    options: tuple[int, ...]


def as_product(block: Block) -> LibraryOperator | None:
    """Return a block as a product of two matrices, or of batches of them; None if it is none.

    `C[..., i, j] += A[..., i, k] * B[..., k, j]`, where the last two dimensions of `A` and of `B`
    may be exchanged. The options say by 1 whether those of `A`, and of `B`, are.
    """
    return _matched(block, _product)


def as_convolution(block: Block) -> LibraryOperator | None:
    """Return a block as a convolution of images, without padding; None if it is none.

    `Y[n, f, y, x] += X[n, c, y * s + ky * d, x * t + kx * e] * W[f, rc, ky, kx]`, where the channel
    `c` is `rc` in the group of `f`. The options are the strides `s` and `t`, the dilations `d` and
    `e`, and the number of groups.
    """
    return _matched(block, _convolution)


OPERATORS: Mapping[str, tuple[Callable[[Block], LibraryOperator | None], str]] = {
    "matmul": (as_product, "a product of two matrices, each accessed whole"),
    "conv2d": (as_convolution, "a convolution in NCHW whose images and weights are accessed whole"),
}
"""How a block is recognised for a function, by its name in a library, and this in words."""


def _matched(
    block: Block, match_loads: Callable[[Block, Load, Load, Load], LibraryOperator | None]
) -> LibraryOperator | None:
    """Match a sum of products, its factors in either order."""
    match block.body, block.init:
        case (
            Store(output, indices, BinOp("+", Load() as old, BinOp("*", Load() as a, Load() as b))),
            Store(first, zeroed, IntImm(0) | FloatImm(0.0)),
        ) if (old.buffer, old.indices) == (output, indices) == (first, zeroed):
            if block.alloc_buffers or block.match_buffers or not _are_plain(output, a, b):
                return None
            stored = Load(output, indices)
            return match_loads(block, stored, a, b) or match_loads(block, stored, b, a)
    return None


def _are_plain(output: Buffer, *loads: Load) -> bool:
    buffers = [output, *(load.buffer for load in loads)]
    has_types = output.dtype in _TYPES and len({buffer.dtype for buffer in buffers}) == 1
    has_scopes = all(buffer.scope == "global" and not buffer.strides for buffer in buffers)
    return has_types and has_scopes and output not in buffers[1:]


def _is_whole(block: Block, load: Load) -> bool:
    """Return whether each index is an iterator as long as the dimension, or 0 in one of 1."""
    extents: dict[Expr, Expr] = {iterator.var: iterator.extent for iterator in block.iter_vars}
    extents[_ZERO] = _ONE
    return all(
        index in extents and _equal(extents[index], size)
        for index, size in zip(load.indices, load.buffer.shape, strict=True)
    )


def _equal(left: Expr, right: Expr) -> bool:
    both = isinstance(left, IntImm) and isinstance(right, IntImm)
    return both and left.value == right.value  # type: ignore[union-attr]


# Products


def _product(block: Block, output: Load, left: Load, right: Load) -> LibraryOperator | None:
    """Return the product of two operands; None if they have other roles."""
    kinds = {iterator.var: iterator.kind for iterator in block.iter_vars}
    steps = [var for var, kind in kinds.items() if kind == "reduce"]
    loads = (output, left, right)
    if not all(_is_whole(block, load) for load in loads) or len(steps) != 1:
        return None
    if any(len(load.indices) < 2 for load in loads) or any(
        kind not in ("spatial", "reduce") for kind in kinds.values()
    ):
        return None
    *batch, row, column = output.indices
    if len({*batch, row, column}) != len(kinds) - 1 or steps[0] in output.indices:
        return None
    flags = [
        _is_transposed(load, batch, pair)
        for load, pair in ((left, (row, steps[0])), (right, (steps[0], column)))
    ]
    if flags[0] is None or flags[1] is None:
        return None
    options = (int(flags[0]), int(flags[1]))
    return LibraryOperator(left.buffer, right.buffer, output.buffer, options)


def _is_transposed(load: Load, batch: Sequence[Expr], pair: tuple[Expr, Expr]) -> bool | None:
    """Return whether the last two dimensions are exchanged; None if it is no such operand."""
    *outer, first, second = load.indices
    if list(outer) not in ([], list(batch)):
        return None
    if (first, second) == pair:
        return False
    return True if (second, first) == pair else None


# Convolutions


def _convolution(block: Block, output: Load, data: Load, weight: Load) -> LibraryOperator | None:
    """Return the convolution of images by weights; None if they have other roles."""
    if not _has_roles(block, output, data, weight):
        return None
    try:
        shapes = [static_shape(load.buffer) for load in (data, weight, output)]
    except ValueError:
        return None
    (images, channels, *size), (_, group_channels, *kernel), (out_images, filters, *out) = shapes
    groups = channels // group_channels
    if images != out_images or groups * group_channels != channels or filters % groups:
        return None
    filter_, channel = weight.indices[:2]
    in_group = _channel(filter_, channel, groups, filters // groups, group_channels)
    windows = [
        _window(affine(index), at, step)
        for index, at, step in zip(
            data.indices[2:], output.indices[2:], weight.indices[2:], strict=True
        )
    ]
    strides = [stride for stride, _ in windows]
    dilations = [dilation for _, dilation in windows]
    if not _are_equal(affine(data.indices[1]), affine(in_group)) or min(strides + dilations) < 1:
        return None
    sizes = [
        (n - dilation * (k - 1) - 1) // stride + 1
        for n, k, stride, dilation in zip(size, kernel, strides, dilations, strict=True)
    ]
    if sizes != out:
        return None
    options = (*strides, *dilations, groups)
    return LibraryOperator(data.buffer, weight.buffer, output.buffer, options)


def _has_roles(block: Block, output: Load, data: Load, weight: Load) -> bool:
    """Return whether the iterators are those of a convolution, but for the place in an image."""
    if not len(output.indices) == len(data.indices) == len(weight.indices) == 4:
        return False
    channel, *tap = weight.indices[1:]
    taps = tap if channel == _ZERO else [channel, *tap]
    kinds = {iterator.var: iterator.kind for iterator in block.iter_vars}
    steps = [var for var, kind in kinds.items() if kind == "reduce"]
    spatial = [var for var, kind in kinds.items() if kind == "spatial"]
    return (
        _is_whole(block, output)
        and _is_whole(block, weight)
        and (set(steps), len(steps)) == (set(taps), len(taps))
        and (set(spatial), len(spatial)) == (set(output.indices), 4)
        and len(kinds) == len(steps) + len(spatial)
        and (data.indices[0], weight.indices[0]) == output.indices[:2]
    )


def _channel(filter_: Expr, channel: Expr, groups: int, filters: int, channels: int) -> Expr:
    """Return the channel of an image that meets a channel of a filter.

    Args:
        filter_, channel: The filter, and the channel in it.
        groups: The number of groups.
        filters, channels: Those of a group.
    """
    if groups == 1:
        return channel
    group = filter_ if filters == 1 else BinOp("//", filter_, IntImm(filters))
    return BinOp("+", BinOp("*", group, IntImm(channels)), channel)


def _window(index: Affine, at: Expr, step: Expr) -> tuple[int, int]:
    """Return the stride and the dilation of `at * stride + step * dilation`; 0 for others."""
    has_only_these = index.const == 0 and len(index.terms) == 2
    return (index.coefficient(at), index.coefficient(step)) if has_only_these else (0, 0)


def _are_equal(left: Affine, right: Affine) -> bool:
    return (dict(left.terms), left.const) == (dict(right.terms), right.const)
