"""Errors of functions in units of the last place, over all floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Call,
    For,
    IntImm,
    Load,
    LoopKind,
    Store,
    Var,
    make_buffer,
)
from compiler.ir.core.program import PrimFunc

Array = NDArray[Any]


LARGEST = 2.0**128


EXACT: dict[str, tuple[Callable[..., Array], float]] = {
    "cos": (np.cos, 2.1),
    "erf": (lambda x: np.array([math.erf(v) for v in x]), 1.5),
    "exp": (np.exp, 1.0),
    "exp10": (lambda x: np.power(10.0, x), 1.5),
    "exp2": (np.exp2, 1.0),
    "log": (np.log, 1.0),
    "log10": (np.log10, 2.6),
    "log1p": (np.log1p, 2.0),
    "log2": (np.log2, 2.0),
    "pow": (np.power, 0.51),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "sigmoid": (lambda x: np.where(x < 0, np.exp(x), 1.0) / (1 + np.exp(-np.abs(x))), 2.5),
    "sin": (np.sin, 2.1),
    "tan": (np.tan, 3.5),
    "tanh": (np.tanh, 2.6),
}


SPECIAL = [0.0, 0.5, 1.0, 2.0, 3.0, 2**-126, 1e-45, 1.5, 16777215.0, 16777216.0, 3e38, math.inf]


def calling(
    name: str, size: int, kind: LoopKind = "vectorized", dtype: DType = "float32"
) -> PrimFunc:
    """Return a program that calls a function on every element."""
    arity = 2 if name == "pow" else 1
    buffers = [make_buffer(letter, (size,), dtype) for letter in "ABC"[: arity + 1]]
    i = Var("i")
    value = Call(name, tuple(Load(b, (i,)) for b in buffers[:-1]), dtype)
    loop = For(i, IntImm(size), Store(buffers[-1], (i,), value), kind)
    root = Block("root", (), (), (), loop)
    return PrimFunc("main", tuple(buffers), BlockRealize((), TRUE, root))


def errors(got: Array, exact: Array) -> Array:
    """Return the errors in units of the last place of a float; limits have to be right."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    zeros = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))
    numbers = ~np.isnan(exact)
    exact = np.clip(exact[numbers], -LARGEST, LARGEST)
    value = np.clip(got[numbers].astype(np.float64), -LARGEST, LARGEST)
    exponent = np.frexp(exact)[1].clip(-125, 128)
    return np.asarray(np.ldexp(np.abs(value - exact), 24 - exponent))
