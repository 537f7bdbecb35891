"""Keep copies of narrow numbers in a wider type, as blocks request (annotation `buffer_bits`).

    A_copy[i] = A[i]                       # buffer_bits=[0, 16]: of write 0
    C[i] = int32(A_copy[i])          ->    A_copy[i] = int16(A[i])
                                           C[i] = int32(A_copy[i])

An element that is read many times is then converted once: integers to signed integers of so many
bits, floats to floats. Results do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.core.dtypes import DTYPES, DType, bits, is_float, is_integer, is_signed
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Allocate, BlockRealize, Buffer, Cast, Expr, Load, Stmt, Store
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import transform, walk_stmts
from compiler.passes.common.tile_buffers import fixed_buffers

KEY = "buffer_bits"


def wide_types_of(body: Stmt) -> dict[Buffer, DType]:
    """Return the types that the blocks of a program request, without the invalid ones."""
    types: dict[Buffer, DType] = {}
    for stmt in walk_stmts(body):
        if not isinstance(stmt, BlockRealize):
            continue
        match dict(stmt.block.annotations).get(KEY, ()):
            case (int() as index, int() as size) if 0 <= index < len(stmt.block.writes):
                buffer = stmt.block.writes[index].buffer
                dtype = f"{'float' if is_float(buffer.dtype) else 'int'}{size}"
                if dtype in DTYPES and _holds(dtype, buffer.dtype):  # type: ignore[arg-type]
                    types[buffer] = dtype  # type: ignore[assignment]
            case _:
                pass
    return types


def widen_buffers(stmt: Stmt, types: Mapping[Buffer, DType]) -> tuple[Stmt, dict[Buffer, Buffer]]:
    """Rewrite allocated buffers and their accesses to wider types.

    Parameters stay as they are. So do buffers that are accessed by vectors of indices, or whose
    address is taken.

    Returns:
        The statement, and the new buffers by the old ones.
    """
    allocated = {node.buffer for node in walk_stmts(stmt) if isinstance(node, Allocate)}
    wide = {b: replace(b, dtype=dtype) for b, dtype in types.items() if b in allocated}
    if wide:
        for buffer in fixed_buffers(stmt, {buffer.data: buffer for buffer in wide}):
            del wide[buffer]
    if not wide:
        return stmt, {}
    old_types = {new: old.dtype for old, new in wide.items()}

    def on_expr(expr: Expr) -> Expr | None:
        match expr:
            case Load(buffer, _) if buffer in old_types:
                return Cast(old_types[buffer], expr)
            case Cast(dtype, Cast(old, Load(buffer, _) as load)) if old_types.get(buffer) == old:
                return load if dtype == load.buffer.dtype else Cast(dtype, load)
            case _:
                return None

    def on_stmt(node: Stmt) -> Stmt | None:
        if isinstance(node, Store) and dtype_of(node.value) != node.buffer.dtype:
            return replace(node, value=Cast(node.buffer.dtype, node.value))
        return None

    return transform(replace_buffers(stmt, wide), on_expr, on_stmt), wide


def _holds(wide: DType, narrow: DType) -> bool:
    """Return whether a type has all values of a narrower one of its kind."""
    if is_float(narrow):
        return bits(wide) >= 32 and bits(wide) > bits(narrow)
    is_wider = is_integer(narrow) and bits(wide) > bits(narrow)
    return is_wider and (is_signed(wide) or not is_signed(narrow))
