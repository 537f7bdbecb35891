"""Match the description of a tensor intrinsic in a program, and find its buffers.

The two are compared statement by statement: loops, blocks and values must be the same except for
the names of variables and buffers. A buffer of the description stands for a box of one of the
program's buffers: its trailing dimensions start at a base, and its leading dimensions have fixed
indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.iter_map import Extents, variables_of
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Range,
    Seq,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.visit import operands_of, same_operation, substitute, walk
from compiler.ir.text.print_expr import show_expr

_Part = TypeVar("_Part")


class MismatchError(Exception):
    """The program does not match the description; the message names the difference."""


@dataclass(frozen=True, slots=True)
class MatchedBuffer:
    """The location of a buffer of the description in the program."""

    buffer: Buffer
    base: tuple[Expr, ...]

    def region(self, shape: Sequence[Expr]) -> BufferRegion:
        """Return the box of a shape that starts at the base."""
        leading = len(self.base) - len(shape)
        sizes = [1] * leading + [e.value for e in shape if isinstance(e, IntImm)]
        ranges = zip(self.base, sizes, strict=True)
        return BufferRegion(
            self.buffer, tuple(Range(b, IntImm(size, dtype_of(b))) for b, size in ranges)
        )


class Matcher:
    """Compares statements of a program with those of a description.

    Args:
        params: The description's parameters, each of which stands for a buffer of the program.
        extents: The extents of the program's variables around the statements.
    """

    def __init__(self, params: Sequence[Buffer], extents: Extents) -> None:
        self.places: dict[Buffer, MatchedBuffer] = {}
        self._params = set(params)
        self._extents: dict[Var, int] = dict(extents)
        self._vars: dict[Var, Expr] = {}
        self._bound: set[Var] = set()  # variables of the program that are bound inside
        self._locals: dict[Buffer, Buffer] = {}

    # Statements

    def stmt(self, ours: Stmt, theirs: Stmt) -> None:
        """Compare two statements.

        Raises:
            MismatchError: If they differ.
        """
        match ours, theirs:
            case For(), For():
                self._loop(ours, theirs)
            case BlockRealize(), BlockRealize():
                self._realize(ours, theirs)
            case Seq(a), Seq(b):
                self._all(a, b, self.stmt, "consecutive statements")
            case Store(buffer, indices, value), Store(other, expected_indices, expected):
                self._access(buffer, indices, other, expected_indices)
                self.expr(value, expected)
            case If(condition, then, otherwise), If(expected, then_too, otherwise_too):
                self.expr(condition, expected)
                self.stmt(then, then_too)
                self._optional(otherwise, otherwise_too, "an else")
            case While(condition, body), While(expected, body_too):
                self.expr(condition, expected)
                self.stmt(body, body_too)
            case Let(var, value, body), Let(expected_var, expected, body_too):
                self.expr(value, expected)
                self._bind(var, expected_var, None)
                self.stmt(body, body_too)
            case Evaluate(value), Evaluate(expected):
                self.expr(value, expected)
            case _:
                raise MismatchError(_difference(_kind(ours), _kind(theirs)))

    def _loop(self, ours: For, theirs: For) -> None:
        name = ours.var.name
        if not (isinstance(ours.extent, IntImm) and isinstance(theirs.extent, IntImm)):
            raise MismatchError(f"the extent of loop {name} is symbolic")
        if ours.extent.value != theirs.extent.value:
            sizes = f"{ours.extent.value} iterations: the description has {theirs.extent.value}"
            raise MismatchError(f"loop {name} has {sizes}")
        if (ours.kind, ours.thread) != (theirs.kind, theirs.thread):
            raise MismatchError(f"loop {name} is {ours.kind}: the description's is {theirs.kind}")
        if ours.annotations != theirs.annotations:
            raise MismatchError(f"the annotations of loop {name} differ from the description's")
        self._bind(ours.var, theirs.var, ours.extent.value)
        self.stmt(ours.body, theirs.body)

    def _realize(self, ours: BlockRealize, theirs: BlockRealize) -> None:
        a, b = ours.block, theirs.block
        self._all(ours.iter_values, theirs.iter_values, self.index, f"iterators of block {a.name}")
        self.expr(ours.predicate, theirs.predicate)
        for mine, expected in zip(a.iter_vars, b.iter_vars, strict=True):
            if mine.kind != expected.kind:
                kinds = f"{mine.kind}: the description's is {expected.kind}"
                raise MismatchError(f"iterator {mine.var.name} is {kinds}")
            self.index(mine.extent, expected.extent)
            size = mine.extent.value if isinstance(mine.extent, IntImm) else None
            self._bind(mine.var, expected.var, size)
        if a.match_buffers or b.match_buffers:
            raise MismatchError(f"block {a.name}, or that of the description, has views")
        self._all(a.alloc_buffers, b.alloc_buffers, self._local, f"buffers of block {a.name}")
        self.block_body(a, b)

    def block_body(self, ours: Block, theirs: Block) -> None:
        """Compare the bodies of two blocks, including their inits."""
        self._optional(ours.init, theirs.init, "an init")
        self.stmt(ours.body, theirs.body)

    def _local(self, ours: Buffer, theirs: Buffer) -> None:
        same = (ours.shape, ours.dtype, ours.scope) == (theirs.shape, theirs.dtype, theirs.scope)
        if not same or ours.strides or theirs.strides:
            raise MismatchError(f"buffer {ours.name} differs from {theirs.name} of the description")
        self._locals[theirs] = ours

    # Expressions

    def expr(self, ours: Expr, theirs: Expr) -> None:
        """Compare two values.

        Raises:
            MismatchError: If they differ.
        """
        if isinstance(ours, Load) and isinstance(theirs, Load):
            self._access(ours.buffer, ours.indices, theirs.buffer, theirs.indices)
        elif isinstance(ours, Var) and isinstance(theirs, Var) and self._vars.get(theirs) is ours:
            return
        elif _is_number(ours) and _is_number(theirs):
            self._number(ours, theirs)
        elif same_operation(ours, theirs):
            self._operands(operands_of(ours), operands_of(theirs), _is_commutative(ours))
        else:
            self._differ(ours, theirs)

    def _operands(self, ours: Sequence[Expr], theirs: Sequence[Expr], is_commutative: bool) -> None:
        """Compare operands in their order, or the two of a sum or product in the other one."""
        places = dict(self.places)
        try:
            for mine, expected in zip(ours, theirs, strict=True):
                self.expr(mine, expected)
        except MismatchError as mismatch:
            if not is_commutative:
                raise
            self.places = places
            try:
                self._operands(ours[::-1], theirs, is_commutative=False)
            except MismatchError:
                raise mismatch from None

    def _number(self, ours: Expr, theirs: Expr) -> None:
        if dtype_of(ours) != dtype_of(theirs) or not self._is_equal(ours, theirs):
            self._differ(ours, theirs)

    def _differ(self, ours: Expr, theirs: Expr) -> NoReturn:
        raise MismatchError(_difference(show_expr(ours), show_expr(theirs)))

    def index(self, ours: Expr, theirs: Expr) -> None:
        """Compare two indices; their integer types may differ.

        Raises:
            MismatchError: If they differ.
        """
        if not self._is_equal(ours, theirs):
            self._differ(ours, theirs)

    def _is_equal(self, ours: Expr, theirs: Expr) -> bool:
        difference = normal(ours, self._extents) - self._theirs(theirs)
        return not difference.terms and difference.const == 0

    def _theirs(self, expr: Expr) -> Affine:
        return normal(substitute(expr, self._vars), self._extents)

    # Buffers

    def _access(
        self, ours: Buffer, indices: Sequence[Expr], theirs: Buffer, places: Sequence[Expr]
    ) -> None:
        matched_local = self._locals.get(theirs)
        if matched_local is not None:
            if matched_local != ours:
                raise MismatchError(_difference(f"buffer {ours.name}", f"buffer {theirs.name}"))
            self._all(indices, places, self.index, f"indices of {ours.name}")
            return
        if (ours.dtype, ours.scope) != (theirs.dtype, theirs.scope):
            kinds = (
                f"is {ours.dtype} in {ours.scope} memory: {theirs.name} of the description is "
                f"{theirs.dtype} in {theirs.scope} memory"
            )
            raise MismatchError(f"buffer {ours.name} {kinds}")
        leading = len(indices) - len(places)
        if leading < 0:
            raise MismatchError(
                f"buffer {ours.name} has {len(indices)} dimension(s): {theirs.name} of the "
                f"description has {len(places)}"
            )
        base = tuple(
            self._base(ours, index, None if n < leading else places[n - leading])
            for n, index in enumerate(indices)
        )
        matched_buffer = self.places.setdefault(theirs, MatchedBuffer(ours, base))
        if matched_buffer.buffer != ours:
            names = f"{matched_buffer.buffer.name} and {ours.name}"
            raise MismatchError(f"buffers {names} both match {theirs.name} of the description")
        if matched_buffer.base != base:
            raise MismatchError(
                f"accesses to {ours.name} do not have the offsets that they have in the description"
            )

    def _base(self, buffer: Buffer, index: Expr, described_index: Expr | None) -> Expr:
        """Return the start of the description's buffer along a dimension."""
        form = normal(index, self._extents)
        if described_index is not None:
            form -= self._theirs(described_index)
        if variables_of(form) & self._bound:
            reason = f"buffer {buffer.name} is indexed by {show_expr(index)}"
            if described_index is not None:
                reason += f": the description has {show_expr(described_index)}"
            raise MismatchError(reason)
        return form.to_expr()

    # Parts

    def _bind(self, ours: Var, theirs: Var, extent: int | None) -> None:
        self._vars[theirs] = ours
        self._bound.add(ours)
        if extent is not None:
            self._extents[ours] = extent

    def _optional(self, ours: Stmt | None, theirs: Stmt | None, subject: str) -> None:
        if (ours is None) != (theirs is None):
            raise MismatchError(
                _difference(subject if ours else "none", subject if theirs else "none")
            )
        if ours is not None and theirs is not None:
            self.stmt(ours, theirs)

    def _all(
        self,
        ours: Sequence[_Part],
        theirs: Sequence[_Part],
        compare: Callable[[_Part, _Part], None],
        subject: str,
    ) -> None:
        if len(ours) != len(theirs):
            raise MismatchError(_difference(f"{len(ours)} {subject}", str(len(theirs))))
        for a, b in zip(ours, theirs, strict=True):
            compare(a, b)


def _is_commutative(expr: Expr) -> bool:
    """Return whether the operands of an operation may change places without another result."""
    return isinstance(expr, BinOp) and expr.op in ("+", "*")


def _is_number(expr: Expr) -> bool:
    """Return whether an expression is an integer that depends on loops alone."""
    return all(
        isinstance(node, BinOp)
        or (isinstance(node, Var | IntImm) and node.dtype != "handle" and is_integer(node.dtype))
        for node in walk(expr)
    )


def _difference(ours: str, theirs: str) -> str:
    return f"the program has {ours}: the description has {theirs}"


def _kind(stmt: Stmt) -> str:
    match stmt:
        case For(var=var):
            return f"loop {var.name}"
        case BlockRealize(block=block):
            return f"block {block.name}"
        case Store(buffer=buffer):
            return f"a store to {buffer.name}"
        case _:
            return f"a {type(stmt).__name__} statement"
