"""Conversions between types, and floats of 8 and 16 bits: bits in memory, 32-bit in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from compiler.backends.cpu.codegen.text.instructions import Instructions, NarrowFloat, RegisterValue
from compiler.backends.cpu.codegen.text.types import (
    conversion,
    literal,
    memory_type,
    scalar_type,
    type_suffix,
    vector,
)
from compiler.ir.core.dtypes import DType, bits, is_float, is_narrow_float
from compiler.ir.core.nodes import FloatImm


@dataclass(frozen=True, slots=True)
class _Format:
    """A narrow float as its fields: the sign, `exponent_bits`, and `mantissa_bits`.

    Attributes:
        nan: The bits of a NaN.
        overflow: The bits of a result that is too large: infinity, or NaN in a type without it.
        first_special: The least bits that are no finite number.
        first_overflow: The least 32-bit float, as its bits, that is too large before rounding.
    """

    bits: int
    mantissa_bits: int
    bias: int
    nan: int
    overflow: int
    first_special: int
    first_overflow: int

    @property
    def shift(self) -> int:
        """The distance from the last bit of the mantissa to that of a 32-bit float."""
        return 23 - self.mantissa_bits

    @property
    def rebias(self) -> int:
        """The difference of the biases of the exponents, at the position of a 32-bit float's."""
        return (127 - self.bias) << 23

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.bits - 1)


_FORMATS: dict[DType, _Format] = {
    "float16": _Format(16, 10, 15, 0x7E00, 0x7C00, 0x7C00, 143 << 23),
    "float8_e5m2": _Format(8, 2, 15, 0x7E, 0x7C, 0x7C, 143 << 23),
    # No infinity, and one NaN: the bits of 480.
    "float8_e4m3fn": _Format(8, 3, 7, 0x7F, 0x7F, 0x7F, 0x43F00000),
}
_ZERO = literal(FloatImm(0.0, "float32"))


class Conversions:
    """Emits conversions.

    Args:
        instructions: The instructions of the function.
        has_halves: Whether the CPU converts float16.
    """

    def __init__(self, instructions: Instructions, *, has_halves: bool) -> None:
        self._instructions = instructions
        self._has_halves = has_halves

    def convert(self, value: RegisterValue, source: DType, target: DType) -> RegisterValue:
        """Convert a value of one dtype to another."""
        if source == target:
            return value
        instructions = self._instructions
        from_type, to_type = scalar_type(source), scalar_type(target)
        if target == "bool":
            zero = RegisterValue("0.0" if is_float(source) else "0", 0)
            compare = instructions.fcmp if is_float(source) else instructions.icmp
            return compare("une" if is_float(source) else "ne", from_type, value, zero)
        op = conversion(source, target)
        if op is not None:
            value = instructions.cast(op, from_type, to_type, value)
        if op in ("fptosi", "fptoui"):
            value = self._frozen(value, to_type)
        return self.round_to(value, target) if is_narrow_float(target) else value

    def to_nearest(self, value: RegisterValue, offset: int, target: DType) -> RegisterValue:
        """Round a 32-bit float to the nearest integer, halves to the even one, and add an offset.

        Args:
            value: The float.
            offset: What is added in 32 bits.
            target: The type of the result, of at most 32 bits.
        """
        instructions, lanes = self._instructions, value.lanes
        suffix = f"{type_suffix('i32', lanes)}.{type_suffix('float', lanes)}"
        operands = [(vector("float", lanes), value)]
        result = instructions.call(vector("i32", lanes), f"llvm.lrint.{suffix}", operands, lanes)
        if offset:
            result = instructions.binary("add", "i32", result, RegisterValue(str(offset), 0))
        return self._frozen(self.convert(result, "int32", target), scalar_type(target))

    def _frozen(self, value: RegisterValue, scalar: str) -> RegisterValue:
        """Return an integer that was a float as one number.

        LLVM's result for a float out of range is poison, which may differ from use to use; `freeze`
        makes it one arbitrary integer.
        """
        text = f"freeze {vector(scalar, value.lanes)} {value.name}"
        return self._instructions.emit_once(text, value.level, value.lanes)

    def reinterpret(self, value: RegisterValue, source: DType, target: DType) -> RegisterValue:
        """Read the bits of a value as another type, in as many lanes as they fill."""
        if is_narrow_float(source):
            value = self.to_bits(value, source)
        lanes = value.lanes * bits(source) // bits(target)
        from_type = vector(memory_type(source), value.lanes)
        value = self._instructions.bitcast(
            value, from_type, vector(memory_type(target), lanes), lanes
        )
        return self.from_bits(value, target) if is_narrow_float(target) else value

    # --- narrow floats --------------------------------------------------------------------------

    def round_to(self, value: RegisterValue, dtype: DType) -> RegisterValue:
        """Round a 32-bit float to a value of a narrow type."""
        return self.from_bits(self.to_bits(value, dtype), dtype)

    def from_bits(self, value: RegisterValue, dtype: DType) -> RegisterValue:
        """Return the 32-bit float that equals a narrow one, given as its bits."""
        result = self._float_of_bits(value, dtype)
        self._instructions.narrow_floats[result.name] = NarrowFloat(value, dtype)
        return result

    def merge(
        self,
        dtype: DType,
        sides: Sequence[RegisterValue],
        take: Callable[[str, Sequence[RegisterValue]], RegisterValue],
    ) -> RegisterValue:
        """Take one of some values: of narrow floats from memory, their bits.

        A copy with zeros around it, such as one into padded panels, then converts nothing.

        Args:
            dtype: The type of the values.
            sides: The values.
            take: Takes one of values of a type in LLVM.
        """
        if is_narrow_float(dtype):
            read = [bits for side in sides if (bits := self._read_bits(side, dtype)) is not None]
            if len(read) == len(sides):
                return self.from_bits(take(memory_type(dtype), read), dtype)
        return take(scalar_type(dtype), sides)

    def _read_bits(self, value: RegisterValue, dtype: DType) -> RegisterValue | None:
        """Return the bits that a 32-bit float was widened from; None if it was computed."""
        if value.name == _ZERO:
            return RegisterValue("0", 0)
        source = self._instructions.narrow_floats.get(value.name)
        return source.bits if source is not None and source.dtype == dtype else None

    def _float_of_bits(self, value: RegisterValue, dtype: DType) -> RegisterValue:
        instructions = self._instructions
        if dtype == "bfloat16" or (dtype == "float16" and self._has_halves):
            result = self._widened(value, dtype)
            if value.lanes == 1:
                broadcast = partial(self._broadcast, value, dtype)
                instructions.broadcasts[result.name] = broadcast
            return result
        if dtype == "float8_e5m2" and self._has_halves:
            # The upper byte of the float16 of the same value.
            half = instructions.binary(
                "shl", "i16", instructions.cast("zext", "i8", "i16", value), RegisterValue("8", 0)
            )
            return self._widened(half, "float16")
        form = _FORMATS[dtype]
        wide = instructions.cast("sext", f"i{form.bits}", "i32", value)
        # Sign, exponent and mantissa are moved to the positions of a float, and a product with a
        # power of two corrects the exponent's bias. It normalizes subnormal numbers, too.
        moved = self._i32("shl", wide, form.shift)
        fields = self._i32("and", moved, 1 << 31 | (form.sign - 1) << form.shift)
        scale = literal(FloatImm(2.0 ** (127 - form.bias), "float32"))
        scaled = instructions.binary(
            "fmul", "float", self._as_float(fields), RegisterValue(scale, 0)
        )
        number = instructions.cast("bitcast", "float", "i32", scaled)
        last_finite = RegisterValue(str(form.first_special - 1), 0)
        magnitude = self._i32("and", wide, form.sign - 1)
        special = instructions.icmp("sgt", "i32", magnitude, last_finite)
        if form.overflow == form.nan:
            infinite = RegisterValue("-1", 0)  # the only NaN; a mask, so that no blend is needed
        else:
            infinite = self._i32("or", number, 0x7F800000)
        return self._as_float(instructions.select("i32", special, infinite, number))

    def _widened(self, value: RegisterValue, dtype: DType) -> RegisterValue:
        cast = self._instructions.cast
        if dtype == "float16":
            return cast("fpext", "half", "float", cast("bitcast", "i16", "half", value))
        wide = cast("zext", "i16", "i32", value)
        return cast("bitcast", "i32", "float", self._i32("shl", wide, 16))

    def _broadcast(self, scalar: RegisterValue, dtype: DType, lanes: int) -> RegisterValue:
        """Return a narrow float, given as its bits, as a 32-bit float in every lane.

        CPUs load 16 bits into all lanes at once. Widened before the broadcast, the scalar would
        pass through a register first.
        """
        instructions = self._instructions
        if dtype == "float16":
            return self._widened(instructions.broadcast(scalar, "i16", lanes), dtype)
        # Two copies a lane, so that the lanes have 32 bits already: the shift removes one.
        copies = instructions.broadcast(scalar, "i16", 2 * lanes)
        pairs = instructions.bitcast(copies, f"<{2 * lanes} x i16>", f"<{lanes} x i32>", lanes)
        return instructions.cast("bitcast", "i32", "float", self._i32("shl", pairs, 16))

    def as_half(self, value: RegisterValue) -> RegisterValue | None:
        """Return the float16 that a 32-bit float was read from, if any, in LLVM's type for it."""
        source = self._instructions.narrow_floats.get(value.name)
        if source is None or source.dtype != "float16":
            return None
        return self._instructions.cast("bitcast", "i16", "half", source.bits)

    def from_half(self, value: RegisterValue) -> RegisterValue:
        """Return the 32-bit float that equals a float16 in LLVM's type for it."""
        return self.from_bits(self._instructions.cast("bitcast", "half", "i16", value), "float16")

    def to_bits(self, value: RegisterValue, dtype: DType) -> RegisterValue:
        """Return the bits of a 32-bit float rounded to a narrow one: to nearest, ties to even."""
        instructions = self._instructions
        read = self._read_bits(value, dtype)
        if read is not None:
            return read  # a copy, such as one into a panel
        cast = instructions.cast
        if dtype == "float16" and self._has_halves:
            return cast("bitcast", "half", "i16", cast("fptrunc", "float", "half", value))
        number = cast("bitcast", "float", "i32", value)
        magnitude = self._i32("and", number, 0x7FFFFFFF)
        is_nan = instructions.icmp("ugt", "i32", magnitude, RegisterValue(str(0x7F800000), 0))
        if dtype == "bfloat16":
            # The addition of just under half a unit, plus the lowest bit that stays, carries into
            # the upper half exactly where the number rounds up.
            upper = self._i32("lshr", number, 16)
            evened = instructions.binary("add", "i32", number, self._i32("and", upper, 1))
            nearest = self._i32("lshr", self._i32("add", evened, 0x7FFF), 16)
            quiet = self._i32("or", upper, 0x40)
            chosen = instructions.select("i32", is_nan, quiet, nearest)
            return cast("trunc", "i32", "i16", chosen)
        form = _FORMATS[dtype]
        # A subnormal result: the CPU rounds the sum with a power of two, whose last bit has the
        # weight of the last bit of a subnormal narrow float.
        power = 127 + 1 - form.bias - form.mantissa_bits + 23
        small = instructions.binary(
            "fadd",
            "float",
            self._as_float(magnitude),
            RegisterValue(literal(FloatImm(2.0 ** (power - 127), "float32")), 0),
        )
        small = self._i32("sub", cast("bitcast", "float", "i32", small), power << 23)
        # A normal result: as for bfloat16, and the exponent's bias changes.
        lowest_bit = self._i32("and", self._i32("lshr", magnitude, form.shift), 1)
        rebased = self._i32("add", magnitude, (1 << form.shift - 1) - 1 - form.rebias)
        rounded = instructions.binary("add", "i32", rebased, lowest_bit)
        normal = self._i32("lshr", rounded, form.shift)
        first_normal, first_overflow = form.rebias + (1 << 23), form.first_overflow
        is_small = instructions.icmp("ult", "i32", magnitude, RegisterValue(str(first_normal), 0))
        is_large = instructions.icmp("uge", "i32", magnitude, RegisterValue(str(first_overflow), 0))
        special = instructions.select(
            "i32", is_nan, RegisterValue(str(form.nan), 0), RegisterValue(str(form.overflow), 0)
        )
        finite = instructions.select("i32", is_small, small, normal)
        unsigned = instructions.select("i32", is_large, special, finite)
        sign = self._i32("and", self._i32("lshr", number, 32 - form.bits), form.sign)
        signed = instructions.binary("or", "i32", unsigned, sign)
        return cast("trunc", "i32", f"i{form.bits}", signed)

    def _as_float(self, value: RegisterValue) -> RegisterValue:
        return self._instructions.cast("bitcast", "i32", "float", value)

    def _i32(self, op: str, a: RegisterValue, b: int) -> RegisterValue:
        return self._instructions.binary(op, "i32", a, RegisterValue(str(b), 0))
