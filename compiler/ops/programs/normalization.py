"""Normalizations: softmax, and layer, batch and root-mean-square norms."""

from __future__ import annotations

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import check_axis, check_shape
from compiler.ops.operator import operator
from compiler.ops.recognizers.rows import normalizations
from compiler.ops.references import normalization as references
from compiler.ops.tensors import normalization as tensors


@operator(tensors.softmax, reference=references.softmax, recognize=normalizations)
def softmax(*shape: int, axis: int = -1, dtype: DType = "float32") -> PrimFunc:
    """`B = exp(A - max(A)) / sum(...)` along an axis.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    x = operand(check_shape("softmax", shape), dtype, "A")
    return build("softmax", [x], tensors.softmax(x, axis=axis))


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
    *shape: int, axis: int = -1, epsilon: float = 1e-5, dtype: DType = "float32"
) -> PrimFunc:
    """`B = (A - mean) / sqrt(variance + epsilon) * gamma + beta` over `axis` and later axes.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims = check_shape("layer_norm", shape)
    inner = dims[check_axis("layer_norm", axis, len(dims)) :]
    parameters = [operand(inner, dtype, name) for name in ("gamma", "beta")]
    inputs = [operand(dims, dtype, "A"), *parameters]
    return build("layer_norm", inputs, tensors.layer_norm(*inputs, axis=axis, epsilon=epsilon))


@operator(tensors.rms_norm, reference=references.rms_norm, recognize=normalizations)
def rms_norm(
    *shape: int, axis: int = -1, epsilon: float = 1e-5, dtype: DType = "float32"
) -> PrimFunc:
    """`B = A / sqrt(mean of squares + epsilon) * weight` over `axis` and later axes.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims = check_shape("rms_norm", shape)
    inner = dims[check_axis("rms_norm", axis, len(dims)) :]
    parameters = [operand(inner, dtype, name) for name in ("weight",)]
    inputs = [operand(dims, dtype, "A"), *parameters]
    return build("rms_norm", inputs, tensors.rms_norm(*inputs, axis=axis, epsilon=epsilon))


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
