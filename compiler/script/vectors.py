"""Parse vectors: `T.Ramp`, `T.Broadcast`, `T.Shuffle`, and halves that are joined or taken."""

from __future__ import annotations

import ast

from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.lane_calls import shuffle
from compiler.ir.core.limits import MAX_LANES
from compiler.ir.core.llvm_calls import spelled
from compiler.ir.core.nodes import Broadcast, Expr, Ramp
from compiler.script.arguments import bind, vector_type
from compiler.script.context import Context, dialect_name
from compiler.script.expressions import constant_int, expression, index


def ramp(context: Context, node: ast.Call) -> Expr:
    """Parse `T.Ramp(base, stride, lanes)`: integers a stride apart."""
    three = bind(context, node, ("base", "stride", "lanes"))
    stride = constant_int(context, three["stride"], "a stride")
    lanes = constant_int(context, three["lanes"], "a number of lanes")
    context.has_vectors = True
    return Ramp(index(context, three["base"]), stride.value, lanes.value)


def broadcast(context: Context, node: ast.Call) -> Expr:
    """Parse `T.Broadcast(value, lanes)`: copies of a value."""
    two = bind(context, node, ("value", "lanes"))
    lanes = constant_int(context, two["lanes"], "a number of lanes")
    context.has_vectors = True
    return Broadcast(expression(context, two["value"]), lanes.value)


def shuffled(context: Context, node: ast.Call) -> Expr:
    """Parse `T.Shuffle([a, b], [0, 5])`: lanes of vectors, numbered through all of them.

    Raises:
        ScriptError: If there are no vectors of one type, or a lane does not exist.
    """
    two = bind(context, node, ("vectors", "indices"))
    vectors = [expression(context, part) for part in _parts(context, two["vectors"])]
    numbers = [
        constant_int(context, part, "the number of a lane").value
        for part in _parts(context, two["indices"])
    ]
    _check_types(context, vectors, node)
    total = sum(map(lanes_of, vectors))
    for number in numbers:
        if not 0 <= number < total:
            raise context.error(f"lane {number} of {total}: expected 0 to {total - 1}", node)
    return _picked(context, vectors, numbers, node)


def combined(context: Context, node: ast.Call) -> Expr:
    """Parse `T.vectorcombine("int8x16", low, high)`: two vectors as one.

    Raises:
        ScriptError: If the vectors differ in type, or the type of the result is another one.
    """
    # Older scripts give the type by its name, after the vectors.
    is_old = any(keyword.arg == "dtype" for keyword in node.keywords)
    names = ("vec1", "vec2", "dtype") if is_old else ("dtype", "vec1", "vec2")
    three = bind(context, node, names)
    vectors = [expression(context, three[name]) for name in ("vec1", "vec2")]
    _check_types(context, vectors, node)
    joined = _picked(context, vectors, range(sum(map(lanes_of, vectors))), node)
    return _of_type(context, joined, three["dtype"])


def half(context: Context, node: ast.Call) -> Expr:
    """Parse `T.vectorlow("int8x8", v)` or `T.vectorhigh(...)`: a half of a vector.

    Raises:
        ScriptError: If the vector has no halves, or the type of the result is another one.
    """
    is_old = any(keyword.arg == "dtype" for keyword in node.keywords)
    two = bind(context, node, ("vec", "dtype") if is_old else ("dtype", "vec"))
    vector = expression(context, two["vec"])
    lanes = lanes_of(vector)
    if lanes % 2:
        raise context.error(f"a vector of {lanes} lane(s) has no halves", two["vec"], code="type")
    first = lanes // 2 if dialect_name(node.func) == "vectorhigh" else 0
    taken = _picked(context, [vector], range(first, first + lanes // 2), node)
    return _of_type(context, taken, two["dtype"])


def _parts(context: Context, node: ast.expr) -> list[ast.expr]:
    if not isinstance(node, ast.List | ast.Tuple) or not node.elts:
        raise context.error("expected a list, such as [0, 1]", node)
    return node.elts


def _check_types(context: Context, vectors: list[Expr], origin: ast.AST) -> None:
    types = list(dict.fromkeys(map(dtype_of, vectors)))
    if len(types) > 1:
        of = " and ".join(types)
        raise context.error(f"expected vectors of one type, got {of}", origin, code="type")


def _picked(
    context: Context, vectors: list[Expr], numbers: range | list[int], origin: ast.AST
) -> Expr:
    if len(numbers) > MAX_LANES:
        reason = f"a vector of {len(numbers)} lanes: expected {MAX_LANES} at most"
        raise context.error(reason, origin, code="limit")
    context.has_vectors = True
    return shuffle(vectors, numbers, dtype_of(vectors[0]))


def _of_type(context: Context, value: Expr, declared: ast.expr) -> Expr:
    of = vector_type(context, declared)
    if of != (dtype_of(value), lanes_of(value)):
        result = spelled(dtype_of(value), lanes_of(value))
        raise context.error(f"the result is {result}, not {spelled(*of)}", declared, code="type")
    return value
