"""Products that are added to sums."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.analysis.products import main_dtype, multiplied_dtype


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("matmul:3,4,5", "float32"),
        ("matmul:3,4,5:bfloat16", "bfloat16"),
        ("quantized_dense:3,4,5,input_zero_point=2", "int8"),
        ("dense_int4:4,8,64,32", "float32"),
        ("dense_int8:1,8,64:bfloat16", None),  # a bfloat16 times a byte
        ("softmax:3,4", None),
    ],
)
def test_numbers_are_multiplied_as_they_were_before_a_conversion(
    spec: str, expected: str | None
) -> None:
    assert multiplied_dtype(ops.from_spec(spec)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [("softmax:3,4", "float32"), ("quantized_dense:3,4,5", "int8"), ("embedding:10,4,5", None)],
)
def test_the_main_type_is_that_of_all_parameters_or_of_products(
    spec: str, expected: str | None
) -> None:
    assert main_dtype(ops.from_spec(spec)) == expected
