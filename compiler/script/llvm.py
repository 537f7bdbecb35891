"""Parse calls of LLVM's functions: `T.call_llvm_pure_intrin("int32x8", "llvm.ctpop", x)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.foreign import FOREIGN_LLVM
from compiler.ir.core.intrinsics import result_dtype
from compiler.ir.core.llvm_calls import (
    LLVM_CALL,
    is_foreign_instruction,
    llvm_function,
    llvm_result,
    spelled,
    without_suffix,
)
from compiler.ir.core.nodes import Call, Cast, Expr, IntImm, StringImm
from compiler.script.arguments import bind, string, vector_type
from compiler.script.context import Context, call_name
from compiler.script.expressions import expression

# The functions of LLVM that the dialect has by names of their own.
_MATHEMATICS = {
    f"llvm.{name}": name
    for name in (
        *("acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "exp10", "exp2", "log", "log10"),
        *("log2", "pow", "sin", "sinh", "tan", "tanh"),
    )
}


def llvm_call(context: Context, node: ast.Call) -> Expr:
    """Parse `T.call_llvm_pure_intrin("int32x8", "llvm.x86.avx2.pmadd.wd", a, b)`.

    An instruction that is not known here becomes a foreign call.

    Raises:
        ScriptError: If the function is not supported, or does not take these operands.
    """
    # Older scripts name the type of the result last.
    declared = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    parts = [*declared, *node.args]
    if len(parts) < 2 or len(declared) != len(node.keywords):
        raise context.error(
            "expected a type, the name of a function, and its operands", node, code="type"
        )
    of, lanes = vector_type(context, parts[0])
    name = _name(context, parts[1])
    operands = _operands(context, parts[2:])
    context.has_vectors = True
    if is_foreign_instruction(name):
        return Call(FOREIGN_LLVM, (StringImm(spelled(of, lanes)), StringImm(name), *operands), of)
    try:
        value = _known(context, name, operands, node)
    except ValueError as problem:
        raise context.error(str(problem), node, code="type") from None
    result = dtype_of(value), lanes_of(value)
    if result != (of, lanes):
        raise context.error(f"{name} returns {spelled(*result)} here", parts[0], code="type")
    return value


def population(context: Context, node: ast.Call) -> Expr:
    """Parse `T.popcount(x)`, the number of ones among the bits of an integer.

    Raises:
        ScriptError: If the operand is not an integer.
    """
    return _on_bits(context, node, "llvm.ctpop")


def leading_zeros(context: Context, node: ast.Call) -> Expr:
    """Parse `T.clz(x)`, the number of zeros before the first one among the bits, an int32.

    Raises:
        ScriptError: If the operand is not an integer.
    """
    value = _on_bits(context, node, "llvm.ctlz")
    return value if value.dtype == "int32" else Cast("int32", value)


def _on_bits(context: Context, node: ast.Call, function: str) -> Call:
    argument = bind(context, node, ("x",), ("span",))["x"]
    value = expression(context, argument)
    dtype = dtype_of(value)
    if not llvm_function(function).takes(dtype):
        raise context.error(f"expected an integer, got {dtype}", argument, code="type")
    return Call(LLVM_CALL, (StringImm(function), value), dtype)


def _name(context: Context, node: ast.expr) -> str:
    """Return a name, or that in `T.llvm_lookup_intrinsic_id("llvm.ctpop")`."""
    if isinstance(node, ast.Call) and call_name(node) == "llvm_lookup_intrinsic_id":
        node = bind(context, node, ("name",))["name"]
    return string(context, node, "a function's name")


def _operands(context: Context, nodes: Sequence[ast.expr]) -> list[Expr]:
    operands = [expression(context, node) for node in nodes]
    # Older scripts give the number of operands first.
    if operands and operands[0] == IntImm(len(operands) - 1, "uint32"):
        return operands[1:]
    return operands


def _known(context: Context, name: str, operands: list[Expr], node: ast.Call) -> Expr:
    """Return the call of a function that is known here."""
    if without_suffix(name) in _MATHEMATICS:
        function = _MATHEMATICS[without_suffix(name)]
        of = result_dtype(function, [dtype_of(operand) for operand in operands])
        return Call(function, tuple(operands), of)
    called = llvm_function(name)
    if called.has_flag and len(operands) == called.arity + 1:
        if operands[-1] != IntImm(0, "bool"):
            reason = f"{name} would be undefined for some operands: its last one must be False"
            raise context.error(reason, node.args[-1], code="unsupported")
        operands = operands[:-1]
    of, _ = llvm_result(name, [(dtype_of(operand), lanes_of(operand)) for operand in operands])
    return Call(LLVM_CALL, (StringImm(name), *operands), of)
