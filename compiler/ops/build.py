"""Build the program of an operator."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError
from compiler.ops.error import OperatorError


def build(name: str, tensors: Sequence[te.Tensor]) -> PrimFunc:
    """Return the program that computes the defined tensors among `tensors` from the others.

    Raises:
        OperatorError: If it is beyond the limits, for example of a buffer's size.
    """
    try:
        return te.create_prim_func(tensors, name=name)
    except VerifyError as error:
        raise OperatorError(f"{name}: {error.message}") from None
