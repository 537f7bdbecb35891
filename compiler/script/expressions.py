"""Parse expressions."""

from __future__ import annotations

import ast

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import bits, is_integer, is_signed, wrapped
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.limits import MAX_DEPTH
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Compare,
    CompareOp,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Logic,
    LogicOp,
    Not,
    Ramp,
    Select,
)
from compiler.script.arithmetic import combine
from compiler.script.context import Context, Handle, MutableScalar, ThreadBinding
from compiler.script.error import described, near
from compiler.script.extents import extent_between, same_type, strides_of
from compiler.script.literals import match_types, number

# A chain of n conditions becomes n nested nodes, and the verifier limits the depth.
_MAX_CHAIN = MAX_DEPTH

_COMPARISONS: dict[type[ast.cmpop], CompareOp] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def expression(context: Context, node: ast.expr) -> Expr:
    """Parse an expression.

    Raises:
        ScriptError: If the node is not an expression of the dialect.
    """
    return context.at(_expression(context, node), node)


def _expression(context: Context, node: ast.expr) -> Expr:  # noqa: C901 - a case each
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return _constant(context, node, value)
        case ast.Name():
            return _name(context, node)
        case ast.Subscript(value=ast.Attribute() as attribute):
            return _described(context, attribute, node.slice)
        case ast.Subscript():
            return Load(*element(context, node))
        case ast.Attribute(attr="elem_offset"):
            return _described(context, node, None)
        case ast.BinOp(left=left, op=op, right=right):
            lhs, rhs = (expression(context, left), left), (expression(context, right), right)
            return combine(context, op, lhs, rhs, node)
        case ast.UnaryOp():
            return _unary(context, node)
        case ast.BoolOp(op=logic, values=values):
            return logical(context, "and" if isinstance(logic, ast.And) else "or", values, node)
        case ast.Compare():
            return _comparison(context, node)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return choice(context, Conditional, (test, body, orelse), node)
        case ast.Call():
            return context.parse_call(context, node)
        case _:
            raise context.error(f"expected a value, got {described(node)}", node)


def _described(context: Context, node: ast.Attribute, dimension: ast.expr | None) -> Expr:
    """Parse `A.strides[0]`, `A.shape[0]` or `A.elem_offset`."""
    buffer = context.lookup(node.value) if isinstance(node.value, ast.Name) else None
    if not isinstance(buffer, Buffer):
        raise context.error("expected the name of a buffer", node.value)
    if node.attr == "elem_offset" and dimension is None:
        return IntImm(0) if buffer.elem_offset is None else buffer.elem_offset
    parts = {"shape": buffer.shape, "strides": strides_of(buffer)}.get(node.attr)
    if parts is None:
        hint = near(node.attr, ("shape", "strides", "elem_offset"))
        raise context.error(f"a buffer has no {node.attr}{hint}", node)
    assert dimension is not None
    number = constant_int(context, dimension, "a dimension").value
    if not 0 <= number < len(parts):
        raise context.error(
            f"{buffer.name} has {len(parts)} dimension(s), got {number}", dimension, code="rank"
        )
    return parts[number]


def element(context: Context, node: ast.Subscript) -> tuple[Buffer, tuple[Expr, ...]]:
    """Parse an element of a buffer, or several as a vector: `A[i, 0:8]`.

    Raises:
        ScriptError: If the node is neither, or the number of indices is not that of dimensions.
    """
    buffer, items = subscript(context, node)
    return buffer, tuple(
        _vector(context, item) if isinstance(item, ast.Slice) else index(context, item)
        for item in items
    )


def _vector(context: Context, slice_node: ast.Slice) -> Expr:
    """Parse the index `i:i + 8` or `0:16:2`."""
    if slice_node.lower is None or slice_node.upper is None:
        raise context.error("expected both ends of the slice, such as 0:8", slice_node)
    start, stop = same_type(index(context, slice_node.lower), index(context, slice_node.upper))
    step = 1 if slice_node.step is None else constant_int(context, slice_node.step, "a step").value
    length = simplify(BinOp("-", stop, start))
    if not isinstance(length, IntImm):
        raise context.error("expected a slice of constant length", slice_node)
    if step < 1 or length.value < 1:
        raise context.error(f"a slice of length {length.value} with step {step}", slice_node)
    lanes = -(-length.value // step)
    if lanes == 1:
        return start
    context.has_vectors = True
    return Ramp(start, step, lanes)


def subscript(context: Context, node: ast.Subscript) -> tuple[Buffer, list[ast.expr]]:
    """Parse the buffer of a subscript; return it with the index nodes, one a dimension.

    Raises:
        ScriptError: If it is not a buffer, or the number of indices is wrong.
    """
    if not isinstance(node.value, ast.Name):
        raise context.error("expected the name of a buffer", node.value)
    buffer = context.lookup(node.value)
    if not isinstance(buffer, Buffer):
        raise context.error(
            f"{node.value.id} is not a buffer: it can't be indexed", node.value, code="type"
        )
    places = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    lanes = context.lanes_of_elements.get(buffer.data)
    is_of_vectors = lanes is not None
    if is_of_vectors:
        ends = (ast.Constant(0), ast.Constant(lanes))
        all_lanes = ast.Slice(*(ast.copy_location(end, node) for end in ends))
        places.append(ast.copy_location(all_lanes, node))
    if len(places) != len(buffer.shape):
        raise context.error(
            f"{node.value.id} has {len(buffer.shape) - is_of_vectors} dimension(s), "
            f"got {len(places) - is_of_vectors} index(es)",
            node,
            code="rank",
        )
    return buffer, places


def index(context: Context, node: ast.expr) -> Expr:
    """Parse an integer.

    Raises:
        ScriptError: If it has another type.
    """
    parsed = expression(context, node)
    if not is_integer(dtype_of(parsed)):
        raise context.error(f"expected an integer, got {dtype_of(parsed)}", node, code="type")
    return parsed


def condition(context: Context, node: ast.expr) -> Expr:
    """Parse a condition.

    Raises:
        ScriptError: If its type is not bool.
    """
    parsed = expression(context, node)
    if dtype_of(parsed) != "bool":
        raise context.error(f"expected a condition, got {dtype_of(parsed)}", node, code="type")
    return parsed


def constant_int(context: Context, node: ast.expr, subject: str) -> IntImm:
    """Parse an integer constant.

    Raises:
        ScriptError: If the node is not constant; `subject` names it in the message.
    """
    value = simplify(index(context, node))
    if not isinstance(value, IntImm):
        raise context.error(f"expected {subject} as a constant", node)
    if wrapped(value.value, value.dtype) != value.value:
        raise context.error(f"{subject} of {value.value} does not fit into {value.dtype}", node)
    return value


def interval(context: Context, first: ast.expr, last: ast.expr) -> tuple[Expr, Expr]:
    """Parse the two ends of a range; return its first value and its length.

    Raises:
        ScriptError: If an end is not an integer.
    """
    start, stop = same_type(index(context, first), index(context, last))
    start = simplify(start)
    return start, extent_between(start, stop)


def pair(context: Context, left: ast.expr, right: ast.expr, origin: ast.AST) -> tuple[Expr, Expr]:
    """Parse two operands of one type.

    Raises:
        ScriptError: If their types differ.
    """
    lhs, rhs = expression(context, left), expression(context, right)
    return match_types(context, (lhs, left), (rhs, right), origin)


def logical(context: Context, op: LogicOp, values: list[ast.expr], origin: ast.AST) -> Expr:
    """Parse a conjunction or disjunction of any number of conditions.

    Raises:
        ScriptError: If an operand is not a condition.
    """
    _check_chain(context, len(values), origin)
    total = condition(context, values[0])
    for value in values[1:]:
        total = Logic(op, total, condition(context, value))
    return total


def choice(
    context: Context,
    node: type[Conditional | Select],
    parts: tuple[ast.expr, ast.expr, ast.expr],
    origin: ast.AST,
) -> Expr:
    """Parse a conditional expression: a condition and two values.

    Raises:
        ScriptError: If the condition is not one, or the values have different types.
    """
    test = condition(context, parts[0])
    then, otherwise = pair(context, parts[1], parts[2], origin)
    return node(test, then, otherwise)


def _constant(context: Context, node: ast.expr, value: float) -> Expr:
    if isinstance(value, bool):
        return IntImm(int(value), "bool")
    return number(context, value, "int32" if isinstance(value, int) else "float32", node)


def _name(context: Context, node: ast.Name) -> Expr:
    entity = context.lookup(node)
    match entity:
        case Buffer():
            raise context.error(f"buffer {node.id} is used without indices", node)
        case Handle():
            raise context.error(f"{node.id} is a handle: match it with T.match_buffer", node)
        case ThreadBinding():
            raise context.error(
                f"{node.id} is not launched yet: T.launch_thread({node.id}, 4)", node
            )
        case MutableScalar(buffer):
            return Load(buffer, (IntImm(0),))
        case _:
            return context.value_of(entity, node)


def _unary(context: Context, node: ast.UnaryOp) -> Expr:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return _constant(context, node, -value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Not(condition(context, operand))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return expression(context, operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _negative(context, operand)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return complement(context, operand)
        case _:
            raise context.error(
                f"{described(node.op)} is not part of the dialect", node, code="unsupported"
            )


def _negative(context: Context, operand: ast.expr) -> Expr:
    value = expression(context, operand)
    dtype = dtype_of(value)
    match value:
        case FloatImm(literal):
            return FloatImm(-literal, dtype)
        case IntImm(literal) if is_integer(dtype):
            return number(context, -literal, dtype, operand)
    if dtype == "bool":
        raise context.error(
            "- does not take an operand of type bool: use `not`", operand, code="type"
        )
    # Not `0 - x`, which would lose the sign of a zero.
    return BinOp("*", value, number(context, -1, dtype, operand))


def complement(context: Context, operand: ast.expr) -> Expr:
    """Parse `~x`: the complement of the bits of an integer, or the negation of a condition.

    Raises:
        ScriptError: If the operand is neither an integer nor a condition.
    """
    value = expression(context, operand)
    dtype = dtype_of(value)
    if dtype == "bool":
        return Not(value)
    if not is_integer(dtype):
        raise context.error(f"~ does not take an operand of type {dtype}", operand, code="type")
    ones = -1 if is_signed(dtype) else 2 ** bits(dtype) - 1
    return BinOp("^", value, IntImm(ones, dtype))


def _comparison(context: Context, node: ast.Compare) -> Expr:
    _check_chain(context, len(node.ops), node)
    total: Expr | None = None
    left = node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        if type(op) not in _COMPARISONS:
            raise context.error(
                f"{described(op)} is not part of the dialect", node, code="unsupported"
            )
        lhs, rhs = pair(context, left, right, node)
        link = Compare(_COMPARISONS[type(op)], lhs, rhs)
        total = link if total is None else Logic("and", total, link)
        left = right
    assert total is not None
    return total


def _check_chain(context: Context, length: int, origin: ast.AST) -> None:
    if length > _MAX_CHAIN:
        raise context.error(
            f"a chain of {length} conditions: expected {_MAX_CHAIN} at most",
            origin,
            code="limit",
        )
