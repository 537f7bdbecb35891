"""Dot products of narrow numbers by the CPU's instructions for them.

If a reduction is unrolled, products of 8- or 16-bit integers are added to one 32-bit sum after
another:

    c1 = c0 + int32(a0) * int32(b0)
    c2 = c1 + int32(a1) * int32(b1)      ->      c2 = c0 + pmaddwd([a0 a1], [b0 b1])

Four products of bytes become a `vpdpbusd`, `sdot` or `udot` if the CPU has it, or a `vpmaddubsw` if
it can't saturate. The sums in between are emitted, too; LLVM removes those that nothing else uses.

Products of bfloat16 that are added in float32 become `vdpbf16ps` or `bfdot`, if their vector
operand lies in pairs. These instructions flush subnormal numbers to zero, and may round otherwise
than a chain of additions does (`docs/numerics.md`). So only schedules that request pairs use them.

Operands that lie in groups of neighbours, as `A[i // 6, k // 4, i % 6, k % 4]`, are loaded as the
instruction takes them. Those of other layouts are interleaved in registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.backends.cpu.codegen.operations.dot_instructions import DotInstructions, DotOfFour
from compiler.backends.cpu.codegen.text.instructions import (
    Instructions,
    NarrowInteger,
    RegisterValue,
)
from compiler.backends.cpu.codegen.text.types import splat, vector
from compiler.ir.core.dtypes import DType

_OFFSET = "-128"
"""The byte that changes signed bytes to unsigned ones, and unsigned to signed, by `xor`."""
_ZERO = RegisterValue("0", 0)
_WORDS: dict[str, DType] = {"i16": "uint16", "i32": "uint32"}
"""The types of integers that hold the elements of a group."""


@dataclass(frozen=True, slots=True)
class _ProductSum:
    """A sum: its first term, and the products that were added to it.

    If operands changed their type, the first term is `raw - excess`: a sum with the changed
    operands, and what the changes added to it. Both are continued, and subtracted at last.
    """

    start: RegisterValue
    products: tuple[tuple[NarrowInteger, NarrowInteger], ...] = ()
    raw: RegisterValue | None = None
    excess: RegisterValue = _ZERO


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Four bytes for each lane of a sum, in one vector."""

    value: RegisterValue
    is_signed: bool


@dataclass(frozen=True, slots=True)
class _FirstProduct:
    """A product of two bfloat16, given as their bits, that was added to `start`."""

    start: RegisterValue
    factors: tuple[RegisterValue, RegisterValue]


class DotProducts:
    """Adds products, and records how each sum was made.

    Args:
        instructions: The instructions of the function.
        features: The features of the CPU, as LLVM lists them.
    """

    def __init__(self, instructions: Instructions, features: str) -> None:
        self._instructions = instructions
        self._dots = DotInstructions(features)
        self._chains: dict[str, _ProductSum] = {}
        self._first_products: dict[str, _FirstProduct] = {}

    def add(self, total: RegisterValue, a: RegisterValue, b: RegisterValue) -> RegisterValue:
        """Return `total + a * b` in 32 bits."""
        plain = self._instructions.binary(
            "add", "i32", total, self._instructions.binary("mul", "i32", a, b)
        )
        factors = (
            self._instructions.widened_from.get(a.name),
            self._instructions.widened_from.get(b.name),
        )
        if factors[0] is None or factors[1] is None:
            return plain
        return self._extended(plain, total, (factors[0], factors[1]))

    def add_floats(self, total: RegisterValue, a: RegisterValue, b: RegisterValue) -> RegisterValue:
        """Return `total + a * b` in float32."""
        plain = self._instructions.intrinsic("fmuladd", "float", (a, b, total))
        bits_of_a, bits_of_b = self._bfloat_bits(a), self._bfloat_bits(b)
        if bits_of_a is None or bits_of_b is None:
            return plain
        name = self._dots.bfloat_pair(plain.lanes)
        if name is None:
            return plain
        second = bits_of_a, bits_of_b
        first = self._first_products.get(total.name)
        pairs = [] if first is None else list(zip(first.factors, second, strict=True))
        if first is None or all(self._groups(list(pair)) is None for pair in pairs):
            self._first_products[plain.name] = _FirstProduct(total, second)
            return plain
        return self._sum_of_bfloats(name, first.start, pairs, plain.lanes)

    def _extended(
        self,
        plain: RegisterValue,
        total: RegisterValue,
        factors: tuple[NarrowInteger, NarrowInteger],
    ) -> RegisterValue:
        lanes = plain.lanes
        four, pair = self._four(*factors, lanes), self._pair(*factors, lanes)
        if four is None and pair is None:
            return plain
        chain = self._chains.get(total.name)
        if chain is None or (chain.products and not _are_alike(chain.products[0], factors)):
            chain = _ProductSum(total)
        chain = replace(chain, products=(*chain.products, factors))
        if len(chain.products) == 4 and four is not None:
            return self._sum_of_four(four, chain, lanes)
        result = plain
        if len(chain.products) == 2 and pair is not None:
            result = self._sum_of_two(pair, chain, lanes)
            if four is None:
                return result
        self._chains[result.name] = chain
        return result

    # --- the CPU's instructions -------------------------------------------------------------------

    def _pair(self, a: NarrowInteger, b: NarrowInteger, lanes: int) -> str | None:
        fits = all(factor.bits == 8 or factor.is_signed for factor in (a, b))
        return self._dots.pair(lanes) if fits else None

    def _four(self, a: NarrowInteger, b: NarrowInteger, lanes: int) -> DotOfFour | None:
        if a.bits != 8 or b.bits != 8:
            return None
        return self._dots.four((a.is_signed, b.is_signed), lanes, (a.is_small, b.is_small))

    # --- sums -------------------------------------------------------------------------------------

    def _sum_of_two(self, name: str, chain: _ProductSum, lanes: int) -> RegisterValue:
        kind = vector("i16", 2 * lanes)
        sides = [(kind, self._halves(side, lanes)) for side in zip(*chain.products, strict=True)]
        total = self._instructions.call(vector("i32", lanes), name, sides, lanes)
        return self._instructions.binary("add", "i32", chain.start, total)

    def _bfloat_bits(self, value: RegisterValue) -> RegisterValue | None:
        source = self._instructions.narrow_floats.get(value.name)
        return source.bits if source is not None and source.dtype == "bfloat16" else None

    def _sum_of_bfloats(
        self,
        name: str,
        start: RegisterValue,
        pairs: list[tuple[RegisterValue, RegisterValue]],
        lanes: int,
    ) -> RegisterValue:
        full_type, operand_type = vector("float", lanes), vector("bfloat", 2 * lanes)
        operands = [(full_type, self._instructions.broadcast(start, "float", lanes))]
        for pair in pairs:
            factors = tuple(NarrowInteger(bits, 16, is_signed=False) for bits in pair)
            packed = self._packed(factors, lanes)
            cast = self._instructions.bitcast(
                packed, vector("i16", 2 * lanes), operand_type, 2 * lanes
            )
            operands.append((operand_type, cast))
        return self._instructions.call(full_type, name, operands, lanes)

    def _halves(self, factors: tuple[NarrowInteger, ...], lanes: int) -> RegisterValue:
        """Return two factors side by side as 16-bit integers, for every lane."""
        packed = self._packed(factors, lanes)
        op = "sext" if factors[0].is_signed else "zext"
        return packed if factors[0].bits == 16 else self._instructions.cast(op, "i8", "i16", packed)

    def _sum_of_four(self, dot: DotOfFour, chain: _ProductSum, lanes: int) -> RegisterValue:
        # A scalar is shared by all lanes, so it changes its type for fewer instructions.
        factors = sorted(zip(*chain.products, strict=True), key=lambda side: side[0].value.lanes)
        sides = [_Bytes(self._packed(side, lanes), side[0].is_signed) for side in factors]
        flip = dot.flip((sides[0].is_signed, sides[1].is_signed))
        if flip is None:
            return self._dot(dot, chain.start, sides, lanes)
        offset = _Bytes(
            RegisterValue(splat("i8", _OFFSET, 4 * lanes), 0, 4 * lanes), not sides[flip].is_signed
        )
        flipped = self._instructions.binary("xor", "i8", sides[flip].value, offset.value)
        other = sides[1 - flip]
        raw = self._dot(
            dot, chain.raw or chain.start, [replace(offset, value=flipped), other], lanes
        )
        excess = self._dot(dot, chain.excess, [offset, other], lanes)
        result = self._instructions.binary("sub", "i32", raw, excess)
        self._chains[result.name] = _ProductSum(result, raw=raw, excess=excess)
        return result

    def _dot(
        self, dot: DotOfFour, start: RegisterValue, sides: list[_Bytes], lanes: int
    ) -> RegisterValue:
        """Add dot products of four bytes to a sum."""
        kind, full_type = vector("i8", 4 * lanes), vector("i32", lanes)
        # All instructions of two types take the unsigned operand first.
        operands = [(kind, side.value) for side in sorted(sides, key=lambda side: side.is_signed)]
        if "x86" in dot.name and dot.adds is None:
            operands = [
                (full_type, self._instructions.bitcast(value, kind, full_type, lanes))
                for _, value in operands
            ]
        if dot.adds is not None:
            pairs, ones = vector("i16", 2 * lanes), splat("i16", "1", 2 * lanes)
            products = self._instructions.call(pairs, dot.name, operands, 2 * lanes)
            added = [(pairs, products), (pairs, RegisterValue(ones, 0, 2 * lanes))]
            total = self._instructions.call(full_type, dot.adds, added, lanes)
            return self._instructions.binary("add", "i32", start, total)
        start = self._instructions.broadcast(start, "i32", lanes)
        return self._instructions.call(full_type, dot.name, [(full_type, start), *operands], lanes)

    # --- operands ---------------------------------------------------------------------------------

    def _packed(self, factors: tuple[NarrowInteger, ...], lanes: int) -> RegisterValue:
        """Return factors side by side for every lane, as a vector of their own type."""
        size = factors[0].bits
        values = [factor.value for factor in factors]
        groups = self._groups(values)
        if groups is not None:
            return groups
        if all(value.lanes == 1 for value in values):
            word = f"i{size * len(values)}"
            copies = self._instructions.broadcast(self._word(values, size, word), word, lanes)
            full_type = vector(f"i{size}", len(values) * lanes)
            return self._instructions.bitcast(
                copies, vector(word, lanes), full_type, len(values) * lanes
            )
        rows = [self._instructions.broadcast(value, f"i{size}", lanes) for value in values]
        while len(rows) > 1:
            rows = [self._zipped(rows[i], rows[i + 1], size) for i in range(0, len(rows), 2)]
            if len(rows) > 1:
                pairs, words = vector(f"i{size}", 2 * lanes), vector(f"i{2 * size}", lanes)
                rows = [self._instructions.bitcast(row, pairs, words, lanes) for row in rows]
                size *= 2
        element = f"i{factors[0].bits}"
        zipped = vector(f"i{size}", 2 * lanes)
        return self._instructions.bitcast(
            rows[0], zipped, vector(element, len(values) * lanes), len(values) * lanes
        )

    def _groups(self, values: list[RegisterValue]) -> RegisterValue | None:
        """Return the vector of groups that consists of some vectors, in this order, if any."""
        parts = [self._instructions.parts.get(value.name) for value in values]
        first = parts[0]
        if first is None or first.size != len(values):
            return None
        expected = [replace(first, position=position) for position in range(first.size)]
        return first.groups if parts == expected else None

    def _word(self, values: list[RegisterValue], size: int, word: str) -> RegisterValue:
        """Return scalars as parts of one integer, the lowest first."""
        loaded = self._loaded_word(values, size, word)
        if loaded is not None:
            return loaded
        result = self._instructions.cast("zext", f"i{size}", word, values[0])
        for position, value in enumerate(values[1:], 1):
            part = self._instructions.cast("zext", f"i{size}", word, value)
            part = self._instructions.binary(
                "shl", word, part, RegisterValue(str(position * size), 0)
            )
            result = self._instructions.binary("or", word, result, part)
        return result

    def _loaded_word(
        self, values: list[RegisterValue], size: int, word: str
    ) -> RegisterValue | None:
        """Return scalars that are neighbours in memory, loaded at once; None if they are not.

        LLVM would join their loads, but not if windows overlap, such as those of a convolution in
        steps of two: it loads each element of several groups once, and shifts them together. CPUs
        with dot products have the lowest byte of an integer first.
        """
        builder = self._instructions.builder
        elements = [self._instructions.elements.get(value.name) for value in values]
        first = elements[0]
        if first is None:
            return None
        loads = builder.innermost.loads.get(first.storage, {})
        for position, (element, value) in enumerate(zip(elements, values, strict=True)):
            if element is None or loads.get(element.key) != value.name:
                return None  # a store may have changed it since
            if (element.base, element.offset) != (first.base, first.offset + position * size // 8):
                return None
        key = (first.key[0], 1, None, _WORDS[word])
        if key not in loads:
            loads[key] = builder.emit(f"load {word}, ptr {first.pointer.name}, align {size // 8}")
        return RegisterValue(loads[key], builder.depth)

    def _zipped(self, a: RegisterValue, b: RegisterValue, size: int) -> RegisterValue:
        """Return the lanes of two vectors, interleaved."""
        kind = vector(f"i{size}", a.lanes)
        order = ", ".join(f"i32 {lane}, i32 {lane + a.lanes}" for lane in range(a.lanes))
        level = max(a.level, b.level)
        text = f"shufflevector {kind} {a.name}, {kind} {b.name}, <{2 * a.lanes} x i32> <{order}>"
        return self._instructions.emit_once(text, level, 2 * a.lanes)


def _are_alike(
    first: tuple[NarrowInteger, NarrowInteger], second: tuple[NarrowInteger, NarrowInteger]
) -> bool:
    return all(
        replace(a, value=_ZERO) == replace(b, value=_ZERO)
        for a, b in zip(first, second, strict=True)
    )
