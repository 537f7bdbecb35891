"""Print expressions of programs as CUDA C++, with the results that docs/numerics.md defines."""

from __future__ import annotations

from compiler.backends.cuda.text.calls import CudaCalls
from compiler.backends.cuda.text.indices import (
    PRODUCT,
    SUM,
    UNARY,
    flat_index,
    needs_64_bits,
    print_index,
)
from compiler.backends.cuda.text.scope import KernelScope
from compiler.backends.cuda.text.types import (
    check_is_float,
    float_literal,
    integer_literal,
)
from compiler.backends.error import BuildError
from compiler.ir.arith.bounds import bounds
from compiler.ir.arith.overflow import may_wrap
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import DType, bits, is_float, is_integer, is_narrow_float, is_signed
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    StringImm,
    Var,
)

_PRIMARY = 16
_SHIFT, _ORDER, _EQUALITY = 11, 10, 9
_TERNARY = 3
_LEVELS = {
    "*": PRODUCT,
    "/": PRODUCT,
    "+": SUM,
    "-": SUM,
    "<<": _SHIFT,
    ">>": _SHIFT,
    "&": 8,
    "^": 7,
    "|": 6,
    "and": 5,
    "or": 4,
}
_LOGIC = {"and": "&&", "or": "||"}
_WRAPPING = ("+", "-", "*")


class CudaExpressions:
    """Prints expressions under the bindings of a scope.

    Args:
        scope: The surroundings of the expressions.
    """

    def __init__(self, scope: KernelScope) -> None:
        self._scope = scope
        self._calls = CudaCalls(scope, self.value)

    def simplified(self, expr: Expr) -> Expr:
        """Return an expression, such as a condition, simplified by the ranges of variables."""
        return simplify(expr, self._scope.ranges)

    def assigned(self, expr: Expr) -> str:
        """Print a value that is assigned to a variable or element of its type."""
        if isinstance(expr, BinOp) and self._wraps(expr):
            return self._modular(expr, SUM)
        return self.value(expr, 0)

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """Print an element of a buffer, which may be assigned to."""
        form = flat_index(buffer, indices, self._scope)
        wide = needs_64_bits(buffer, form, self._scope.ranges)
        index = print_index(form, self._scope, self.value, wide=wide)
        return f"{self._scope.names[buffer.data]}[{index}]"

    def value(self, expr: Expr, parent: int = 0) -> str:  # noqa: C901 - one case a node
        """Print an expression inside an operator that binds as tightly as `parent`."""
        match expr:
            case Var():
                return self._scope.names[expr]
            case IntImm():
                return integer_literal(expr)
            case FloatImm():
                return self._float(expr)
            case BinOp():
                return self._binary(expr, parent)
            case Compare(op, lhs, rhs):
                level = _EQUALITY if op in ("==", "!=") else _ORDER
                return self._infix(op, level, lhs, rhs, parent)
            case Logic(op, lhs, rhs):
                return self._infix(_LOGIC[op], _LEVELS[op], lhs, rhs, parent)
            case Not(inner):
                return f"!{self.value(inner, UNARY)}"
            case Select(condition, then, otherwise) | Conditional(condition, then, otherwise):
                return self._choice(condition, then, otherwise, parent)
            case Cast(dtype, inner):
                return self._cast(dtype, inner, parent)
            case Load(buffer, indices):
                return self._scope.replaced.get(expr) or self.element(buffer, indices)
            case Call():
                return self._calls.call(expr, parent)
            case Ramp() | Broadcast():
                raise BuildError("CUDA has no vector of integers outside of a store", "codegen")
            case StringImm():
                raise AssertionError("a string names a function, and is not a value")

    def _float(self, literal: FloatImm) -> str:
        text = float_literal(literal)
        for name in ("INFINITY", "NAN"):
            if text.endswith(name):
                self._scope.helper(name)
        return text

    def _infix(self, op: str, level: int, lhs: Expr, rhs: Expr, parent: int) -> str:
        # Operators group to the left: a - (b - c) is not a - b - c.
        text = f"{self.value(lhs, level)} {op} {self.value(rhs, level + 1)}"
        return _parenthesised(text, needed=level < parent)

    def _choice(self, condition: Expr, then: Expr, otherwise: Expr, parent: int) -> str:
        test = self.simplified(condition)
        if isinstance(test, IntImm):
            return self.value(then if test.value else otherwise, parent)
        text = (
            f"{self.value(test, _TERNARY + 1)} ? {self.value(then, _TERNARY + 1)}"
            f" : {self.value(otherwise, _TERNARY)}"
        )
        return _parenthesised(text, needed=parent >= _TERNARY)

    # --- arithmetic -----------------------------------------------------------------------------

    def _binary(self, expr: BinOp, parent: int) -> str:
        op, lhs, rhs = expr.op, expr.lhs, expr.rhs
        dtype = dtype_of(lhs)
        if dtype == "bool":
            return self._of_bools(expr, parent)
        if op in ("min", "max"):
            helper = f"{op}imum" if is_float(dtype) else ""
            function = self._scope.helper(helper) if helper else op
            return f"{function}({self.value(lhs)}, {self.value(rhs)})"
        if is_float(dtype):
            if op == "//":
                function = "floor" if dtype == "float64" else "floorf"
                return f"{function}({self._infix('/', PRODUCT, lhs, rhs, 0)})"
            return self._infix(op, _LEVELS[op], lhs, rhs, parent)
        if op in ("//", "%"):
            return self._division(expr, dtype, parent)
        if op in ("<<", ">>"):
            return self._shift(expr, dtype, parent)
        if self._wraps(expr):
            text = f"({self._scope.value_type(dtype)})({self._modular(expr, SUM)})"
            return _parenthesised(text, needed=parent > UNARY)
        return self._infix(op, _LEVELS[op], lhs, rhs, parent)

    def _of_bools(self, expr: BinOp, parent: int) -> str:
        op = {"min": "&", "max": "|", "*": "&", "+": "|"}.get(expr.op, expr.op)
        if op not in ("&", "|", "^"):
            check_is_float("bool", f"operator {expr.op}")
        return self._infix(op, _LEVELS[op], expr.lhs, expr.rhs, parent)

    def _division(self, expr: BinOp, dtype: DType, parent: int) -> str:
        """Print a division that rounds down: C++'s own, if both operands are known to suit it."""
        divisor = bounds(expr.rhs, self._scope.ranges)
        is_natural = not is_signed(dtype) or self._scope.is_natural(expr.lhs)
        if is_natural and divisor is not None and divisor[0] >= 1:
            op = "/" if expr.op == "//" else "%"
            return self._infix(op, PRODUCT, expr.lhs, expr.rhs, parent)
        return self._typed_call("floor_div" if expr.op == "//" else "floor_mod", expr, dtype)

    def _shift(self, expr: BinOp, dtype: DType, parent: int) -> str:
        distance = bounds(expr.rhs, self._scope.ranges)
        is_inside = distance is not None and 0 <= distance[0] <= distance[1] < bits(dtype)
        if is_inside and (expr.op == ">>" or bits(dtype) >= 32):
            return self._infix(expr.op, _SHIFT, expr.lhs, expr.rhs, parent)
        return self._typed_call("shift_left" if expr.op == "<<" else "shift_right", expr, dtype)

    def _typed_call(self, name: str, expr: BinOp, dtype: DType) -> str:
        # Literals and sums of narrow integers are `int` in C++: the type of the template is named.
        type_ = "" if dtype == "int32" else f"<{self._scope.value_type(dtype)}>"
        function = self._scope.helper(name)
        return f"{function}{type_}({self.value(expr.lhs)}, {self.value(expr.rhs)})"

    def _wraps(self, expr: BinOp) -> bool:
        """Return whether integer arithmetic may overflow, which C++ defines for unsigned only."""
        dtype = dtype_of(expr)
        if expr.op not in _WRAPPING or not is_integer(dtype) or dtype in ("uint32", "uint64"):
            return False
        return may_wrap(expr)

    def _modular(self, expr: Expr, parent: int) -> str:
        """Print arithmetic that wraps around, in the unsigned type of at least its width."""
        dtype = dtype_of(expr)
        if isinstance(expr, BinOp) and expr.op in _WRAPPING:
            level = _LEVELS[expr.op]
            text = (
                f"{self._modular(expr.lhs, level)} {expr.op} {self._modular(expr.rhs, level + 1)}"
            )
            return _parenthesised(text, needed=level < parent)
        if isinstance(expr, IntImm):
            return self.value(expr, parent)
        if isinstance(expr, Cast) and is_integer(dtype_of(expr.value)) and dtype == "int32":
            expr = expr.value  # one conversion instead of two of the same bits
        unsigned = self._scope.value_type("uint64") if dtype == "int64" else "unsigned"
        return f"({unsigned}){self.value(expr, UNARY)}"

    # --- conversions ----------------------------------------------------------------------------

    def _cast(self, dtype: DType, inner: Expr, parent: int) -> str:
        source = dtype_of(inner)
        if dtype == source or (dtype == "float32" and is_narrow_float(source)):
            return self.value(inner, parent)
        if dtype == "bool":
            zero = "0.0f" if is_float(source) else "0"
            text = f"{self.value(inner, _EQUALITY)} != {zero}"
            return _parenthesised(text, needed=parent > _EQUALITY)
        if is_narrow_float(dtype):
            return f"{self._scope.storage_type(dtype)}({self.value(inner)})"
        text = f"({self._scope.value_type(dtype)}){self.value(inner, UNARY)}"
        return _parenthesised(text, needed=parent > UNARY)


def _parenthesised(text: str, *, needed: bool) -> str:
    return f"({text})" if needed else text
