"""Parse other spellings of memory: `T.Buffer(..., data=X)`, `A.vload(...)`, `A.vstore(...)`."""

from __future__ import annotations

import ast
import math
from dataclasses import replace

from compiler.ir.core.expr_types import lanes_of
from compiler.ir.core.nodes import Buffer, Expr, IntImm, Load, Ramp, Store, static_shape
from compiler.script.arguments import Arguments, bind, vector_type
from compiler.script.buffers import DETAILS, declare
from compiler.script.context import Context, MemoryView
from compiler.script.expressions import expression, index
from compiler.script.literals import stored
from compiler.script.rewrites.views import add_view

_DETAILS = ("dtype", "data", "strides", "elem_offset", "byte_offset", *DETAILS[4:])


def has_data(node: ast.Call) -> bool:
    """Return whether a declaration names the memory of its buffer."""
    return any(keyword.arg == "data" for keyword in node.keywords)


def buffer_on(context: Context, name: str, node: ast.Call, origin: ast.AST) -> None:
    """Parse `B = T.Buffer((4, 4), "float32", data=X)` of some memory `X`, and define `B`.

    Allocated memory takes the shape of its first buffer, if that has its type and size. A buffer
    of the shape of the memory is another name of it. Others are views.

    Raises:
        ScriptError: If `X` is no memory, or the view does not fit it.
    """
    arguments = bind(context, node, ("shape",), _DETAILS)
    given = arguments["data"]
    memory = _memory(context, given)
    details = {key: value for key, value in arguments.values.items() if key != "data"}
    buffer = declare(context, name, Arguments(node, details), origin)
    if "scope" not in details:
        buffer = context.at(replace(buffer, scope=memory.scope), origin)
    held = context.memories.get(memory.data, memory)
    if replace(buffer, data=held.data) == held:
        lanes = context.lanes_of_elements.get(held.data)
        if context.lanes_of_elements.get(buffer.data) == lanes:
            context.define(name, held)
            return
    if _takes_over(context, buffer, memory):
        context.memories[memory.data] = buffer
        # What accesses the memory by its first name sees it as a view.
        context.views[memory.data] = MemoryView(memory, buffer, 0, given)
    else:
        add_view(context, buffer, held, given)
    context.define(name, buffer)


def _takes_over(context: Context, buffer: Buffer, memory: Buffer) -> bool:
    """Return whether allocated memory has no shape so far but one of the size of a buffer."""
    return (
        context.memories.get(memory.data) is memory
        and (buffer.dtype, buffer.scope) == (memory.dtype, memory.scope)
        and not buffer.strides
        and buffer.elem_offset is None
        and all(isinstance(extent, IntImm) for extent in (*buffer.shape, *memory.shape))
        and math.prod(static_shape(buffer)) == math.prod(static_shape(memory))
    )


def vector_load(context: Context, buffer: Buffer, node: ast.Call) -> Expr:
    """Parse `A.vload([i, j], "float32x4")`: elements of the last dimension from an index on.

    Raises:
        ScriptError: If the type is not that of the elements.
    """
    arguments = bind(context, node, ("begin",), ("dtype",))
    of = arguments.get("dtype")
    of_elements = context.lanes_of_elements.get(buffer.data, 1)
    dtype, lanes = (buffer.dtype, of_elements) if of is None else vector_type(context, of)
    if dtype != buffer.dtype:
        raise context.error(
            f"{buffer.name} has elements of {buffer.dtype}, not {dtype}", node, code="type"
        )
    return Load(buffer, _elements(context, buffer, arguments, lanes))


def vector_store(context: Context, buffer: Buffer, node: ast.Call) -> Store:
    """Parse `A.vstore([i, j], value)`.

    Raises:
        ScriptError: If the value has not the type of the elements.
    """
    arguments = bind(context, node, ("begin", "value"))
    given = arguments["value"]
    value = stored(context, buffer.name, buffer.dtype, expression(context, given), given)
    return Store(buffer, _elements(context, buffer, arguments, lanes_of(value)), value)


def _elements(
    context: Context, buffer: Buffer, arguments: Arguments, lanes: int
) -> tuple[Expr, ...]:
    """Return the indices of some elements in a row."""
    begin = arguments["begin"]
    places = list(begin.elts) if isinstance(begin, ast.List | ast.Tuple) else [begin]
    of_elements = context.lanes_of_elements.get(buffer.data)
    if of_elements is not None:
        if lanes != of_elements:
            reason = f"{buffer.name} has elements of {of_elements} lanes, not of {lanes}"
            raise context.error(reason, begin, code="type")
        places.append(ast.copy_location(ast.Constant(0), begin))
    if len(places) != len(buffer.shape) or not places:
        reason = f"{buffer.name} has {len(buffer.shape)} dimension(s), got {len(places)} index(es)"
        raise context.error(reason, begin, code="rank")
    *outer, first = [index(context, node) for node in places]
    if lanes == 1:
        return (*outer, first)
    context.has_vectors = True
    return (*outer, Ramp(first, 1, lanes))


def _memory(context: Context, node: ast.expr) -> Buffer:
    """Return the buffer in `X` or `X.data`."""
    name = node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node
    entity = context.lookup(name) if isinstance(name, ast.Name) else None
    if not isinstance(entity, Buffer):
        raise context.error("expected allocated memory, or the data of a buffer", node)
    return entity
