"""Nests whose innermost loops are an instruction of tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.target.tensor_cores import MMA_INSTRUCTIONS, MmaInstruction


@dataclass(frozen=True)
class TensorTile:
    """The part of a nest that one instruction computes, and what is padding around it.

    Attributes:
        name: The name of the instruction.
        axes: The axes of rows, columns and steps of the nest's block.
        extents: Their extents without padding.
        source_bytes: The bytes in global memory of the output and the operands, in the order of the
            nest's accesses. The nest's arrays may be larger: matrices of the windows of an image.
    """

    name: str
    axes: tuple[int, ...]
    extents: tuple[int, ...]
    source_bytes: tuple[int, ...]

    @property
    def instruction(self) -> MmaInstruction:
        """Return the instruction."""
        return MMA_INSTRUCTIONS[self.name]

    @property
    def units(self) -> dict[int, int]:
        """Return the elements of the instruction by axis."""
        return dict(zip(self.axes, self.instruction.shape, strict=True))
