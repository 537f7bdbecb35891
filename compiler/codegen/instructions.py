"""Instructions on values: each goes to the outermost level that knows its operands.

A value that does not depend on the vectorized variable is scalar until it meets a vector.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.codegen.emitter import Emitter
from compiler.codegen.types import conversion, scalar_type, splat, type_suffix, vector
from compiler.ir.dtypes import DType, is_float

_TRAPPING = ("sdiv", "srem", "udiv", "urem")


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a register: its name or literal, the level that computes it, its lanes."""

    name: str
    level: int
    lanes: int = 1


class InstructionEmitter(Emitter):
    """Emits instructions, under the mask of a vector condition where there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.mask: Value | None = None
        self.externals: set[str] = set()

    def binary(self, op: str, scalar: str, a: Value, b: Value) -> Value:
        """Emit an operation on two values, copying a scalar into lanes where the other has them.

        It goes where its operands are known, unless it may trap there.
        """
        may_trap = op in _TRAPPING and not (b.name.isdigit() and int(b.name))
        if may_trap and self.mask is not None:
            # Lanes that the mask leaves out divide too: by one, whatever their divisor is.
            b = self.select(scalar, self.mask, b, Value("1", 0))
        lanes = max(a.lanes, b.lanes)
        a, b = self.widen(a, scalar, lanes), self.widen(b, scalar, lanes)
        level = max(a.level, b.level)
        text = f"{op} {vector(scalar, lanes)} {a.name}, {b.name}"
        if may_trap:
            return Value(self.emit(text), self.depth, lanes)
        return Value(self.pure(text, level), level, lanes)

    def icmp(self, predicate: str, scalar: str, a: Value, b: Value) -> Value:
        """Compare integers."""
        return self.binary(f"icmp {predicate}", scalar, a, b)

    def fcmp(self, predicate: str, scalar: str, a: Value, b: Value) -> Value:
        """Compare floats."""
        return self.binary(f"fcmp {predicate}", scalar, a, b)

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
        if (source, target) == ("float64", "float16"):
            # No CPU converts at once, and LLVM's way is a function that hosts may lack.
            return self.convert(self.convert(value, source, "float32"), "float32", target)
        op = conversion(source, target)
        if op is None:
            return value
        kinds = vector(from_type, value.lanes), vector(to_type, value.lanes)
        text = f"{op} {kinds[0]} {value.name} to {kinds[1]}"
        return Value(self.pure(text, value.level), value.level, value.lanes)

    def floored(self, is_division: bool, scalar: str, q: Value, r: Value, b: Value) -> Value:
        """Round towards minus infinity: correct where the remainder's sign is not the divisor's."""
        zero = Value("0", 0)
        differs = self.icmp("slt", scalar, self.binary("xor", scalar, r, b), zero)
        inexact = self.icmp("ne", scalar, r, zero)
        wrong = self.binary("and", "i1", differs, inexact)
        if is_division:
            fixed = self.binary("sub", scalar, q, Value("1", 0))
            return self.select(scalar, wrong, fixed, q)
        return self.select(scalar, wrong, self.binary("add", scalar, r, b), r)

    def intrinsic(self, name: str, scalar: str, args: tuple[Value, ...]) -> Value:
        """Call an LLVM intrinsic that is overloaded on the type of its operands."""
        lanes = max(a.lanes for a in args)
        wide = [self.widen(a, scalar, lanes) for a in args]
        level = max(a.level for a in wide)
        kind = vector(scalar, lanes)
        function = f"@llvm.{name}.{type_suffix(scalar, lanes)}"
        self.externals.add(f"declare {kind} {function}({', '.join([kind] * len(args))})")
        operands = ", ".join(f"{kind} {a.name}" for a in wide)
        return Value(self.pure(f"call {kind} {function}({operands})", level), level, lanes)

    def library_call(self, name: str, dtype: DType, arg: Value) -> Value:
        """Call a function of the C library for each lane."""
        wide = self.convert(arg, dtype, "float64")
        self.externals.add(f"declare double @{name}(double)")
        kind = vector("double", wide.lanes)
        if wide.lanes == 1:
            text = f"call double @{name}(double {wide.name})"
            return self.convert(Value(self.pure(text, wide.level), wide.level), "float64", dtype)
        result = "poison"
        for lane in range(wide.lanes):
            one = self.pure(f"extractelement {kind} {wide.name}, i64 {lane}", wide.level)
            one = self.pure(f"call double @{name}(double {one})", wide.level)
            text = f"insertelement {kind} {result}, double {one}, i64 {lane}"
            result = self.pure(text, wide.level)
        return self.convert(Value(result, wide.level, wide.lanes), "float64", dtype)
