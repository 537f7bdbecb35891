"""Nodes of the loop IR, with the semantics of TensorIR (Feng et al., ASPLOS 2023).

Nodes are values: frozen, compared by content, shared freely. A pass never edits a node: it
returns a new one. Only `Var` is compared by identity, so two different loops may both be called
`i`. A `Buffer` is identified by its `data` variable.

Loops and block iterators start at zero: a `range(2, 8)` in a script becomes a loop of extent 6
whose body reads `i + 2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from compiler.ir.core.dtypes import DType
from compiler.ir.core.frozen import frozen

ArithOp: TypeAlias = Literal["+", "-", "*", "/", "//", "%", "min", "max", "&", "|", "^", "<<", ">>"]
CompareOp: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]
LogicOp: TypeAlias = Literal["and", "or"]
LoopKind: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled", "thread_binding"]
IterKind: TypeAlias = Literal["spatial", "reduce", "scan", "opaque"]
Scalar: TypeAlias = str | int | float | bool


@frozen
class AnnotationDict:
    """A mapping as the value of an annotation."""

    items: tuple[tuple[str, AnnotationValue], ...]


AnnotationValue: TypeAlias = "Scalar | tuple[AnnotationValue, ...] | AnnotationDict"
Annotations: TypeAlias = tuple[tuple[str, AnnotationValue], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A variable: a loop variable, a block iterator, a named value, or a symbolic extent.

    A variable of dtype "handle" is the storage of a buffer. `limits` are the least and the greatest
    value of a symbolic extent in a program that is lowered
    (`compiler.ir.analysis.symbol_ranges`).
    """

    name: str
    dtype: DType | Literal["handle"] = "int32"
    limits: tuple[int, int] | None = None


class HasVar(Protocol):
    """An object that stands for a variable when programs are written, such as `te.var("n")`."""

    @property
    def var(self) -> Var:
        """Return the variable."""
        ...


SymbolValues: TypeAlias = Mapping["Var | HasVar | str", int]
"""Values of symbolic variables, by variable or by name."""


@frozen
class IntImm:
    """An integer or bool literal."""

    value: int
    dtype: DType = "int32"

    def __int__(self) -> int:
        return self.value


@frozen
class FloatImm:
    """A floating-point literal."""

    value: float
    dtype: DType = "float32"


@frozen
class StringImm:
    """A string literal: an argument of an opaque call."""

    value: str


@frozen
class BinOp:
    """An arithmetic or bit operation on two expressions of one dtype.

    `//` and `%` are Python's: they round towards minus infinity. `/` is for floats.
    """

    op: ArithOp
    lhs: Expr
    rhs: Expr


@frozen
class Compare:
    """A comparison of two expressions of one dtype; its own dtype is bool."""

    op: CompareOp
    lhs: Expr
    rhs: Expr


@frozen
class Logic:
    """A conjunction or disjunction of two bools."""

    op: LogicOp
    lhs: Expr
    rhs: Expr


@frozen
class Not:
    """The negation of a bool."""

    value: Expr


@frozen
class Select:
    """`T.Select`: evaluates both sides and takes one."""

    condition: Expr
    then: Expr
    otherwise: Expr


@frozen
class Conditional:
    """`T.if_then_else`: evaluates only the side that it takes, so it may guard a load."""

    condition: Expr
    then: Expr
    otherwise: Expr


@frozen
class Cast:
    """A conversion of `value` to `dtype`."""

    dtype: DType
    value: Expr


@frozen
class Call:
    """A call by name: of a pure function in `compiler.ir.core.intrinsics`, or of an opaque one.

    Opaque calls (`compiler.ir.core.opaque`) have an effect, or pass information to passes. They may
    take strings, and buffers as the handle variables of their storage.
    """

    name: str
    args: tuple[Expr, ...]
    dtype: DType


@frozen
class Load:
    """The element of `buffer` at `indices`."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@frozen
class Ramp:
    """The vector `base, base + stride, ...` of `lanes` integers."""

    base: Expr
    stride: int
    lanes: int


@frozen
class Broadcast:
    """The vector of `lanes` copies of `value`."""

    value: Expr
    lanes: int


@frozen
class Buffer:
    """An array: shape in elements, type, and memory scope; dense and row-major.

    Scopes: "global" (parameters, workspace), "local" (registers), and those of GPUs
    ("shared", "wmma.accumulator", ...).

    A buffer that a block matches with a region of another buffer may be strided. `strides` are in
    elements, one a dimension, or empty for a dense buffer. `elem_offset` is the position of its
    first element in the storage. It is a multiple of `offset_factor`, which is 0 if nothing is
    promised. Variables in these fields are bound by the match.
    """

    data: Var
    shape: tuple[Expr, ...]
    dtype: DType
    scope: str = "global"
    strides: tuple[Expr, ...] = ()
    elem_offset: Expr | None = None
    offset_factor: int = 0

    @property
    def name(self) -> str:
        """Return the name of the storage variable."""
        return self.data.name

    def __hash__(self) -> int:
        """Hash by the storage variable, which identifies the buffer."""
        return hash(self.data)


@frozen
class Range:
    """The interval `minimum, ..., minimum + extent - 1`."""

    minimum: Expr
    extent: Expr


@frozen
class BufferRegion:
    """A box of a buffer, one range a dimension."""

    buffer: Buffer
    region: tuple[Range, ...]


@frozen
class MatchBuffer:
    """A view of a region of another buffer, with its own shape, strides and scope."""

    buffer: Buffer
    source: BufferRegion


@frozen
class Evaluate:
    """Evaluate an expression for its effect."""

    value: Expr


@frozen
class Let:
    """Run `body` with `var` bound to the current value of `value`."""

    var: Var
    value: Expr
    body: Stmt


@frozen
class Store:
    """Write `value` to `buffer` at `indices`."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@frozen
class Seq:
    """Run `stmts` one after another; there are at least two, and none is a Seq itself."""

    stmts: tuple[Stmt, ...]


@frozen
class If:
    """Run `then` if `condition` holds, else `otherwise`."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None


@frozen
class While:
    """Run `body` again and again, as long as `condition` holds; it may never end."""

    condition: Expr
    body: Stmt


@frozen
class For:
    """Run `body` for `var` in 0, 1, ..., `extent` - 1, in the way of `kind`."""

    var: Var
    extent: Expr
    body: Stmt
    kind: LoopKind = "serial"
    thread: str | None = None
    annotations: Annotations = ()


@frozen
class IterVar:
    """A block iterator over 0, 1, ..., `extent` - 1."""

    var: Var
    extent: Expr
    kind: IterKind


@frozen
class Block:
    """The unit of scheduling: one computation over its iterators.

    `init` runs at the first point of the reduction iterators. `reads` and `writes` are regions in
    terms of the iterators. `alloc_buffers` live as long as one run of the block. The buffers of
    `match_buffers` are views of regions of other buffers, for use in init and body.
    """

    name: str
    iter_vars: tuple[IterVar, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    annotations: Annotations = ()
    match_buffers: tuple[MatchBuffer, ...] = ()


@frozen
class BlockRealize:
    """Run `block` with its iterators bound to `iter_values`, if `predicate` holds."""

    iter_values: tuple[Expr, ...]
    predicate: Expr
    block: Block


@frozen
class Allocate:
    """Allocate `buffer` while `body` runs; made by lowering, after blocks are gone."""

    buffer: Buffer
    body: Stmt


Expr: TypeAlias = (
    Var
    | IntImm
    | FloatImm
    | StringImm
    | BinOp
    | Compare
    | Logic
    | Not
    | Select
    | Conditional
    | Cast
    | Call
    | Load
    | Ramp
    | Broadcast
)
Stmt: TypeAlias = Store | Evaluate | Let | Seq | If | While | For | BlockRealize | Allocate

TRUE = IntImm(1, "bool")
FALSE = IntImm(0, "bool")


def seq(*stmts: Stmt) -> Stmt:
    """Join statements into one, flattening nested sequences."""
    flat: list[Stmt] = []
    for stmt in stmts:
        flat.extend(stmt.stmts if isinstance(stmt, Seq) else (stmt,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def make_buffer(
    name: str, shape: tuple[int, ...], dtype: DType = "float32", scope: str = "global"
) -> Buffer:
    """Return a new buffer of a static shape."""
    return Buffer(Var(name, "handle"), tuple(IntImm(n) for n in shape), dtype, scope)


def static_shape(buffer: Buffer) -> tuple[int, ...]:
    """Return the extents of a buffer.

    Raises:
        ValueError: If an extent is symbolic.
    """
    return tuple(
        static_int(extent, f"an extent of buffer {buffer.name}") for extent in buffer.shape
    )


def static_int(expr: Expr, subject: str = "an extent") -> int:
    """Return the value of an integer literal.

    Raises:
        ValueError: If `expr` is not a literal; `subject` names it.
    """
    if not isinstance(expr, IntImm):
        raise ValueError(f"{subject} is symbolic: expected an integer literal")
    return expr.value
