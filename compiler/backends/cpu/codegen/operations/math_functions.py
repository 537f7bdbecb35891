"""Mathematical functions: polynomials, LLVM intrinsics, the C library's, and combinations.

The polynomials require fused multiply-adds, and values in 32-bit floats.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.backends.cpu.codegen.operations.vector_math import (
    circular,
    error_function,
    exponentials,
    logarithms,
    powers,
)
from compiler.backends.cpu.codegen.text.instructions import RegisterValue
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.llvm_calls import LLVM_CALL
from compiler.ir.core.nodes import BinOp, Call, Expr, FloatImm, IntImm

# Functions of `Lanes` and values that return a value.
POLYNOMIALS: dict[str, Callable[..., RegisterValue]] = {
    "cos": circular.cos,
    "erf": error_function.erf,
    "exp": exponentials.exp,
    "exp10": exponentials.exp10,
    "exp2": exponentials.exp2,
    "log": logarithms.log_e,
    "log10": logarithms.log_10,
    "log1p": logarithms.log1p,
    "log2": logarithms.log_2,
    "pow": powers.power,
    "rsqrt": powers.rsqrt,
    "sigmoid": exponentials.sigmoid,
    "sin": circular.sin,
    "tan": circular.tan,
    "tanh": exponentials.tanh,
}

# Our name of a function -> the LLVM intrinsic of the same meaning.
_INTRINSICS = {
    "exp": "exp",
    "exp2": "exp2",
    "log": "log",
    "log2": "log2",
    "sqrt": "sqrt",
    "sin": "sin",
    "cos": "cos",
    "tanh": "tanh",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "nearbyint": "roundeven",
    "round": "roundeven",
    "abs": "fabs",
    "pow": "pow",
    "copysign": "copysign",
}


# Functions that LLVM has no intrinsic for -> the C library's name.
LIBRARY_FUNCTIONS = {
    name: name
    for name in (
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cosh",
        "erf",
        "exp10",
        "fmod",
        "hypot",
        "log10",
        "log1p",
        "sinh",
        "tan",
    )
}
# `calls.py` handles these by name.
_SPECIAL = frozenset({"reinterpret", "likely", "undef", "sigmoid", LLVM_CALL})


def expand(call: Call) -> Expr:
    """Return a call as a call of an LLVM intrinsic, or as an expression of such calls."""
    match call:
        case Call("rsqrt", (x,), dtype):
            return BinOp("/", FloatImm(1.0, dtype), Call("sqrt", (x,), dtype))
        case Call("abs", (x,), dtype) if not is_float(dtype):
            return BinOp("max", x, BinOp("-", IntImm(0, dtype), x))
        case Call(name) if name in LIBRARY_FUNCTIONS or name in _SPECIAL:
            return call
        case Call(name, args, dtype):
            return Call(_INTRINSICS[name], args, dtype)
