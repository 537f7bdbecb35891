"""Normalizations: softmax, and layer, group, batch and root-mean-square norms."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import check_axis, check_flags, check_shape
from compiler.ops.operator import operator
from compiler.ops.recognizers.rows import normalizations
from compiler.ops.references import normalization as references
from compiler.ops.tensors import normalization as tensors


@operator(tensors.softmax, reference=references.softmax, recognize=normalizations)
def softmax(
    *shape: int, axis: int = -1, lengths: bool = False, dtype: DType = "float32"
) -> PrimFunc:
    """`B = exp(A - max(A)) / sum(...)` along an axis.

    Args:
        shape: The shape of `A`.
        axis: The axis.
        lengths: Whether only the first `lengths[i]` elements along the axis of `A[i, ...]` count,
            at least one. The others are padding, with result 0.
        dtype: The type of `A`.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    check_flags("softmax", lengths=lengths)
    dims = check_shape("softmax", shape)
    inputs = [operand(dims, dtype, "A")]
    if lengths:
        inputs.append(operand(dims[:1], "int32", "lengths"))
    return build("softmax", inputs, tensors.softmax(*inputs, axis=axis))


@operator(tensors.log_softmax, reference=references.log_softmax, recognize=normalizations)
def log_softmax(*shape: int, axis: int = -1, dtype: DType = "float32") -> PrimFunc:
    """`B = A - max(A) - log(sum(exp(A - max(A))))` along an axis.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    x = operand(check_shape("log_softmax", shape), dtype, "A")
    return build("log_softmax", [x], tensors.log_softmax(x, axis=axis))


@operator(tensors.layer_norm, reference=references.layer_norm, recognize=normalizations)
def layer_norm(
    *shape: int,
    axis: int = -1,
    epsilon: float = 1e-5,
    residual: bool = False,
    dtype: DType = "float32",
) -> PrimFunc:
    """`B = (A - mean) / sqrt(variance + epsilon) * gamma + beta` over `axis` and later axes.

    Args:
        shape: The shape of `A`.
        axis: The first of the axes over which mean and variance are taken.
        epsilon: The number added to the variance.
        residual: Whether `residual`, of the shape of `A`, is added to `A` first.
        dtype: The type of all tensors.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    inputs = _row_inputs("layer_norm", shape, axis, dtype, ("gamma", "beta"), residual=residual)
    return build("layer_norm", inputs, tensors.layer_norm(*inputs, axis=axis, epsilon=epsilon))


@operator(tensors.rms_norm, reference=references.rms_norm, recognize=normalizations)
def rms_norm(
    *shape: int,
    axis: int = -1,
    epsilon: float = 1e-5,
    residual: bool = False,
    dtype: DType = "float32",
) -> PrimFunc:
    """`B = A / sqrt(mean of squares + epsilon) * weight` over `axis` and later axes.

    Arguments as `layer_norm` has them.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    inputs = _row_inputs("rms_norm", shape, axis, dtype, ("weight",), residual=residual)
    return build("rms_norm", inputs, tensors.rms_norm(*inputs, axis=axis, epsilon=epsilon))


@operator(tensors.group_norm, reference=references.group_norm)
def group_norm(
    *shape: int,
    groups: int,
    epsilon: float = 1e-5,
    activation: str | None = None,
    dtype: DType = "float32",
) -> PrimFunc:
    """`B = (A - mean) / sqrt(variance + epsilon) * gamma + beta` over groups of channels.

    Args:
        shape: The shape of `A`: batch, channels, and any number of sizes.
        groups: The number of groups, which divides that of channels.
        epsilon: The number added to the variance.
        activation: The function applied last, such as "silu"; see `matmul`.
        dtype: The type of all tensors.

    Raises:
        OperatorError: If an extent, an option or the type is out of range.
    """
    dims = check_shape("group_norm", shape)
    parameters = [operand(dims[1:2], dtype, name) for name in ("gamma", "beta")]
    inputs = [operand(dims, dtype, "A"), *parameters]
    out = tensors.group_norm(*inputs, groups=groups, epsilon=epsilon, activation=activation)
    return build("group_norm", inputs, out)


@operator(tensors.batch_norm, reference=references.batch_norm)
def batch_norm(
    *shape: int, axis: int = 1, epsilon: float = 1e-5, dtype: DType = "float32"
) -> PrimFunc:
    """`B = (A - mean) / sqrt(variance + epsilon) * gamma + beta`, for each channel.

    This is the form of a trained network: the statistics are inputs.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims = check_shape("batch_norm", shape)
    channels = (dims[check_axis("batch_norm", axis, len(dims))],)
    names = ("gamma", "beta", "mean", "variance")
    inputs = [operand(dims, dtype, "A"), *(operand(channels, dtype, name) for name in names)]
    return build("batch_norm", inputs, tensors.batch_norm(*inputs, axis=axis, epsilon=epsilon))


def _row_inputs(
    name: str,
    shape: tuple[int, ...],
    axis: int,
    dtype: DType,
    parameters: tuple[str, ...],
    *,
    residual: bool,
) -> list[te.Tensor]:
    """Return the tensor, the parameters of the elements of a row, and the residual, if any."""
    dims = check_shape(name, shape)
    check_flags(name, residual=residual)
    inner = dims[check_axis(name, axis, len(dims)) :]
    return [
        operand(dims, dtype, "A"),
        *(operand(inner, dtype, parameter) for parameter in parameters),
        *([operand(dims, dtype, "residual")] if residual else []),
    ]
