"""Check the types of one node against those of its children."""

from __future__ import annotations

from compiler.ir.core.dtypes import bits, is_float, is_integer, wrapped
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.foreign import FOREIGN
from compiler.ir.core.intrinsics import result_dtype
from compiler.ir.core.lane_calls import SHUFFLE
from compiler.ir.core.limits import MAX_LANES
from compiler.ir.core.llvm_calls import LLVM_CALL, LlvmCallProblem, llvm_result, spelled
from compiler.ir.core.nodes import (
    BinOp,
    BlockRealize,
    Broadcast,
    Buffer,
    Call,
    Compare,
    Conditional,
    Expr,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Stmt,
    Store,
    StringImm,
    While,
)
from compiler.ir.core.opaque import OPAQUE, Opaque
from compiler.ir.text.print_expr import show_expr

_ON_FLOATS = frozenset({"+", "-", "*", "/", "min", "max"})


class TypeProblem(Exception):  # noqa: N818 (the verifier turns it into an error with a place)
    """A node whose children have types that it does not take."""


def check_types(node: Expr | Stmt) -> None:  # noqa: C901 - one case a node
    """Check one node; its children must have been checked before.

    Raises:
        TypeProblem: If the node does not take the types of its children.
    """
    match node:
        case IntImm(value, dtype):
            if value != (bool(value) if dtype == "bool" else wrapped(value, dtype)):
                raise TypeProblem(f"{value} does not fit into {dtype}")
        case BinOp():
            _require_same_types(node, node.lhs, node.rhs)
            _check_operator(node)
        case Compare(_, lhs, rhs):
            _require_same_types(node, lhs, rhs)
        case Logic(_, lhs, rhs):
            _condition(node, lhs)
            _condition(node, rhs)
            _require_same_types(node, lhs, rhs)
        case Not(value):
            _condition(node, value)
        case Select(condition, then, otherwise) | Conditional(condition, then, otherwise):
            _condition(node, condition)
            _require_same_types(node, then, otherwise)
            if lanes_of(condition) not in (1, lanes_of(then)):
                raise TypeProblem(
                    f"a condition of {lanes_of(condition)} lanes chooses between values of "
                    f"{lanes_of(then)}: {show_expr(node)}"
                )
        case Call():
            _check_call(node)
        case Let(var, value, _):
            _scalar(value, "a name")
            if var.dtype != dtype_of(value):
                raise TypeProblem(f"{var.name} is {var.dtype}, got {dtype_of(value)}")
        case Load(_, indices):
            _indices(node, indices)
        case Store(buffer, indices, value):
            _check_store(buffer, indices, value)
        case Ramp(base, _, lanes):
            _vector(lanes)
            _indices(node, (base,))
            _scalar(base, "the base of a vector")
        case Broadcast(value, lanes):
            _vector(lanes)
            _scalar(value, "what is copied into the lanes of a vector")
        case If(condition, _, _) | While(condition) | BlockRealize(_, condition, _):
            _scalar(condition, "a condition")
            if dtype_of(condition) != "bool":
                raise TypeProblem(f"expected a condition, got {dtype_of(condition)}")
        case _:
            pass


def _check_operator(node: BinOp) -> None:
    dtype = dtype_of(node.lhs)
    takes = is_float(dtype) if node.op == "/" else is_integer(dtype)
    if not (takes or (is_float(dtype) and node.op in _ON_FLOATS)):
        raise TypeProblem(f"{node.op} does not take operands of type {dtype}: {show_expr(node)}")


def _check_store(buffer: Buffer, indices: tuple[Expr, ...], value: Expr) -> None:
    target = Load(buffer, indices)
    _indices(target, indices)
    if dtype_of(value) != buffer.dtype:
        raise TypeProblem(f"buffer {buffer.name} holds {buffer.dtype}, got {dtype_of(value)}")
    if lanes_of(value) != lanes_of(target):
        raise TypeProblem(
            f"a value of {lanes_of(value)} lane(s) is stored to {lanes_of(target)} element(s): "
            f"{show_expr(target)}"
        )


def _check_call(call: Call) -> None:
    match call:
        case Call("reinterpret", (value,), dtype):
            size = lanes_of(value) * bits(dtype_of(value))
            if size % bits(dtype) or "bool" in (dtype, dtype_of(value)):
                of = spelled(dtype_of(value), lanes_of(value))
                raise TypeProblem(f"{of} can't be reinterpreted as {dtype}: {show_expr(call)}")
        case Call("likely", (condition,), "bool"):
            _condition(call, condition)
        case Call(name, args, dtype) if name == SHUFFLE:
            _check_shuffle(args, dtype)
        case Call(name, args, dtype) if name == LLVM_CALL:
            _check_llvm_call(args, dtype)
        case Call(name, args, dtype) if name in OPAQUE:
            _check_opaque(OPAQUE[name], args, dtype)
        case Call(name, args, _) if name in FOREIGN:
            _check_foreign(name, args)
        case Call(name, args, dtype):
            for arg in args[1:]:
                _same_lanes(call, args[0], arg)
            _check_intrinsic(name, args, dtype)


def _check_intrinsic(name: str, args: tuple[Expr, ...], dtype: str) -> None:
    try:
        expected = result_dtype(name, [dtype_of(a) for a in args])
    except ValueError as error:
        raise TypeProblem(f"T.{error}") from None
    if dtype != expected:
        raise TypeProblem(f"T.{name} returns {expected} here, not {dtype}")


def _check_shuffle(args: tuple[Expr, ...], dtype: str) -> None:
    match args:
        case (StringImm(text), first, *others):
            vectors = [first, *others]
            if any(dtype_of(vector) != dtype for vector in vectors):
                of = ", ".join(dtype_of(vector) for vector in vectors)
                raise TypeProblem(f"T.Shuffle takes vectors of one type, got {of}")
            total = sum(map(lanes_of, vectors))
            numbers = text.split()
            for number in numbers:
                if not number.isdecimal() or int(number) >= total:
                    raise TypeProblem(f"T.Shuffle takes lane {number} of {total}")
            if not 0 < len(numbers) <= MAX_LANES:
                raise TypeProblem(f"a vector of {len(numbers)} lanes: expected 1 to {MAX_LANES}")
        case _:
            raise TypeProblem("T.Shuffle takes vectors, and the numbers of lanes")


def _check_llvm_call(args: tuple[Expr, ...], dtype: str) -> None:
    match args:
        case (StringImm(function), *operands):
            try:
                expected = llvm_result(function, [(dtype_of(a), lanes_of(a)) for a in operands])
            except LlvmCallProblem as problem:
                raise TypeProblem(str(problem)) from None
            if dtype != expected[0]:
                raise TypeProblem(f"{function} returns {spelled(*expected)}, not {dtype}")
        case _:
            raise TypeProblem(f"T.{LLVM_CALL} takes the name of a function, then its operands")


def _check_opaque(opaque: Opaque, args: tuple[Expr, ...], dtype: str) -> None:
    if not opaque.least <= len(args) <= opaque.most:
        expected = f"{opaque.least} to {opaque.most}"
        raise TypeProblem(f"T.{opaque.name} takes {expected} argument(s), got {len(args)}")
    if opaque.dtype not in (None, dtype):
        raise TypeProblem(f"T.{opaque.name} returns {opaque.dtype}, not {dtype}")


def _check_foreign(name: str, args: tuple[Expr, ...]) -> None:
    least, most = FOREIGN[name]
    if len(args) < least or (most is not None and len(args) > most):
        expected = f"{least}" if most == least else f"{least} or more"
        raise TypeProblem(f"T.{name} takes {expected} argument(s), got {len(args)}")


def _require_same_types(node: Expr, lhs: Expr, rhs: Expr) -> None:
    if dtype_of(lhs) != dtype_of(rhs):
        raise TypeProblem(
            f"operands of types {dtype_of(lhs)} and {dtype_of(rhs)}: {show_expr(node)}"
        )
    _same_lanes(node, lhs, rhs)


def _same_lanes(node: Expr, lhs: Expr, rhs: Expr) -> None:
    if lanes_of(lhs) != lanes_of(rhs):
        raise TypeProblem(
            f"operands of {lanes_of(lhs)} and {lanes_of(rhs)} lanes: {show_expr(node)}"
        )


def _condition(node: Expr, value: Expr) -> None:
    if dtype_of(value) != "bool":
        raise TypeProblem(f"expected a condition, got {dtype_of(value)}: {show_expr(node)}")


def _indices(node: Expr, indices: tuple[Expr, ...]) -> None:
    lengths = {1}
    for index in indices:
        if not is_integer(dtype_of(index)):
            raise TypeProblem(f"an index of type {dtype_of(index)}: {show_expr(node)}")
        lengths.add(lanes_of(index))
    if len(lengths) > 2:
        raise TypeProblem(f"indices of different numbers of lanes: {show_expr(node)}")


def _scalar(value: Expr, subject: str) -> None:
    if lanes_of(value) != 1:
        raise TypeProblem(f"{subject} has one lane, got {lanes_of(value)}: {show_expr(value)}")


def _vector(lanes: int) -> None:
    if not 1 <= lanes <= MAX_LANES:
        raise TypeProblem(f"a vector of {lanes} lanes: expected 1 to {MAX_LANES}")
