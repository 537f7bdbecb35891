"""What the parser knows at a place: the names in scope, and where each IR node came from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias, TypeVar

from compiler.identity_cache import IdentityCache
from compiler.ir.arith.bounds import Interval
from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Buffer, Expr, IntImm, Var
from compiler.ir.core.visit import walk
from compiler.script.error import ScriptError, near
from compiler.script.source import Source

Node = TypeVar("Node")

# What a script may call the dialect.
PREFIXES = frozenset({"T", "tir", "tirx"})

_MAX_SUBSTITUTED = 5_000


@dataclass(frozen=True, slots=True)
class BlockAxis:
    """A loop variable or block iterator; `var` starts at zero, the script's name perhaps not."""

    var: Var
    extent: Expr
    minimum: Expr
    step: int = 1

    @property
    def value(self) -> Expr:
        """The value that the script's name stands for."""
        scaled: Expr = self.var
        if self.step != 1:
            scaled = BinOp("*", self.var, IntImm(self.step, dtype_of(self.minimum)))
        return scaled if _is_zero(self.minimum) else BinOp("+", scaled, self.minimum)


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A name for an expression: a variable, or what `T.meta_var` abbreviates."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class Handle:
    """A parameter that is yet to be matched with a buffer."""

    name: str


@dataclass(frozen=True, slots=True)
class ThreadBinding:
    """A thread that is named before it is launched."""

    tag: str


Entity: TypeAlias = Buffer | BlockAxis | NamedValue | Handle | ThreadBinding


class Context:
    """Names and positions while one function is parsed.

    Expressions hold calls and calls hold expressions; `parse_call` is how the former reach the
    latter.
    """

    def __init__(self, source: Source, parse_call: Callable[[Context, ast.Call], Expr]) -> None:
        self.parse_call = parse_call
        self._source = source
        self._scopes: list[dict[str, Entity]] = [{}]
        # The types of symbolic variables that the body declares after the signature names them.
        self.symbol_dtypes: dict[str, DType] = {}
        self.asked_offsets: frozenset[str] = frozenset()  # buffers whose offset the text speaks of
        self.functions: frozenset[str] = frozenset()  # the names of all functions of the text
        self.has_vectors = False  # whether a vector was parsed: most programs have none
        self._substituted = 0
        # The nodes are kept with their places, so that no id is given twice.
        self._places: IdentityCache[object, ast.AST] = IdentityCache()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget, at the end, the names that were defined inside."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def define(self, name: str, entity: Entity) -> None:
        """Let a name stand for a buffer or an axis from here to the end of the scope."""
        self._scopes[-1][name] = entity

    def lookup(self, name: ast.Name) -> Entity:
        """Return what a name stands for.

        Raises:
            ScriptError: If the name is not defined here.
        """
        found = self.get(name.id)
        if found is not None:
            return found
        known = {known for scope in self._scopes for known in scope}
        raise self.error(f"unknown name {name.id}{near(name.id, known)}", name)

    def get(self, name: str) -> Entity | None:
        """Return what a name stands for; None if it is not defined here."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def is_outer(self, name: str) -> bool:
        """Tell whether a name is defined around the innermost scope, and not in it."""
        return name not in self._scopes[-1] and self.get(name) is not None

    def value_of(self, entity: BlockAxis | NamedValue, place: ast.AST) -> Expr:
        """Return the expression that a name stands for.

        Raises:
            ScriptError: If names for names for names have grown without bounds.
        """
        value = entity.value if isinstance(entity, BlockAxis) else entity.expr
        self.copying(value, 1, place)
        return value

    def copying(self, value: Expr, copies: int, place: ast.AST) -> None:
        """Count the operations that a text adds to the program by writing `value` only once.

        Copies of copies would grow exponentially, so all of them together are limited.

        Args:
            value: What a name, or the argument of a function, stands for.
            copies: How often it is added to the program.
            place: The name or the function.

        Raises:
            ScriptError: If that is more than a program may have.
        """
        if isinstance(value, Var | IntImm):
            return
        size = sum(1 for _ in islice(walk(value), _MAX_SUBSTITUTED + 1))
        self._substituted += copies * size
        if self._substituted > _MAX_SUBSTITUTED:
            raise self.error(
                f"names and functions stand for more than {_MAX_SUBSTITUTED} operations in all",
                place,
            )

    def is_function(self, node: ast.expr) -> bool:
        """Tell whether a node names a function of the module: `g`, `Module.g` or `cls.g`."""
        match node:
            case ast.Name(id=name):
                return name in self.functions and self.get(name) is None
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                return owner == "cls" or (name in self.functions and self.get(owner) is None)
            case _:
                return False

    def ranges(self) -> dict[Var, Interval]:
        """Return the values that loop variables and iterators in scope take, where it is known."""
        axes = (e for scope in self._scopes for e in scope.values() if isinstance(e, BlockAxis))
        return {
            axis.var: (0, axis.extent.value - 1) for axis in axes if isinstance(axis.extent, IntImm)
        }

    def at(self, node: Node, place: ast.AST) -> Node:
        """Remember where an IR node came from."""
        self._places.find(node, lambda _: place)  # the first place stays
        return node

    def place_of(self, node: object) -> ast.AST | None:
        """Return where an IR node came from."""
        return self._places.get(node)

    def error(self, message: str, place: ast.AST) -> ScriptError:
        """Return an error at a place in the script."""
        return self._source.error(message, place)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0


def dialect_name(node: ast.AST) -> str | None:
    """Return "axis.spatial" for `T.axis.spatial`, whatever the prefix; None for other nodes."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in PREFIXES and parts:
        return ".".join(reversed(parts))
    return None


def call_name(node: ast.AST | None) -> str | None:
    """Return "grid" for `T.grid(...)`; None for other nodes."""
    return dialect_name(node.func) if isinstance(node, ast.Call) else None
