"""Why a legal program can be scheduled, but not built."""

from __future__ import annotations

from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify_buffers import stored_buffers


def build_problem(func: PrimFunc) -> str | None:
    """Return why a program can't be built, whatever the target; None if it can."""
    stored = stored_buffers(func.body)
    if not any(buffer in stored for buffer in func.buffers):
        return "the program writes none of its parameters: it has no result"
    return None
