"""Mathematical functions: the ones LLVM has by name, the others in terms of those."""

from __future__ import annotations

from compiler.ir.dtypes import is_float
from compiler.ir.llvm_calls import LLVM_CALL
from compiler.ir.nodes import BinOp, Call, Expr, FloatImm, IntImm

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
# What is no function of mathematics: the emitter of expressions knows it by name.
_SPECIAL = frozenset({"reinterpret", "likely", "undef", LLVM_CALL})


def expand(call: Call) -> Expr:
    """Return a call of an LLVM intrinsic, or an expression made of such calls."""
    match call:
        case Call("rsqrt", (x,), dtype):
            return BinOp("/", FloatImm(1.0, dtype), Call("sqrt", (x,), dtype))
        case Call("sigmoid", (x,), dtype):
            one = FloatImm(1.0, dtype)
            negated = BinOp("-", FloatImm(0.0, dtype), x)
            return BinOp("/", one, BinOp("+", one, Call("exp", (negated,), dtype)))
        case Call("abs", (x,), dtype) if not is_float(dtype):
            return BinOp("max", x, BinOp("-", IntImm(0, dtype), x))
        case Call(name) if name in LIBRARY_FUNCTIONS or name in _SPECIAL:
            return call
        case Call(name, args, dtype):
            return Call(_INTRINSICS[name], args, dtype)
