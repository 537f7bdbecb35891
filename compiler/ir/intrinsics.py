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

from compiler.ir.dtypes import DType, is_float, is_signed

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


INTRINSICS: dict[str, Intrinsic] = {
    f.name: f
    for f in (
        Intrinsic("abs", 1, np.abs, takes_integers=True),
        Intrinsic("ceil", 1, np.ceil),
        Intrinsic("cos", 1, np.cos),
        Intrinsic("erf", 1, _erf),
        Intrinsic("exp", 1, np.exp),
        Intrinsic("exp2", 1, np.exp2),
        Intrinsic("floor", 1, np.floor),
        Intrinsic("log", 1, np.log),
        Intrinsic("log2", 1, np.log2),
        Intrinsic("pow", 2, np.power),
        Intrinsic("round", 1, np.rint),
        Intrinsic("rsqrt", 1, _rsqrt),
        Intrinsic("sigmoid", 1, _sigmoid),
        Intrinsic("sin", 1, np.sin),
        Intrinsic("sqrt", 1, np.sqrt),
        Intrinsic("tanh", 1, np.tanh),
        Intrinsic("trunc", 1, np.trunc),
    )
}


def result_dtype(name: str, args: Sequence[DType]) -> DType:
    """Return the type of a call.

    Raises:
        ValueError: If there is no such function or it does not take these arguments.
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
