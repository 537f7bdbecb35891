"""Nests whose innermost loops are an instruction of tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.passes.device.fragments.warpgroup_product import CHUNK
from compiler.target.tensor_cores import MMA_INSTRUCTIONS, WGMMA_BY_NOTE, MmaInstruction


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


@dataclass(frozen=True)
class WarpgroupTile(TensorTile):
    """A nest that one instruction of warpgroups computes as a whole, chunk by chunk.

    Its name is the note of the instruction.

    Attributes:
        stages: The column of the sketch's table with the number of stages.
        is_persistent: Whether each block computes several tiles.
    """

    stages: int
    is_persistent: bool

    @property
    def operand(self) -> str:
        """Return the type of the operands, as PTX names it."""
        instruction = next(iter(WGMMA_BY_NOTE[self.name].values()))
        return instruction.ptx_types[1]

    @property
    def units(self) -> dict[int, int]:
        """Return the elements of a chunk of the reduction; knobs have those of the other axes."""
        return {self.axes[-1]: CHUNK}
