"""Check that a function can be lowered: static, with a result, without calls, on dense arrays."""

from __future__ import annotations

from compiler.ir.analysis.specialize import symbolic_problem
from compiler.ir.core.function_calls import call_problem
from compiler.ir.core.layout import strides_of
from compiler.ir.core.nodes import IntImm
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.build_problem import build_problem
from compiler.passes.common.error import LoweringError


def check_parameters(func: PrimFunc) -> None:
    """Refuse a function that no backend can lower.

    Raises:
        LoweringError: If an extent is symbolic, if the function calls another one, if it can't be
            built whatever the target, or if a parameter is not dense.
    """
    problem = symbolic_problem(func) or call_problem(func) or build_problem(func)
    if problem is not None:
        raise LoweringError(problem)
    for buffer in func.buffers:
        dense = strides_of(buffer)
        strides = tuple(stride.value for stride in buffer.strides if isinstance(stride, IntImm))
        offset = buffer.elem_offset
        if strides not in ((), dense) or offset not in (None, IntImm(0)):
            raise LoweringError(
                f"parameter {buffer.name} is strided, or begins within its storage: a kernel "
                "takes dense arrays"
            )
