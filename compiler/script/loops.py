"""Parse loops: `range(...)`, `T.grid(...)`, loops of a kind, and launched threads."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TypeAlias

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.limits import MAX_DEPTH
from compiler.ir.core.nodes import (
    Annotations,
    BinOp,
    Expr,
    For,
    IntImm,
    LoopKind,
    Stmt,
    Var,
    While,
)
from compiler.ir.core.promotion import converted
from compiler.ir.text.names import Names
from compiler.ir.text.print_expr import show_expr
from compiler.script.arguments import bind, literal_dict, string
from compiler.script.blocks import Body
from compiler.script.context import BlockAxis, Context, ThreadBinding, call_name
from compiler.script.error import near
from compiler.script.expressions import condition, constant_int, index, interval
from compiler.script.extents import extent_of

_LOOPS: dict[str, LoopKind] = {
    "parallel": "parallel",
    "serial": "serial",
    "thread_binding": "thread_binding",
    "unroll": "unrolled",
    "unrolled": "unrolled",
    "vectorized": "vectorized",
}


def loop(context: Context, node: ast.For, body: Body) -> Stmt:
    """Parse a loop or a nest of loops; `body` parses the statements in it.

    Raises:
        ScriptError: If the statement is not a loop of the dialect.
    """
    if node.orelse:
        raise context.error("a loop has no else", node.orelse[0], code="unsupported")
    call = node.iter
    name = _loop_name(call)
    if name is None or not isinstance(call, ast.Call):
        spelled = ast.unparse(call.func if isinstance(call, ast.Call) else call)[:40]
        hint = near(spelled, ["range", *(f"T.{kind}" for kind in (*_LOOPS, "grid"))])
        expected = "expected range(...), T.grid(...), T.parallel(...) or the like"
        raise context.error(f"{expected}{hint}", call)
    if name == "grid":
        return _grid(context, node, call, body)
    if not isinstance(node.target, ast.Name):
        why = ": T.grid alone takes several" if isinstance(node.target, ast.Tuple) else ""
        raise context.error(f"expected one loop variable{why}", node.target)
    (first, last, step), thread, notes = _loop_arguments(context, call, name)
    kind: LoopKind = "serial" if name == "range" else _LOOPS[name]
    axis = _axis(context, node.target.id, first, last, step)
    with context.scope():
        context.define(node.target.id, axis)
        inner = body(context, node.body, node)
    return context.at(For(axis.var, axis.extent, inner, kind, thread, notes), node)


def while_loop(context: Context, node: ast.While, body: Body) -> Stmt:
    """Parse `while condition:`.

    Raises:
        ScriptError: If the condition is none, or the loop has an else.
    """
    if node.orelse:
        raise context.error("a loop has no else", node.orelse[0], code="unsupported")
    holds = condition(context, node.test)
    with context.scope():
        return context.at(While(holds, body(context, node.body, node)), node)


def _loop_name(call: ast.expr) -> str | None:
    """Return "range", "grid" or a kind of loop; None if the node is not a loop."""
    match call:
        case ast.Call(func=ast.Name(id="range")):
            return "range"
        case _:
            name = call_name(call)
            return name if name == "grid" or name in _LOOPS else None


_Ends: TypeAlias = tuple[ast.expr | None, ast.expr, ast.expr | None]


def _loop_arguments(
    context: Context, call: ast.Call, name: str
) -> tuple[_Ends, str | None, Annotations]:
    """Return the ends and the step, the thread and the annotations of a loop."""
    optional = ("stop", "thread") if name == "thread_binding" else ("stop",)
    more = ("step",) if name == "range" else ("annotations", "step")
    arguments = bind(context, call, ("start",), (*optional, *more))
    stop, thread, notes = (arguments.get(a) for a in ("stop", "thread", "annotations"))
    if thread is None and name == "thread_binding":
        # T.thread_binding(4, "threadIdx.x") is legal too.
        stop, thread = None, stop
        if thread is None:
            raise context.error('T.thread_binding needs a thread, such as "threadIdx.x"', call)
    first, last = (None, arguments["start"]) if stop is None else (arguments["start"], stop)
    return (
        (first, last, arguments.get("step")),
        None if thread is None else string(context, thread, "a thread"),
        () if notes is None else literal_dict(context, notes),
    )


def _axis(
    context: Context,
    name: str,
    first: ast.expr | None,
    last: ast.expr,
    step: ast.expr | None = None,
) -> BlockAxis:
    """Return the axis of a loop from `first`, or zero, up to, but excluding, `last`."""
    if first is None:
        extent = extent_of(index(context, last))
        start: Expr = IntImm(0, dtype_of(extent))
    else:
        start, extent = interval(context, first, last)
    if isinstance(extent, IntImm) and extent.value < 1:
        names = Names()
        stop = simplify(BinOp("+", start, extent))
        ends = f"from {show_expr(start, names)} to {show_expr(stop, names)}"
        raise context.error(f"the loop is empty: {ends}", last)
    stride = 1 if step is None else constant_int(context, step, "a step").value
    if stride < 1:
        raise context.error(f"a step of {stride}: expected 1 or more", last)
    if stride > 1:
        dtype = dtype_of(extent)
        rounded = BinOp("+", extent, IntImm(stride - 1, dtype))
        extent = extent_of(BinOp("//", rounded, IntImm(stride, dtype)))
    return BlockAxis(Var(name, dtype_of(extent)), extent, start, stride)


def _grid(context: Context, node: ast.For, call: ast.Call, body: Body) -> Stmt:
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if call.keywords:
        raise context.error("T.grid takes extents only", call.keywords[0])
    if len(targets) != len(call.args):
        raise context.error(
            f"{len(targets)} loop variable(s) for {len(call.args)} extent(s)", node.target
        )
    if len(targets) > MAX_DEPTH:
        raise context.error(
            f"a grid of {len(targets)} loops: expected {MAX_DEPTH} at most", call, code="limit"
        )
    axes: list[BlockAxis] = []
    for target, extent in zip(targets, call.args, strict=True):
        if not isinstance(target, ast.Name):
            raise context.error("expected a loop variable", target)
        axes.append(_grid_axis(context, target.id, extent))
    with context.scope():
        for axis in axes:
            context.define(axis.var.name, axis)
        nest = body(context, node.body, node)
    for axis in reversed(axes):
        nest = context.at(For(axis.var, axis.extent, nest), node)
    return nest


def _grid_axis(context: Context, name: str, extent: ast.expr) -> BlockAxis:
    """Return an axis of `T.grid(8, (2, 5))`: an extent, or a start and an extent."""
    if not isinstance(extent, ast.Tuple):
        return _axis(context, name, None, extent)
    if len(extent.elts) != 2:
        raise context.error("expected an extent, or a start and an extent", extent)
    start = simplify(index(context, extent.elts[0]))
    axis = _axis(context, name, None, extent.elts[1])
    return replace(axis, minimum=converted(start, dtype_of(axis.extent)))


def launched(context: Context, name: str | None, call: ast.Call) -> tuple[BlockAxis, str]:
    """Parse `T.launch_thread("threadIdx.x", 64)` and define the name of the loop.

    Raises:
        ScriptError: If the call launches no thread, or has no name.
    """
    arguments = bind(context, call, ("thread", "extent"))
    thread = arguments["thread"]
    thread_entity = context.lookup(thread) if isinstance(thread, ast.Name) else None
    if isinstance(thread_entity, ThreadBinding) and isinstance(thread, ast.Name):
        name, tag = name or thread.id, thread_entity.tag
    else:
        tag = string(context, thread, "a thread")
    if name is None:
        raise context.error("expected a name: tx = T.launch_thread(...)", call)
    axis = _axis(context, name, None, arguments["extent"])
    context.define(name, axis)
    return axis, tag
