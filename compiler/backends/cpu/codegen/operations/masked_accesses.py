"""Masked loads and stores of neighbours.

LLVM has instructions for them on x86-64 since AVX, on RISC-V with vectors, and on AArch64 with SVE
for vectors of 128 bits, which each core with SVE has. Longer vectors are accessed in such pieces
there. On other CPUs, an access is a test and a branch for each lane.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.backends.cpu.codegen.text.instructions import Instructions
from compiler.backends.cpu.codegen.text.types import type_suffix, vector
from compiler.target.cpu import CpuTarget

_SCALAR_BITS = {"float": 32, "double": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
_SVE_BITS = 128


@dataclass(frozen=True, slots=True)
class MemoryVector:
    """A vector in memory: LLVM's type of a lane, the lanes, the alignment of a lane in bytes."""

    scalar: str
    lanes: int
    align: int

    @property
    def kind(self) -> str:
        """LLVM's type of the vector."""
        return vector(self.scalar, self.lanes)


class MaskedAccesses:
    """Emits masked loads and stores in one function.

    Args:
        instructions: The instructions of the function.
        target: The CPU.
    """

    def __init__(self, instructions: Instructions, target: CpuTarget) -> None:
        self._instructions = instructions
        self._builder = instructions.builder
        self._has_sve = "+sve" in target.features.split(",")

    def load(self, whole: MemoryVector, pointer: str, mask: str) -> str:
        """Emit a load of the lanes that are on; the others are zero. Return the vector's name."""
        piece = self._piece(whole)
        parts = [
            self._load(piece, *self._place(whole, piece, first, pointer, mask))
            for first in range(0, whole.lanes, piece.lanes)
        ]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            lanes = whole.lanes * 2 // len(parts)
            kind = vector(whole.scalar, lanes // 2)
            parts = [self._shuffle(kind, (a, b), range(lanes)) for a, b in pairs]
        return parts[0]

    def store(self, whole: MemoryVector, value: str, pointer: str, mask: str) -> None:
        """Emit a store of the lanes that are on."""
        piece = self._piece(whole)
        for first in range(0, whole.lanes, piece.lanes):
            part = self._part(value, whole.kind, piece.lanes, first)
            self._store(piece, part, *self._place(whole, piece, first, pointer, mask))

    def _piece(self, whole: MemoryVector) -> MemoryVector:
        """Return what one access takes."""
        lanes = _SVE_BITS // _SCALAR_BITS[whole.scalar]
        is_power = whole.lanes & (whole.lanes - 1) == 0
        is_cut = self._has_sve and whole.lanes > lanes and is_power
        return replace(whole, lanes=lanes) if is_cut else whole

    def _place(
        self, whole: MemoryVector, piece: MemoryVector, first: int, pointer: str, mask: str
    ) -> tuple[str, str]:
        """Return the address and the mask of the piece that begins with a lane."""
        if first:
            text = f"getelementptr inbounds {whole.scalar}, ptr {pointer}, i64 {first}"
            pointer = self._builder.emit(text)
        return pointer, self._part(mask, f"<{whole.lanes} x i1>", piece.lanes, first)

    def _part(self, name: str, kind: str, lanes: int, first: int) -> str:
        if kind.startswith(f"<{lanes} x "):
            return name
        return self._shuffle(kind, (name, "poison"), range(first, first + lanes))

    def _shuffle(self, kind: str, operands: tuple[str, str], lanes: range) -> str:
        picks = ", ".join(f"i32 {lane}" for lane in lanes)
        a, b = operands
        text = f"shufflevector {kind} {a}, {kind} {b}, <{len(lanes)} x i32> <{picks}>"
        return self._builder.emit(text)

    def _load(self, piece: MemoryVector, pointer: str, mask: str) -> str:
        kind, bools = piece.kind, f"<{piece.lanes} x i1>"
        name = f"@llvm.masked.load.{type_suffix(piece.scalar, piece.lanes)}.p0"
        self._instructions.externals.add(f"declare {kind} {name}(ptr, {bools}, {kind})")
        operands = f"ptr align {piece.align} {pointer}, {bools} {mask}, {kind} zeroinitializer"
        return self._builder.emit(f"call {kind} {name}({operands})")

    def _store(self, piece: MemoryVector, value: str, pointer: str, mask: str) -> None:
        kind, bools = piece.kind, f"<{piece.lanes} x i1>"
        name = f"@llvm.masked.store.{type_suffix(piece.scalar, piece.lanes)}.p0"
        self._instructions.externals.add(f"declare void {name}({kind}, ptr, {bools})")
        operands = f"{kind} {value}, ptr align {piece.align} {pointer}, {bools} {mask}"
        self._builder.emit_void(f"call void {name}({operands})")
