"""The operator library: programs by name and shape."""

from compiler.ops.convolution import conv2d, depthwise_conv2d
from compiler.ops.elementwise import add, relu
from compiler.ops.error import OperatorError
from compiler.ops.linear import batch_matmul, dense, matmul, matmul_bias_relu, mm_relu
from compiler.ops.normalization import layer_norm, softmax
from compiler.ops.shape import row_sum, transpose
from compiler.ops.spec import OPERATORS, from_spec

__all__ = [
    "OPERATORS",
    "OperatorError",
    "add",
    "batch_matmul",
    "conv2d",
    "dense",
    "depthwise_conv2d",
    "from_spec",
    "layer_norm",
    "matmul",
    "matmul_bias_relu",
    "mm_relu",
    "relu",
    "row_sum",
    "softmax",
    "transpose",
]
