"""Programs of operators with symbolic extents, such as `matmul:M,512,512`.

Operators are functions of integers. The program of a symbolic extent is that of a marker, a large
prime, with each occurrence of the marker replaced by the variable. It is accepted only if it
specialises to the program of the operator at other sizes: where a size decides about the structure
or about constants, as in a mean, it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compiler.ir.analysis.specialize import with_symbols
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError
from compiler.ops.error import OperatorError

_MARKERS = (
    (211, 223, 227, 229, 233, 239, 241, 251),
    (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049),
)
"""Primes, one a symbol: extents of an operator are seldom multiples of them. Where the first ones
are, the others are tried. Chosen.
"""
_SIZES = (1, 2, 3, 16, 50, 101)
"""Sizes at which the symbolic program is compared with the operator: the least, which programs
treat apart, powers of two and others. Chosen.
"""


def symbolic_program(
    name: str, program_at: Callable[[Mapping[str, int]], PrimFunc], symbols: Sequence[str]
) -> PrimFunc:
    """Return the program of an operator with symbolic extents.

    Args:
        name: The operator.
        program_at: Returns its program at sizes of the symbols.
        symbols: The names of the symbols.

    Raises:
        OperatorError: If the operator has no such program, or there are too many symbols.
    """
    if len(symbols) > (most := len(_MARKERS[0])):
        raise OperatorError(f"{name} has {len(symbols)} symbolic extents: expected {most} at most")
    for primes in _MARKERS:
        markers = dict(zip(symbols, primes, strict=False))
        variables = {marker: Var(symbol, "int32") for symbol, marker in markers.items()}
        symbolic = with_symbols(program_at(markers), variables)
        if _agrees(symbolic, program_at, symbols):
            return symbolic
    raise OperatorError(
        f"{name} has no program for all sizes of {', '.join(symbols)}: the size decides about its "
        "structure or its constants; write it with te.var, or give numbers"
    )


def _agrees(
    symbolic: PrimFunc, program_at: Callable[[Mapping[str, int]], PrimFunc], symbols: Sequence[str]
) -> bool:
    """Return whether a symbolic program is that of an operator, at a few sizes."""
    for shift, size in enumerate(_SIZES):
        sizes = {symbol: size + shift * n for n, symbol in enumerate(symbols)}
        try:
            if not structural_equal(symbolic.specialize(dict(sizes.items())), program_at(sizes)):
                return False
        except (ValueError, VerifyError):  # also an error of the operator
            return False
    return True
