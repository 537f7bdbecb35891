"""Parse declarations of buffers, and regions of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from compiler.ir.nodes import BinOp, Buffer, BufferRegion, Expr, IntImm, Range, Var, dtype_of
from compiler.ir.simplify import simplify
from compiler.script.arguments import Arguments, bind, dtype, string
from compiler.script.context import Context, call_name, dialect_name
from compiler.script.expressions import constant_int, index, subscript

ALLOCATIONS = frozenset({"alloc_buffer", "sblock_alloc_buffer"})

_ONE = IntImm(1)


def parameter(context: Context, name: str, annotation: ast.expr) -> Buffer:
    """Parse `T.Buffer((4,), "float32")` or the older `T.Buffer[(4,), "float32"]`.

    Raises:
        ScriptError: If the annotation is neither.
    """
    match annotation:
        case ast.Call() if call_name(annotation) == "Buffer":
            arguments = bind(context, annotation, ("shape",), ("dtype", "scope"))
        case ast.Subscript(value=value, slice=inner) if dialect_name(value) == "Buffer":
            parts = inner.elts if isinstance(inner, ast.Tuple) and _is_typed(inner) else [inner]
            # The subscript holds what the call takes.
            as_call = ast.copy_location(ast.Call(func=value, args=parts, keywords=[]), annotation)
            arguments = bind(context, as_call, ("shape",), ("dtype", "scope"))
        case _:
            raise context.error(f'expected {name}: T.Buffer((...), "float32")', annotation)
    return declare(context, name, arguments, annotation)


def _is_typed(subscript: ast.Tuple) -> bool:
    """Tell `T.Buffer[(4, 4), "float32"]` from `T.Buffer[4, 4]`."""
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) for part in subscript.elts
    )


def declare(context: Context, name: str, arguments: Arguments, place: ast.AST) -> Buffer:
    """Make the buffer that `shape`, `dtype` and `scope` describe.

    Raises:
        ScriptError: If they describe none.
    """
    shape = arguments["shape"]
    extents = shape.elts if isinstance(shape, ast.Tuple | ast.List) else [shape]
    of, scope = arguments.get("dtype"), arguments.get("scope")
    buffer = Buffer(
        Var(name, "handle"),
        tuple(constant_int(context, extent, "an extent") for extent in extents),
        "float32" if of is None else dtype(context, of),
        "global" if scope is None else string(context, scope, "a scope"),
    )
    return context.at(buffer, place)


def allocation(context: Context, statement: ast.Assign) -> Buffer:
    """Parse `Y = T.alloc_buffer((4,), "float32", scope="local")` and define `Y`.

    Raises:
        ScriptError: If it is none.
    """
    target, call = statement.targets[0], statement.value
    assert isinstance(call, ast.Call)
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        raise context.error("expected one name for the buffer", target)
    arguments = bind(context, call, ("shape",), ("dtype", "scope"))
    buffer = declare(context, target.id, arguments, statement)
    context.define(target.id, buffer)
    return buffer


def regions(context: Context, call: ast.Call) -> tuple[BufferRegion, ...]:
    """Parse the regions in `T.reads(A[i, 0:4], B)` or `T.reads([A[i, 0:4], B])`.

    Raises:
        ScriptError: If an argument is no region of a buffer.
    """
    if call.keywords:
        raise context.error("expected regions of buffers", call.keywords[0].value)
    parts: Sequence[ast.expr] = call.args
    if len(parts) == 1 and isinstance(parts[0], ast.List | ast.Tuple):
        parts = parts[0].elts
    return tuple(_region(context, part) for part in parts)


def _region(context: Context, node: ast.expr) -> BufferRegion:
    match node:
        case ast.Name():
            buffer = context.lookup(node)
            if not isinstance(buffer, Buffer):
                raise context.error(f"{node.id} is an index, not a buffer", node)
            return BufferRegion(buffer, tuple(Range(IntImm(0), n) for n in buffer.shape))
        case ast.Subscript():
            buffer, places = subscript(context, node)
            ranges = zip(places, buffer.shape, strict=True)
            region = tuple(_range(context, place, extent) for place, extent in ranges)
            return context.at(BufferRegion(buffer, region), node)
        case _:
            raise context.error("expected a region of a buffer, such as A[i, 0:4]", node)


def _range(context: Context, node: ast.expr, extent: Expr) -> Range:
    if not isinstance(node, ast.Slice):
        return Range(index(context, node), _ONE)
    if node.step is not None:
        raise context.error("a region has no step", node.step)
    start = IntImm(0) if node.lower is None else index(context, node.lower)
    stop = extent if node.upper is None else index(context, node.upper)
    if dtype_of(start) != dtype_of(stop):
        raise context.error(f"a range from {dtype_of(start)} to {dtype_of(stop)}", node)
    match start, stop:
        case IntImm(0), _:
            return Range(start, stop)
        case _, BinOp("+", lhs, length) if lhs == start:
            return Range(start, length)
        case _:
            return Range(start, simplify(BinOp("-", stop, start)))
