"""Check that a function can be lowered: extents, a result, no calls, dense parameters."""

from __future__ import annotations

from compiler.ir.analysis.symbols import symbolic_problem
from compiler.ir.arith.simplify import equal
from compiler.ir.core.function_calls import call_problem
from compiler.ir.core.layout import symbolic_strides
from compiler.ir.core.library_calls import library_functions
from compiler.ir.core.nodes import IntImm
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.build_problem import build_problem
from compiler.passes.common.error import LoweringError


def check_parameters(func: PrimFunc, *, has_symbols: bool = False) -> None:
    """Refuse a function that the backend can't lower.

    Args:
        has_symbols: Whether the backend lowers symbolic functions.

    Raises:
        LoweringError: If an extent is symbolic, if the function calls another one, if it can't be
            built whatever the target, or if a parameter is not dense.
    """
    symbolic = None if has_symbols else symbolic_problem(func)
    problem = symbolic or call_problem(func) or build_problem(func)
    if problem is None and (functions := library_functions(func.body)):
        problem = (
            f"the program calls {', '.join(functions)}: only lw.build and compile_kernel for a CPU"
            " run registered functions, between kernels"
        )
    if problem is not None:
        raise LoweringError(problem)
    for buffer in func.buffers:
        pairs = zip(buffer.strides, symbolic_strides(buffer), strict=False)
        is_dense = all(equal(stride, dense) for stride, dense in pairs)
        if not is_dense or buffer.elem_offset not in (None, IntImm(0)):
            raise LoweringError(
                f"parameter {buffer.name} is strided, or begins within its storage: a kernel "
                "takes dense arrays"
            )
