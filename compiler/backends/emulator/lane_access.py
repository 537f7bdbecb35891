"""An access of several lanes to one memory, as one instruction makes it."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, Lanes


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """An access of several lanes to one memory.

    Attributes:
        instruction: The instruction.
        offsets: The address of each lane, or of all; after `Memory.resolve` the position of each
            lane in the array of the memory.
        num_bytes: The bytes that each lane accesses.
        lanes: The lanes.
        is_atomic: Whether the access is atomic.
    """

    instruction: PtxInstruction
    offsets: Array
    num_bytes: int
    lanes: Lanes
    is_atomic: bool = False
