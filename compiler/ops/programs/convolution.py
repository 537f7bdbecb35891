"""Convolutions, padded by a block of their own.

Weights are `[co, ci / groups, *kernel]` where channels come first, and `[*kernel, ci / groups, co]`
where they come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import Numbers, OperatorError, check_extents, spread
from compiler.ops.tensors.epilogue import Epilogue, Types, check_types
from compiler.ops.tensors.windows import (
    Windows,
    arranged,
    channel_axis,
    pad,
    shaped,
    split,
    windows,
)

_SPACE = ("yy", "xx", "zz")
_WINDOW = ("ry", "rx", "rz")


def conv1d(  # noqa: PLR0917
    n: int,
    ci: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    dtype: DType = "float32",
    *,
    layout: str = "NCW",
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve `A[n, ci, w]` with `W[co, ci / groups, kernel]`; arguments as `conv2d` has them.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    window = windows("conv1d", (w,), kernel, stride, padding, dilation)
    types = check_types("conv1d", dtype, out_dtype, acc_dtype)
    made = _Convolution("conv1d", layout, window, types, Epilogue("conv1d", bias, activation))
    return made.build(n, ci, co, groups)


def conv2d(  # noqa: PLR0917
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    dtype: DType = "float32",
    *,
    layout: str = "NCHW",
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve `A[n, ci, h, w]` with `W[co, ci / groups, kernel, kernel]`.

    Args:
        n: The batch size.
        ci: The number of input channels.
        h: The height of the input.
        w: The width of the input.
        co: The number of output channels.
        kernel: The height and width of the kernel: one number for both, or two.
        stride: The step between windows, in elements.
        padding: How many zeros are put on each side; or above and below, left and right; or
            above, left, below, right.
        dilation: The step between the elements of a window.
        groups: How many groups the channels are split into; a group sees only its own.
        dtype: The type of image and weights.
        layout: "NCHW"; or "NHWC", where the weights are `W[kernel, kernel, ci / groups, co]`.
        bias: Whether `bias[co]` is added.
        activation: What follows, as in `matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type that is added up in.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    window = windows("conv2d", (h, w), kernel, stride, padding, dilation)
    types = check_types("conv2d", dtype, out_dtype, acc_dtype)
    made = _Convolution("conv2d", layout, window, types, Epilogue("conv2d", bias, activation))
    return made.build(n, ci, co, groups)


def conv3d(  # noqa: PLR0917
    n: int,
    ci: int,
    d: int,
    h: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    dtype: DType = "float32",
    *,
    layout: str = "NCDHW",
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve `A[n, ci, d, h, w]` with `W[co, ci / groups, *kernel]`; arguments as `conv2d`'s.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    window = windows("conv3d", (d, h, w), kernel, stride, padding, dilation)
    types = check_types("conv3d", dtype, out_dtype, acc_dtype)
    made = _Convolution("conv3d", layout, window, types, Epilogue("conv3d", bias, activation))
    return made.build(n, ci, co, groups)


def depthwise_conv2d(  # noqa: PLR0917
    n: int,
    c: int,
    h: int,
    w: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    dtype: DType = "float32",
    *,
    multiplier: int = 1,
    layout: str = "NCHW",
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve each channel of `A[n, c, h, w]` with its own kernels in `W[c, multiplier, k, k]`.

    Args:
        n: The batch size.
        c: The number of channels.
        h: The height of the input.
        w: The width of the input.
        kernel: The height and width of the kernel.
        stride: The step between windows.
        padding: How many zeros are put on each side.
        dilation: The step between the elements of a window.
        dtype: The type of image and weights.
        multiplier: How many output channels an input channel has.
        layout: "NCHW"; or "NHWC", where the weights are `W[k, k, c, multiplier]`.
        bias: Whether `bias[c * multiplier]` is added.
        activation: What follows, as in `matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type that is added up in.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    operator = "depthwise_conv2d"
    check_extents(operator, n=n, c=c, multiplier=multiplier)
    window = windows(operator, (h, w), kernel, stride, padding, dilation)
    types = check_types(operator, dtype, out_dtype, acc_dtype)
    made = _Convolution(operator, layout, window, types, Epilogue(operator, bias, activation))
    axis, is_first = made.channel_axis()
    a, padded = made.image(n, c)
    kernels = window.kernel
    w_shape = (c, multiplier, *kernels) if is_first else (*kernels, c, multiplier)
    weights = te.placeholder(w_shape, dtype, name="W")
    steps = made.steps()

    def element(*place: te.Value) -> te.Reduction:
        nn, cc, at = split(place, axis)
        channel = cc // multiplier
        which: te.Value | int = cc % multiplier if multiplier > 1 else 0
        image = padded[arranged(axis, nn, channel, window.places(at, steps))]
        weight = weights[(channel, which, *steps) if is_first else (*steps, channel, which)]
        return te.sum(types.product(image, weight), axis=steps)

    return made.finish([a, weights], (n, c * multiplier), element, operator, ("nn", "cc"))


@dataclass(frozen=True, slots=True)
class _Convolution:
    """What is common to convolutions of images in a layout."""

    operator: str
    layout: str
    window: Windows
    types: Types
    epilogue: Epilogue

    def channel_axis(self) -> tuple[int, bool]:
        """Return the axis of the channels, and whether they come before space."""
        axis = channel_axis(self.operator, self.layout, len(self.window.sizes))
        self.epilogue.check(self.types.sum)
        return axis, axis == 1

    def image(self, n: int, channels: int) -> tuple[te.Tensor, te.Tensor]:
        """Return the image, and what it is padded to."""
        axis, _ = self.channel_axis()
        shape = shaped(axis, n, channels, self.window.sizes)
        a = te.placeholder(shape, self.types.given, name="A")
        sides = (shaped(axis, 0, 0, side) for side in (self.window.before, self.window.after))
        return a, pad(a, shape, *sides)

    def steps(self) -> list[te.ReduceAxis]:
        """Return the axes over a window."""
        names = zip(self.window.kernel, _WINDOW, strict=False)
        return [te.reduce_axis((0, extent), name=name) for extent, name in names]

    def finish(
        self,
        inputs: list[te.Tensor],
        extents: tuple[int, int],
        element: te.ElementFunction,
        block: str,
        names: tuple[str, str],
    ) -> PrimFunc:
        """Return the program; `extents` and `names` are those of the batch and the channels."""
        axis, is_first = self.channel_axis()
        shape = shaped(axis, *extents, self.window.count)
        space = _SPACE[: len(self.window.kernel)]
        order = [*names, *space] if is_first else [names[0], *space, names[1]]
        total = te.compute(shape, element, name=block, varargs_names=order)
        results = self.epilogue.apply(total, shape, axis, self.types)
        return build(self.operator, [*inputs, *results])

    def build(self, n: int, ci: int, co: int, groups: int) -> PrimFunc:
        """Return the program of a convolution of all channels of a group with one another."""
        check_extents(self.operator, n=n, ci=ci, co=co, groups=groups)
        if ci % groups or co % groups:
            raise OperatorError(
                f"{self.operator}: {groups} groups do not divide {ci} input and {co} output "
                "channels"
            )
        axis, is_first = self.channel_axis()
        a, padded = self.image(n, ci)
        inner, kernel = ci // groups, self.window.kernel
        w_shape = (co, inner, *kernel) if is_first else (*kernel, inner, co)
        weights = te.placeholder(w_shape, self.types.given, name="W")
        rc, steps = te.reduce_axis((0, inner), name="rc"), self.steps()

        def element(*place: te.Value) -> te.Reduction:
            nn, ff, at = split(place, axis)
            channel: te.Value = rc if groups == 1 else ff // (co // groups) * inner + rc
            image = padded[arranged(axis, nn, channel, self.window.places(at, steps))]
            weight = weights[(ff, rc, *steps) if is_first else (*steps, rc, ff)]
            axes = [rc, *steps] if is_first else [*steps, rc]
            return te.sum(self.types.product(image, weight), axis=axes)

        block = f"{self.operator}_{self.layout.lower()}"
        return self.finish([a, weights], (n, co), element, block, ("nn", "ff"))


def conv2d_transpose(  # noqa: PLR0917
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    dtype: DType = "float32",
    *,
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Spread `A[n, ci, h, w]` by `W[ci, co, kernel, kernel]`: what a convolution's gradient does.

    The image is dilated by the stride and padded, then convolved with the reversed kernel.

    Args:
        n: The batch size.
        ci: The number of input channels.
        h: The height of the input.
        w: The width of the input.
        co: The number of output channels.
        kernel: The height and width of the kernel.
        stride: The step between the windows that are written to.
        padding: How many elements are cut off on each side of the result.
        output_padding: How many are added below and on the right; fewer than the stride.
        dtype: The type of image and weights.
        bias: Whether `bias[co]` is added.
        activation: What follows, as in `matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type that is added up in.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    operator = "conv2d_transpose"
    check_extents(operator, n=n, ci=ci, h=h, w=w, co=co)
    kernels = spread(operator, "kernel", kernel, 2, 1)
    strides = spread(operator, "stride", stride, 2, 1)
    cut = spread(operator, "padding", padding, 2, 0)
    added = spread(operator, "output_padding", output_padding, 2, 0)
    types = check_types(operator, dtype, out_dtype, acc_dtype)
    epilogue = Epilogue(operator, bias, activation)
    epilogue.check(types.sum)
    for name, limits, numbers in (("padding", kernels, cut), ("output_padding", strides, added)):
        if any(number >= limit for number, limit in zip(numbers, limits, strict=True)):
            raise OperatorError(f"{operator}: {name} is {numbers}: expected less than {limits}")
    a = te.placeholder((n, ci, h, w), dtype, name="A")
    weights = te.placeholder((ci, co, *kernels), dtype, name="W")
    dilated, sizes = _dilated(a, (n, ci, h, w), strides)
    before = [k - 1 - p for k, p in zip(kernels, cut, strict=True)]
    after = [b + o for b, o in zip(before, added, strict=True)]
    padded = pad(dilated, (n, ci, *sizes), (0, 0, *before), (0, 0, *after), name="data_pad")
    turned = te.compute(
        (co, ci, *kernels),
        lambda o, i, y, x: weights[i, o, kernels[0] - 1 - y, kernels[1] - 1 - x],
        name="kernel_transform",
    )
    dc = te.reduce_axis((0, ci), name="dc")
    dh, dw = (te.reduce_axis((0, k), name=r) for k, r in zip(kernels, ("dh", "dw"), strict=True))

    def element(b: te.Value, c: te.Value, y: te.Value, x: te.Value) -> te.Reduction:
        product = types.product(padded[b, dc, y + dh, x + dw], turned[c, dc, dh, dw])
        return te.sum(product, axis=[dc, dh, dw])

    extents = zip(sizes, before, after, kernels, strict=True)
    shape = (n, co, *(size + b + e - k + 1 for size, b, e, k in extents))
    total = te.compute(shape, element, name="conv2d_transpose_nchw")
    return build(operator, [a, weights, *epilogue.apply(total, shape, 1, types)])


def _dilated(
    image: te.Tensor, shape: tuple[int, ...], strides: Sequence[int]
) -> tuple[te.Tensor, list[int]]:
    """Return an image with zeros between its elements, and its height and width."""
    n, c, *space = shape
    sizes = [(size - 1) * stride + 1 for size, stride in zip(space, strides, strict=True)]
    if sizes == space:
        return image, sizes

    def element(b: te.Value, i: te.Value, y: te.Value, x: te.Value) -> te.Value:
        steps = [(at, s) for at, s in ((y, strides[0]), (x, strides[1])) if s > 1]
        is_one = te.all(*((at % s) == 0 for at, s in steps))
        return te.if_then_else(is_one, image[b, i, y // strides[0], x // strides[1]], 0)

    return te.compute((n, c, *sizes), element, name="data_dilate"), sizes
