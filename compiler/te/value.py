"""Values and tensors: IR expressions with Python's operators on them.

IR nodes compare by content, so they can't use `==` as an operator that builds more IR. This thin
wrapper can. It also records the tensors that a value reads.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from compiler.ir.core.dtypes import DTYPES, DType, bits, is_float, is_integer, is_signed
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.limits import MAX_DEPTH
from compiler.ir.core.nodes import (
    ArithOp,
    BinOp,
    Cast,
    Compare,
    CompareOp,
    Expr,
    FloatImm,
    IntImm,
    Logic,
    Not,
    Var,
)
from compiler.ir.core.promotion import promoted
from compiler.te.elements import OPERATORS, ElementsOnly, WholeElement, numpy_advice

if TYPE_CHECKING:
    from compiler.te.tensor import Tensor


class Value:
    """A scalar that depends on a position in a tensor: an index, an element, a term.

    Raises:
        ValueError: If it is nested too deeply for a program.
    """

    __slots__ = ("depth", "expr", "tensors")

    def __init__(self, expr: Expr, *operands: Value, tensors: tuple[Tensor, ...] = ()) -> None:
        self.expr = expr
        # A dict keeps the order of first use, which becomes the order of blocks.
        read = dict.fromkeys(tensors)
        for operand in operands:
            read.update(dict.fromkeys(operand.tensors))
        self.tensors: tuple[Tensor, ...] = tuple(read)
        self.depth: int = 1 + max((operand.depth for operand in operands), default=0)
        if self.depth > MAX_DEPTH:
            raise ValueError(
                f"the expression is nested deeper than {MAX_DEPTH} levels: use te.sum, or"
                " define a part as a separate tensor by te.compute"
            )

    @property
    def dtype(self) -> DType:
        """Return the type of the value."""
        return dtype_of(self.expr)

    def astype(self, dtype: DType) -> Value:
        """Convert to another type.

        Raises:
            TypeError: If the type does not exist.
        """
        require_dtype(dtype)
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

    def __and__(self, other: ValueLike) -> Value:
        return _bits("&", self, other)

    def __rand__(self, other: ValueLike) -> Value:
        return _bits("&", other, self)

    def __or__(self, other: ValueLike) -> Value:
        return _bits("|", self, other)

    def __ror__(self, other: ValueLike) -> Value:
        return _bits("|", other, self)

    def __xor__(self, other: ValueLike) -> Value:
        return _bits("^", self, other)

    def __rxor__(self, other: ValueLike) -> Value:
        return _bits("^", other, self)

    def __lshift__(self, other: ValueLike) -> Value:
        return arithmetic("<<", self, other)

    def __rlshift__(self, other: ValueLike) -> Value:
        return arithmetic("<<", other, self)

    def __rshift__(self, other: ValueLike) -> Value:
        return arithmetic(">>", self, other)

    def __rrshift__(self, other: ValueLike) -> Value:
        return arithmetic(">>", other, self)

    def __invert__(self) -> Value:
        if self.dtype == "bool":
            return Value(Not(self.expr), self)
        return _bits("^", self, -1 if is_signed(self.dtype) else 2 ** bits(self.dtype) - 1)

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
            "use te.if_then_else, te.max, te.min, te.all, te.any or te.logical_not"
        )

    def __float__(self) -> NoReturn:
        raise TypeError(
            "a tensor expression is not a number: of functions such as math.exp take those of te, "
            "such as te.exp"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Value:
        """Apply operators of NumPy numbers as Python's operators, and refuse NumPy functions."""
        operate = OPERATORS.get(ufunc.__name__)
        if operate is None or method != "__call__" or len(operands) != 2 or options:
            raise TypeError(numpy_advice(ufunc.__name__))
        result: Value = operate(*(as_value(operand) for operand in operands))
        return result


ValueLike: TypeAlias = Value | int | float


class Variable(Value):
    """A symbolic integer, such as an extent that is known only later."""

    __slots__ = ("var",)

    def __init__(self, var: Var) -> None:
        super().__init__(var)
        self.var = var

    @property
    def name(self) -> str:
        """Return the name, which `PrimFunc.specialize` uses, too."""
        return self.var.name

    # Variables are keys of the mapping that `specialize` takes, so equality is identity.
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.var)


class ReduceAxis(Value):
    """The domain of a reduction: `minimum`, ..., `minimum + extent - 1`."""

    __slots__ = ("extent", "loop")

    def __init__(self, loop: Var, minimum: Expr, extent: Expr) -> None:
        super().__init__(loop if minimum == IntImm(0) else BinOp("+", loop, minimum))
        self.loop = loop
        self.extent = extent

    @property
    def var(self) -> Value:
        """Return the position on the axis, as a value."""
        return Value(self.expr)


def const(value: float, dtype: DType) -> Value:
    """Return a constant of a type.

    Raises:
        TypeError: If the type does not exist, the value is not a number, or a fraction is given for
            an integer type.
    """
    require_dtype(dtype)
    if not hasattr(value, "__float__"):
        raise TypeError(f"expected a number to make a constant of, got {value!r}")
    if is_float(dtype):
        return Value(FloatImm(float(value), dtype))
    if int(value) != value:
        raise TypeError(f"expected a constant of type {dtype}, got {value}")
    return Value(IntImm(int(value), dtype))


def require_dtype(dtype: object) -> None:
    """Raise if a string is not a type of the language.

    Raises:
        TypeError: If it is not a type.
    """
    if not isinstance(dtype, str) or dtype not in DTYPES:
        names = ", ".join(sorted(DTYPES))
        raise TypeError(f"unknown type {dtype!r}: expected one of {names}")


def as_value(value: ValueLike | Var, dtype: DType | None = None) -> Value:
    """Wrap a Python number as a constant: of `dtype` if given, else int32, float32 or bool."""
    if isinstance(value, Value):
        return value
    if isinstance(value, Var):
        return Value(value)
    if isinstance(value, int):
        return const(value, dtype or ("bool" if isinstance(value, bool) else "int32"))
    if isinstance(value, float):
        return const(value, dtype if dtype is not None and is_float(dtype) else "float32")
    if isinstance(value, np.generic):
        return as_value(value.item(), dtype)
    if hasattr(value, "__index__"):  # a sampled number of a schedule
        return as_value(operator.index(value), dtype)
    if isinstance(value, WholeElement):
        value.refuse()
    hint = ": take an element of it, such as A[i, j]" if isinstance(value, ElementsOnly) else ""
    raise TypeError(f"expected a tensor expression or a number, got {value!r}{hint}")


def same_dtype(lhs: ValueLike, rhs: ValueLike, subject: str) -> tuple[Value, Value]:
    """Wrap two operands in one type: a Python number takes the other's, a narrow one is widened.

    Raises:
        TypeError: If they have no common type; `subject` names the operation.
    """
    a = as_value(lhs, rhs.dtype if isinstance(rhs, Value) else None)
    b = as_value(rhs, a.dtype)
    if a.dtype == b.dtype:
        return a, b
    left, right = promoted(a.expr, b.expr)
    if dtype_of(left) != dtype_of(right):
        dtypes = f"{a.dtype} and {b.dtype}"
        raise TypeError(f"{subject} takes operands of one type, got {dtypes}: convert with astype")
    return Value(left, a), Value(right, b)


def arithmetic(op: ArithOp, lhs: ValueLike, rhs: ValueLike) -> Value:
    """Build an arithmetic operation; one without effect, such as `x + 0`, is left out.

    Raises:
        TypeError: If the operands have no common type, or a type that the operation does not take.
    """
    a, b = same_dtype(lhs, rhs, op)
    if op == "/" and not is_float(a.dtype):
        raise TypeError(f"/ divides floating-point values, got {a.dtype}: use // or te.div")
    if op in ("//", "%", "<<", ">>", "&", "|", "^") and not is_integer(a.dtype):
        raise TypeError(f"{op} takes integers, got {a.dtype}")
    if a.dtype == "bool":
        raise TypeError(f"{op} takes numbers, got bool: use te.all, te.any or te.logical_not")
    if _is_number(b, _NEUTRAL_RIGHT.get(op)):
        return a
    if _is_number(a, _NEUTRAL_LEFT.get(op)):
        return b
    return Value(BinOp(op, a.expr, b.expr), a, b)


_NEUTRAL_RIGHT: dict[ArithOp, int] = {"+": 0, "-": 0, "*": 1, "/": 1, "//": 1}
_NEUTRAL_LEFT: dict[ArithOp, int] = {"+": 0, "*": 1}


def _is_number(value: Value, number: int | None) -> bool:
    return isinstance(value.expr, IntImm | FloatImm) and value.expr.value == number


def _bits(op: ArithOp, lhs: ValueLike, rhs: ValueLike) -> Value:
    a, b = same_dtype(lhs, rhs, op)
    if a.dtype == "bool" and op in ("&", "|"):
        return Value(Logic("and" if op == "&" else "or", a.expr, b.expr), a, b)
    return arithmetic(op, a, b)


def _comparison(op: CompareOp, lhs: ValueLike, rhs: ValueLike) -> Value:
    a, b = same_dtype(lhs, rhs, op)
    return Value(Compare(op, a.expr, b.expr), a, b)
