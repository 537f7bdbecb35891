"""Vectors whose lanes lie a few elements apart: loaded as whole vectors, and picked from those.

A gather costs a load for each lane. A stride of 2 needs two loads and a shuffle: the even elements
of the first vector, and the odd ones of another that ends where the last lane does. So nothing is
read but what lies between the first lane and the last.
"""

from __future__ import annotations

from compiler.backends.cpu.codegen.instructions import Instructions
from compiler.backends.cpu.codegen.types import type_suffix, vector

MAX_STRIDE = 4


def is_strided(stride: int | None, lanes: int) -> bool:
    """Tell whether lanes a stride apart are loaded as vectors."""
    return stride is not None and 1 < stride <= MAX_STRIDE and lanes > 1


def strided_load(
    instructions: Instructions,
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
        pointer: The address of the first lane.
        scalar: The type of a lane in memory, of `align` bytes.
        mask: The lanes that are loaded, a vector of as many; the others are zero.
    """
    last = (lanes - 1) * stride
    starts = [min(part * lanes, last + 1 - lanes) for part in range(stride)]
    places = [min(lane * stride // lanes, stride - 1) for lane in range(lanes)]
    kind = vector(scalar, lanes)
    found = ""
    for part in dict.fromkeys(places):
        start = starts[part]
        own = {lane: lane * stride - start for lane in range(lanes) if places[lane] == part}
        at = pointer
        if start:
            at = instructions.builder.emit(f"getelementptr {scalar}, ptr {pointer}, i64 {start}")
        if mask is None:
            loaded = instructions.builder.emit(f"load {kind}, ptr {at}, align {align}")
        else:
            loaded = _masked(
                instructions, at, scalar, (lanes, align), _spread(instructions, mask, lanes, own)
            )
        picks = [
            own[lane] + (lanes if part else 0) if lane in own else lane for lane in range(lanes)
        ]
        text = ", ".join(f"i32 {pick}" for pick in picks)
        first = found or loaded
        second = loaded if part else "poison"
        found = instructions.builder.emit(
            f"shufflevector {kind} {first}, {kind} {second}, <{lanes} x i32> <{text}>"
        )
    return found


def _spread(instructions: Instructions, mask: str, lanes: int, own: dict[int, int]) -> str:
    """Return the mask of a part: what each of its own lanes needs is at its place in the part."""
    wanted = {place: lane for lane, place in own.items()}
    picks = ", ".join(f"i32 {wanted.get(place, lanes)}" for place in range(lanes))
    kind = f"<{lanes} x i1>"
    return instructions.builder.emit(
        f"shufflevector {kind} {mask}, {kind} zeroinitializer, <{lanes} x i32> <{picks}>"
    )


def _masked(
    instructions: Instructions, pointer: str, scalar: str, size: tuple[int, int], mask: str
) -> str:
    lanes, align = size
    kind, bools = vector(scalar, lanes), f"<{lanes} x i1>"
    name = f"@llvm.masked.load.{type_suffix(scalar, lanes)}.p0"
    instructions.externals.add(f"declare {kind} {name}(ptr, {bools}, {kind})")
    operands = f"ptr align {align} {pointer}, {bools} {mask}, {kind} zeroinitializer"
    return instructions.builder.emit(f"call {kind} {name}({operands})")
