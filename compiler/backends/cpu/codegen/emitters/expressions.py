"""Expressions: from IR to instructions, scalar or a vector at a time.

A value that does not depend on the vectorized variable stays scalar until it meets a vector.
Floating-point arithmetic may be contracted (multiply and add fused), and nothing else: no
reassociation, no assumption about NaN or infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from compiler.backends.cpu.codegen.emitters.addresses import Addresses
from compiler.backends.cpu.codegen.emitters.calls import Calls
from compiler.backends.cpu.codegen.emitters.conditions import Conditions
from compiler.backends.cpu.codegen.emitters.loads import Loads
from compiler.backends.cpu.codegen.emitters.scope import CodeScope, LaneRange
from compiler.backends.cpu.codegen.operations.conversions import Conversions
from compiler.backends.cpu.codegen.operations.dot_products import DotProducts
from compiler.backends.cpu.codegen.operations.integer_division import divide, floor_divide, shift
from compiler.backends.cpu.codegen.operations.masked_accesses import MaskedAccesses
from compiler.backends.cpu.codegen.operations.rounding import rounded_sum
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import literal, scalar_type, vector
from compiler.ir.analysis.small_integers import is_small
from compiler.ir.arith.bounds import bounds
from compiler.ir.core.dtypes import DType, bits, is_float, is_integer, is_signed
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    ArithOp,
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
from compiler.ir.core.visit import walk
from compiler.target.cpu import CpuTarget

_FLOAT_OPS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INT_OPS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_PREDICATES = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_INDEX: DType = "int64"

T = TypeVar("T")


def _is_product(expr: Expr) -> bool:
    return isinstance(expr, BinOp) and expr.op == "*"


class Expressions:
    """Emits expressions under the bindings and the mask of a scope.

    Args:
        instructions: The instructions of the function.
        scope: The surroundings of the expressions.
        target: The CPU.
        small: The buffers that hold only integers from 0 to 127.
    """

    def __init__(
        self,
        instructions: Instructions,
        scope: CodeScope,
        target: CpuTarget,
        small: Collection[Buffer] = (),
    ) -> None:
        self._instructions = instructions
        self._builder = instructions.builder
        self._scope = scope
        self._small = small
        # Cached, since the target derives it from the list of all features each time.
        self._has_maximum = target.has_maximum
        self._has_maximum_of_literal = target.has_maximum_of_literal
        self._rounds_to_integers = target.rounds_to_integers
        self._has_half_arithmetic = target.has_half_arithmetic
        self.conversions = Conversions(instructions, has_halves=target.has_halves)
        self.addresses = Addresses(instructions, scope, self.integer)
        self.masked_accesses = MaskedAccesses(instructions, target)
        self._loads = Loads(
            instructions, scope, self.addresses, self.conversions, self.masked_accesses
        )
        self._calls = Calls(instructions, self.conversions, self.value, has_fma=target.has_fma)
        self._conditions = Conditions()
        self._dot_products = DotProducts(instructions, target.features)

    def integer(self, expr: Expr) -> RegisterValue:
        """Emit an index expression as a 64-bit integer or a vector of them."""
        return self._int(expr, _INDEX)

    def value(self, expr: Expr) -> RegisterValue:  # noqa: C901
        """Emit an expression of the dtype it has."""
        match expr:
            case Load():
                return self._loads.load(expr.buffer, expr.indices)
            case BinOp():
                return self._calls.one_plus(expr) or self._arithmetic(expr)
            case IntImm() | FloatImm():
                return RegisterValue(literal(expr), 0)
            case Var():
                return self._variable(expr, dtype_of(expr))
            case Compare(op, lhs, rhs):
                return self._compare(op, lhs, rhs)
            case Logic(op, lhs, rhs):
                return self._instructions.binary(op, "i1", self.value(lhs), self.value(rhs))
            case Not(inner):
                return self._instructions.invert(self.value(inner))
            case Select(condition, then, otherwise):
                return self._instructions.select(
                    scalar_type(dtype_of(then)),
                    self.value(condition),
                    self.value(then),
                    self.value(otherwise),
                )
            case Conditional():
                return self._conditional(expr)
            case Cast() if self._rounds_to_integers and (rounded := rounded_sum(expr)) is not None:
                value = self.value(rounded.value)
                return self.conversions.to_nearest(value, rounded.offset, expr.dtype)
            case Cast(dtype, inner):
                value = self.conversions.convert(self.value(inner), dtype_of(inner), dtype)
                if self._small and is_small(inner, self._small):
                    self._instructions.note_small(value)
                return value
            case Call():
                return self._calls.call(expr)
            case Ramp():
                return self._ramp(expr, dtype_of(expr))
            case Broadcast(inner, lanes):
                return self._instructions.broadcast(
                    self.value(inner), scalar_type(dtype_of(inner)), lanes
                )
            case StringImm():
                raise AssertionError("a string names a function, and is not a value")

    # --- integers that address memory ---------------------------------------------------------

    def _int(self, expr: Expr, dtype: DType) -> RegisterValue:
        """Emit an integer expression in `dtype`, wider than its own, without overflow."""
        match expr:
            case IntImm(value):
                return RegisterValue(str(value), 0)
            case Var():
                return self._variable(expr, dtype)
            case BinOp(op, lhs, rhs):
                return self._int_op(op, dtype, self._int(lhs, dtype), self._int(rhs, dtype), expr)
            case Ramp():
                return self._ramp(expr, dtype)
            case _:
                return self.conversions.convert(self.value(expr), dtype_of(expr), dtype)

    def _ramp(self, ramp: Ramp, dtype: DType) -> RegisterValue:
        scalar = scalar_type(dtype)
        steps = ", ".join(f"{scalar} {ramp.stride * lane}" for lane in range(ramp.lanes))
        base = self._int(ramp.base, dtype)
        return self._instructions.binary(
            "add", scalar, base, RegisterValue(f"<{steps}>", 0, ramp.lanes)
        )

    def _variable(self, var: Var, dtype: DType) -> RegisterValue:
        binding = self._scope.env[var]
        if isinstance(binding, int):
            return RegisterValue(str(binding), 0)
        scalar = scalar_type(dtype)
        match binding:
            case LaneRange(offset, width):
                lanes = ", ".join(f"{scalar} {offset + lane}" for lane in range(width))
                return RegisterValue(f"<{lanes}>", 0, width)
            case RegisterValue() if scalar == "i64" or not is_integer(dtype):
                return binding
            case RegisterValue():
                # Registers of loop variables have 64 bits; the program's type may be narrower.
                return self._instructions.cast("trunc", "i64", scalar, binding)

    def _int_op(
        self, op: ArithOp, dtype: DType, a: RegisterValue, b: RegisterValue, expr: BinOp
    ) -> RegisterValue:
        scalar = scalar_type(dtype)
        signed = is_signed(dtype)
        if op in _INT_OPS:
            return self._instructions.binary(_INT_OPS[op], scalar, a, b)
        if op in ("min", "max"):
            return self._instructions.intrinsic(f"{'s' if signed else 'u'}{op}", scalar, (a, b))
        interval = bounds(expr.rhs, self._scope.extents)
        if op in ("<<", ">>"):
            name = "shl" if op == "<<" else "ashr" if signed else "lshr"
            if interval is not None and 0 <= interval[0] <= interval[1] < bits(dtype_of(expr)):
                return self._instructions.binary(name, scalar, a, b)
            return shift(self._instructions, name, scalar, a, b)
        quotient = op == "//"
        if interval is None or interval[0] < 1:
            return divide(self._instructions, scalar, a, b, signed=signed, quotient=quotient)
        if not signed or self._scope.is_natural(expr.lhs):
            return self._instructions.binary("udiv" if quotient else "urem", scalar, a, b)
        return floor_divide(self._instructions, scalar, a, b, quotient=quotient)

    # --- arithmetic -------------------------------------------------------------------------

    def _arithmetic(self, expr: BinOp) -> RegisterValue:
        dtype = dtype_of(expr)
        if not is_float(dtype):
            match expr:
                case BinOp("+", total, BinOp("*", a, b)) if dtype == "int32":
                    return self._dot_products.add(self.value(total), self.value(a), self.value(b))
                case BinOp(op, lhs, rhs):
                    return self._int_op(op, dtype, self.value(lhs), self.value(rhs), expr)
        scalar = scalar_type(dtype)
        op, lhs, rhs = expr.op, expr.lhs, expr.rhs
        if op == "+":
            product, addend = (rhs, lhs) if _is_product(rhs) else (lhs, rhs)
            if isinstance(product, BinOp) and product.op == "*":
                left, right, start = map(self.value, (product.lhs, product.rhs, addend))
                if dtype == "float32":
                    return self._dot_products.add_floats(start, left, right)
                if dtype == "float16" and self._has_half_arithmetic:
                    return self._half_sum(left, right, start)
                return self._instructions.intrinsic("fmuladd", scalar, (left, right, start))
        if op in ("min", "max"):
            return self._extremum(op, scalar, lhs, rhs)
        if op == "//":
            quotient = self._instructions.binary(
                "fdiv contract", scalar, self.value(lhs), self.value(rhs)
            )
            return self._instructions.intrinsic("floor", scalar, (quotient,))
        name = f"{_FLOAT_OPS[op]} contract"
        return self._instructions.binary(name, scalar, self.value(lhs), self.value(rhs))

    def _half_sum(
        self, left: RegisterValue, right: RegisterValue, start: RegisterValue
    ) -> RegisterValue:
        """Add a product in float16 if all operands are such values, otherwise in 32 bits."""
        a, b, c = (self.conversions.as_half(value) for value in (left, right, start))
        if a is None or b is None or c is None:
            return self._instructions.intrinsic("fmuladd", "float", (left, right, start))
        return self.conversions.from_half(self._instructions.intrinsic("fma", "half", (a, b, c)))

    def _extremum(self, op: str, scalar: str, lhs: Expr, rhs: Expr) -> RegisterValue:
        """Take the lesser or greater; NaN if either is NaN, as NumPy does; either of two zeros.

        Where no instruction does, one comparison and one select suffice for a literal, which is
        not NaN. An ordered comparison with NaN is false, so that `b` is taken. Without a literal,
        a second select returns `a` if it is NaN.
        """
        if isinstance(lhs, FloatImm):
            lhs, rhs = rhs, lhs
        a, b = self.value(lhs), self.value(rhs)
        is_literal = isinstance(rhs, FloatImm) and rhs.value == rhs.value
        if self._has_maximum_of_literal if is_literal else self._has_maximum:
            name = "minimum" if op == "min" else "maximum"
            return self._instructions.intrinsic(name, scalar, (a, b), fast_math="nsz ")
        if is_literal:
            keeps_a = self._instructions.fcmp("ult" if op == "min" else "ugt", scalar, a, b)
            return self._instructions.select(scalar, keeps_a, a, b)
        chosen = self._instructions.select(
            scalar, self._instructions.fcmp("olt" if op == "min" else "ogt", scalar, a, b), a, b
        )
        return self._instructions.select(
            scalar, self._instructions.fcmp("uno", scalar, a, a), a, chosen
        )

    def _compare(self, op: str, lhs: Expr, rhs: Expr) -> RegisterValue:
        dtype = dtype_of(lhs)
        a, b = self.value(lhs), self.value(rhs)
        scalar = scalar_type(dtype)
        if op in ("==", "!="):
            name = "eq" if op == "==" else "ne"
            return (
                self._instructions.fcmp({"eq": "oeq", "ne": "une"}[name], scalar, a, b)
                if is_float(dtype)
                else self._instructions.icmp(name, scalar, a, b)
            )
        order = _PREDICATES[op]
        if is_float(dtype):
            return self._instructions.fcmp(f"o{order}", scalar, a, b)
        return self._instructions.icmp(f"{'s' if is_signed(dtype) else 'u'}{order}", scalar, a, b)

    # --- choices ----------------------------------------------------------------------------

    def _conditional(self, expr: Conditional) -> RegisterValue:
        """Evaluate one side only: by branches, or if lanes differ by masking their loads."""
        scope = self._scope
        test = self._conditions.simplified(expr.condition, scope.env, scope.extents)
        if isinstance(test, IntImm):
            return self.value(expr.then if test.value else expr.otherwise)
        condition = self.value(test)
        if condition.lanes > 1:
            then = self._masked(condition, expr.then)
            inverse = self._instructions.invert(condition)
            return self._selected(expr, condition, then, self._masked(inverse, expr.otherwise))
        if not any(isinstance(n, Load) for side in (expr.then, expr.otherwise) for n in walk(side)):
            return self._selected(
                expr, condition, self.value(expr.then), self.value(expr.otherwise)
            )
        return self._branches(condition, expr)

    def _selected(
        self,
        expr: Conditional,
        condition: RegisterValue,
        then: RegisterValue,
        otherwise: RegisterValue,
    ) -> RegisterValue:
        return self.conversions.merge(
            dtype_of(expr),
            (then, otherwise),
            lambda scalar, sides: self._instructions.select(scalar, condition, *sides),
        )

    def _masked(self, condition: RegisterValue, side: Expr) -> RegisterValue:
        return self.under_mask(condition, lambda: self.value(side))

    def under_mask(self, condition: RegisterValue, emit: Callable[[], T]) -> T:
        """Emit code for only the lanes that satisfy a condition."""
        scope = self._scope
        outer = scope.mask
        if outer is not None:
            condition = self._instructions.binary("and", "i1", outer, condition)
        scope.mask = condition
        try:
            return emit()
        finally:
            scope.mask = outer

    def _branches(self, condition: RegisterValue, expr: Conditional) -> RegisterValue:
        builder = self._builder
        then_label, else_label, end_label = map(builder.fresh_name, ("then", "else", "end"))
        sides = []
        for label, side in ((then_label, expr.then), (else_label, expr.otherwise)):
            builder.open(label)
            value = self.value(side)
            sides.append((value, builder.close()))

        def joined(scalar: str, values: Sequence[RegisterValue]) -> RegisterValue:
            lanes = max(value.lanes for value in values)
            incoming = []
            outer = builder.innermost
            builder.emit_void(f"br i1 {condition.name}, label %{then_label}, label %{else_label}")
            for value, (_, level), label in zip(
                values, sides, (then_label, else_label), strict=True
            ):
                # A broadcast may add instructions, which belong to the last block of the side.
                builder.reopen(level)
                operand = self._instructions.broadcast(value, scalar, lanes)
                builder.close()
                incoming.append(f"[ {operand.name}, %{level.label} ]")
                outer.lines += [f"{label}:", *level.lines, f"  br label %{end_label}"]
            outer.lines.append(f"{end_label}:")
            outer.label = end_label
            result = builder.emit(f"phi {vector(scalar, lanes)} {', '.join(incoming)}")
            return RegisterValue(result, builder.depth, lanes)

        return self.conversions.merge(dtype_of(expr), [value for value, _ in sides], joined)
