"""Foreign functions: calls that schedules move, and that no backend of this project runs.

They are the low-level calls of TVM's tensor intrinsics, and calls of native functions. What they
touch is what the block around them declares by `T.reads` and `T.writes`. A program that has one can
be scheduled and stored, but not built: see `compiler.ir.verify.build_problem`.
"""

from __future__ import annotations

from compiler.ir.core.nodes import Call, Expr, Stmt
from compiler.ir.core.visit import walk

FOREIGN_LLVM = "call_llvm_intrin"
"""A call of an instruction: the type of its result, LLVM's name of it, and the operands."""

# By the least and the greatest number of arguments; None is any number.
FOREIGN: dict[str, tuple[int, int | None]] = {
    "call_extern": (2, None),  # the type of the result, the name of the function, ...
    "call_intrin": (2, None),
    FOREIGN_LLVM: (2, None),
    "call_packed": (1, None),
    "mma_fill": (3, None),
    "mma_store": (4, None),
    "ptx_cp_async": (5, None),
    "ptx_ldmatrix": (5, None),
    "ptx_mma": (10, None),
    "tvm_access_ptr": (5, 5),  # a type annotation, the storage, an offset, a length, a mode
    "tvm_bmma_sync": (8, 8),
    "tvm_fill_fragment": (6, 6),
    "tvm_load_matrix_sync": (8, 8),
    "tvm_mma_sync": (8, 8),
    "tvm_store_matrix_sync": (8, 8),
    "type_annotation": (1, 1),
}


def foreign_calls(node: Expr | Stmt) -> list[Call]:
    """Return the foreign calls in a program."""
    return [part for part in walk(node) if isinstance(part, Call) and part.name in FOREIGN]
