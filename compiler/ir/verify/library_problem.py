"""Which calls of registered functions can be built: those between loops, on whole arrays."""

from __future__ import annotations

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.foreign import foreign_calls
from compiler.ir.core.library_calls import (
    RegisteredCall,
    is_whole,
    library_call,
    passed_buffers,
    passed_regions,
)
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    FloatImm,
    IntImm,
    Seq,
    Stmt,
    StringImm,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.print_expr import show_expr

# Types of elements that NumPy lacks: a function would get the bits as integers.
_WITHOUT_ARRAYS = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})


def top_statements(func: PrimFunc) -> tuple[Stmt, ...]:
    """Return the statements that a program runs one after another."""
    body = func.root.body
    return body.stmts if isinstance(body, Seq) else (body,)


def call_of(stmt: Stmt) -> tuple[Block, RegisteredCall] | None:
    """Return the call in a block that runs once, and the block; None for another statement."""
    if not isinstance(stmt, BlockRealize):
        return None
    block, call = stmt.block, library_call(stmt.block.body)
    if call is None or stmt.predicate != TRUE or block.init is not None or block.alloc_buffers:
        return None
    return None if block.iter_vars else (block, call)


def library_problem(func: PrimFunc) -> str | None:
    """Return why the calls of registered functions in a program can't be built; None if they can.

    A program without such calls has no problem.
    """
    for stmt in top_statements(func):
        called = call_of(stmt)
        problem = _inner_problem(stmt) if called is None else _call_problem(func, *called)
        if problem is not None:
            return problem
    return None


def _inner_problem(stmt: Stmt) -> str | None:
    for call in foreign_calls(stmt):
        names = [arg.value for arg in call.args[:2] if isinstance(arg, StringImm)]
        name = names[-1] if names else "a function"
        return (
            f"T.{call.name} of {name}, no function of this module, stands in a loop, under a"
            " condition or outside of a block: such a call can only be scheduled; to build it, put"
            " it between the loops, in a block of its own with T.reads and T.writes"
        )
    return None


def _call_problem(func: PrimFunc, block: Block, call: RegisteredCall) -> str | None:
    visible = {*func.buffers, *func.root.alloc_buffers}
    name = f"block {block.name} calls {call.function}"
    for handle, region in passed_regions(block, call):
        if region is None:
            return f"{name} with {handle.name}, which it does not declare in T.reads or T.writes"
        if problem := _region_problem(block, region, visible):
            return f"{name} with {handle.name}: {problem}"
    for arg in passed_buffers(block, call):
        if isinstance(arg, tuple):
            continue
        if foreign_calls(arg) or not isinstance(constant_of(arg), IntImm | FloatImm | StringImm):
            return (
                f"{name} with {show_expr(arg)}: expected the storage of a buffer, such as A.data,"
                " a number or a text"
            )
    return None


def _region_problem(block: Block, region: BufferRegion, visible: set[Buffer]) -> str | None:
    buffer = region.buffer
    if buffer not in visible or buffer.scope != "global":
        return f"{buffer.name} is not a parameter, or a global buffer of the whole function"
    if buffer.dtype in _WITHOUT_ARRAYS:
        return f"NumPy has no arrays of {buffer.dtype}"
    if not all(
        isinstance(r.minimum, IntImm) and isinstance(r.extent, IntImm) for r in region.region
    ):
        return "its region is not constant"
    declared = [r for r in (*block.reads, *block.writes) if r.buffer == buffer]
    if not any(is_whole(r) or r == region for r in declared):
        return (
            f"it gets all of that array, and the block declares a part of {buffer.name}: declare"
            " all of it, or pass a part by T.match_buffer"
        )
    return None


def constant_of(arg: Expr) -> Expr:
    """Return an argument with its arithmetic done."""
    return arg if isinstance(arg, StringImm) else simplify(arg)
