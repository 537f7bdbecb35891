import math

import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import TensorType
from compiler.graph.operator import find_operator
from tests.unit.compiler.graph.operators.checking import Case, check, numbers

ALL_FLOATS = ["float16", "bfloat16", "float32", "float64"]
FUNCTIONS = [
    *(
        [
            "abs",
            "atan",
            "ceil",
            "cos",
            "cosh",
            "erf",
            "exp",
            "floor",
            "negative",
            "round",
            "sigmoid",
            "sign",
            "sin",
            "sinh",
            "tan",
        ]
    ),
    *(["asinh", "tanh", "trunc", "isnan", "isinf"]),
    *(
        [
            "nn.relu",
            "nn.silu",
            "nn.gelu",
            "nn.gelu_tanh",
            "nn.leakyrelu",
            "nn.elu",
            "nn.celu",
            "nn.selu",
        ]
    ),
    *(["nn.hard_sigmoid", "nn.hard_swish", "nn.softplus", "nn.mish", "nn.softsign"]),
    *(["nn.thresholded_relu", "nn.shrink"]),
]


@pytest.mark.parametrize("dtype", ALL_FLOATS)
def test_functions_of_one_tensor(dtype: str) -> None:
    anything = numbers(3, 5, dtype=dtype)
    positive, small = numbers(7, dtype=dtype, low=1), (anything / 4).astype(dtype)
    check(
        *(Case(op, [anything]) for op in FUNCTIONS),
        *(Case(op, [positive]) for op in ("log", "sqrt", "rsqrt", "reciprocal", "acosh")),
        *(Case(op, [small]) for op in ("acos", "asin", "atanh")),
        tolerance=4,
    )


def test_attributes_of_activations() -> None:
    x = numbers(2, 9)
    check(
        Case("nn.elu", [x], {"alpha": 2.0}),
        Case("nn.celu", [x], {"alpha": 0.5}),
        Case("nn.selu", [x], {"alpha": 2.0, "gamma": 3.0}),
        Case("nn.hard_sigmoid", [x], {"alpha": 0.5, "beta": 0.6}),
        Case("nn.leakyrelu", [x], {"alpha": 0.3}),
        Case("nn.thresholded_relu", [x], {"alpha": 2.0}),
        Case("nn.shrink", [x], {"lambd": 1.5, "bias": 1.0}),
        Case("nn.prelu", [x, numbers(9, seed=1)]),
        Case("clip", [x], {"min": -1.0}),
        Case("clip", [x], {"min": 2.0, "max": 1.0}),
        tolerance=2,
    )


@pytest.mark.parametrize("dtype", [*ALL_FLOATS, "int8", "uint8", "int32", "int64", "uint64"])
def test_arithmetic_of_broadcast_operands(dtype: str) -> None:
    a, b = numbers(2, 1, 5, dtype=dtype), numbers(3, 1, dtype=dtype, seed=1)
    scalar = numbers(dtype=dtype, seed=2)
    ops = [
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
    ]
    divisor = np.where(b == 0, 1, b).astype(dtype)
    exact = ["divide", "mod", "fmod"] if "int" in dtype else ["divide"]
    check(
        *(Case(op, operands) for op in ops for operands in ([a, b], [scalar, a])),
        *(Case(op, [a, divisor]) for op in exact),
    )


def test_remainders_have_the_sign_of_either_operand() -> None:
    a, b = np.array([5.3, -5.3, 5.3, -5.3, 4, 0]), np.array([2.0, 2, -2, -2, -2, 3])
    floored, truncated = check(Case("mod", [a, b]), Case("fmod", [a, b]))
    np.testing.assert_allclose(floored[0], [1.3, 0.7, -0.7, -1.3, 0, 0])
    np.testing.assert_allclose(truncated[0], [1.3, -1.3, 1.3, -1.3, 0, 0])


def test_quotients_of_integers_are_rounded_towards_zero() -> None:
    a, b = np.array([7, -7, 7, -7, -(2**31)], np.int32), np.array([2, 2, -2, 0, -1], np.int32)
    [[quotient]] = check(Case("divide", [a, b]))
    np.testing.assert_array_equal(quotient[:4], [3, -3, -3, 0])


def test_powers_of_mixed_types() -> None:
    x, whole = numbers(6, low=0.5), np.array([3, 0, -2, 5, 1, 2], np.int64)
    check(
        Case("power", [x, numbers(6, seed=3)]),
        Case("power", [x, whole]),
        Case("power", [x.astype(np.float16), numbers(dtype="float64")]),
        Case("power", [whole, np.array([2.0, 3, 2, 0.5, 7, 1], np.float32)]),
        Case("power", [whole.astype(np.int32), np.array([5, 4, -3, 13, -2, 7], np.int64)]),
        Case("power", [whole.astype(np.uint8), np.array([5, 4, 3, 13, 2, 7], np.uint8)]),
    )


def test_integer_powers_are_exact() -> None:
    [[powers]] = check(Case("power", [np.array([3, -1, 1, -1]), np.array([39, 101, -5, -3])]))
    np.testing.assert_array_equal(powers, [3**39, -1, 1, -1])
    [[power]] = check(Case("power", [np.array(3), np.array(-1)]))
    assert power.item() == 0


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_operations_on_bits(dtype: str) -> None:
    a, b = numbers(3, 4, dtype=dtype), numbers(4, dtype=dtype, seed=1, low=0)
    ops = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
    check(*(Case(op, [a, b]) for op in ops), Case("bitwise_not", [a]))


def test_logic_and_choices() -> None:
    a, b = numbers(3, 4, dtype="bool"), numbers(4, dtype="bool", seed=1)
    ops = ["logical_and", "logical_or", "logical_xor", "equal", "less", "greater_equal"]
    check(
        *(Case(op, [a, b]) for op in ops),
        Case("logical_not", [a]),
        Case("where", [b, numbers(3, 1), numbers(2, 1, 4)]),
        Case("where", [a, b, a]),
        Case("where", [np.array(True), numbers(dtype="int64"), numbers(2, dtype="int64")]),
    )


def test_limits_of_integers() -> None:
    x = np.array([-100, -3, 0, 7, 100], np.int8)
    check(
        Case("clip", [x], {"min": -3, "max": 50}),
        Case("clip", [x], {"min": -(10**6), "max": 10**6}),
        Case("clip", [x.astype(np.int64)], {"max": 5}),
    )
    with pytest.raises(ModelError, match="expected integers"):
        find_operator("clip").infer_types([TensorType((2,), "int8")], {"min": 0.5, "max": 2})


@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16", "int32", "uint8", "bool"])
def test_conversions(source: str) -> None:
    targets = [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "int64",
        "bool",
        "float8_e4m3fn",
        "float8_e5m2",
    ]
    check(*(Case("astype", [numbers(8, dtype=source)], {"dtype": dtype}) for dtype in targets))


def test_infinities_and_nans() -> None:
    x = np.array([1, math.inf, -math.inf, math.nan, 0], np.float32)
    check(
        *(Case(op, [x]) for op in ("isnan", "isinf", "sign", "abs", "nn.relu", "nn.softplus")),
        Case("isinf", [x], {"detect_negative": False}),
        Case("isinf", [x], {"detect_positive": False}),
        Case("isinf", [x], {"detect_positive": False, "detect_negative": False}),
        Case("maximum", [x, np.zeros(5, np.float32)]),
    )


def test_types_that_do_not_fit_are_refused() -> None:
    f32, i32 = TensorType((2,), "float32"), TensorType((2,), "int32")
    with pytest.raises(ModelError, match="add of float32 and int32"):
        find_operator("add").infer_types([f32, i32], {})
    with pytest.raises(ModelError, match="sqrt of int32: expected the type float"):
        find_operator("sqrt").infer_types([i32], {})
    with pytest.raises(ModelError, match="logical_not does not take 2 operands"):
        find_operator("logical_not").infer_types([f32, f32], {})
