"""Convolutions of images; the padding is a separate block.

Weights are `[co, ci / groups, *kernel]` if channels come first, and `[*kernel, ci / groups, co]`
if they come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ops.error import Numbers, OperatorError, check_extents
from compiler.ops.tensors.epilogue import Types, apply_epilogue, check_types
from compiler.ops.tensors.operands import check_dims, check_factors, dims_of
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


def conv1d(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    layout: str = "NCW",
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Convolve `data[n, ci, w]` with `weight[co, ci / groups, kernel]`; options as `conv2d`'s.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    types = check_types("conv1d", data.dtype, out_dtype, acc_dtype)
    convolution = _Convolution.of("conv1d", data, weight, layout, 1, (stride, padding, dilation))
    total = convolution.convolved(types, groups)
    return apply_epilogue("conv1d", total, convolution.axis, types, bias, activation)


def conv2d(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    layout: str = "NCHW",
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Convolve `data[n, ci, h, w]` with `weight[co, ci / groups, kernel, kernel]`.

    Args:
        data: The image.
        weight: The kernels.
        bias: `[co]`, added to each channel.
        stride: The step between windows, in elements.
        padding: The number of zeros on each side; see `ops.conv2d`.
        dilation: The step between the elements of a window.
        groups: The number of groups of channels; a group sees only its own.
        layout: "NCHW", or "NHWC".
        activation: The function applied last; see `ops.matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type of the sum.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    types = check_types("conv2d", data.dtype, out_dtype, acc_dtype)
    convolution = _Convolution.of("conv2d", data, weight, layout, 2, (stride, padding, dilation))
    total = convolution.convolved(types, groups)
    return apply_epilogue("conv2d", total, convolution.axis, types, bias, activation)


def conv3d(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    layout: str = "NCDHW",
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Convolve `data[n, ci, d, h, w]` with `weight[co, ci / groups, *kernel]`.

    Options as `conv2d` has them.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    types = check_types("conv3d", data.dtype, out_dtype, acc_dtype)
    convolution = _Convolution.of("conv3d", data, weight, layout, 3, (stride, padding, dilation))
    total = convolution.convolved(types, groups)
    return apply_epilogue("conv3d", total, convolution.axis, types, bias, activation)


def depthwise_conv2d(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    layout: str = "NCHW",
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Convolve each channel of `data[n, c, h, w]` with its `weight[c, multiplier, k, k]`.

    In "NHWC", the weights are `[k, k, c, multiplier]`. Options as `conv2d` has them.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "depthwise_conv2d"
    types = check_types(operator, data.dtype, out_dtype, acc_dtype)
    convolution = _Convolution.of(operator, data, weight, layout, 2, (stride, padding, dilation))
    total = convolution.convolved_by_channel(types)
    return apply_epilogue(operator, total, convolution.axis, types, bias, activation)


@dataclass(frozen=True, slots=True)
class _Convolution:
    """Images and kernels in a layout, and the windows over the images.

    Attributes:
        operator: The name for errors.
        layout: The order of the dimensions, such as "NCHW".
        data: The images.
        weight: The kernels.
        batch: The number of images.
        channels: The number of their channels.
        kernels: The two non-spatial dimensions of the weights, in their order.
        window: The windows.
    """

    operator: str
    layout: str
    data: te.Tensor
    weight: te.Tensor
    batch: int
    channels: int
    kernels: tuple[int, int]
    window: Windows

    @classmethod
    def of(  # noqa: PLR0917
        cls,
        operator: str,
        data: te.Tensor,
        weight: te.Tensor,
        layout: str,
        ndim: int,
        steps: tuple[Numbers, Numbers, Numbers],
    ) -> _Convolution:
        """Return a convolution over `ndim` dimensions, by stride, padding and dilation."""
        axis = channel_axis(operator, layout, ndim)
        check_factors(operator, data, weight)
        dims, w_dims = dims_of(operator, data, ndim + 2), dims_of(operator, weight, ndim + 2)
        is_first = axis == 1
        space = dims[2:] if is_first else dims[1:-1]
        kernel = w_dims[2:] if is_first else w_dims[:-2]
        others = w_dims[:2] if is_first else w_dims[-2:]
        window = windows(operator, space, kernel, *steps)
        kernels = (others[0], others[1])
        return cls(operator, layout, data, weight, dims[0], dims[axis], kernels, window)

    @property
    def axis(self) -> int:
        """Return the axis of the channels."""
        return self.layout.index("C")

    @property
    def is_first(self) -> bool:
        """Return whether the channels come before space."""
        return self.axis == 1

    def convolved(self, types: Types, groups: int) -> te.Tensor:
        """Return the sums over all channels of a group."""
        check_extents(self.operator, groups=groups)
        co, inner = self.kernels if self.is_first else self.kernels[::-1]
        if inner * groups != self.channels or co % groups:
            raise OperatorError(
                f"{self.operator}: weights for {inner} channels and {co} results do not fit "
                f"{self.channels} channels in {groups} group(s)"
            )
        padded = self._padded()
        rc, steps = te.reduce_axis((0, inner), name="rc"), self._window_axes()

        def element(*index: te.Value) -> te.Reduction:
            nn, ff, at = split(index, self.axis)
            channel: te.Value = rc if groups == 1 else ff // (co // groups) * inner + rc
            inside = self.window.places(at, steps)
            image = padded[arranged(self.axis, nn, channel, inside)]
            weight = self.weight[(ff, rc, *steps) if self.is_first else (*steps, rc, ff)]
            axes = [rc, *steps] if self.is_first else [*steps, rc]
            return te.sum(types.product(image, weight), axis=axes)

        return self._result(co, element, f"{self.operator}_{self.layout.lower()}", ("nn", "ff"))

    def convolved_by_channel(self, types: Types) -> te.Tensor:
        """Return the sums over a window in each channel alone."""
        multiplier, kernel = self.kernels[1], self.window.kernel
        expected = (self.channels, multiplier)
        shape = (*expected, *kernel) if self.is_first else (*kernel, *expected)
        check_dims(self.operator, self.weight, shape)
        padded, steps = self._padded(), self._window_axes()

        def element(*index: te.Value) -> te.Reduction:
            nn, cc, at = split(index, self.axis)
            channel = cc // multiplier
            which: te.Value | int = cc % multiplier if multiplier > 1 else 0
            image = padded[arranged(self.axis, nn, channel, self.window.places(at, steps))]
            weight = (channel, which, *steps) if self.is_first else (*steps, channel, which)
            return te.sum(types.product(image, self.weight[weight]), axis=steps)

        return self._result(self.channels * multiplier, element, self.operator, ("nn", "cc"))

    def _padded(self) -> te.Tensor:
        shape = shaped(self.axis, self.batch, self.channels, self.window.sizes)
        sides = (shaped(self.axis, 0, 0, side) for side in (self.window.before, self.window.after))
        return pad(self.data, shape, *sides)

    def _window_axes(self) -> list[te.ReduceAxis]:
        names = zip(self.window.kernel, _WINDOW, strict=False)
        return [te.reduce_axis((0, extent), name=name) for extent, name in names]

    def _result(
        self, channels: int, element: te.ElementFunction, block: str, names: Sequence[str]
    ) -> te.Tensor:
        """Return the result; `names` are those of the indices of batch and channels."""
        shape = shaped(self.axis, self.batch, channels, self.window.count)
        space = _SPACE[: len(self.window.kernel)]
        order = [*names, *space] if self.is_first else [names[0], *space, names[1]]
        return te.compute(shape, element, name=block, varargs_names=order)
