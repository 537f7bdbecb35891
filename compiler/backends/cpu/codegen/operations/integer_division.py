"""Division and shifts of integers, defined for every operand: no trap and no poison."""

from __future__ import annotations

from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue

_ZERO, _ONE = RegisterValue("0", 0), RegisterValue("1", 0)


def divide(
    instructions: Instructions,
    scalar: str,
    a: RegisterValue,
    b: RegisterValue,
    *,
    signed: bool,
    quotient: bool,
) -> RegisterValue:
    """Divide integers, rounding down, or take the remainder; for a divisor of zero both are 0.

    Args:
        instructions: The instructions of the function.
        scalar: The LLVM type of a lane.
        a: The dividend.
        b: The divisor, which may be anything.
        signed: Whether the integers have signs.
        quotient: Whether to return the quotient; else the remainder.
    """
    is_zero = instructions.icmp("eq", scalar, b, _ZERO)
    is_minus_one = (
        instructions.icmp("eq", scalar, b, RegisterValue("-1", 0))
        if signed
        else RegisterValue("false", 0)
    )
    # The least integer divided by -1 overflows, and traps on x86 as a division by zero does.
    traps = instructions.binary("or", "i1", is_zero, is_minus_one)
    divisor = instructions.select(scalar, traps, _ONE, b)
    if not signed:
        result = instructions.binary("udiv" if quotient else "urem", scalar, a, divisor)
    else:
        result = floor_divide(instructions, scalar, a, divisor, quotient=quotient)
    if not quotient:
        return result
    if signed:
        negative = instructions.binary("sub", scalar, _ZERO, a)
        result = instructions.select(scalar, is_minus_one, negative, result)
    return instructions.select(scalar, is_zero, _ZERO, result)


def floor_divide(
    instructions: Instructions, scalar: str, a: RegisterValue, b: RegisterValue, *, quotient: bool
) -> RegisterValue:
    """Divide signed integers, rounding towards minus infinity; `b` is neither 0 nor -1."""
    truncated = instructions.binary("sdiv", scalar, a, b)
    remainder = instructions.binary("srem", scalar, a, b)
    # LLVM rounds towards zero, which is one too many if the remainder has not the divisor's sign.
    differs = instructions.icmp(
        "slt", scalar, instructions.binary("xor", scalar, remainder, b), _ZERO
    )
    is_inexact = instructions.icmp("ne", scalar, remainder, _ZERO)
    is_too_large = instructions.binary("and", "i1", differs, is_inexact)
    if quotient:
        floored = instructions.binary("sub", scalar, truncated, _ONE)
        return instructions.select(scalar, is_too_large, floored, truncated)
    floored = instructions.binary("add", scalar, remainder, b)
    return instructions.select(scalar, is_too_large, floored, remainder)


def shift(
    instructions: Instructions, op: str, scalar: str, a: RegisterValue, b: RegisterValue
) -> RegisterValue:
    """Shift by any number of bits: by the width or more, only copies of the sign remain.

    LLVM's own result for such a shift is poison.
    """
    most = RegisterValue(str(int(scalar[1:]) - 1), 0)
    is_beyond = instructions.icmp("ugt", scalar, b, most)
    if op == "ashr":
        distance = instructions.select(scalar, is_beyond, most, b)
        return instructions.binary(op, scalar, a, distance)
    distance = instructions.select(scalar, is_beyond, _ZERO, b)
    result = instructions.binary(op, scalar, a, distance)
    return instructions.select(scalar, is_beyond, _ZERO, result)
