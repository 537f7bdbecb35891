"""Run a call of a registered function on arrays, for what interprets programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.executor.error import ArtifactError, LibraryCallError
from compiler.executor.functions.call_plan import (
    ArrayArg,
    CallStep,
    ValueArg,
    checked_function,
    run_function,
)
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.library_calls import RegisteredCall, passed_buffers
from compiler.ir.core.nodes import Block, Buffer, Expr, StringImm

Array = NDArray[Any]


class CallProblem(Exception):  # noqa: N818 - who interprets turns it into an error of its own
    """A call that can't run, or failed; the text says why."""


def run_call(
    block: Block,
    call: RegisteredCall,
    array: Callable[[Buffer], Array],
    number: Callable[[Expr], Any],
) -> list[tuple[Buffer, Array]]:
    """Run the call that is the body of a block, on copies.

    Args:
        block: The block.
        call: Its call.
        array: Returns the elements of a buffer or a view.
        number: Returns the value of an expression.

    Returns:
        The buffers that the call writes, each with its elements after it.

    Raises:
        CallProblem: If the function is not registered, or raised an exception.
    """
    values: list[Any] = []
    args: list[ArrayArg | ValueArg] = []
    written: list[tuple[Buffer, Array]] = []
    for arg in passed_buffers(block, call):
        if isinstance(arg, tuple):
            buffer, is_written = arg
            elements = np.array(array(buffer), dtype=buffer.dtype)
            values.append(elements)
            args.append(ArrayArg(0, (), (), is_written))
            if is_written:
                written.append((buffer, elements))
        else:
            values.append(arg.value if isinstance(arg, StringImm) else number(arg))
            dtype = "str" if isinstance(arg, StringImm) else dtype_of(arg)
            args.append(ValueArg(values[-1], dtype))
    try:
        function = checked_function(f"block {block.name}", call.form, call.function)
        step = CallStep(call.form, call.function, tuple(args))
        run_function(function, step, values, f"block {block.name}")
    except (ArtifactError, LibraryCallError) as error:
        raise CallProblem(str(error)) from error
    return written
