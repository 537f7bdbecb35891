"""The mathematical functions that programs may call: names, types and reference values.

A function takes arguments of one floating-point type and returns that type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.ir.core.dtypes import DType, is_float, is_signed

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function by name; `reference` computes it elementwise on float64 arrays."""

    name: str
    arity: int
    reference: Callable[..., Array]
    takes_integers: bool = False


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=np.float64)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _rsqrt(x: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(x))


def _exp10(x: Array) -> Array:
    return np.asarray(np.power(10.0, x))


INTRINSICS: dict[str, Intrinsic] = {
    f.name: f
    for f in (
        Intrinsic("abs", 1, np.abs, takes_integers=True),
        Intrinsic("acos", 1, np.arccos),
        Intrinsic("acosh", 1, np.arccosh),
        Intrinsic("asin", 1, np.arcsin),
        Intrinsic("asinh", 1, np.arcsinh),
        Intrinsic("atan", 1, np.arctan),
        Intrinsic("atan2", 2, np.arctan2),
        Intrinsic("atanh", 1, np.arctanh),
        Intrinsic("ceil", 1, np.ceil),
        Intrinsic("copysign", 2, np.copysign),
        Intrinsic("cos", 1, np.cos),
        Intrinsic("cosh", 1, np.cosh),
        Intrinsic("erf", 1, _erf),
        Intrinsic("exp", 1, np.exp),
        Intrinsic("exp10", 1, _exp10),
        Intrinsic("exp2", 1, np.exp2),
        Intrinsic("floor", 1, np.floor),
        Intrinsic("fmod", 2, np.fmod),
        Intrinsic("hypot", 2, np.hypot),
        Intrinsic("log", 1, np.log),
        Intrinsic("log10", 1, np.log10),
        Intrinsic("log1p", 1, np.log1p),
        Intrinsic("log2", 1, np.log2),
        Intrinsic("nearbyint", 1, np.rint),
        Intrinsic("pow", 2, np.power),
        Intrinsic("round", 1, np.rint),
        Intrinsic("rsqrt", 1, _rsqrt),
        Intrinsic("sigmoid", 1, _sigmoid),
        Intrinsic("sin", 1, np.sin),
        Intrinsic("sinh", 1, np.sinh),
        Intrinsic("sqrt", 1, np.sqrt),
        Intrinsic("tan", 1, np.tan),
        Intrinsic("tanh", 1, np.tanh),
        Intrinsic("trunc", 1, np.trunc),
    )
}


def result_dtype(name: str, args: Sequence[DType]) -> DType:
    """Return the type of a call.

    Raises:
        ValueError: If the function does not exist, or does not take these arguments.
    """
    intrinsic = INTRINSICS.get(name)
    if intrinsic is None:
        raise ValueError(
            f"unknown function {name}: expected one of {', '.join(sorted(INTRINSICS))}"
        )
    if len(args) != intrinsic.arity:
        raise ValueError(f"{name} takes {intrinsic.arity} argument(s), got {len(args)}")
    dtype = args[0]
    if any(other != dtype for other in args):
        raise ValueError(f"{name} takes arguments of one type, got {', '.join(args)}")
    if not (is_float(dtype) or (intrinsic.takes_integers and is_signed(dtype))):
        raise ValueError(f"{name} takes floating-point arguments, got {dtype}")
    return dtype
