"""The parser's context: the names in scope, and the source position of each IR node."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias, TypeVar

from compiler.error_codes import ScriptErrorCode
from compiler.identity_cache import IdentityCache
from compiler.ir.arith.bounds import Interval
from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Buffer, Expr, IntImm, Var
from compiler.ir.core.visit import walk
from compiler.script.error import ScriptError, near
from compiler.script.source import Source

Node = TypeVar("Node")

# The module names that a script may use for the dialect.
PREFIXES = frozenset({"T", "tir", "tirx"})

# A chosen bound: values of names that are made of names may grow exponentially.
_MAX_SUBSTITUTED = 5_000


@dataclass(frozen=True, slots=True)
class BlockAxis:
    """A loop variable or block iterator; `var` starts at zero, but the script's name may not."""

    var: Var
    extent: Expr
    minimum: Expr
    step: int = 1

    @property
    def value(self) -> Expr:
        """Return the value of the script's name."""
        scaled: Expr = self.var
        if self.step != 1:
            scaled = BinOp("*", self.var, IntImm(self.step, dtype_of(self.minimum)))
        return scaled if _is_zero(self.minimum) else BinOp("+", scaled, self.minimum)


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A name for an expression: a variable, or an abbreviation made by `T.meta_var`."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class Handle:
    """A parameter without a buffer so far."""

    name: str


@dataclass(frozen=True, slots=True)
class ThreadBinding:
    """A named thread that is not launched yet."""

    tag: str


@dataclass(frozen=True, slots=True)
class MutableScalar:
    """A named value that changes: the element of a buffer."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class MemoryView:
    """A buffer on the memory of another one, from an offset in its elements on."""

    buffer: Buffer
    memory: Buffer
    offset: int
    origin: ast.AST


Entity: TypeAlias = Buffer | BlockAxis | NamedValue | MutableScalar | Handle | ThreadBinding


class Context:
    """Names and positions while one function is parsed.

    Expressions and calls contain each other. `parse_call` gives the expression parser access to the
    call parser without an import cycle.
    """

    def __init__(self, source: Source, parse_call: Callable[[Context, ast.Call], Expr]) -> None:
        self.parse_call = parse_call
        self._source = source
        self._scopes: list[dict[str, Entity]] = [{}]
        # The types of symbolic variables: the signature uses them before the body declares them.
        self.symbol_dtypes: dict[str, DType] = {}
        self.asked_offsets: frozenset[str] = frozenset()  # buffers whose offset the text uses
        # The buffers that allocated memory holds, by the memory's variable.
        self.memories: dict[Var, Buffer] = {}
        # The views of memory that has several, by their own variables.
        self.views: dict[Var, MemoryView] = {}
        # The functions that may be called, and the classes that hold them; None if the others of
        # the class are not parsed yet.
        self.functions: frozenset[str] | None = frozenset()
        self.modules: frozenset[str] = frozenset({"cls"})
        # The declarations of scalars that change, and the buffers of the innermost block, if any.
        self.changing_declarations: frozenset[ast.AnnAssign] = frozenset()
        self.block_buffers: list[Buffer] | None = None
        # The lanes of each element of buffers of vectors, whose last dimension they are.
        self.lanes_of_elements: dict[Var, int] = {}
        self.has_vectors = False  # whether a vector was parsed: most programs have none
        self._substituted = 0
        # The cache keeps the nodes alive, so that no id is used twice.
        self._source_nodes: IdentityCache[object, ast.AST] = IdentityCache()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope: forget the names that are defined inside when it ends."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def define(self, name: str, entity: Entity) -> None:
        """Bind a name to a buffer or an axis, from here to the end of the scope."""
        self._scopes[-1][name] = entity

    def lookup(self, name: ast.Name) -> Entity:
        """Return the entity that a name refers to.

        Raises:
            ScriptError: If the name is not defined here.
        """
        entity = self.get(name.id)
        if entity is not None:
            return entity
        defined = {defined for scope in self._scopes for defined in scope}
        raise self.error(f"unknown name {name.id}{near(name.id, defined)}", name, code="undefined")

    def get(self, name: str) -> Entity | None:
        """Return the entity that a name refers to; None if it is not defined here."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def is_outer(self, name: str) -> bool:
        """Return whether a name is defined around the innermost scope, and not in it."""
        return name not in self._scopes[-1] and self.get(name) is not None

    def value_of(self, entity: BlockAxis | NamedValue, origin: ast.AST) -> Expr:
        """Return the expression that a name stands for.

        Raises:
            ScriptError: If names that refer to names expand to too many operations.
        """
        value = entity.value if isinstance(entity, BlockAxis) else entity.expr
        self.copying(value, 1, origin)
        return value

    def copying(self, value: Expr, copies: int, origin: ast.AST) -> None:
        """Count the operations that the program gains because a text uses `value` several times.

        Copies of copies would grow exponentially, so their total is limited.

        Args:
            value: The value of a name, or an argument of a function.
            copies: The number of times that it is added to the program.
            origin: The name or the function.

        Raises:
            ScriptError: If the total exceeds what a program may have.
        """
        if isinstance(value, Var | IntImm):
            return
        size = sum(1 for _ in islice(walk(value), _MAX_SUBSTITUTED + 1))
        self._substituted += copies * size
        if self._substituted > _MAX_SUBSTITUTED:
            raise self.error(
                f"names and functions expand to more than {_MAX_SUBSTITUTED} operations",
                origin,
                code="limit",
            )

    def is_function(self, node: ast.expr) -> bool:
        """Return whether a node names a function of the module: `g`, `Module.g` or `cls.g`."""
        functions = self.functions or ()
        match node:
            case ast.Name(id=name):
                return name in functions and self.get(name) is None
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                return self.get(owner) is None and (owner in self.modules or name in functions)
            case _:
                return False

    def ranges(self) -> dict[Var, Interval]:
        """Return the ranges of loop variables and iterators in scope, if constant."""
        axes = (e for scope in self._scopes for e in scope.values() if isinstance(e, BlockAxis))
        return {
            axis.var: (0, axis.extent.value - 1) for axis in axes if isinstance(axis.extent, IntImm)
        }

    def at(self, node: Node, origin: ast.AST) -> Node:
        """Remember the source position of an IR node, and return the node."""
        self._source_nodes.find(node, lambda _: origin)  # the first position stays
        return node

    def source_node_of(self, node: object) -> ast.AST | None:
        """Return the source position of an IR node."""
        return self._source_nodes.get(node)

    def error(self, message: str, origin: ast.AST, code: ScriptErrorCode = "syntax") -> ScriptError:
        """Return an error at a position in the script."""
        return self._source.error(message, origin, code)


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
