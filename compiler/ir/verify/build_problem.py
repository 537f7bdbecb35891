"""Why a legal program can be scheduled, but not built."""

from __future__ import annotations

from compiler.executor.functions.registry import EXTERN, PACKED
from compiler.ir.core.foreign import FOREIGN_LLVM, foreign_calls
from compiler.ir.core.nodes import StringImm
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.library_problem import library_problem
from compiler.ir.verify.verify_buffers import stored_buffers


def build_problem(func: PrimFunc) -> str | None:
    """Return why a program can't be built, whatever the target; None if it can.

    Whether the functions that it calls are registered, and allowed, is another question.
    """
    foreign = [call for call in foreign_calls(func.body) if call.name not in (PACKED, EXTERN)]
    if foreign:
        called = foreign[0].args[1] if foreign[0].name == FOREIGN_LLVM else None
        name = called.value if isinstance(called, StringImm) else f"T.{foreign[0].name}"
        return f"the program calls {name}, which no backend runs: it can only be scheduled"
    problem = library_problem(func)
    if problem is not None:
        return problem
    stored = stored_buffers(func.body)
    if not any(buffer in stored for buffer in func.buffers):
        return "the program writes none of its parameters: it has no result"
    return None
