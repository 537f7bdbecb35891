"""Loads of lanes a few elements apart: whole vectors are loaded, and shuffled.

A gather costs a load for each lane. A stride of 2 needs two loads and a shuffle. Example, 4 lanes:

    lanes        0   .   1   .   2   .   3         elements 0, 2, 4, 6
    first load   0   1   2   3                     lanes 0 and 1 are its elements 0 and 2
    second load              3   4   5   6         lanes 2 and 3 are its elements 1 and 3

The last load ends with the last lane, so no element after it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.backends.cpu.codegen.operations.masked_accesses import MaskedAccesses, MemoryVector
from compiler.backends.cpu.codegen.text.instructions import Instructions
from compiler.backends.cpu.codegen.text.types import literal_vector, vector

# A stride of 4 needs four loads and four shuffles. Beyond it, a gather is shorter.
MAX_STRIDE = 4


def is_strided(stride: int | None, lanes: int) -> bool:
    """Return whether lanes a stride apart are loaded as whole vectors."""
    return stride is not None and 1 < stride <= MAX_STRIDE and lanes > 1


def strided_load(
    instructions: Instructions,
    masked_accesses: MaskedAccesses,
    pointer: str,
    scalar: str,
    *,
    lanes: int,
    stride: int,
    align: int,
    mask: str | None,
) -> str:
    """Emit a load of `lanes` lanes, `stride` elements apart; return the vector's name.

    Args:
        instructions: The instructions of the function.
        masked_accesses: Emits its masked loads.
        pointer: The address of the first lane.
        scalar: The LLVM type of a lane in memory.
        lanes: The number of lanes.
        stride: The distance between lanes, in elements.
        align: The alignment of an element in bytes.
        mask: A vector of bools that selects the lanes to load; the others are zero.
    """
    last = (lanes - 1) * stride
    starts = [min(part * lanes, last + 1 - lanes) for part in range(stride)]
    part_of = [min(lane * stride // lanes, stride - 1) for lane in range(lanes)]
    kind = vector(scalar, lanes)
    result = ""
    for part in dict.fromkeys(part_of):
        start = starts[part]
        elements = {lane: lane * stride - start for lane in range(lanes) if part_of[lane] == part}
        at = pointer
        if start:
            at = instructions.builder.emit(f"getelementptr {scalar}, ptr {pointer}, i64 {start}")
        if mask is None:
            loaded = instructions.builder.emit(f"load {kind}, ptr {at}, align {align}")
        else:
            spread = _spread(instructions, mask, lanes, elements)
            loaded = masked_accesses.load(MemoryVector(scalar, lanes, align), at, spread)
        picks = [
            elements[lane] + (lanes if part else 0) if lane in elements else lane
            for lane in range(lanes)
        ]
        text = ", ".join(f"i32 {pick}" for pick in picks)
        first = result or loaded
        second = loaded if part else "poison"
        result = instructions.builder.emit(
            f"shufflevector {kind} {first}, {kind} {second}, <{lanes} x i32> <{text}>"
        )
    return result


def are_near(distances: Sequence[int]) -> bool:
    """Return whether lanes at these distances from the first are loaded with all between them."""
    return max(distances) - min(distances) < MAX_STRIDE * len(distances)


def picked_load(
    instructions: Instructions, pointer: str, scalar: str, distances: Sequence[int], align: int
) -> str:
    """Emit a load of lanes at known distances from the first; return the vector's name.

    Args:
        instructions: The instructions of the function.
        pointer: The address of the first lane.
        scalar: The LLVM type of a lane in memory.
        distances: The distance of each lane from the first, in elements.
        align: The alignment of an element in bytes.
    """
    emit, low = instructions.builder.emit, min(distances)
    if low:
        pointer = emit(f"getelementptr {scalar}, ptr {pointer}, i64 {low}")
    kind = vector(scalar, max(distances) - low + 1)
    loaded = emit(f"load {kind}, ptr {pointer}, align {align}")
    picks = literal_vector("i32", [distance - low for distance in distances])
    mask = f"<{len(distances)} x i32> {picks}"
    return emit(f"shufflevector {kind} {loaded}, {kind} poison, {mask}")


def _spread(instructions: Instructions, mask: str, lanes: int, elements: dict[int, int]) -> str:
    """Return the mask of a whole vector that loads the given elements of the lanes that are on."""
    lane_of = {element: lane for lane, element in elements.items()}
    picks = ", ".join(f"i32 {lane_of.get(element, lanes)}" for element in range(lanes))
    kind = f"<{lanes} x i1>"
    return instructions.builder.emit(
        f"shufflevector {kind} {mask}, {kind} zeroinitializer, <{lanes} x i32> <{picks}>"
    )
