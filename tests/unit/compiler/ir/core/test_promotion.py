"""Common types of two operands, as TVM has them."""

from __future__ import annotations

import pytest

from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Cast, FloatImm, IntImm, Var
from compiler.ir.core.promotion import common_type, converted, promoted, widest


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("int32", "int64", "int64"),
        ("int32", "float32", "float32"),
        ("int64", "float16", "float16"),
        ("float32", "float64", "float64"),
        ("float16", "bfloat16", None),
        ("float8_e4m3fn", "float8_e5m2", None),
        ("float8_e4m3fn", "float16", "float16"),
        ("int32", "float8_e5m2", "float8_e5m2"),
        ("uint8", "int8", "uint8"),
        ("uint32", "int32", "uint32"),
        ("bool", "int32", "int32"),
        ("int8", "int8", "int8"),
    ],
)
def test_types_have_a_common_one_in_either_order(a: DType, b: DType, common: str | None) -> None:
    assert common_type(a, b) == common
    assert common_type(b, a) == common


def test_operands_are_converted_to_it() -> None:
    x, y = Var("x"), Var("y", "int64")
    assert promoted(x, y) == (Cast("int64", x), y)
    assert promoted(x, IntImm(3)) == (x, IntImm(3))
    half, brain = Var("h", "float16"), Var("b", "bfloat16")
    assert promoted(half, brain) == (half, brain)


def test_a_literal_that_fits_is_written_in_the_type() -> None:
    assert converted(IntImm(3), "float32") == FloatImm(3.0, "float32")
    assert converted(IntImm(3), "int64") == IntImm(3, "int64")
    assert converted(IntImm(300), "int8") == Cast("int8", IntImm(300))
    assert converted(FloatImm(float("inf")), "float16") == FloatImm(float("inf"), "float16")
    assert converted(FloatImm(0.1), "float16") == Cast("float16", FloatImm(0.1))


def test_the_widest_of_integers() -> None:
    assert widest(["int8", "int64", "int32"]) == "int64"
