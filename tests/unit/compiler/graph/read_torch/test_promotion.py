from __future__ import annotations

import pytest

from compiler.graph.nodes import Operand, TensorType, TensorValue
from compiler.graph.read_torch.promotion import common_dtype
from compiler.ir.core.dtypes import DType


def _tensor(dtype: DType, rank: int = 1) -> Operand:
    return TensorValue("x", TensorType((2,) * rank, dtype))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([_tensor("int32"), _tensor("float16")], "float16"),
        ([_tensor("float16"), _tensor("bfloat16")], "float32"),
        ([_tensor("uint8"), _tensor("int8")], "int16"),
        ([_tensor("float32"), _tensor("float64", 0)], "float32"),
        ([_tensor("int32"), _tensor("float64", 0)], "float64"),
        ([_tensor("int32", 0), _tensor("int64", 0)], "int64"),
        ([_tensor("int8"), 300], "int8"),
        ([_tensor("int8"), 1.5], "float32"),
        ([_tensor("bfloat16"), 1.5], "bfloat16"),
        ([_tensor("bool"), 1], "int64"),
        ([_tensor("bool"), True], "bool"),
        ([_tensor("float16", 0), 1.5], "float16"),
    ],
)
def test_operands_have_the_common_type_of_pytorch(
    values: list[Operand | float], expected: DType
) -> None:
    assert common_dtype(values) == expected
