"""Values and tensors: IR expressions with Python's operators on them.

IR nodes are compared by content, so they can't carry `==` as an operator that builds more IR;
this thin wrapper can. It also remembers which tensors a value reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from compiler.ir.dtypes import DType, is_float, is_integer
from compiler.ir.nodes import (
    Annotations,
    ArithOp,
    BinOp,
    Buffer,
    Cast,
    Compare,
    CompareOp,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Var,
    dtype_of,
)


class Value:
    """A scalar that depends on the place in a tensor: an index, an element, a term."""

    __slots__ = ("expr", "tensors")

    def __init__(self, expr: Expr, *operands: Value, tensors: tuple[Tensor, ...] = ()) -> None:
        self.expr = expr
        # A dict keeps the order of first use, which is the order of blocks later.
        read = dict.fromkeys(tensors)
        for operand in operands:
            read.update(dict.fromkeys(operand.tensors))
        self.tensors: tuple[Tensor, ...] = tuple(read)

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        return dtype_of(self.expr)

    def astype(self, dtype: DType) -> Value:
        """Convert to another type."""
        return self if dtype == self.dtype else Value(Cast(dtype, self.expr), self)

    def __add__(self, other: ValueLike) -> Value:
        return arithmetic("+", self, other)

    def __radd__(self, other: ValueLike) -> Value:
        return arithmetic("+", other, self)

    def __sub__(self, other: ValueLike) -> Value:
        return arithmetic("-", self, other)

    def __rsub__(self, other: ValueLike) -> Value:
        return arithmetic("-", other, self)

    def __mul__(self, other: ValueLike) -> Value:
        return arithmetic("*", self, other)

    def __rmul__(self, other: ValueLike) -> Value:
        return arithmetic("*", other, self)

    def __truediv__(self, other: ValueLike) -> Value:
        return arithmetic("/", self, other)

    def __rtruediv__(self, other: ValueLike) -> Value:
        return arithmetic("/", other, self)

    def __floordiv__(self, other: ValueLike) -> Value:
        return arithmetic("//", self, other)

    def __rfloordiv__(self, other: ValueLike) -> Value:
        return arithmetic("//", other, self)

    def __mod__(self, other: ValueLike) -> Value:
        return arithmetic("%", self, other)

    def __rmod__(self, other: ValueLike) -> Value:
        return arithmetic("%", other, self)

    def __neg__(self) -> Value:
        # Not `0 - x`, which would lose the sign of a zero.
        return arithmetic("*", self, -1)

    def __lt__(self, other: ValueLike) -> Value:
        return _comparison("<", self, other)

    def __le__(self, other: ValueLike) -> Value:
        return _comparison("<=", self, other)

    def __gt__(self, other: ValueLike) -> Value:
        return _comparison(">", self, other)

    def __ge__(self, other: ValueLike) -> Value:
        return _comparison(">=", self, other)

    def __eq__(self, other: ValueLike) -> Value:  # type: ignore[override]
        return _comparison("==", self, other)

    def __ne__(self, other: ValueLike) -> Value:  # type: ignore[override]
        return _comparison("!=", self, other)

    __hash__ = None  # type: ignore[assignment]  # what == builds is no truth value

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "the truth of a tensor expression is not known while it is being built: "
            "use te.if_then_else, te.all, te.any or te.logical_not"
        )


ValueLike: TypeAlias = Value | int | float
Combiner: TypeAlias = Literal["+", "*", "min", "max"]


class ReduceAxis(Value):
    """What a reduction runs over: `minimum`, ..., `minimum + extent - 1`."""

    __slots__ = ("extent", "minimum", "var")

    def __init__(self, var: Var, minimum: int, extent: int) -> None:
        super().__init__(var if minimum == 0 else BinOp("+", var, IntImm(minimum)))
        self.var = var
        self.minimum = minimum
        self.extent = extent


@dataclass(frozen=True, slots=True)
class Reduction:
    """The combination of `value` over all places of `axes`; the whole value of an element."""

    combiner: Combiner
    value: Value
    axes: tuple[ReduceAxis, ...]
    identity: Value


@dataclass(frozen=True, slots=True)
class Definition:
    """How a tensor is computed: its element at `indices` is `value`."""

    indices: tuple[Var, ...]
    value: Value | Reduction
    attrs: Annotations = ()


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor of a static shape; an input has no definition."""

    buffer: Buffer
    shape: tuple[int, ...]
    definition: Definition | None = None

    @property
    def name(self) -> str:
        """The name, which its buffer and its block get."""
        return self.buffer.name

    @property
    def dtype(self) -> DType:
        """The type of an element."""
        return self.buffer.dtype

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that this one is computed from, in the order of first use."""
        if self.definition is None:
            return ()
        value = self.definition.value
        return (value.value if isinstance(value, Reduction) else value).tensors

    def __getitem__(self, indices: ValueLike | tuple[ValueLike, ...]) -> Value:
        """Return the element at a place.

        Raises:
            IndexError: If the number of indices is not the number of dimensions.
            TypeError: If an index is no integer.
        """
        places = [as_value(i) for i in (indices if isinstance(indices, tuple) else (indices,))]
        if len(places) != len(self.shape):
            raise IndexError(
                f"{self.name} has {len(self.shape)} dimension(s), got {len(places)} index(es)"
            )
        for place in places:
            if not is_integer(place.dtype):
                raise TypeError(f"an index of {self.name} has type {place.dtype}: expected int32")
        element = Load(self.buffer, tuple(place.expr for place in places))
        return Value(element, *places, tensors=(self,))

    def __call__(self, *indices: ValueLike) -> Value:
        """Return the element at a place; the same as subscripting."""
        return self[indices]


def const(value: float, dtype: DType) -> Value:
    """Return a constant of a type.

    Raises:
        TypeError: If a number with a fraction is asked for as an integer.
    """
    if is_float(dtype):
        return Value(FloatImm(float(value), dtype))
    if int(value) != value:
        raise TypeError(f"expected a constant of type {dtype}, got {value}")
    return Value(IntImm(int(value), dtype))


def as_value(value: ValueLike, dtype: DType | None = None) -> Value:
    """Wrap a Python number as a constant: of `dtype` if given, else int32, float32 or bool."""
    if isinstance(value, Value):
        return value
    if dtype is not None:
        return const(value, dtype)
    match value:
        case bool():
            return const(value, "bool")
        case int():
            return const(value, "int32")
        case float():
            return const(value, "float32")
        case _:
            raise TypeError(f"expected a tensor expression or a number, got {value!r}")


def same_dtype(lhs: ValueLike, rhs: ValueLike, what: str) -> tuple[Value, Value]:
    """Wrap two operands; a Python number takes the type of the other side.

    Raises:
        TypeError: If the types differ; `what` names the operation.
    """
    a = as_value(lhs, rhs.dtype if isinstance(rhs, Value) else None)
    b = as_value(rhs, a.dtype)
    if a.dtype != b.dtype:
        raise TypeError(
            f"{what} takes operands of one type, got {a.dtype} and {b.dtype}: convert with astype"
        )
    return a, b


def arithmetic(op: ArithOp, lhs: ValueLike, rhs: ValueLike) -> Value:
    """Build an arithmetic operation.

    Raises:
        TypeError: If the operands have types that differ, or that the operation does not take.
    """
    a, b = same_dtype(lhs, rhs, op)
    if op == "/" and not is_float(a.dtype):
        raise TypeError(f"/ divides floating-point values, got {a.dtype}: use //")
    if op in ("//", "%") and not is_integer(a.dtype):
        raise TypeError(f"{op} takes integers, got {a.dtype}")
    if a.dtype == "bool":
        raise TypeError(f"{op} takes numbers, got bool: use te.all, te.any or te.logical_not")
    return Value(BinOp(op, a.expr, b.expr), a, b)


def _comparison(op: CompareOp, lhs: ValueLike, rhs: ValueLike) -> Value:
    a, b = same_dtype(lhs, rhs, op)
    return Value(Compare(op, a.expr, b.expr), a, b)
