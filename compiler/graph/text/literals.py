"""Parse what stands in a graph's text as it is: extents, types, attributes, constants."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from compiler.graph import extents
from compiler.graph.extents import Extent, Shape, symbol
from compiler.graph.nodes import Array, Attr, Constant, TensorType, constant
from compiler.graph.text.spell import DIGEST
from compiler.ir.core.dtypes import DTYPES, DType
from compiler.ir.core.nodes import Var
from compiler.script.source import Source

_OPERATORS: Mapping[type[ast.operator], Callable[[Extent, Extent], Extent]] = {
    ast.Add: extents.add,
    ast.Sub: extents.subtract,
    ast.Mult: extents.multiply,
    ast.FloorDiv: extents.floor_divide,
}


def dotted(node: ast.expr) -> str:
    """Return a name with its attributes, such as `R.nn.relu`; empty for anything else."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, attr):
            return f"{prefix}.{attr}" if (prefix := dotted(value)) else ""
        case _:
            return ""


def relax_name(node: ast.expr) -> str:
    """Return a name of Relax without its prefix, such as `nn.relu`; empty for other names."""
    prefix, _, name = dotted(node).partition(".")
    return name if prefix in {"R", "relax"} else ""


class Literals:
    """Reads the literals of one graph, whose symbols it declares when they are first named.

    Args:
        source: The text.
        constants: Elements by digest, for constants that the text names by it.
    """

    def __init__(self, source: Source, constants: Mapping[str, Array]) -> None:
        self._source = source
        self._constants = constants
        self.symbols: dict[str, Var] = {}

    def attr(self, node: ast.expr) -> Attr:
        """Return the value of an attribute.

        Raises:
            ScriptError: If it is no literal.
        """
        match node:
            case ast.Constant(str() | float() | bool() | None as value):
                return value
            case ast.Tuple(items) | ast.List(items):
                return tuple(self.attr(item) for item in items)
            case ast.Call(func, [argument]) if relax_name(func) == "shape":
                return self.attr(argument)
            case ast.Call(func, [ast.Constant(str() as text)]) if _dtype(func) == "float64":
                return float(text)
            case ast.UnaryOp(ast.USub(), ast.Constant(float() as value)):
                return -value
            case _:
                return self.extent(node)

    def extent(self, node: ast.expr) -> Extent:
        """Return an integer, or an expression of symbols.

        Raises:
            ScriptError: If it is neither.
        """
        match node:
            case ast.Constant(int() as value) if not isinstance(value, bool):
                return value
            case ast.Constant(str() as text):
                return self._quoted(text, node)
            case ast.Name(name) if name in self.symbols:
                return self.symbols[name]
            case ast.UnaryOp(ast.USub(), operand):
                return extents.multiply(self.extent(operand), -1)
            case ast.Call(func, [argument]) if _dtype(func) in {"int32", "int64"}:
                return self.extent(argument)
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                return self._combined(_OPERATORS[type(op)], left, right, node)
            case _:
                raise self._source.error("expected a number, a tuple, or a symbol", node)

    def declare(self, name: str) -> None:
        """Declare a symbol, unless the signature did."""
        self.symbols.setdefault(name, symbol(name))

    def tensor_type(self, node: ast.expr) -> TensorType:
        """Return the type of an annotation, such as `R.Tensor((1, "n"), "float32")`.

        Raises:
            ScriptError: If it is no type, or lacks the shape or the data type.
        """
        if not (isinstance(node, ast.Call) and relax_name(node.func) == "Tensor"):
            raise self._source.error('expected a type, such as R.Tensor((1, 8), "float32")', node)
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        match parts:
            case [ast.Tuple(items) | ast.List(items), ast.Constant(str() as dtype)]:
                return TensorType(self._shape(items), self._checked_dtype(dtype, parts[1]))
            case _:
                raise self._source.error(
                    'a tensor needs its shape and its data type: R.Tensor((1, 8), "float32")', node
                )

    def types(self, node: ast.expr) -> tuple[TensorType, ...]:
        """Return the types of an annotation: one, those of `R.Tuple(...)`, or of a list."""
        match node:
            case ast.Call(func, [ast.List(items)]) if relax_name(func) == "Tuple":
                return tuple(self.tensor_type(item) for item in items)
            case ast.Call(func, items) if relax_name(func) == "Tuple":
                return tuple(self.tensor_type(item) for item in items)
            case ast.List(items) | ast.Tuple(items):
                return tuple(self.tensor_type(item) for item in items)
            case _:
                return (self.tensor_type(node),)

    def constant(self, node: ast.Call) -> Constant:
        """Return the constant of `R.const(0.5, "float32")`.

        Raises:
            ScriptError: If the elements do not form an array of that type.
        """
        match [*node.args, *(keyword.value for keyword in node.keywords)]:
            case [ast.Constant(str() as text), kind] if text.startswith(DIGEST):
                return self._named_constant(text.removeprefix(DIGEST), self.tensor_type(kind), node)
            case [elements, ast.Constant(str() as dtype)]:
                element_type = self._checked_dtype(dtype, node)
                try:
                    return constant(np.array(self._elements(elements), dtype=element_type))
                except (ValueError, OverflowError) as error:
                    raise self._source.error(f"no array of {dtype}: {error}", node) from None
            case _:
                raise self._source.error(
                    'expected a value and its type: R.const(0.5, "float32")', node
                )

    def _named_constant(self, digest: str, kind: TensorType, node: ast.Call) -> Constant:
        array = self._constants.get(digest)
        if array is None:
            return Constant(digest, kind)
        made = constant(array)
        if made.type != kind or made.digest != digest:
            raise self._source.error(f"the constant that was passed for it is {made.type}", node)
        return made

    def _elements(self, node: ast.expr) -> object:
        match node:
            case ast.List(items) | ast.Tuple(items):
                return [self._elements(item) for item in items]
            case ast.Constant(bool() | int() | float() as value):
                return value
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
                return -value
            case ast.Call(func, [ast.Constant(str() as text)]) if _dtype(func) == "float64":
                return float(text)
            case _:
                raise self._source.error("expected numbers", node)

    def _shape(self, items: Sequence[ast.expr]) -> Shape:
        shape = tuple(self.extent(item) for item in items)
        for extent, item in zip(shape, items, strict=True):
            if isinstance(extent, int) and extent < 0:
                raise self._source.error(f"an extent of {extent}: expected 0 or more", item)
        return shape

    def _quoted(self, text: str, node: ast.expr) -> Extent:
        """Return the extent of a quoted expression; its names are symbols."""
        try:
            parsed = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._source.error(f"{text!r} is no extent", node) from None
        for part in ast.walk(parsed):
            ast.copy_location(part, node)
            if isinstance(part, ast.Name):
                self.declare(part.id)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                raise self._source.error(f"{text!r} is no extent", node)
        return self.extent(parsed)

    def _combined(
        self,
        combine: Callable[[Extent, Extent], Extent],
        left: ast.expr,
        right: ast.expr,
        node: ast.expr,
    ) -> Extent:
        divisor = self.extent(right)
        if divisor == 0 and combine is extents.floor_divide:
            raise self._source.error("division by zero", node)
        result = combine(self.extent(left), divisor)
        if isinstance(result, int) and not -(2**63) <= result < 2**63:
            raise self._source.error("the number does not fit into int64", node)
        return result

    def _checked_dtype(self, dtype: str, node: ast.expr) -> DType:
        if dtype not in DTYPES:
            raise self._source.error(f"there is no data type {dtype!r}", node)
        return cast(DType, dtype)


def _dtype(node: ast.expr) -> str:
    """Return the type that is called, as in `T.float64("inf")`; empty for other calls."""
    prefix, _, name = dotted(node).partition(".")
    return name if prefix in {"T", "tir"} else ""
