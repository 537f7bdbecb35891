"""Mathematical functions: the ones LLVM has by name, the others in terms of those."""

from __future__ import annotations

from compiler.ir.nodes import BinOp, Call, Expr, FloatImm

# Our name of a function -> the LLVM intrinsic of the same meaning.
_INTRINSICS = {
    "exp": "exp",
    "exp2": "exp2",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "sqrt": "sqrt",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "tanh": "tanh",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "roundeven",
    "nearbyint": "roundeven",
    "abs": "fabs",
    "fabs": "fabs",
    "pow": "pow",
}


def expand(call: Call) -> Expr:
    """Return a call of an LLVM intrinsic, or an expression made of such calls."""
    one = FloatImm(1.0, call.dtype)
    match call:
        case Call("rsqrt", (x,), dtype):
            return BinOp("/", one, Call("sqrt", (x,), dtype))
        case Call("sigmoid", (x,), dtype):
            negated = BinOp("-", FloatImm(0.0, dtype), x)
            return BinOp("/", one, BinOp("+", one, Call("exp", (negated,), dtype)))
        case Call(name, args, dtype):
            return Call(_INTRINSICS[name], args, dtype)
