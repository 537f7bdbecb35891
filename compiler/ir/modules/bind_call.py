"""Check a call against the function that it calls, and give that function the call's arguments."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.analysis.specialize import with_values
from compiler.ir.analysis.symbols import described_by
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.function_calls import called_function
from compiler.ir.core.nodes import Buffer, Call, Expr, IntImm, Load, Stmt, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.text.names import Names
from compiler.ir.text.print_buffer import print_buffer
from compiler.ir.text.print_expr import show_expr
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.ir.verify.verify_error import VerifyError


def bind_call(
    caller: PrimFunc, call: Stmt, callee: PrimFunc
) -> tuple[PrimFunc, dict[Buffer, Buffer]]:
    """Return a called function for the arguments of a call.

    Args:
        caller: The function that the call stands in.
        call: The call.
        callee: The function that it calls.

    Returns:
        The function with the sizes and values that the call passes, and for each of its buffers
        the one of the caller that is passed.

    Raises:
        VerifyError: If the arguments do not fit, or a buffer that is written is passed twice.
    """
    called = called_function(call)
    assert called is not None, "the statement is a call"
    return _Binding(caller, call, callee).bind(called[1])


class _Binding:
    def __init__(self, caller: PrimFunc, call: Stmt, callee: PrimFunc) -> None:
        self._caller = caller
        self._call = call
        self._callee = callee
        self._values: dict[Var, Expr] = {}

    def bind(self, args: Sequence[Expr]) -> tuple[PrimFunc, dict[Buffer, Buffer]]:
        callee = self._callee
        if len(args) != len(callee.params):
            names = ", ".join(param.name for param in callee.params)
            raise self._error(
                f"passes {len(args)} argument(s) to {callee.name}, which takes "
                f"{len(callee.params)}: {names}"
            )
        passed: list[Buffer] = []
        for param, arg in zip(callee.params, args, strict=True):
            if isinstance(param, Buffer):
                buffer = self._buffer(param, arg)
                self._take_sizes(param, buffer)
                passed.append(buffer)
            else:
                self._take_value(param, arg)
        special = with_values(callee, self._values)
        pairs = list(zip(special.buffers, passed, strict=True))
        for param, buffer in pairs:
            if _layout(param) != _layout(buffer):
                raise self._error(
                    f"passes {buffer.name} to {callee.name} as {param.name}: expected "
                    f"{_shown(param)}, got {_shown(buffer)}"
                )
        self._check_aliases(special, pairs)
        return special, dict(pairs)

    def _buffer(self, param: Buffer, arg: Expr) -> Buffer:
        buffers = (*self._caller.buffers, *self._caller.root.alloc_buffers)
        buffer = next((b for b in buffers if b.data is arg), None)
        if buffer is None:
            raise self._error(
                f"passes {show_expr(arg)} to {self._callee.name} as {param.name}: expected a "
                f"parameter of {self._caller.name}, or a buffer that the whole function allocates"
            )
        return buffer

    def _take_sizes(self, param: Buffer, buffer: Buffer) -> None:
        """Give the variables among the sizes of a parameter those of the buffer that is passed."""
        for part, argument_part in zip(described_by(param), described_by(buffer), strict=False):
            if isinstance(part, Var):
                self._take(part, argument_part)

    def _take_value(self, param: Var, arg: Expr) -> None:
        # A value is read once, when the function is called; copied into it, it could change.
        if any(isinstance(node, Load | Call) for node in walk(arg)):
            raise self._error(
                f"passes {show_expr(arg)} to {self._callee.name} as {param.name}: expected a "
                "number or an expression of variables; pass what is computed in a buffer"
            )
        if isinstance(arg, Var) and arg.dtype == "handle":
            raise self._error(
                f"passes the buffer {arg.name} to {self._callee.name} as {param.name}, which is "
                f"a value of type {param.dtype}"
            )
        self._take(param, arg)

    def _take(self, var: Var, value: Expr) -> None:
        if isinstance(value, IntImm) and var.dtype in ("int32", "int64"):
            value = IntImm(value.value, var.dtype)
        if dtype_of(value) != var.dtype:
            raise self._error(
                f"gives {self._callee.name} {show_expr(value)} of type {dtype_of(value)} for "
                f"{var.name}, which is {var.dtype}"
            )
        before = self._values.setdefault(var, value)
        if before != value:
            raise self._error(
                f"gives {self._callee.name} two values for {var.name}: {show_expr(before)} and "
                f"{show_expr(value)}"
            )

    def _check_aliases(self, special: PrimFunc, pairs: Sequence[tuple[Buffer, Buffer]]) -> None:
        """Refuse a buffer under two names, one of which is written: parameters do not overlap."""
        written = stored_buffers(special.body)
        first: dict[Buffer, Buffer] = {}
        for param, buffer in pairs:
            other = first.setdefault(buffer, param)
            if other is not param and {other, param} & written:
                written_param = param if param in written else other
                raise self._error(
                    f"passes {buffer.name} to {special.name} both as {other.name} and as "
                    f"{param.name}, but {special.name} writes {written_param.name}"
                )

    def _error(self, message: str) -> VerifyError:
        return VerifyError(f"{self._caller.name} {message}", self._call, "call")


def _layout(buffer: Buffer) -> tuple[object, ...]:
    """Return what a buffer must have in common with the parameter that it is passed for."""

    def plain(parts: tuple[Expr, ...]) -> tuple[object, ...]:
        # Sizes are the same whatever integer type they are written in.
        return tuple(part.value if isinstance(part, IntImm) else part for part in parts)

    offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
    layout = (plain(buffer.shape), plain(buffer.strides), plain(offset), buffer.offset_factor)
    return (buffer.dtype, buffer.scope, *layout)


def _shown(buffer: Buffer) -> str:
    return f"T.Buffer({print_buffer(buffer, Names(), is_parameter=True)})"
