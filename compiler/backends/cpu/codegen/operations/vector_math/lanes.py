"""The arithmetic in which the functions of this folder are written.

Every operation is one instruction with one rounding: nothing is reassociated, and only `fma` is
fused. Operands are values of any number of lanes, or Python floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.backends.cpu.codegen.operations.conversions import Conversions
from compiler.backends.cpu.codegen.operations.library_calls import library_call
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import literal, vector
from compiler.ir.core.dtypes import DType, bits
from compiler.ir.core.nodes import FloatImm

Operand: TypeAlias = RegisterValue | float

_LLVM: dict[DType, tuple[str, str]] = {"float32": ("float", "i32"), "float64": ("double", "i64")}


class Lanes:
    """Emits arithmetic on one floating-point type, and on integers of its size."""

    def __init__(
        self, instructions: Instructions, conversions: Conversions, dtype: DType = "float32"
    ) -> None:
        self.instructions = instructions
        self._conversions = conversions
        self.dtype = dtype
        self.float, self.int = _LLVM[dtype]
        self.sign_bit = -1 << (bits(dtype) - 1)

    def constant(self, number: Operand) -> RegisterValue:
        """Return an operand as a value."""
        return (
            number if isinstance(number, RegisterValue) else RegisterValue(self._literal(number), 0)
        )

    def _literal(self, number: float) -> str:
        return literal(FloatImm(number, self.dtype))

    # --- floats ---------------------------------------------------------------------------------

    def add(self, a: Operand, b: Operand) -> RegisterValue:
        """Return `a + b`."""
        return self._binary("fadd", a, b)

    def sub(self, a: Operand, b: Operand) -> RegisterValue:
        """Return `a - b`."""
        return self._binary("fsub", a, b)

    def mul(self, a: Operand, b: Operand) -> RegisterValue:
        """Return `a * b`."""
        return self._binary("fmul", a, b)

    def div(self, a: Operand, b: Operand) -> RegisterValue:
        """Return `a / b`."""
        return self._binary("fdiv", a, b)

    def fma(self, a: Operand, b: Operand, c: Operand) -> RegisterValue:
        """Return `a * b + c`, rounded once."""
        operands = self.constant(a), self.constant(b), self.constant(c)
        return self.instructions.intrinsic("fma", self.float, operands)

    def negative(self, a: RegisterValue) -> RegisterValue:
        """Return `-a`."""
        return self.instructions.negate(self.float, a)

    def nearest(self, a: Operand) -> RegisterValue:
        """Return the nearest whole number, ties to even."""
        return self.instructions.intrinsic("roundeven", self.float, (self.constant(a),))

    def polynomial(self, x: RegisterValue, coefficients: Sequence[float]) -> RegisterValue:
        """Return `c[0] + c[1] x + c[2] x**2 + ...`, by Horner's rule."""
        result = self.constant(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            result = self.fma(result, x, coefficient)
        return result

    def at_most(self, x: RegisterValue, bound: float) -> RegisterValue:
        """Return the lesser; NaN of NaN."""
        limit = self.constant(bound)
        return self.select(self.compare("ult", x, limit), x, limit)

    def at_least(self, x: RegisterValue, bound: float) -> RegisterValue:
        """Return the greater; NaN of NaN."""
        limit = self.constant(bound)
        return self.select(self.compare("ugt", x, limit), x, limit)

    def compare(self, predicate: str, a: Operand, b: Operand) -> RegisterValue:
        """Compare floats by one of LLVM's predicates, of which `u...` hold for NaN."""
        return self.instructions.fcmp(predicate, self.float, self.constant(a), self.constant(b))

    def select(self, condition: RegisterValue, then: Operand, otherwise: Operand) -> RegisterValue:
        """Take one of two, lane by lane."""
        return self.instructions.select(
            self.float, condition, self.constant(then), self.constant(otherwise)
        )

    def both(self, a: RegisterValue, b: RegisterValue) -> RegisterValue:
        """Return the conjunction of two conditions."""
        return self.instructions.binary("and", "i1", a, b)

    def either(self, a: RegisterValue, b: RegisterValue) -> RegisterValue:
        """Return the disjunction of two conditions."""
        return self.instructions.binary("or", "i1", a, b)

    def _binary(self, op: str, a: Operand, b: Operand) -> RegisterValue:
        return self.instructions.binary(op, self.float, self.constant(a), self.constant(b))

    # --- bits -----------------------------------------------------------------------------------

    def bits(self, x: RegisterValue) -> RegisterValue:
        """Return the bits of a float as an integer."""
        return self.instructions.cast("bitcast", self.float, self.int, x)

    def from_bits(self, i: RegisterValue) -> RegisterValue:
        """Return the float with these bits."""
        return self.instructions.cast("bitcast", self.int, self.float, i)

    def integer(self, op: str, a: RegisterValue, b: RegisterValue | int) -> RegisterValue:
        """Emit an instruction on integers."""
        return self.instructions.binary(
            op, self.int, a, b if isinstance(b, RegisterValue) else RegisterValue(str(b), 0)
        )

    def magnitude(self, x: RegisterValue) -> RegisterValue:
        """Return `|x|`."""
        return self.instructions.intrinsic("fabs", self.float, (x,))

    def sign(self, x: RegisterValue) -> RegisterValue:
        """Return the sign as the uppermost bit of an integer."""
        return self.integer("and", self.bits(x), self.sign_bit)

    def with_sign(self, x: RegisterValue, sign: RegisterValue) -> RegisterValue:
        """Return `x`, which is not negative, with a sign."""
        return self.from_bits(self.integer("or", self.bits(x), sign))

    def flipped(self, x: RegisterValue, sign: RegisterValue) -> RegisterValue:
        """Return `x`, negated if the sign is set."""
        return self.from_bits(self.integer("xor", self.bits(x), sign))

    # --- other types, and branches -----------------------------------------------------------

    def as_type(self, dtype: DType) -> Lanes:
        """Return the arithmetic of another type."""
        return Lanes(self.instructions, self._conversions, dtype)

    def library(self, name: str, x: RegisterValue) -> RegisterValue:
        """Call a function of the C library on every lane, in the current block.

        The argument is declared to depend on the innermost level, so that the calls are not
        hoisted over the branch around them.
        """
        unhoisted = RegisterValue(x.name, self.instructions.builder.depth, x.lanes)
        return library_call(self.instructions, self._conversions, name, self.dtype, (unhoisted,))

    def to(self, other: Lanes, x: RegisterValue) -> RegisterValue:
        """Return the nearest float of another type."""
        op = "fpext" if other.float == "double" else "fptrunc"
        return self.instructions.cast(op, self.float, other.float, x)

    def unless_any(
        self, rare: RegisterValue, usual: RegisterValue, slow: Callable[[], RegisterValue]
    ) -> RegisterValue:
        """Return `usual`, and in the lanes that are `rare` what `slow` emits.

        The code of `slow` is behind a branch: it runs if any lane is rare.
        """
        builder, kind = self.instructions.builder, vector(self.float, usual.lanes)
        label, end = builder.fresh_name("rare"), builder.fresh_name("end")
        test = rare.name
        if rare.lanes > 1:
            any_of = f"llvm.vector.reduce.or.v{rare.lanes}i1"
            operand = (f"<{rare.lanes} x i1>", rare)
            test = self.instructions.call("i1", any_of, [operand], 1).name
        before = builder.innermost.label
        builder.emit_void(f"br i1 {test}, label %{label}, label %{end}")
        builder.open(label)
        result = self.select(rare, slow(), usual)
        level = builder.close()
        lines = [f"{label}:", *level.lines, f"  br label %{end}", f"{end}:"]
        builder.innermost.lines += lines
        builder.innermost.label = end
        incoming = f"[ {usual.name}, %{before} ], [ {result.name}, %{level.label} ]"
        return RegisterValue(builder.emit(f"phi {kind} {incoming}"), builder.depth, usual.lanes)
