"""What is recognised as a convolution of a library; products are in the tests of `call_library`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import ops
from compiler.ir.core.nodes import Block
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.schedule.legality.library_operators import as_convolution, as_product
from compiler.schedule.tree.tree import blocks
from compiler.script import parse

CONVOLUTIONS: Mapping[str, PrimFunc] = {
    "plain": ops.conv2d(2, 4, 6, 5, 3, 3),
    "strides": ops.conv2d(1, 2, 7, 9, 3, (3, 2), (2, 3), dtype="float64"),
    "dilation and groups": ops.conv2d(1, 6, 9, 8, 4, (2, 3), 1, 0, (3, 2), 2),
    "a filter for each channel": ops.depthwise_conv2d(1, 3, 6, 6, 3, 2),
    "one by one": ops.conv2d(1, 4, 3, 3, 8, 1),
}
OTHERS: Mapping[str, PrimFunc] = {
    "channels last": ops.conv2d(1, 4, 6, 6, 3, 3, layout="NHWC"),
    "several filters for each channel": ops.depthwise_conv2d(1, 3, 6, 6, 3, multiplier=2),
    "a product": ops.matmul(4, 4, 4),
    "lower precision": ops.conv2d(1, 4, 6, 6, 3, 3, dtype="float16"),
}
SHIFTED = """
@T.prim_func
def main(X: T.Buffer((1, 2, 6, 6)), W: T.Buffer((3, 2, 3, 3)), Y: T.Buffer((1, 3, 4, 4))):
    for n, f, y, x, c, ky, kx in T.grid(1, 3, 4, 4, 2, 3, 3):
        with T.sblock("Y"):
            vn, vf, vy, vx, vc, vky, vkx = T.axis.remap("SSSSRRR", [n, f, y, x, c, ky, kx])
            with T.init():
                Y[vn, vf, vy, vx] = 0.0
            Y[vn, vf, vy, vx] += X[vn, vc, vy + vky, vx + vkx] * W[vf, vc, vky, vkx]
"""


def convolution_of(func: PrimFunc) -> Block:
    """Return the last block of a program."""
    return [realize.block for realize in blocks(func)][-1]


def convolved(
    images: NDArray[np.float64], filters: NDArray[np.float64], options: tuple[int, ...]
) -> NDArray[np.float64]:
    """Convolve by the definition of a library's options."""
    *steps, groups = options
    (sy, sx), (dy, dx) = steps[:2], steps[2:]
    count, channels, ky, kx = filters.shape
    height, width = images.shape[2] - dy * (ky - 1), images.shape[3] - dx * (kx - 1)
    result = np.zeros((len(images), count, -(-height // sy), -(-width // sx)))
    for f in range(count):
        group = f // (count // groups)
        taken = images[:, group * channels : (group + 1) * channels]
        for (c, y, x), weight in np.ndenumerate(filters[f]):
            rows = slice(y * dy, y * dy + height, sy)
            columns = slice(x * dx, x * dx + width, sx)
            result[:, f] += weight * taken[:, c, rows, columns]
    return result


@pytest.mark.parametrize("func", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_the_options_of_a_convolution_say_what_it_computes(func: PrimFunc) -> None:
    operator = as_convolution(convolution_of(func))
    assert operator is not None
    assert [operator.left, operator.right, operator.output] == list(func.buffers)
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)[operator.output.name]
    images, filters = (inputs[b.name].astype("float64") for b in func.buffers[:2])
    np.testing.assert_allclose(convolved(images, filters, operator.options), expected, rtol=1e-4)


@pytest.mark.parametrize("func", OTHERS.values(), ids=OTHERS)
def test_other_blocks_are_no_convolution(func: PrimFunc) -> None:
    assert as_convolution(convolution_of(func)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("vy + vky", "vy + 2 - vky"),
        ("(1, 2, 6, 6)", "(1, 2, 7, 6)"),
        ("(3, 2, 3, 3)", "(3, 2, 3, 4)"),
        ("vx + vkx", "vx + vky"),
        ("W[vf, vc,", "W[vf, 1 - vc,"),
        ("X[vn, vc,", "X[0, 0,"),
        ("= 0.0", "= 1.0"),
        ("+= X", "+= 2.0 * X"),
    ],
)
def test_no_convolution_is_recognised_that_differs(old: str, new: str) -> None:
    assert as_convolution(convolution_of(parse(SHIFTED))) is not None
    block = convolution_of(parse(SHIFTED.replace(old, new)))
    assert as_convolution(block) is None
    assert as_product(block) is None
