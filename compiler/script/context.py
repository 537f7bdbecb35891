"""What the parser knows at a place: the names in scope, and where each IR node came from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from compiler.ir.nodes import BinOp, Buffer, Expr, IntImm, Var
from compiler.script.error import ScriptError, near
from compiler.script.source import Source

Node = TypeVar("Node")

# What a script may call the dialect.
PREFIXES = frozenset({"T", "tir", "tirx"})


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop variable or block iterator; its values start at `minimum`, `var` at zero."""

    var: Var
    minimum: int
    extent: Expr

    @property
    def value(self) -> Expr:
        """The value that the script's name stands for."""
        if self.minimum == 0:
            return self.var
        return BinOp("+", self.var, IntImm(self.minimum))


Entity: TypeAlias = Buffer | Axis


class Context:
    """Names and positions while one function is parsed.

    Expressions hold calls and calls hold expressions; `parse_call` is how the former reach the
    latter.
    """

    def __init__(self, source: Source, parse_call: Callable[[Context, ast.Call], Expr]) -> None:
        self.parse_call = parse_call
        self._source = source
        self._scopes: list[dict[str, Entity]] = [{}]
        # The nodes are kept with their places, so that no id is given twice.
        self._places: dict[int, tuple[object, ast.AST]] = {}

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
        for scope in reversed(self._scopes):
            if name.id in scope:
                return scope[name.id]
        known = {known for scope in self._scopes for known in scope}
        raise self.error(f"unknown name {name.id}{near(name.id, known)}", name)

    def at(self, node: Node, place: ast.AST) -> Node:
        """Remember where an IR node came from."""
        self._places.setdefault(id(node), (node, place))
        return node

    def place_of(self, node: object) -> ast.AST | None:
        """Return where an IR node came from."""
        return self._places.get(id(node), (None, None))[1]

    def error(self, message: str, place: ast.AST) -> ScriptError:
        """Return an error at a place in the script."""
        return self._source.error(message, place)


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
