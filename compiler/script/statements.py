"""Parse statements: stores, loops, conditions and the blocks among them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from compiler.ir.nodes import (
    Allocate,
    Annotations,
    For,
    If,
    IntImm,
    Load,
    LoopKind,
    Stmt,
    Store,
    Var,
    dtype_of,
    seq,
)
from compiler.script.arguments import bind, literal_dict, string
from compiler.script.blocks import block, is_block
from compiler.script.buffers import ALLOCATIONS, declare
from compiler.script.context import Axis, Context, call_name
from compiler.script.error import ScriptError, near
from compiler.script.expressions import (
    combine,
    condition,
    constant_int,
    element,
    expression,
)
from compiler.script.literals import adapt

_LOOPS: dict[str, LoopKind] = {
    "parallel": "parallel",
    "serial": "serial",
    "thread_binding": "thread_binding",
    "unroll": "unrolled",
    "unrolled": "unrolled",
    "vectorized": "vectorized",
}
_MAX_GRID = 32


def statements(context: Context, body: Sequence[ast.stmt], place: ast.AST) -> Stmt:
    """Parse a list of statements.

    Raises:
        ScriptError: If one of them is none of the dialect, or there are none.
    """
    parsed = [_statement(context, node) for node in body if not isinstance(node, ast.Pass)]
    if not parsed:
        raise context.error("expected at least one statement that computes something", place)
    return seq(*parsed)


def _statement(context: Context, node: ast.stmt) -> Stmt:
    match node:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return _store(context, target, value, node)
        case ast.AugAssign(target=ast.Subscript() as target):
            return _update(context, target, node)
        case ast.For():
            return _loop(context, node)
        case ast.If():
            return _if(context, node)
        case ast.With(items=[ast.withitem()]) if is_block(node):
            return block(context, node, statements)
        case ast.With(items=[ast.withitem(context_expr=ast.Call() as call)]) if (
            call_name(call) == "allocate"
        ):
            return _allocate(context, node, call)
        case _:
            raise _misplaced(context, node)


def _misplaced(context: Context, node: ast.stmt) -> ScriptError:
    """Return the error that says what is wrong with a statement that can't stand here."""
    value = getattr(node, "value", None)
    name = call_name(value)
    if name in ALLOCATIONS:
        return context.error("buffers are allocated before the first statement that computes", node)
    if name is not None and name.startswith("axis."):
        return context.error("axes are bound before the first statement of a block", node)
    if name in ("where", "reads", "writes", "block_attr", "sblock_attr"):
        return context.error(f"T.{name} stands before the first statement of a block", node)
    if isinstance(node, ast.With):
        name = call_name(node.items[0].context_expr) or ""
        hint = near(name, ("block", "sblock", "init", "allocate"))
        return context.error(
            f'expected with T.sblock("name"):{hint[1:]}', node.items[0].context_expr
        )
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return context.error(
            "expected an assignment to an element of a buffer: scalar variables are not supported",
            target,
        )
    return context.error(
        f"a statement of the dialect was expected, got {type(node).__name__}", node
    )


def _store(context: Context, target: ast.Subscript, value: ast.expr, place: ast.stmt) -> Stmt:
    buffer, indices = element(context, target)
    stored = adapt(context, expression(context, value), value, buffer.dtype)
    if dtype_of(stored) != buffer.dtype:
        raise context.error(
            f"{buffer.name} holds {buffer.dtype}, got {dtype_of(stored)}: "
            f'convert with T.Cast("{buffer.dtype}", ...)',
            value,
        )
    return context.at(Store(buffer, indices, stored), place)


def _update(context: Context, target: ast.Subscript, node: ast.AugAssign) -> Stmt:
    buffer, indices = element(context, target)
    old = context.at(Load(buffer, indices), target)
    added = (expression(context, node.value), node.value)
    new = combine(context, node.op, (old, target), added, node)
    return context.at(Store(buffer, indices, new), node)


def _if(context: Context, node: ast.If) -> Stmt:
    test = condition(context, node.test)
    then = statements(context, node.body, node)
    otherwise = statements(context, node.orelse, node) if node.orelse else None
    return context.at(If(test, then, otherwise), node)


def _allocate(context: Context, node: ast.With, call: ast.Call) -> Stmt:
    name = node.items[0].optional_vars
    if not isinstance(name, ast.Name):
        raise context.error("expected a name for the buffer: with T.allocate(...) as name", call)
    buffer = declare(context, name.id, bind(context, call, ("shape",), ("dtype", "scope")), call)
    with context.scope():
        context.define(name.id, buffer)
        return context.at(Allocate(buffer, statements(context, node.body, node)), node)


def _loop(context: Context, node: ast.For) -> Stmt:
    if node.orelse:
        raise context.error("a loop has no else", node.orelse[0])
    call = node.iter
    name = _loop_name(call)
    if name is None or not isinstance(call, ast.Call):
        hint = near(call_name(call) or "", (*_LOOPS, "grid"))
        raise context.error(
            f"expected range(...), T.grid(...), T.parallel(...) or the like{hint}", call
        )
    if name == "grid":
        return _grid(context, node, call)
    if not isinstance(node.target, ast.Name):
        raise context.error("expected one loop variable", node.target)
    ends, thread, notes = _loop_arguments(context, call, name)
    kind: LoopKind = "serial" if name == "range" else _LOOPS[name]
    axis = _axis(node.target.id, *_ends(context, ends))
    with context.scope():
        context.define(node.target.id, axis)
        body = statements(context, node.body, node)
    return context.at(For(axis.var, axis.extent, body, kind, thread, notes), node)


def _loop_name(call: ast.expr) -> str | None:
    """Return "range", "grid" or a kind of loop; None if it is no loop."""
    match call:
        case ast.Call(func=ast.Name(id="range")):
            return "range"
        case _:
            name = call_name(call)
            return name if name == "grid" or name in _LOOPS else None


def _loop_arguments(
    context: Context, call: ast.Call, name: str
) -> tuple[list[ast.expr], str | None, Annotations]:
    """Return the ends, the thread and the annotations of a loop."""
    optional = ("stop", "thread") if name == "thread_binding" else ("stop",)
    more = () if name == "range" else ("annotations",)
    arguments = bind(context, call, ("start",), (*optional, *more))
    stop, thread, notes = (arguments.get(a) for a in ("stop", "thread", "annotations"))
    if thread is None and name == "thread_binding":
        # T.thread_binding(4, "threadIdx.x") is legal too.
        stop, thread = None, stop
        if thread is None:
            raise context.error('T.thread_binding needs a thread, such as "threadIdx.x"', call)
    return (
        [arguments["start"]] if stop is None else [arguments["start"], stop],
        None if thread is None else string(context, thread, "a thread"),
        () if notes is None else literal_dict(context, notes),
    )


def _ends(context: Context, ends: list[ast.expr]) -> tuple[int, IntImm]:
    """Return the first value and the extent of a loop."""
    first, last = ends[0], ends[-1]
    stop = constant_int(context, last, "an extent")
    start = constant_int(context, first, "a start").value if len(ends) == 2 else 0
    if stop.value - start < 1:
        raise context.error(f"the loop is empty: from {start} to {stop.value}", last)
    return start, IntImm(stop.value - start, stop.dtype)


def _axis(name: str, start: int, extent: IntImm) -> Axis:
    return Axis(Var(name, extent.dtype), start, extent)


def _grid(context: Context, node: ast.For, call: ast.Call) -> Stmt:
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if call.keywords:
        raise context.error("T.grid takes extents only", call.keywords[0])
    if len(targets) != len(call.args):
        raise context.error(
            f"{len(targets)} loop variable(s) for {len(call.args)} extent(s)", node.target
        )
    if len(targets) > _MAX_GRID:
        raise context.error(f"a grid of {len(targets)} loops: expected {_MAX_GRID} at most", call)
    axes: list[Axis] = []
    for target, extent in zip(targets, call.args, strict=True):
        if not isinstance(target, ast.Name):
            raise context.error("expected a loop variable", target)
        axes.append(_axis(target.id, *_ends(context, [extent])))
    with context.scope():
        for axis in axes:
            context.define(axis.var.name, axis)
        nest = statements(context, node.body, node)
    for axis in reversed(axes):
        nest = context.at(For(axis.var, axis.extent, nest), node)
    return nest
