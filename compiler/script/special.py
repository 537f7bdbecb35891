"""Parse special calls: opaque functions, LLVM intrinsics by name, reinterpreted bits."""

from __future__ import annotations

import ast

from compiler.executor.functions.registry import EXTERN, PACKED
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import bits, is_float
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.function_calls import call_function
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    Logic,
    Not,
    Stmt,
    StringImm,
)
from compiler.ir.core.opaque import OPAQUE
from compiler.script.arguments import bind, string, vector_type
from compiler.script.context import Context, NamedValue, call_name
from compiler.script.error import near
from compiler.script.expressions import constant_int, expression
from compiler.script.extents import same_type

MAX_SHIFT = 62
"""The most bits by which a 64-bit number is shifted: its greatest power of two."""


def opaque(context: Context, node: ast.Call, name: str) -> Expr:
    """Parse a call of an opaque function.

    Raises:
        ScriptError: If the function does not take these arguments.
    """
    signature = OPAQUE[name]
    if node.keywords:
        raise context.error(
            f"T.{name} takes no keyword arguments", node.keywords[0], code="unsupported"
        )
    if not signature.least <= len(node.args) <= signature.most:
        expected = f"{signature.least} to {signature.most} argument(s)"
        raise context.error(f"T.{name} takes {expected}, got {len(node.args)}", node)
    args = tuple(_argument(context, argument) for argument in node.args)
    return Call(name, args, signature.dtype or "int32")


def foreign(context: Context, node: ast.Call, name: str) -> Expr:
    """Parse a call that no backend runs, such as `T.tvm_mma_sync(...)` or `T.call_extern(...)`.

    Raises:
        ScriptError: If the function does not take these arguments.
    """
    others = [keyword for keyword in node.keywords if keyword.arg != "dtype"]
    if others:
        raise context.error(f"T.{name} has no argument {others[0].arg}", others[0], "undefined")
    # A registered function gets arrays, by their buffers or by their storage.
    argument_of = _passed if name in (PACKED, EXTERN) else _argument
    args = [argument_of(context, argument) for argument in node.args]
    declared = [keyword.value for keyword in node.keywords]
    if declared and name in _WITH_RESULT:
        # Older scripts name the type of the result last.
        args.insert(0, _argument(context, declared[0]))
    elif name == "type_annotation" and not args:
        args = [_argument(context, type_node) for type_node in declared]
    return Call(name, tuple(args), "int32")


_WITH_RESULT = frozenset({"call_extern", "call_intrin"})


def access_pointer(context: Context, buffer: Buffer, node: ast.Call) -> Expr:
    """Parse `A.access_ptr("r", offset=0, extent=128)`: the address of a part of a buffer.

    Raises:
        ScriptError: If the mode is not "r", "w" or "rw".
    """
    details = ("ptr_type", "content_lanes", "offset", "extent")
    arguments = bind(context, node, ("access_mask",), details)
    mode = string(context, arguments["access_mask"], "a mode")
    if not mode or not set(mode) <= set("rw"):
        raise context.error(f'expected "r", "w" or "rw", got {mode!r}', node)
    mask = ("r" in mode) + 2 * ("w" in mode)
    offset, extent = arguments.get("offset"), arguments.get("extent")
    start = IntImm(0) if offset is None else expression(context, offset)
    total: Expr = IntImm(1)
    for size in buffer.shape:
        total = simplify(BinOp("*", *same_type(total, size)))
    length = (
        simplify(BinOp("-", *same_type(total, start)))
        if extent is None
        else expression(context, extent)
    )
    annotation = Call("type_annotation", (StringImm(buffer.dtype),), "int32")
    args = (annotation, buffer.data, start, length, IntImm(mask))
    return Call("tvm_access_ptr", args, "int32")


def _argument(context: Context, node: ast.expr) -> Expr:
    """Parse an argument of an opaque function: a string, `A.data`, or any expression."""
    match node:
        case ast.Constant(value=str()):
            return StringImm(string(context, node, "an argument"))
        case ast.Attribute(value=ast.Name() as name, attr="data"):
            buffer = context.lookup(name)
            if not isinstance(buffer, Buffer):
                raise context.error(
                    f"{name.id} is not a buffer: expected the data of one, such as A.data",
                    name,
                    code="type",
                )
            return buffer.data
        case _:
            return expression(context, node)


def function_call(context: Context, node: ast.Call) -> Stmt:
    """Parse `Module.g(A, B.data, 4)`: the call of another function of the module.

    Raises:
        ScriptError: If there is no such function, or an argument is passed by its name.
    """
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if context.functions is not None and name not in context.functions:
        hint = near(name, context.functions)
        raise context.error(f"the module has no function {name}{hint}", node.func, "undefined")
    if node.keywords:
        raise context.error("a function takes its arguments by position", node.keywords[0])
    return call_function(name, [_passed(context, argument) for argument in node.args])


def named_function(context: Context, node: ast.Call) -> Stmt | None:
    """Parse a call that names a function of the module in its first argument.

    `T.call_packed("g", A, B)` and `T.call_tir(Module.g, A, B)` mean `Module.g(A, B)`. A function of
    the module comes before a registered one of its name.

    Returns:
        The call; None for `T.call_packed` of a function that the module does not have.

    Raises:
        ScriptError: If `T.call_tir` names none, or an argument is passed by its name.
    """
    first = node.args[0] if node.args else None
    rest = ast.copy_location(ast.Call(node.func, node.args[1:], node.keywords), node)
    match first:
        case ast.Constant(value=str() as name) if name in (context.functions or ()):
            rest.func = ast.copy_location(ast.Name(name), first)
            return function_call(context, rest)
        case ast.expr() if call_name(node) == "call_tir" and context.is_function(first):
            rest.func = first
            return function_call(context, rest)
        case _ if call_name(node) == "call_tir":
            reason = "T.call_tir takes a function of the module, such as Module.g, then arguments"
            raise context.error(reason, node)
        case _:
            return None


def _passed(context: Context, node: ast.expr) -> Expr:
    """Parse an argument of a function: a buffer, its storage, or a value."""
    if isinstance(node, ast.Name) and isinstance(buffer := context.lookup(node), Buffer):
        return buffer.data
    return _argument(context, node)


def let_in(context: Context, node: ast.Call) -> Expr:
    """Parse `T.Let(body, where={x: value})`: the body with the name replaced by the value.

    Raises:
        ScriptError: If the call names no value.
    """
    two = bind(context, node, ("expr", "where"))
    match two["where"]:
        case ast.Dict(keys=[ast.Name(id=name)], values=[value]):
            computed = expression(context, value)
        case _:
            raise context.error("expected one name and its value: where={x: 1.0}", two["where"])
    with context.scope():
        context.define(name, NamedValue(computed))
        return expression(context, two["expr"])


def reinterpret(context: Context, node: ast.Call) -> Expr:
    """Parse `T.reinterpret("float32", x)`: the bits of a value as those of another type.

    Raises:
        ScriptError: If the size is not a multiple of the size of that type.
    """
    # Older scripts give the value first, and the type by its name.
    is_old = len(node.args) == 1 and any(keyword.arg == "dtype" for keyword in node.keywords)
    two = bind(context, node, ("value", "dtype") if is_old else ("dtype", "value"))
    of, lanes = vector_type(context, two["dtype"])
    value = expression(context, two["value"])
    size = lanes_of(value) * bits(dtype_of(value))
    if size != lanes * bits(of) or "bool" in (of, dtype_of(value)):
        raise context.error(
            f"{size} bits of {dtype_of(value)} can't be reinterpreted as {of}", node, code="type"
        )
    return Call("reinterpret", (value,), of)


def is_nan(context: Context, node: ast.Call) -> Expr:
    """Parse `T.isnan(x)` as `x != x`, which only a NaN satisfies.

    Raises:
        ScriptError: If the argument is not a floating-point value.
    """
    return _differs_from_itself(context, _floating(context, node), node)


def _differs_from_itself(context: Context, value: Expr, origin: ast.AST) -> Expr:
    context.copying(value, 1, origin)
    return Compare("!=", value, value)


def is_inf(context: Context, node: ast.Call) -> Expr:
    """Parse `T.isinf(x)`, as TVM writes it.

    Raises:
        ScriptError: If the argument is not a floating-point value.
    """
    return _is_infinite(context, _floating(context, node), node)


def _is_infinite(context: Context, value: Expr, origin: ast.AST) -> Expr:
    context.copying(value, 1, origin)
    dtype = dtype_of(value)
    infinite = Compare("==", Call("abs", (value,), dtype), FloatImm(float("inf"), dtype))
    return Logic("and", infinite, Not(_differs_from_itself(context, value, origin)))


def is_finite(context: Context, node: ast.Call) -> Expr:
    """Parse `T.isfinite(x)`, as TVM writes it.

    Raises:
        ScriptError: If the argument is not a floating-point value.
    """
    value = _floating(context, node)
    context.copying(value, 1, node)
    is_infinite = _is_infinite(context, value, node)
    return Logic("and", Not(is_infinite), Not(_differs_from_itself(context, value, node)))


def _floating(context: Context, node: ast.Call) -> Expr:
    argument = bind(context, node, ("x",), ("span",))["x"]
    value = expression(context, argument)
    if not is_float(dtype_of(value)):
        raise context.error(
            f"expected a floating-point value, got {dtype_of(value)}", argument, code="type"
        )
    return value


def multiply_shift(context: Context, node: ast.Call) -> Expr:
    """Parse `T.q_multiply_shift(x, y, q, s)`: `x * y * 2 ** (s - q)`, rounded, of int32 numbers.

    Like TVM, it computes with 64 bits, and rounds halves up.

    Raises:
        ScriptError: If the factors are no int32 numbers, or the shifts no constants in range.
    """
    four = bind(context, node, ("x", "y", "q", "s"), ("span",))
    factors = [expression(context, four[name]) for name in ("x", "y")]
    for name, factor in zip(("x", "y"), factors, strict=True):
        if (dtype_of(factor), lanes_of(factor)) != ("int32", 1):
            raise context.error("expected an int32 number", four[name], code="type")
    q, s = (constant_int(context, four[name], "a shift").value for name in ("q", "s"))
    left, right = max(s, 0), q + max(-s, 0)
    if q < 0 or not 1 <= right <= MAX_SHIFT or left > MAX_SHIFT:
        reason = f"shifts by {left} to the left and {right} to the right: expected 1 to {MAX_SHIFT}"
        raise context.error(f"{reason} to the right, and at most {MAX_SHIFT} to the left", node)
    x, y = (Cast("int64", factor) for factor in factors)
    shifted = BinOp("*", x, IntImm(1 << left, "int64")) if left else x
    total = BinOp("+", BinOp("*", shifted, y), IntImm(1 << right - 1, "int64"))
    return Cast("int32", BinOp(">>", total, IntImm(right, "int64")))
