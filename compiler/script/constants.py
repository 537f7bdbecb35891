"""Replace names of Python constants in a decorated function by their values.

A function that is decorated in Python may use names from its surroundings: sizes, types, tuples of
them. The parser looks them up, and never runs the function to compute them. A script that is only
text has no surroundings.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from compiler.executor.named_type import named_type
from compiler.ir.core.nodes import FloatImm, IntImm
from compiler.script.context import PREFIXES
from compiler.script.error import ScriptError
from compiler.script.source import Source

Surroundings: TypeAlias = Callable[[str], object]
"""Returns the value of a name around the function; raises KeyError if it has none."""

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
# Names of the dialect, even if the surroundings define them, too.
_RESERVED = frozenset({*PREFIXES, "I", "tvm", "range", "TypeVar"})


def inline_constants(
    source: Source, function: ast.FunctionDef, around: Surroundings
) -> ast.FunctionDef:
    """Return a function with the names of surrounding constants replaced by their values.

    Raises:
        ScriptError: If a name refers to something else than a constant.
    """
    inner = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            inner.add(node.id)
    new = _Inliner(source, around, inner | _RESERVED).visit(function)
    assert isinstance(new, ast.FunctionDef)
    return new


class _Inliner(ast.NodeTransformer):
    def __init__(self, source: Source, around: Surroundings, inner: set[str]) -> None:
        self._source = source
        self._around = around
        self._inner = inner
        self._constant_ids: set[int] = set()  # inserted constants, and what was folded from them
        self._keep: list[ast.expr] = []  # keeps the nodes alive, so that no id is used twice

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.args = self.visit(node.args)
        node.body = self._statements(node.body)
        return node  # decorators and the result type stay

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._value(node)
        if value is None:
            return node
        constant = self._constant(value[0], node)
        if constant is None:
            raise self._error(
                f"{node.id} is {named_type(value[0])}: expected a number, a string or a tuple of"
                " them",
                node,
            )
        return constant

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Replace `config.rows`; names of the dialect and `A.data` stay."""
        value = self._value(node)
        constant = None if value is None else self._constant(value[0], node)
        return node if constant is None else constant

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.func = self.visit(node.func) if isinstance(node.func, ast.Attribute) else node.func
        node.args = self._elements(node.args)
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        node.elts = self._elements(node.elts)
        return node

    def visit_List(self, node: ast.List) -> ast.expr:
        node.elts = self._elements(node.elts)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Tuple(elts=elements) as value, slice=position) if (
                id(value) in self._constant_ids
            ):
                index = _number(position)
                if not isinstance(index, int) or not -len(elements) <= index < len(elements):
                    raise self._error(f"expected an index below {len(elements)}", position)
                return elements[index]
            case _:
                return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        compute = _ARITHMETIC.get(type(node.op))
        return self._folded(node, compute, node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) > 1:
            return node
        match node:
            case ast.Compare(
                left=ast.Constant(value=str() as a), comparators=[ast.Constant(value=str() as b)]
            ) if isinstance(node.ops[0], ast.Eq | ast.NotEq):
                return self._put((a == b) == isinstance(node.ops[0], ast.Eq), node)
        compute = _COMPARISONS.get(type(node.ops[0]))
        return self._folded(node, compute, node.left, node.comparators[0])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        value = _number(node.operand)
        if id(node.operand) not in self._constant_ids or value is None:
            return node
        if isinstance(node.op, ast.USub):
            return self._put(-value, node)
        return self._put(not value, node) if isinstance(node.op, ast.Not) else node

    def visit_If(self, node: ast.If) -> ast.If | list[ast.stmt]:
        """Replace an `if use_bias:` with a constant condition by the branch that is taken."""
        node.test = self.visit(node.test)
        is_constant = isinstance(node.test, ast.Constant) and id(node.test) in self._constant_ids
        if is_constant:
            branch = node.body if node.test.value else node.orelse  # type: ignore[attr-defined]
            return self._statements(branch)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test = self.visit(node.test)
        if isinstance(node.test, ast.Constant) and id(node.test) in self._constant_ids:
            branch = node.body if node.test.value else node.orelse
            inlined = self.visit(branch)
            assert isinstance(inlined, ast.expr)
            return inlined
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def _statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        new: list[ast.stmt] = []
        for statement in body:
            inlined = self.visit(statement)
            new.extend(inlined if isinstance(inlined, list) else [inlined])
        return new

    def _elements(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Visit elements; expand `*shape` of a constant shape."""
        new: list[ast.expr] = []
        for node in nodes:
            inlined = self.visit(node)
            match inlined:
                case ast.Starred(value=ast.Tuple(elts=elements)):
                    new.extend(elements)
                case _:
                    new.append(inlined)
        return new

    def _folded(
        self,
        node: ast.expr,
        compute: Callable[[float, float], float] | None,
        left: ast.expr,
        right: ast.expr,
    ) -> ast.expr:
        """Return the result of an operator on inserted constants; None for other operands."""
        a, b = _number(left), _number(right)
        is_known = id(left) in self._constant_ids or id(right) in self._constant_ids
        if compute is None or a is None or b is None or not is_known:
            return node
        try:
            return self._put(compute(a, b), node)
        except (ArithmeticError, ValueError) as error:
            raise self._error(str(error), node) from None

    def _value(self, node: ast.expr) -> tuple[object] | None:
        """Return the value of a name, or of an attribute of it; None if there is none."""
        match node:
            case ast.Name(id=name) if name not in self._inner:
                try:
                    return (self._around(name),)
                except KeyError:
                    return None
            case ast.Attribute(value=inner, attr=attr):
                owner = self._value(inner)
                if owner is None or not hasattr(owner[0], attr):
                    return None
                return (getattr(owner[0], attr),)
            case _:
                return None

    def _constant(self, value: object, origin: ast.expr) -> ast.expr | None:
        """Return the node of a constant; None if the value is not a constant."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.dtype) or (
            isinstance(value, type) and issubclass(value, np.generic)
        ):
            value = np.dtype(value).name
        if isinstance(value, float) and not math.isfinite(value):
            return _call_of_type("float32", str(value), origin)
        if isinstance(value, bool | int | float | str):
            return self._put(value, origin)
        literal = getattr(value, "expr", value)  # a constant of `te` has a literal in it
        if isinstance(literal, IntImm | FloatImm):
            return _call_of_type(literal.dtype, literal.value, origin)
        if isinstance(value, tuple | list):
            elements = [self._constant(element, origin) for element in value]
            if None in elements:
                return None
            elements_node = ast.Tuple(elts=elements, ctx=ast.Load())  # type: ignore[arg-type]
            return self._remember(ast.copy_location(elements_node, origin))
        return None

    def _put(self, value: object, origin: ast.expr) -> ast.expr:
        return self._remember(ast.copy_location(ast.Constant(value=value), origin))  # type: ignore[arg-type]

    def _remember(self, node: ast.expr) -> ast.expr:
        self._constant_ids.add(id(node))
        self._keep.append(node)
        return node

    def _error(self, message: str, node: ast.AST) -> ScriptError:
        return self._source.error(message, node)


def _call_of_type(dtype: str, value: float | str, origin: ast.expr) -> ast.expr:
    """Return the node of a constant of a type, such as `T.int8(3)` or `T.float32("inf")`."""
    func = ast.Attribute(value=ast.Name(id="T", ctx=ast.Load()), attr=dtype, ctx=ast.Load())
    call = ast.Call(func=func, args=[ast.Constant(value=value)], keywords=[])
    for node in ast.walk(call):
        ast.copy_location(node, origin)
    return call


def _number(node: ast.expr) -> int | float | None:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case _:
            return None
