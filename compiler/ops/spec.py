"""Operators by a line of text.

Grammar: `NAME:INTEGER,INTEGER,...[:DTYPE]`, for example `matmul:512,512,512:float32` or
`conv2d:1,64,56,56,64,3,1,1`. The integers are the operator's arguments in their order; trailing
ones that have a default may be left out. The type is float32 unless it is given.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable

from compiler.ir.nodes import PrimFunc
from compiler.ops.convolution import conv2d, depthwise_conv2d
from compiler.ops.elementwise import add, relu
from compiler.ops.error import OperatorError
from compiler.ops.linear import batch_matmul, dense, matmul, matmul_bias_relu, mm_relu
from compiler.ops.normalization import layer_norm, softmax
from compiler.ops.shape import row_sum, transpose

OPERATORS: dict[str, Callable[..., PrimFunc]] = {
    "add": add,
    "batch_matmul": batch_matmul,
    "conv2d": conv2d,
    "dense": dense,
    "depthwise_conv2d": depthwise_conv2d,
    "layer_norm": layer_norm,
    "matmul": matmul,
    "matmul_bias_relu": matmul_bias_relu,
    "mm_relu": mm_relu,
    "relu": relu,
    "row_sum": row_sum,
    "softmax": softmax,
    "transpose": transpose,
}

_MAX_CHARS = 1000


def from_spec(spec: str) -> PrimFunc:
    """Build an operator from a line of text.

    Raises:
        OperatorError: If there is no such operator, or it does not take these arguments.
    """
    if len(spec) > _MAX_CHARS:
        raise OperatorError(f"an operator of {len(spec)} characters: expected {_MAX_CHARS} at most")
    name, *rest = spec.strip().split(":")
    operator = OPERATORS.get(name)
    if operator is None:
        raise OperatorError(f"unknown operator {name!r}{_hint(name)}")
    if len(rest) > 2:
        raise OperatorError(f"{spec!r}: expected {signature(name)}")
    numbers = _integers(name, rest[0]) if rest else []
    _check_count(name, operator, len(numbers))
    dtype = {"dtype": rest[1].strip()} if len(rest) == 2 else {}
    return operator(*numbers, **dtype)


def signature(name: str) -> str:
    """Return how the operator is written, for example `matmul:m,n,k[:dtype]`."""
    words = []
    for parameter in _numbers(OPERATORS[name]):
        if parameter.kind is parameter.VAR_POSITIONAL:
            words.append("d0[,d1,...]")
        elif parameter.default is parameter.empty:
            words.append(parameter.name)
        else:
            words.append(f"{parameter.name}={parameter.default}")
    return f"{name}:{','.join(words)}[:dtype]"


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name, OPERATORS, n=3)
    known = f"known operators: {', '.join(OPERATORS)}"
    return f": did you mean {' or '.join(near)}? ({known})" if near else f"; {known}"


def _integers(name: str, text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    for word in words:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", word):
            raise OperatorError(f"{name}: {word!r} is no integer: expected {signature(name)}")
    return [int(word) for word in words]


def _check_count(name: str, operator: Callable[..., PrimFunc], count: int) -> None:
    parameters = _numbers(operator)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        fewest, most = 1, 8
    else:
        fewest = sum(p.default is p.empty for p in parameters)
        most = len(parameters)
    if not fewest <= count <= most:
        expected = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise OperatorError(
            f"{name} takes {expected} numbers, got {count}: expected {signature(name)}"
        )


def _numbers(operator: Callable[..., PrimFunc]) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(operator).parameters.values() if p.name != "dtype"]
