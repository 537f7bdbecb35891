"""Each operator against a reference that is written with NumPy, or loops, alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import ops
from compiler.ir.nodes import PrimFunc
from compiler.ir.oracle import compare, interpret, random_inputs
from compiler.ir.printer import script
from compiler.ir.structural import structural_equal
from compiler.script import parse

Array = NDArray[Any]


def convolution(
    image: Array, weights: Array, *, stride: int, padding: int, dilation: int, groups: int
) -> Array:
    """Convolve by a loop over the places of the window, in float64."""
    n, ci, h, w = image.shape
    co, _, kernel, _ = weights.shape
    margins = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(image.astype(np.float64), margins)
    oh = (h + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    ow = (w + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    output = np.zeros((n, co, oh, ow))
    for group in range(groups):
        inputs = slice(group * ci // groups, (group + 1) * ci // groups)
        outputs = slice(group * co // groups, (group + 1) * co // groups)
        for y in range(kernel):
            for x in range(kernel):
                rows = slice(y * dilation, y * dilation + stride * (oh - 1) + 1, stride)
                columns = slice(x * dilation, x * dilation + stride * (ow - 1) + 1, stride)
                window = padded[:, inputs, rows, columns]
                output[:, outputs] += np.einsum(
                    "nchw,oc->nohw", window, weights[outputs, :, y, x].astype(np.float64)
                )
    return output


def layer_norm(a: Array, gamma: Array, beta: Array) -> Array:
    wide = a.astype(np.float64)
    mean, variance = wide.mean(1, keepdims=True), wide.var(1, keepdims=True)
    return np.asarray((wide - mean) / np.sqrt(variance + 1e-5) * gamma + beta)


def softmax(a: Array) -> Array:
    powers = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def conv2d(numbers: list[int], i: dict[str, Array]) -> Array:
    stride, padding, dilation, groups = (*numbers[6:], *(1, 0, 1, 1)[len(numbers) - 6 :])
    return convolution(
        i["A"], i["W"], stride=stride, padding=padding, dilation=dilation, groups=groups
    )


def depthwise_conv2d(numbers: list[int], i: dict[str, Array]) -> Array:
    stride, padding, dilation = (*numbers[5:], *(1, 0, 1)[len(numbers) - 5 :])
    return convolution(
        i["A"], i["W"], stride=stride, padding=padding, dilation=dilation, groups=numbers[1]
    )


REFERENCES: dict[str, Callable[[list[int], dict[str, Array]], Any]] = {
    "add": lambda _, i: i["A"] + i["B"],
    "batch_matmul": lambda _, i: i["A"] @ i["B"],
    "conv2d": conv2d,
    "dense": lambda _, i: i["A"] @ i["W"].T,
    "depthwise_conv2d": depthwise_conv2d,
    "layer_norm": lambda _, i: layer_norm(i["A"], i["gamma"], i["beta"]),
    "matmul": lambda _, i: i["A"].astype(np.float64) @ i["B"].astype(np.float64),
    "matmul_bias_relu": lambda _, i: np.maximum(i["A"] @ i["B"] + i["bias"], 0),
    "mm_relu": lambda _, i: np.maximum(i["A"] @ i["B"], 0),
    "relu": lambda _, i: np.maximum(i["A"], 0),
    "row_sum": lambda _, i: i["A"].sum(1),
    "softmax": lambda _, i: softmax(i["A"]),
    "transpose": lambda _, i: i["A"].T,
}

SPECS = [
    "matmul:5,6,7",
    "matmul:5,6,7:float64",
    "matmul:5,6,7:int32",
    "batch_matmul:2,3,4,5",
    "mm_relu:4,5,6",
    "matmul_bias_relu:4,5,6",
    "dense:4,5,6",
    "conv2d:2,3,8,8,4,3",
    "conv2d:1,3,8,9,4,3,2,1",
    "conv2d:1,4,9,9,6,3,1,2,2,2",
    "conv2d:1,4,5,5,4,1",
    "conv2d:1,3,12,12,4,7,2,3",
    "depthwise_conv2d:2,3,8,9,3",
    "depthwise_conv2d:1,3,9,9,3,2,1,2",
    "softmax:4,9",
    "layer_norm:4,9",
    "transpose:3,5",
    "row_sum:3,9",
    "relu:2,3,4",
    "add:7",
]


@pytest.mark.parametrize("spec", SPECS)
def test_operators_compute_what_numpy_does(spec: str) -> None:
    func = ops.from_spec(spec)
    inputs = random_inputs(func, seed=2)
    output = func.params[-1]
    name, numbers = spec.split(":")[:2]
    wanted = REFERENCES[name]([int(n) for n in numbers.split(",")], inputs).astype(output.dtype)
    assert compare(func, interpret(func, inputs), {output.name: wanted}) < 1e-5


@pytest.mark.parametrize("spec", SPECS)
def test_operators_print_and_parse(spec: str) -> None:
    func = ops.from_spec(spec)
    assert structural_equal(parse(script(func)), func)
    assert func.name == spec.split(":", maxsplit=1)[0]


def test_every_operator_has_a_reference_here() -> None:
    assert {spec.split(":")[0] for spec in SPECS} == REFERENCES.keys() == ops.OPERATORS.keys()


def test_operators_can_be_called_by_name() -> None:
    func: PrimFunc = ops.conv2d(1, 64, 56, 56, 64, kernel=3, stride=1, padding=1)
    assert structural_equal(func, ops.from_spec("conv2d:1,64,56,56,64,3,1,1"))


def test_a_convolution_without_padding_has_no_pad_block() -> None:
    assert "pad_temp" not in script(ops.conv2d(1, 3, 8, 8, 4, 3))
    assert "pad_temp" in script(ops.conv2d(1, 3, 8, 8, 4, 3, padding=1))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("matmull:1,2,3", "unknown operator 'matmull': did you mean matmul"),
        ("", "unknown operator ''; known operators: add, "),
        ("matmul", "matmul takes 3 numbers, got 0: expected matmul:m,n,k[:dtype]"),
        ("matmul:1,2", "matmul takes 3 numbers, got 2"),
        ("matmul:1,2,3,4", "matmul takes 3 numbers, got 4"),
        ("matmul:1,2,x", "'x' is no integer"),
        ("matmul:1,2,", "'' is no integer"),
        ("matmul:1,2,3.0", "'3.0' is no integer"),
        ("matmul:1,2,99999999999999999999", "is no integer"),
        ("matmul:1,2,3:float33", "type 'float33' is not supported: expected one of float16"),
        ("matmul:1,2,3:bool", "type 'bool' is not supported"),
        ("matmul:1,2,3:float32:x", "expected matmul:m,n,k[:dtype]"),
        ("matmul:0,2,3", "matmul: m is 0: expected 1 to 2147483647"),
        ("matmul:1,-2,3", "matmul: n is -2"),
        ("matmul:1,2,2147483648", "matmul: k is 2147483648"),
        ("matmul:100000,100000,3", "matmul: buffer C has 40000000000 bytes"),
        ("softmax:4,4:int32", "type 'int32' is not supported"),
        ("relu:", "relu takes 1 to 8 numbers, got 0: expected relu:d0[,d1,...][:dtype]"),
        ("conv2d:1,3,2,2,4,3", "a window of 3 elements does not fit into a height of 2"),
        ("conv2d:1,3,8,8,4,3,0", "conv2d: stride is 0"),
        ("conv2d:1,3,8,8,4,3,1,-1", "conv2d: padding is -1"),
        ("conv2d:1,3,8,8,4,3,1,1,1,2", "2 groups do not divide 3 input and 4 output channels"),
        ("x" * 2000, "an operator of 2000 characters"),
    ],
)
def test_mistakes_are_named(spec: str, message: str) -> None:
    with pytest.raises(ops.OperatorError) as caught:
        ops.from_spec(spec)
    assert message in str(caught.value)


def test_numbers_must_be_integers() -> None:
    with pytest.raises(ops.OperatorError, match=r"matmul: m is 2\.5: expected an integer"):
        ops.matmul(2.5, 3, 4)  # type: ignore[arg-type]
