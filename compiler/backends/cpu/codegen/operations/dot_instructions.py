"""The instructions of a CPU that multiply narrow numbers and add neighbouring products.

    products   instruction                    operands
    2          pmaddwd                        signed 16-bit integers; bytes are widened to them
    2          vdpbf16ps, bfdot               bfloat16, with sums in float32
    4          vpdpbusd, usdot                unsigned bytes with signed ones
    4          sdot, udot, vpdpbssd,          bytes of one type
               vpdpbuud
    4          vpmaddubsw, pmaddwd            bytes from 0 to 127 with signed ones

None of those for integers saturates, but `vpmaddubsw`: it adds pairs of products of unsigned and
signed bytes in 16 bits. If the unsigned ones are proven to be at most 127, as `reduce_range` of the
quantized operators makes them, a pair is at most 2 * 127 * 128 = 32512. Otherwise it is not used.

Bytes of other types reach the instructions of four by an offset: `x ^ 0x80` is `x + 128` for signed
`x`, `x - 128` for unsigned `x`, read as the other type. With `o` for the byte 0x80,

    dot(x, y) = dot(x ^ o, y) - dot(o, y)

and `dot(o, y)` is the same for all that is multiplied with `y`.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.dtypes import DType, bits, is_integer, is_signed
from compiler.ir.core.llvm_calls import is_offered, llvm_function
from compiler.target.cpu import CpuTarget

LANE_BITS = 32
PAIR, FOUR = 2, 4
"""Neighbours along a sum that an instruction takes: of 16-bit integers, of bytes."""
_PAIRS = {
    4: "llvm.x86.sse2.pmadd.wd",
    8: "llvm.x86.avx2.pmadd.wd",
    16: "llvm.x86.avx512.pmaddw.d.512",
}
_NARROW_PAIRS = {
    4: "llvm.x86.ssse3.pmadd.ub.sw.128",
    8: "llvm.x86.avx2.pmadd.ub.sw",
    16: "llvm.x86.avx512.pmaddubs.w.512",
}
_BPAIRS = {
    "+avx512bf16": {lanes: f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}" for lanes in (4, 8, 16)},
    "+bf16": {4: "llvm.aarch64.neon.bfdot.v4f32.v8bf16"},
}
"""Instructions for pairs of bfloat16 by feature and lanes."""
_SIGNED, _UNSIGNED = (True, True), (False, False)
_MIXED = (False, True)


@dataclass(frozen=True, slots=True)
class DotOfFour:
    """An instruction for dot products of four bytes.

    Attributes:
        name: LLVM's name.
        takes: Whether the bytes of its first operand are signed, and those of its second.
        adds: The instruction that adds pairs of its 16-bit results; None if it adds to the sum.
    """

    name: str
    takes: tuple[bool, bool]
    adds: str | None = None

    def flip(self, are_signed: tuple[bool, bool]) -> int | None:
        """Return which operand has to change its type, the first if both may; None for neither.

        Args:
            are_signed: For each operand, in any order, whether its bytes are signed.
        """
        first, second = are_signed
        options = {None: (first, second), 0: (not first, second), 1: (first, not second)}
        return next(flip for flip, types in options.items() if sorted(types) == sorted(self.takes))

    def changes(self, are_signed: tuple[bool, bool]) -> int:
        """Return how many operands have to change their type, in the better order."""
        pairs = zip(sorted(are_signed), sorted(self.takes), strict=True)
        return sum(a != b for a, b in pairs)


class DotInstructions:
    """Finds instructions by the features of a CPU.

    Args:
        features: The features, as LLVM lists them.
    """

    def __init__(self, features: str) -> None:
        self._features = features
        self._is_offered: dict[str, bool] = {}

    def pair(self, lanes: int) -> str | None:
        """Return the instruction that adds products of two signed 16-bit integers, if any."""
        name = _PAIRS.get(lanes)
        return name if name is not None and self._has(name) else None

    def bfloat_pair(self, lanes: int) -> str | None:
        """Return the instruction that adds products of two bfloat16 in float32, if any."""
        offered = self._features.split(",")
        names = (names for feature, names in _BPAIRS.items() if feature in offered)
        return next((by_lanes[lanes] for by_lanes in names if lanes in by_lanes), None)

    def four(
        self, are_signed: tuple[bool, bool], lanes: int, are_small: tuple[bool, bool]
    ) -> DotOfFour | None:
        """Return the instruction for four bytes that changes the type of the fewest operands.

        Args:
            are_signed: For each operand, whether its bytes are signed.
            lanes: The lanes of the sum.
            are_small: For each operand, whether its bytes are proven to be from 0 to 127.
        """
        offered = [dot for dot in _fours(lanes) if self._has(dot.name)]
        usable = [dot for dot in offered if dot.changes(are_signed) < len(are_signed)]
        best = min(usable, key=lambda dot: dot.changes(are_signed), default=None)
        fits = sorted(are_signed) == list(_MIXED) and are_small[are_signed.index(False)]
        return self._narrow_pairs(lanes) if best is None and fits else best

    def _narrow_pairs(self, lanes: int) -> DotOfFour | None:
        """Return the instructions that add two products of bytes in 16 bits, and then in 32."""
        name, adds = _NARROW_PAIRS.get(lanes), self.pair(lanes)
        fits = name is not None and self._has(name) and adds is not None
        return DotOfFour(name, _MIXED, adds) if name is not None and fits else None

    def _has(self, name: str) -> bool:
        if name not in self._is_offered:
            self._is_offered[name] = is_offered(llvm_function(name), self._features)
        return self._is_offered[name]


def _fours(lanes: int) -> list[DotOfFour]:
    x86 = [DotOfFour(f"llvm.x86.avx512.vpdpbusd.{LANE_BITS * lanes}", _MIXED)]
    if lanes <= 8:  # AVX-VNNI-INT8 has no vectors of 512 bits
        x86 += [
            DotOfFour(f"llvm.x86.avx2.vpdpbssd.{LANE_BITS * lanes}", _SIGNED),
            DotOfFour(f"llvm.x86.avx2.vpdpbuud.{LANE_BITS * lanes}", _UNSIGNED),
        ]
    arm = [
        DotOfFour("llvm.aarch64.neon.sdot.v4i32.v16i8", _SIGNED),
        DotOfFour("llvm.aarch64.neon.udot.v4i32.v16i8", _UNSIGNED),
        DotOfFour("llvm.aarch64.neon.usdot.v4i32.v16i8", _MIXED),
    ]
    return [*(x86 if lanes in _PAIRS else []), *(arm if lanes == 4 else [])]


@dataclass(frozen=True, slots=True)
class DotGroup:
    """What one step of a sum of products is, in an unrolled body.

    Attributes:
        size: The neighbours along the sum that are multiplied and added at once; 1 without an
            instruction for it.
        instructions: The instructions for that: more than one if the first does not add to the sum.
        is_tile: Whether the sums are in tile registers, whose instructions multiply whole tiles.
            `size` is then what makes a step as fast as a multiply-add of vectors.
    """

    size: int = 1
    instructions: int = 1
    is_tile: bool = False


def dot_group(
    target: CpuTarget,
    left: DType,
    right: DType,
    total: DType,
    are_small: tuple[bool, bool] = (False, False),
) -> DotGroup:
    """Return how a CPU multiplies and adds numbers of two types in sums of the type `total`.

    Args:
        are_small: For each operand, whether its elements are proven to be from 0 to 127.
    """
    four = _four(target, left, right, total, are_small)
    if four is not None:
        return DotGroup(FOUR, 1 if four.adds is None else 3)
    size = PAIR if _has_pair(target, left, right, total) else 1
    # LLVM joins `pmaddwd` and the addition to `vpdpwssd`.
    has_vnni = any(feature in target.features for feature in ("+avx512vnni", "+avxvnni"))
    is_apart = size == PAIR and is_integer(total) and not has_vnni
    return DotGroup(size, 2 if is_apart else 1)


def _four(
    target: CpuTarget, left: DType, right: DType, total: DType, are_small: tuple[bool, bool]
) -> DotOfFour | None:
    if total not in ("int32", "uint32") or {left, right} - {"int8", "uint8"}:
        return None
    lanes = target.vector_bits // LANE_BITS
    are_signed = is_signed(left), is_signed(right)
    return DotInstructions(target.features).four(are_signed, lanes, are_small)


def _has_pair(target: CpuTarget, left: DType, right: DType, total: DType) -> bool:
    dots, lanes = DotInstructions(target.features), target.vector_bits // LANE_BITS
    if left == right == "bfloat16" and total == "float32":
        return dots.bfloat_pair(lanes) is not None
    if total not in ("int32", "uint32") or not (is_integer(left) and is_integer(right)):
        return False
    fits = all(
        bits(dtype) == 8 or (bits(dtype) == 16 and is_signed(dtype)) for dtype in (left, right)
    )
    return fits and dots.pair(lanes) is not None
