"""Prefixes of a vector: each lane is combined with all lanes before it.

Example, sums of 4 lanes:

    x            a    b      c        d
    + 0 a 0 c    a    a+b    c        c+d            pairs
    + 0 0 s s    a    a+b    a+b+c    a+b+c+d        halves, with s = a+b

A step adds the last lane of the lower half of each group to its upper half (Sklansky, 1960). On x86
only the last step moves elements between the halves of a register, which takes longer.
"""

from __future__ import annotations

from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import splat, vector

_OPS = {"+": ("add", "fadd", "0"), "*": ("mul", "fmul", "1")}


def lane_prefixes(
    instructions: Instructions, op: str, scalar: str, x: RegisterValue
) -> RegisterValue:
    """Return the prefixes of a vector; a scalar is its own."""
    for_integers, for_floats, identity = _OPS[op]
    is_integer = scalar.startswith("i")
    name = for_integers if is_integer else for_floats
    unit = splat(scalar, identity if is_integer else f"{identity}.0", x.lanes)
    half = 1
    while half < x.lanes:
        lower = [lane - lane % half - 1 if lane & half else x.lanes for lane in range(x.lanes)]
        x = instructions.binary(name, scalar, x, _shuffle(instructions, scalar, x, unit, lower))
        half *= 2
    return x


def last_lane(instructions: Instructions, scalar: str, x: RegisterValue) -> RegisterValue:
    """Return a vector with the last lane of another in all lanes."""
    if x.lanes == 1:
        return x
    return _shuffle(instructions, scalar, x, "poison", [x.lanes - 1] * x.lanes)


def _shuffle(
    instructions: Instructions, scalar: str, x: RegisterValue, other: str, lanes: list[int]
) -> RegisterValue:
    kind = vector(scalar, x.lanes)
    indices = ", ".join(f"i32 {lane}" for lane in lanes)
    text = f"shufflevector {kind} {x.name}, {kind} {other}, <{len(lanes)} x i32> <{indices}>"
    return instructions.emit_once(text, x.level, len(lanes))
