"""The operator library: programs by name and shape."""

from compiler.keywords import suggests_keywords
from compiler.ops.error import OperatorError
from compiler.ops.programs.attention import attention
from compiler.ops.programs.blocked_convolution import conv2d_nchwc
from compiler.ops.programs.convolution import (
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    depthwise_conv2d,
)
from compiler.ops.programs.elementwise import (
    abs,
    add,
    cast,
    ceil,
    clip,
    cos,
    divide,
    erf,
    exp,
    floor,
    gelu,
    leaky_relu,
    log,
    maximum,
    minimum,
    multiply,
    negative,
    power,
    relu,
    round,
    rsqrt,
    sigmoid,
    silu,
    sin,
    sqrt,
    subtract,
    tan,
    tanh,
    trunc,
)
from compiler.ops.programs.indexing import cumsum, embedding, gather, take
from compiler.ops.programs.linear import (
    batch_matmul,
    dense,
    linear_relu,
    matmul,
    matmul_bias_relu,
    mm_relu,
)
from compiler.ops.programs.normalization import (
    batch_norm,
    layer_norm,
    log_softmax,
    rms_norm,
    softmax,
)
from compiler.ops.programs.pooling import avg_pool2d, max_pool2d
from compiler.ops.programs.reductions import argmax, argmin, max, mean, min, prod, row_sum, sum
from compiler.ops.programs.shape import concat, pad, transpose
from compiler.ops.programs.winograd import conv2d_winograd
from compiler.ops.reference import reference
from compiler.ops.spec import OPERATORS, from_spec

__all__ = [
    "OPERATORS",
    "OperatorError",
    "abs",
    "add",
    "argmax",
    "argmin",
    "attention",
    "avg_pool2d",
    "batch_matmul",
    "batch_norm",
    "cast",
    "ceil",
    "clip",
    "concat",
    "conv1d",
    "conv2d",
    "conv2d_nchwc",
    "conv2d_transpose",
    "conv2d_winograd",
    "conv3d",
    "cos",
    "cumsum",
    "dense",
    "depthwise_conv2d",
    "divide",
    "embedding",
    "erf",
    "exp",
    "floor",
    "from_spec",
    "gather",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "linear_relu",
    "log",
    "log_softmax",
    "matmul",
    "matmul_bias_relu",
    "max",
    "max_pool2d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mm_relu",
    "multiply",
    "negative",
    "pad",
    "power",
    "prod",
    "reference",
    "relu",
    "rms_norm",
    "round",
    "row_sum",
    "rsqrt",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "sqrt",
    "subtract",
    "sum",
    "take",
    "tan",
    "tanh",
    "transpose",
    "trunc",
]

for _name in OPERATORS:
    globals()[_name] = suggests_keywords(globals()[_name])


def __dir__() -> list[str]:
    """Return the operators, and what makes them from text."""
    return list(__all__)
