"""Build the program of an operator from its placeholders and its tensor function."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import make_buffer
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError
from compiler.ops.error import OperatorError, check_flags


def operand(shape: Sequence[int], dtype: DType, name: str) -> te.Tensor:
    """Return an input of a program; the operator on tensors checks its type."""
    return te.Tensor(make_buffer(name, tuple(shape), dtype))


def bias_operand(operator: str, extent: int, dtype: DType, *, bias: bool) -> list[te.Tensor]:
    """Return the bias, or None without one.

    Raises:
        OperatorError: If `bias` is neither true nor false.
    """
    check_flags(operator, bias=bias)
    return [operand((extent,), dtype, "bias")] if bias else []


def build(name: str, inputs: Sequence[te.Tensor], *outputs: te.Tensor) -> PrimFunc:
    """Return the program that computes tensors from others.

    Raises:
        OperatorError: If it exceeds a limit, for example of a buffer's size.
    """
    try:
        return te.create_prim_func([*inputs, *outputs], name=name)
    except VerifyError as error:
        raise OperatorError(f"{name}: {error.message}") from None
