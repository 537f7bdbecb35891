"""What each operator computes, by NumPy: for results to be compared with, and to read.

Inputs are widened to float64 or int64 before, so that a reference is better than what it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from compiler.ir.interpret.oracle.vectorized_eval import wide
from compiler.ops.references.elementwise import (
    ACTIVATIONS,
    BINARY,
    UNARY,
    gelu,
    gelu_tanh,
    leaky_relu,
)
from compiler.ops.spec import OPERATORS, Spec, check_name, parse_spec

Array: TypeAlias = NDArray[Any]
Options: TypeAlias = SimpleNamespace
"""The arguments of an operator by their names, the defaults among them."""


def reference(operator: str, *args: Any, **options: Any) -> Callable[..., Array]:
    """Return a function that computes what an operator computes.

        lw.ops.reference("matmul:4,5,6,activation=relu")(a, b)
        lw.ops.reference("matmul", 4, 5, 6, activation="relu")(a, b)

    Args:
        operator: The name of an operator with its arguments after it, or a line of text.
        args: The arguments.
        options: More of them, by their names.

    Returns:
        A function of the inputs, in the order of the program's parameters; it returns the output.

    Raises:
        OperatorError: If there is no such operator, or it does not take these arguments.
    """
    if args or options:
        check_name(operator)
        spec = Spec(operator, args, options)
    else:
        spec = parse_spec(operator)
    output = spec.build().buffers[-1]
    bound = SimpleNamespace(**spec.bound())
    function = REFERENCES[spec.name]

    def computed(*inputs: Array) -> Array:
        widened = (array.astype(wide(str(array.dtype))) for array in inputs)  # type: ignore[arg-type]
        with np.errstate(all="ignore"):
            return np.asarray(function(bound, *widened)).astype(output.dtype)

    return computed


def _each(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda _, *arrays: function(*arrays)


def _gelu_of(p: Options, x: Array) -> Array:
    return gelu(x) if p.approximate == "none" else gelu_tanh(x)


# Products


def _after(p: Options, total: Array, bias: Sequence[Array], axis: int) -> Array:
    """Return a sum of products with its bias and its activation."""
    if bias:
        shape = [1] * total.ndim
        shape[axis] = -1
        total = total + bias[0].reshape(shape)
    return ACTIVATIONS[getattr(p, "activation", None)](total)


def _matmul(p: Options, a: Array, b: Array, *bias: Array) -> Array:
    left = a.swapaxes(-1, -2) if getattr(p, "transpose_a", False) else a
    right = b.swapaxes(-1, -2) if getattr(p, "transpose_b", False) else b
    return _after(p, left @ right, bias, -1)


def _dense(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    return _after(p, a @ w.T, bias, -1)


# Convolutions and pools, with the channels first


def _numbers(given: Any, count: int) -> tuple[int, ...]:
    return tuple(given) if isinstance(given, Sequence) else (given,) * count


def _windows(p: Options, image: Array, kernel: Sequence[int], value: float = 0) -> Array:
    """Return the windows of an image: `[n, c, *places, *kernel]`."""
    ndim = image.ndim - 2
    padding = _numbers(p.padding, ndim)
    sides = padding if len(padding) == 2 * ndim else padding * 2
    stride = _numbers(kernel if p.stride is None else p.stride, ndim)
    dilation = _numbers(getattr(p, "dilation", 1), ndim)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    after = list(sides[ndim:])
    if getattr(p, "ceil_mode", False):
        for axis, size in enumerate(image.shape[2:]):
            left = size + sides[axis] + after[axis] - reach[axis]
            count = -(-left // stride[axis])
            if count * stride[axis] < size + sides[axis]:
                after[axis] += max(0, count * stride[axis] - left)
    margins = [(0, 0), (0, 0), *zip(sides[:ndim], after, strict=True)]
    padded = np.pad(image, margins, constant_values=value)
    found = sliding_window_view(padded, reach, axis=tuple(range(2, image.ndim)))
    steps = (*(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    return np.asarray(found[(slice(None), slice(None), *steps)])


def _first(p: Options, array: Array) -> Array:
    return array if p.layout.startswith("NC") else np.moveaxis(array, -1, 1)


def _last(p: Options, array: Array) -> Array:
    return array if p.layout.startswith("NC") else np.moveaxis(array, 1, -1)


def _conv(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    """Convolve by a matrix product over the windows of each group, copied out."""
    if not p.layout.startswith("NC"):
        w = np.moveaxis(w, (-1, -2), (0, 1))
    co, inner, *kernel = w.shape
    ndim = len(kernel)
    found = _windows(p, _first(p, a), kernel)
    n, _, *places = found.shape[:-ndim]
    windows = np.moveaxis(found, range(-ndim, 0), range(2, 2 + ndim))
    columns = windows.reshape(n, p.groups, inner * math.prod(kernel), math.prod(places))
    total = w.reshape(p.groups, co // p.groups, -1) @ columns
    return _last(p, _after(p, total.reshape(n, co, *places), bias, 1))


def _winograd(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    fixed = SimpleNamespace(**vars(p), layout="NCHW", stride=1, dilation=1, groups=1)
    return _conv(fixed, a, w, *bias)


def _conv_blocked(p: Options, a: Array, w: Array) -> Array:
    """Convolve with all channels in one dimension."""
    fixed = SimpleNamespace(**vars(p), layout="NCHW", groups=1)
    image = a.transpose(0, 1, 4, 2, 3).reshape(p.n, p.ci, p.h, p.w)
    weights = w.transpose(0, 5, 1, 4, 2, 3).reshape(p.co, p.ci, *w.shape[2:4])
    out = _conv(fixed, image, weights)
    blocks = out.reshape(p.n, p.co // p.block_co, p.block_co, *out.shape[2:])
    return np.moveaxis(blocks, 2, -1)


def _depthwise(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    if p.layout == "NHWC":
        w = np.moveaxis(w, (2, 3), (0, 1))
    total = np.einsum("nchwyx,cmyx->ncmhw", _windows(p, _first(p, a), w.shape[2:]), w)
    n, c, m, h, width = total.shape
    return _last(p, _after(p, total.reshape(n, c * m, h, width), bias, 1))


def _conv_transpose(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    """Add up what each element of the image spreads."""
    (n, _, h, width), (_, co, kh, kw) = a.shape, w.shape
    stride, cut = _numbers(p.stride, 2), _numbers(p.padding, 2)
    more = _numbers(p.output_padding, 2)
    whole = np.zeros(
        (n, co, (h - 1) * stride[0] + kh + more[0], (width - 1) * stride[1] + kw + more[1]),
        np.result_type(a, w),
    )
    for y in range(kh):
        for x in range(kw):
            rows = slice(y, y + (h - 1) * stride[0] + 1, stride[0])
            columns = slice(x, x + (width - 1) * stride[1] + 1, stride[1])
            whole[:, :, rows, columns] += np.einsum("nihw,io->nohw", a, w[:, :, y, x])
    rows, columns = (slice(c, size - c) for c, size in zip(cut, whole.shape[2:], strict=True))
    return _after(p, whole[:, :, rows, columns], bias, 1)


def _max_pool(p: Options, a: Array) -> Array:
    least = -np.inf if a.dtype.kind == "f" else np.iinfo(a.dtype).min
    found = _windows(p, _first(p, a), _numbers(p.kernel, 2), least)
    return _last(p, found.max(axis=(-2, -1)))


def _avg_pool(p: Options, a: Array) -> Array:
    image, kernel = _first(p, a), _numbers(p.kernel, 2)
    ones = np.ones_like(image)
    if p.count_include_pad:
        padding = _numbers(p.padding, 2)
        sides = padding if len(padding) == 4 else padding * 2
        margins = [(0, 0), (0, 0), (sides[0], sides[2]), (sides[1], sides[3])]
        # What lies beyond the padding, where the last window may reach, does not count.
        ones = np.pad(ones, margins, constant_values=1)
        stride = kernel if p.stride is None else p.stride
        extra = _windows(p, image, kernel).shape
        q = SimpleNamespace(padding=0, stride=stride, ceil_mode=p.ceil_mode)
        counts = _windows(q, ones, kernel).sum(axis=(-2, -1))[:, :, : extra[2], : extra[3]]
    else:
        counts = _windows(p, ones, kernel).sum(axis=(-2, -1))
    return _last(p, _windows(p, image, kernel).sum(axis=(-2, -1)) / counts)


# Normalizations


def _softmax(p: Options, a: Array) -> Array:
    powers = np.exp(a - a.max(p.axis, keepdims=True))
    return np.asarray(powers / powers.sum(p.axis, keepdims=True))


def _log_softmax(p: Options, a: Array) -> Array:
    shifted = a - a.max(p.axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(p.axis, keepdims=True)))


def _inner(p: Options, a: Array) -> tuple[int, ...]:
    return tuple(range(p.axis % a.ndim, a.ndim))


def _layer_norm(p: Options, a: Array, gamma: Array, beta: Array) -> Array:
    axes = _inner(p, a)
    centred = a - a.mean(axes, keepdims=True)
    return np.asarray(centred / np.sqrt(a.var(axes, keepdims=True) + p.epsilon) * gamma + beta)


def _rms_norm(p: Options, a: Array, weight: Array) -> Array:
    squares = (a * a).mean(_inner(p, a), keepdims=True)
    return np.asarray(a / np.sqrt(squares + p.epsilon) * weight)


def _batch_norm(p: Options, a: Array, *channels: Array) -> Array:
    shape = [1] * a.ndim
    shape[p.axis] = -1
    gamma, beta, mean, variance = (c.reshape(shape) for c in channels)
    return np.asarray((a - mean) / np.sqrt(variance + p.epsilon) * gamma + beta)


def _attention(p: Options, q: Array, k: Array, v: Array) -> Array:
    scale = 1 / math.sqrt(p.d) if p.scale is None else p.scale
    scores = q @ k.swapaxes(-1, -2) * scale
    if p.causal:
        scores = np.where(np.tri(p.m, p.n, dtype=bool), scores, -np.inf)
    return _softmax(SimpleNamespace(axis=-1), scores) @ v


# Reductions


def _axis(p: Options) -> int | tuple[int, ...] | None:
    return tuple(p.axis) if isinstance(p.axis, Sequence) else p.axis


def _reduction(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda p, a: function(a, axis=_axis(p), keepdims=p.keepdims)


def _arg_extreme(function: Callable[..., Array]) -> Callable[..., Array]:
    def found(p: Options, a: Array) -> Array:
        axis = _axis(p)
        axes = range(a.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        which = sorted(each % a.ndim for each in axes)
        rest = [each for each in range(a.ndim) if each not in which]
        shape = [a.shape[each] for each in rest]
        flat = function(a.transpose(*rest, *which).reshape(*shape, -1), axis=-1)
        kept = [1 if each in which else a.shape[each] for each in range(a.ndim)]
        return flat.reshape(kept) if p.keepdims else flat

    return found


# Moving and finding elements


def _concat(p: Options, *parts: Array) -> Array:
    return np.concatenate(parts, axis=p.axis)


def _pad(p: Options, a: Array) -> Array:
    before = _numbers(p.pad_before, a.ndim)
    after = before if p.pad_after is None else _numbers(p.pad_after, a.ndim)
    return np.pad(a, list(zip(before, after, strict=True)), constant_values=p.pad_value)


def _take(p: Options, a: Array, indices: Array) -> Array:
    return np.take(a, indices, axis=p.axis, mode="clip")


def _gather(p: Options, a: Array, indices: Array) -> Array:
    axis = p.axis % a.ndim
    clipped = np.clip(indices, 0, a.shape[axis] - 1)
    part = a[tuple(slice(None if d == axis else n) for d, n in enumerate(indices.shape))]
    return np.take_along_axis(part, clipped, axis)


def _embedding(_: Options, table: Array, indices: Array) -> Array:
    return np.take(table, indices, axis=0, mode="clip")


REFERENCES: dict[str, Callable[..., Array]] = {
    **{name: _each(function) for name, function in (UNARY | BINARY).items()},
    "argmax": _arg_extreme(np.argmax),
    "argmin": _arg_extreme(np.argmin),
    "attention": _attention,
    "avg_pool2d": _avg_pool,
    "batch_matmul": _matmul,
    "batch_norm": _batch_norm,
    "cast": lambda _, a: a,
    "clip": lambda p, a: np.clip(a, p.a_min, p.a_max),
    "concat": _concat,
    "conv1d": _conv,
    "conv2d": _conv,
    "conv2d_nchwc": _conv_blocked,
    "conv2d_transpose": _conv_transpose,
    "conv2d_winograd": _winograd,
    "conv3d": _conv,
    "cumsum": lambda p, a: np.cumsum(a, axis=p.axis),
    "dense": _dense,
    "depthwise_conv2d": _depthwise,
    "embedding": _embedding,
    "gather": _gather,
    "gelu": _gelu_of,
    "layer_norm": _layer_norm,
    "leaky_relu": lambda p, a: leaky_relu(a, p.negative_slope),
    "linear_relu": lambda _, x, w: np.maximum(x @ w.T, 0),
    "log_softmax": _log_softmax,
    "matmul": _matmul,
    "matmul_bias_relu": lambda _, a, b, bias: np.maximum(a @ b + bias, 0),
    "max": _reduction(np.max),
    "max_pool2d": _max_pool,
    "mean": _reduction(np.mean),
    "min": _reduction(np.min),
    "mm_relu": lambda _, a, b: np.maximum(a @ b, 0),
    "pad": _pad,
    "prod": _reduction(np.prod),
    "rms_norm": _rms_norm,
    "row_sum": lambda _, a: a.sum(1),
    "softmax": _softmax,
    "sum": _reduction(np.sum),
    "take": _take,
    "transpose": lambda p, a: a.transpose(p.axes),
}
assert REFERENCES.keys() == OPERATORS.keys()
