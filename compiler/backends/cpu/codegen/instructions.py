"""Instructions on values: each goes to the outermost level that knows its operands.

A value that does not depend on the vectorized variable is scalar until it meets a vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.backends.cpu.codegen.emitter import Emitter
from compiler.backends.cpu.codegen.types import (
    conversion,
    is_narrow,
    memory_type,
    scalar_type,
    splat,
    type_suffix,
    vector,
)
from compiler.ir.core.dtypes import DType, bits, is_float
from compiler.ir.core.frozen import frozen


@frozen
class Value:
    """A value in a register: its name or literal, the level that computes it, its lanes."""

    name: str
    level: int
    lanes: int = 1


@frozen
class Narrow:
    """An integer of 8 or 16 bits, or a vector of them."""

    value: Value
    bits: int
    is_signed: bool


class InstructionEmitter(Emitter):
    """Emits instructions, under the mask of a vector condition where there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.mask: Value | None = None
        self.externals: set[str] = set()
        self.narrow: dict[str, Narrow] = {}  # of 32-bit integers: what they were widened from
        self._halves: dict[str, tuple[Value, DType]] = {}  # of floats: what they were widened from
        self.has_halves = True  # whether the CPU converts float16
        self.has_maximum = False  # whether it takes the greater of two floats, or NaN, at once
        self.features = ""  # of the CPU, as LLVM writes them
        self.has_fma = True  # whether the CPU multiplies and adds with one rounding

    def binary(self, op: str, scalar: str, a: Value, b: Value) -> Value:
        """Emit an operation on two values, copying a scalar into lanes where the other has them."""
        lanes = max(a.lanes, b.lanes)
        a, b = self.widen(a, scalar, lanes), self.widen(b, scalar, lanes)
        level = max(a.level, b.level)
        text = f"{op} {vector(scalar, lanes)} {a.name}, {b.name}"
        return Value(self.pure(text, level), level, lanes)

    def icmp(self, predicate: str, scalar: str, a: Value, b: Value) -> Value:
        """Compare integers."""
        return self.binary(f"icmp {predicate}", scalar, a, b)

    def fcmp(self, predicate: str, scalar: str, a: Value, b: Value) -> Value:
        """Compare floats."""
        return self.binary(f"fcmp {predicate}", scalar, a, b)

    def negated(self, scalar: str, a: Value) -> Value:
        """Return a float with its sign flipped."""
        return Value(
            self.pure(f"fneg {vector(scalar, a.lanes)} {a.name}", a.level), a.level, a.lanes
        )

    def select(self, scalar: str, condition: Value, then: Value, otherwise: Value) -> Value:
        """Take one of two values, lane by lane."""
        lanes = max(condition.lanes, then.lanes, otherwise.lanes)
        then, otherwise = self.widen(then, scalar, lanes), self.widen(otherwise, scalar, lanes)
        kind, test = vector(scalar, lanes), vector("i1", condition.lanes)
        level = max(condition.level, then.level, otherwise.level)
        text = f"select {test} {condition.name}, {kind} {then.name}, {kind} {otherwise.name}"
        return Value(self.pure(text, level), level, lanes)

    def widen(self, a: Value, scalar: str, lanes: int) -> Value:
        """Copy a scalar into every lane."""
        if a.lanes == lanes:
            return a
        assert a.lanes == 1, f"{a.lanes} lanes meet {lanes}"
        if not a.name.startswith("%"):
            return Value(splat(scalar, a.name, lanes), a.level, lanes)
        if a.name in self._halves:
            # 16 bits go from memory into all lanes at once; as a float they would take longer.
            half, dtype = self._halves[a.name]
            return self._copies(half, dtype, lanes)
        kind = vector(scalar, lanes)
        one = self.pure(f"insertelement {kind} poison, {scalar} {a.name}, i64 0", a.level)
        text = f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer"
        return Value(self.pure(text, a.level), a.level, lanes)

    def convert(self, value: Value, source: DType, target: DType) -> Value:
        """Convert a value of one dtype to another."""
        if source == target:
            return value
        from_type, to_type = scalar_type(source), scalar_type(target)
        if target == "bool":
            zero = Value("0.0" if is_float(source) else "0", 0)
            compare = self.fcmp if is_float(source) else self.icmp
            return compare("une" if is_float(source) else "ne", from_type, value, zero)
        op = conversion(source, target)
        if op is not None:
            value = self.cast(op, from_type, to_type, value)
        if op in ("fptosi", "fptoui"):
            # A number that is too large becomes some integer, the same wherever it is used.
            text = f"freeze {vector(to_type, value.lanes)} {value.name}"
            value = Value(self.pure(text, value.level), value.level, value.lanes)
        return self.rounded(value, target) if is_narrow(target) else value

    def cast(self, op: str, source: str, target: str, value: Value) -> Value:
        """Emit a conversion of one LLVM type to another, lane by lane."""
        kinds = vector(source, value.lanes), vector(target, value.lanes)
        text = f"{op} {kinds[0]} {value.name} to {kinds[1]}"
        result = Value(self.pure(text, value.level), value.level, value.lanes)
        if op in ("sext", "zext") and source in ("i8", "i16"):
            self.narrow[result.name] = Narrow(value, int(source[1:]), op == "sext")
        elif value.name in self.narrow and target in ("i32", "i64"):
            self.narrow[result.name] = self.narrow[value.name]
        return result

    def reinterpreted(self, value: Value, source: DType, target: DType) -> Value:
        """Take the bits of a value for those of another type, of as many lanes as they fill."""
        if is_narrow(source):
            value = self.to_bits(value, source)
        kinds = memory_type(source), memory_type(target)
        lanes = value.lanes * bits(source) // bits(target)
        whole = vector(kinds[0], value.lanes), vector(kinds[1], lanes)
        if whole[0] != whole[1]:
            text = f"bitcast {whole[0]} {value.name} to {whole[1]}"
            value = Value(self.pure(text, value.level), value.level, lanes)
        return self.from_bits(value, target) if is_narrow(target) else value

    # Floats of 16 bits: in memory their bits, in registers 32-bit floats.

    def rounded(self, value: Value, dtype: DType) -> Value:
        """Round a 32-bit float to a value of a narrow type."""
        return self.from_bits(self.to_bits(value, dtype), dtype)

    def from_bits(self, value: Value, dtype: DType) -> Value:
        """Return the 32-bit float that the bits of a narrow one stand for."""
        if dtype == "bfloat16" or self.has_halves:
            result = self._from_half(value, dtype)
            if value.lanes == 1:
                self._halves[result.name] = value, dtype
            return result
        wide = self.cast("zext", "i16", "i32", value)
        # Scaled by a power of two, the exponent is right, and subnormal numbers are too.
        magnitude = self._i32("and", wide, 0x7FFF)
        shifted = self.cast("bitcast", "i32", "float", self._i32("shl", magnitude, 13))
        scaled = self.binary("fmul", "float", shifted, Value("0x46F0000000000000", 0))
        number = self.cast("bitcast", "float", "i32", scaled)
        special = self.icmp("uge", "i32", magnitude, Value(str(0x7C00), 0))
        number = self.select("i32", special, self._i32("or", number, 0x7F800000), number)
        sign = self._i32("shl", self._i32("and", wide, 0x8000), 16)
        return self.cast("bitcast", "i32", "float", self.binary("or", "i32", number, sign))

    def _from_half(self, value: Value, dtype: DType) -> Value:
        if dtype == "float16":
            return self.cast("fpext", "half", "float", self.cast("bitcast", "i16", "half", value))
        wide = self.cast("zext", "i16", "i32", value)
        return self.cast("bitcast", "i32", "float", self._i32("shl", wide, 16))

    def _copies(self, half: Value, dtype: DType, lanes: int) -> Value:
        """Return 16 bits as a float in every lane."""
        if dtype == "float16":
            return self._from_half(self.widen(half, "i16", lanes), dtype)
        # Twice in each lane, so that no lane has to be made wider.
        twice = self.widen(half, "i16", 2 * lanes)
        text = f"bitcast <{2 * lanes} x i16> {twice.name} to <{lanes} x i32>"
        pair = Value(self.pure(text, twice.level), twice.level, lanes)
        return self.cast("bitcast", "i32", "float", self._i32("shl", pair, 16))

    def to_bits(self, value: Value, dtype: DType) -> Value:
        """Return the bits of a 32-bit float rounded to a narrow one: to nearest, ties to even."""
        if dtype == "float16" and self.has_halves:
            half = self.cast("fptrunc", "float", "half", value)
            return self.cast("bitcast", "half", "i16", half)
        number = self.cast("bitcast", "float", "i32", value)
        magnitude = self._i32("and", number, 0x7FFFFFFF)
        is_nan = self.icmp("ugt", "i32", magnitude, Value(str(0x7F800000), 0))
        if dtype == "bfloat16":
            upper = self._i32("lshr", number, 16)
            half = self.binary("add", "i32", number, self._i32("and", upper, 1))
            nearest = self._i32("lshr", self._i32("add", half, 0x7FFF), 16)
            quiet = self._i32("or", upper, 0x40)
            return self.cast("trunc", "i32", "i16", self.select("i32", is_nan, quiet, nearest))
        # A subnormal number is what is left of a sum with 0.5, where the CPU rounds it.
        small = self.cast("bitcast", "i32", "float", magnitude)
        small = self.binary("fadd", "float", small, Value("0.5", 0))
        small = self._i32("sub", self.cast("bitcast", "float", "i32", small), 0x3F000000)
        odd = self._i32("and", self._i32("lshr", magnitude, 13), 1)
        rebased = self._i32("add", magnitude, 0xFFF - (112 << 23))
        normal = self._i32("lshr", self.binary("add", "i32", rebased, odd), 13)
        is_small = self.icmp("ult", "i32", magnitude, Value(str(113 << 23), 0))
        is_large = self.icmp("uge", "i32", magnitude, Value(str(143 << 23), 0))
        special = self.select("i32", is_nan, Value(str(0x7E00), 0), Value(str(0x7C00), 0))
        finite = self.select("i32", is_small, small, normal)
        whole = self.select("i32", is_large, special, finite)
        sign = self._i32("and", self._i32("lshr", number, 16), 0x8000)
        return self.cast("trunc", "i32", "i16", self.binary("or", "i32", whole, sign))

    def _i32(self, op: str, a: Value, b: int) -> Value:
        return self.binary(op, "i32", a, Value(str(b), 0))

    def divided(self, scalar: str, a: Value, b: Value, *, signed: bool, quotient: bool) -> Value:
        """Divide integers, rounding down, or take the remainder; by zero, both are zero."""
        none = self.icmp("eq", scalar, b, Value("0", 0))
        inverse = self.icmp("eq", scalar, b, Value("-1", 0)) if signed else Value("false", 0)
        # The least integer divided by -1 would trap as a division by zero does.
        safe = self.select(scalar, self.binary("or", "i1", none, inverse), Value("1", 0), b)
        if not signed:
            result = self.binary("udiv" if quotient else "urem", scalar, a, safe)
        else:
            result = self.floored(scalar, a, safe, quotient=quotient)
        if not quotient:
            return result
        if signed:
            negative = self.binary("sub", scalar, Value("0", 0), a)
            result = self.select(scalar, inverse, negative, result)
        return self.select(scalar, none, Value("0", 0), result)

    def floored(self, scalar: str, a: Value, b: Value, *, quotient: bool) -> Value:
        """Round towards minus infinity: correct where the remainder's sign is not the divisor's."""
        q, r = self.binary("sdiv", scalar, a, b), self.binary("srem", scalar, a, b)
        zero = Value("0", 0)
        differs = self.icmp("slt", scalar, self.binary("xor", scalar, r, b), zero)
        inexact = self.icmp("ne", scalar, r, zero)
        wrong = self.binary("and", "i1", differs, inexact)
        if quotient:
            fixed = self.binary("sub", scalar, q, Value("1", 0))
            return self.select(scalar, wrong, fixed, q)
        return self.select(scalar, wrong, self.binary("add", scalar, r, b), r)

    def shifted(self, op: str, scalar: str, a: Value, b: Value) -> Value:
        """Shift by any number of bits: beyond what there are, nothing but the sign is left."""
        most = int(scalar[1:]) - 1
        beyond = self.icmp("ugt", scalar, b, Value(str(most), 0))
        if op == "ashr":
            return self.binary(op, scalar, a, self.select(scalar, beyond, Value(str(most), 0), b))
        zero = Value("0", 0)
        result = self.binary(op, scalar, a, self.select(scalar, beyond, zero, b))
        return self.select(scalar, beyond, zero, result)

    def intrinsic(self, name: str, scalar: str, args: tuple[Value, ...]) -> Value:
        """Call an LLVM intrinsic that is overloaded on the type of its operands."""
        lanes = max(a.lanes for a in args)
        kind = vector(scalar, lanes)
        wide = [(kind, self.widen(a, scalar, lanes)) for a in args]
        return self.call(kind, f"llvm.{name}.{type_suffix(scalar, lanes)}", wide, lanes)

    def call(
        self, kind: str, name: str, args: Sequence[tuple[str, Value]], lanes: int, flags: str = ""
    ) -> Value:
        """Call a pure function that returns `kind`; each argument comes with its type."""
        self.externals.add(f"declare {kind} @{name}({', '.join(t for t, _ in args)})")
        level = max((a.level for _, a in args), default=0)
        operands = ", ".join(f"{t} {a.name}" for t, a in args)
        text = f"call {flags}{kind} @{name}({operands})"
        return Value(self.pure(text, level), level, lanes)

    def library_call(self, name: str, dtype: DType, args: tuple[Value, ...]) -> Value:
        """Call a function of the C library on doubles, for each lane."""
        lanes = max(a.lanes for a in args)
        wide = [self.widen(self.convert(a, dtype, "float64"), "double", lanes) for a in args]
        level = max(a.level for a in wide)
        kind = vector("double", lanes)
        if lanes == 1:
            return self.convert(
                self.call("double", name, [("double", a) for a in wide], 1), "float64", dtype
            )
        result = "poison"
        for lane in range(lanes):
            ones = [
                (
                    "double",
                    Value(self.pure(f"extractelement {kind} {a.name}, i64 {lane}", level), level),
                )
                for a in wide
            ]
            one = self.call("double", name, ones, 1).name
            text = f"insertelement {kind} {result}, double {one}, i64 {lane}"
            result = self.pure(text, level)
        return self.convert(Value(result, level, lanes), "float64", dtype)
