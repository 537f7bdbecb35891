"""Parse declarations of buffers, and regions of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.limits import MAX_OFFSET_FACTOR
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    BufferRegion,
    Expr,
    IntImm,
    MatchBuffer,
    Range,
    Var,
)
from compiler.script.arguments import DTYPE_NAMED, Arguments, bind, string, vector_type
from compiler.script.context import Context, NamedValue, call_name, dialect_name
from compiler.script.error import ScriptError, near
from compiler.script.expressions import constant_int, index, subscript
from compiler.script.extents import extent_of, same_type
from compiler.script.symbols import declared_dtype, dimension

ALLOCATIONS = frozenset({"alloc_buffer", "sblock_alloc_buffer"})
# In the order of the dialect. The parameters after `scope` describe the layout that a driver uses.
DETAILS = (
    "dtype",
    "data",
    "strides",
    "elem_offset",
    "scope",
    "align",
    "offset_factor",
    "buffer_type",
    "axis_separators",
    "layout",
    "annotations",
)
_ALLOCATE_DETAILS = ("dtype", "scope", "condition", "annotations")
_SCOPED = {"alloc_local": "local", "alloc_shared": "shared"}
FLAT_ALLOCATIONS = frozenset({*_SCOPED, "alloc_buffer", "allocate", "decl_buffer"})
_PARAMETER_DETAILS = ("dtype", "data", "strides", "elem_offset", "byte_offset", *DETAILS[4:])

# A chosen bound: the verifier compares each access with each region of its block.
_MAX_REGIONS = 1024
_ONE = IntImm(1)


def parameter(context: Context, name: str, annotation: ast.expr) -> Buffer:
    """Parse `T.Buffer((4,), "float32")` or the older `T.Buffer[(4,), "float32"]`.

    Raises:
        ScriptError: If the annotation is neither.
    """
    match annotation:
        case ast.Call() if call_name(annotation) == "Buffer":
            arguments = bind(context, annotation, ("shape",), _PARAMETER_DETAILS)
        case ast.Subscript(value=value, slice=inner) if dialect_name(value) == "Buffer":
            parts = inner.elts if isinstance(inner, ast.Tuple) and _is_typed(inner) else [inner]
            # The subscript holds the arguments of the call.
            as_call = ast.copy_location(ast.Call(func=value, args=parts, keywords=[]), annotation)
            arguments = bind(context, as_call, ("shape",), _PARAMETER_DETAILS)
        case _:
            raise expected_parameter(context, name, annotation)
    return declare(context, name, arguments, annotation)


def expected_parameter(context: Context, name: str, annotation: ast.expr) -> ScriptError:
    """Return the error of a parameter that is neither a buffer nor a number."""
    spelled = ast.unparse(_called(annotation))[:40]
    hint = near(spelled, ["T.Buffer", "T.handle", *(f"T.{dtype}" for dtype in DTYPE_NAMED)])
    return context.error(
        f'expected {name}: T.Buffer((...), "float32"), or {name}: T.int32{hint}', annotation
    )


def _called(node: ast.expr) -> ast.expr:
    match node:
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return inner
        case _:
            return node


def _is_typed(subscript: ast.Tuple) -> bool:
    """Return whether a subscript gives a type, as `T.Buffer[(4, 4), "float32"]` does."""
    is_shape = bool(subscript.elts) and isinstance(subscript.elts[0], ast.Tuple | ast.List)
    return is_shape or any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) for part in subscript.elts
    )


def declare(
    context: Context,
    name: str,
    arguments: Arguments,
    origin: ast.AST,
    source: BufferRegion | None = None,
) -> Buffer:
    """Make the buffer that the arguments describe; a view inherits the rest from its source.

    Raises:
        ScriptError: If the arguments describe no buffer.
    """
    for unsupported in ("data", "byte_offset"):
        unsupported_argument = arguments.get(unsupported)
        if unsupported_argument is not None:
            raise context.error(
                f"{unsupported} is not supported: leave it out, each buffer has its own memory",
                unsupported_argument,
                code="unsupported",
            )
    of, scope, factor = (arguments.get(key) for key in ("dtype", "scope", "offset_factor"))
    is_named = source is not None or factor is not None
    offset = _offset(context, name, arguments.get("elem_offset"), is_named=is_named)
    if source is None and isinstance(offset, IntImm) and offset.value == 0:
        offset = None  # a buffer of its own begins at its first element
    element, lanes = _element(context, of, source)
    strides = _strides(context, arguments.get("strides"))
    if lanes > 1 and (strides or offset is not None):
        raise context.error(
            "a buffer of vectors has no strides and no offset", origin, code="unsupported"
        )
    shape = _shape(context, arguments, origin, source)
    if lanes > 1 and arguments.get("shape") is not None:
        shape = (*shape, IntImm(lanes))
    buffer = Buffer(
        Var(name, "handle"),
        shape,
        element,
        _default_scope(source) if scope is None else string(context, scope, "a scope") or "global",
        strides,
        offset,
        0 if factor is None else _offset_factor(context, factor),
    )
    if lanes > 1:
        context.lanes_of_elements[buffer.data] = lanes
    return context.at(buffer, origin)


def _element(
    context: Context, of: ast.expr | None, source: BufferRegion | None
) -> tuple[DType, int]:
    """Return the type of the elements, and the number of lanes of each."""
    if of is not None:
        return vector_type(context, of)
    if source is None:
        return "float32", 1
    return source.buffer.dtype, context.lanes_of_elements.get(source.buffer.data, 1)


def _offset_factor(context: Context, node: ast.expr) -> int:
    factor = constant_int(context, node, "an offset factor").value
    if not 0 <= factor <= MAX_OFFSET_FACTOR:
        raise context.error(
            f"an offset factor of {factor}: expected 0 to {MAX_OFFSET_FACTOR}", node
        )
    return 0 if factor == 1 else factor  # each offset is a multiple of one


def _default_scope(source: BufferRegion | None) -> str:
    return "global" if source is None else source.buffer.scope


def _shape(
    context: Context, arguments: Arguments, origin: ast.AST, source: BufferRegion | None
) -> tuple[Expr, ...]:
    shape = arguments.get("shape")
    if shape is None and source is not None:
        return tuple(r.extent for r in source.region)
    if shape is None:
        raise context.error("expected a shape", origin)
    extents = shape.elts if isinstance(shape, ast.Tuple | ast.List) else [shape]
    return tuple(extent_of(dimension(context, extent)) for extent in extents)


def _strides(context: Context, node: ast.expr | None) -> tuple[Expr, ...]:
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return ()
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    return tuple(dimension(context, part) for part in parts)


def _offset(context: Context, name: str, node: ast.expr | None, *, is_named: bool) -> Expr | None:
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        # The offset of a view is a variable; `A.elem_offset` refers to it.
        has_name = is_named and name in context.asked_offsets
        return Var(f"{name}_elem_offset") if has_name else None
    of = declared_dtype(context, node)
    if of is not None:
        return Var(f"{name}_elem_offset", of)  # elem_offset=T.int32()
    return dimension(context, node)


def allocation(context: Context, statement: ast.Assign) -> Buffer:
    """Parse `Y = T.alloc_buffer((4,), "float32", scope="local")` and define `Y`.

    Raises:
        ScriptError: If the statement is not an allocation.
    """
    target, call = statement.targets[0], statement.value
    assert isinstance(call, ast.Call)
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        raise context.error("expected one name for the buffer", target)
    arguments = bind(context, call, ("shape",), DETAILS)
    buffer = declare(context, target.id, arguments, statement)
    context.define(target.id, buffer)
    return buffer


def flat_allocation(context: Context, name: str, call: ast.Call, origin: ast.AST) -> Buffer:
    """Parse storage that lives to the end of the enclosing statements, and define its name.

    Raises:
        ScriptError: If the call does not describe a new buffer.
    """
    called = call_name(call) or ""
    details = _ALLOCATE_DETAILS if called == "allocate" else DETAILS
    arguments = bind(context, call, ("shape",), details)
    buffer = declare(context, name, arguments, origin)
    if called in _SCOPED:
        buffer = context.at(replace(buffer, scope=_SCOPED[called]), origin)
    context.define(name, buffer)
    context.memories[buffer.data] = buffer
    return buffer


def match(context: Context, target: ast.expr, call: ast.Call) -> MatchBuffer:
    """Parse `A_1 = T.match_buffer(A[0:4, 0:4], (4, 4), ...)` in a block and define `A_1`.

    Raises:
        ScriptError: If the statement is not a match.
    """
    if not isinstance(target, ast.Name):
        raise context.error("expected one name for the buffer", target)
    arguments = bind(context, call, ("param",), ("shape", *DETAILS))
    source = region(context, arguments["param"])
    buffer = declare(context, target.id, arguments, call, source)
    context.define(target.id, buffer)
    offset = buffer.elem_offset
    if isinstance(offset, Var) and context.get(offset.name) is None:
        context.define(offset.name, NamedValue(offset))
    return MatchBuffer(buffer, source)


def regions(context: Context, call: ast.Call) -> tuple[BufferRegion, ...]:
    """Parse the regions in `T.reads(A[i, 0:4], B)` or `T.reads([A[i, 0:4], B])`.

    Raises:
        ScriptError: If an argument is not a region of a buffer.
    """
    if call.keywords:
        raise context.error("expected regions of buffers", call.keywords[0].value)
    parts: Sequence[ast.expr] = call.args
    if len(parts) == 1 and isinstance(parts[0], ast.List | ast.Tuple):
        parts = parts[0].elts
    check_regions(context, len(parts), call)
    return tuple(region(context, part) for part in parts)


def check_regions(context: Context, number: int, origin: ast.AST) -> None:
    """Raise if a block reads or writes too many buffers.

    Raises:
        ScriptError: If it does.
    """
    if number > _MAX_REGIONS:
        raise context.error(
            f"{number} regions: expected {_MAX_REGIONS} at most", origin, code="limit"
        )


def region(context: Context, node: ast.expr) -> BufferRegion:
    """Parse a region of a buffer; the name alone means the whole buffer.

    Raises:
        ScriptError: If the node is not a region.
    """
    match node:
        case ast.Name():
            buffer = context.lookup(node)
            if not isinstance(buffer, Buffer):
                raise context.error(f"{node.id} is an index, not a buffer", node, code="type")
            return BufferRegion(
                buffer, tuple(Range(IntImm(0, dtype_of(n)), n) for n in buffer.shape)
            )
        case ast.Subscript():
            buffer, index_nodes = subscript(context, node)
            ranges = zip(index_nodes, buffer.shape, strict=True)
            box = tuple(_range(context, index_node, extent) for index_node, extent in ranges)
            return context.at(BufferRegion(buffer, box), node)
        case _:
            raise context.error("expected a region of a buffer, such as A[i, 0:4]", node)


def _range(context: Context, node: ast.expr, extent: Expr) -> Range:
    if not isinstance(node, ast.Slice):
        return Range(index(context, node), _ONE)
    if node.step is not None and not _is_one(node.step):
        raise context.error("a region has no step", node.step)
    start = IntImm(0) if node.lower is None else index(context, node.lower)
    stop = extent if node.upper is None else index(context, node.upper)
    start, stop = same_type(start, stop)
    match start, stop:
        case IntImm(0), _:
            return Range(start, stop)
        case _, BinOp("+", lhs, length) if lhs == start:
            return Range(start, length)
        case _:
            return Range(start, simplify(BinOp("-", stop, start)))


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1
