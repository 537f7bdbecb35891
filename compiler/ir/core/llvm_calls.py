"""LLVM intrinsics that programs may call by name: `T.call_llvm_pure_intrin("int32x8", ...)`.

Each has the types of its operands, the CPU feature that it requires, and a reference on plain lists
of lanes. An overloaded function takes vectors of any length: all of one type, which it returns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compiler.ir.core.dtypes import DType, wrapped

LLVM_CALL = "call_llvm_pure_intrin"

Lanes: TypeAlias = list[Any]
VectorType: TypeAlias = tuple[DType, int]
Reference: TypeAlias = Callable[..., Lanes]


@dataclass(frozen=True, slots=True)
class LlvmFunction:
    """A function by LLVM's name, without the type suffix.

    `args` and `result` are None for an overloaded function. A reduction returns a scalar, and takes
    a scalar as its start if `has_start`. `feature` names the required CPU features: alternatives
    between bars, each with all its features.
    """

    name: str
    arity: int
    reference: Reference
    args: tuple[VectorType, ...] | None = None
    result: VectorType | None = None
    feature: str | None = None
    kind: str = "float"
    is_reduction: bool = False
    has_start: bool = False


class LlvmCallProblem(ValueError):  # noqa: N818 (callers turn it into an error with a place)
    """A call of an unknown function, or with operands that it does not take."""


def _each(fn: Callable[..., Any]) -> Reference:
    return lambda *args: [fn(*lanes) for lanes in zip(*args, strict=True)]


def _pmaddwd(a: Lanes, b: Lanes) -> Lanes:
    products = [x * y for x, y in zip(a, b, strict=True)]
    pairs = zip(products[::2], products[1::2], strict=True)
    return [wrapped(x + y, "int32") for x, y in pairs]


def _pmaddubsw(a: Lanes, b: Lanes) -> Lanes:
    products = [x * y for x, y in zip(a, b, strict=True)]
    pairs = zip(products[::2], products[1::2], strict=True)
    return [max(-(1 << 15), min((1 << 15) - 1, x + y)) for x, y in pairs]


def _dot_of_words(first: DType, second: DType) -> Reference:
    """Return the function that adds to each lane the dot product of the bytes of two words."""

    def total(start: int, x: int, y: int) -> int:
        bytes_of = (word.to_bytes(4, "little", signed=True) for word in (x, y))
        pairs = zip(*bytes_of, strict=True)
        dot = sum(wrapped(a, first) * wrapped(b, second) for a, b in pairs)
        return wrapped(start + dot, "int32")

    return _each(total)


def _dot_of_four(c: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """Add to each lane the dot product of four bytes with four others."""
    products = [x * y for x, y in zip(a, b, strict=True)]
    return [wrapped(x + sum(products[4 * i : 4 * i + 4]), "int32") for i, x in enumerate(c)]


def _fold(fn: Callable[[Any, Any], Any]) -> Reference:
    def folded(vector: Lanes) -> Lanes:
        total = vector[0]
        for lane in vector[1:]:
            total = fn(total, lane)
        return [total]

    return folded


def _widening(
    stem: str, source: tuple[DType, DType], target: DType, fn: Reference
) -> list[LlvmFunction]:
    """Return the three sizes of a function that adds neighbours in wider lanes."""
    names = {
        "pmadd.wd": (
            ("llvm.x86.sse2.pmadd.wd", 8, "+sse2"),
            ("llvm.x86.avx2.pmadd.wd", 16, "+avx2"),
            ("llvm.x86.avx512.pmaddw.d.512", 32, "+avx512bw"),
        ),
        "pmadd.ub.sw": (
            ("llvm.x86.ssse3.pmadd.ub.sw.128", 16, "+ssse3"),
            ("llvm.x86.avx2.pmadd.ub.sw", 32, "+avx2"),
            ("llvm.x86.avx512.pmaddubs.w.512", 64, "+avx512bw"),
        ),
    }[stem]
    return [
        LlvmFunction(
            name, 2, fn, tuple((s, lanes) for s in source), (target, lanes // 2), feature, "int"
        )
        for name, lanes, feature in names
    ]


def _dots() -> list[LlvmFunction]:
    narrow = "+avx512vl,+avx512vnni|+avxvnni"
    bytes_of: dict[str, tuple[DType, DType, str]] = {
        "sdot": ("int8", "int8", "+dotprod"),
        "udot": ("uint8", "uint8", "+dotprod"),
        "usdot": ("uint8", "int8", "+i8mm"),
    }
    of_arm = [
        LlvmFunction(
            f"llvm.aarch64.neon.{name}.v4i32.v16i8",
            3,
            _dot_of_four,
            (("int32", 4), (first, 16), (second, 16)),
            ("int32", 4),
            feature,
            "int",
        )
        for name, (first, second, feature) in bytes_of.items()
    ]
    words_of: dict[str, tuple[DType, DType, tuple[tuple[int, str], ...]]] = {
        "avx512.vpdpbusd": ("uint8", "int8", ((4, narrow), (8, narrow), (16, "+avx512vnni"))),
        "avx2.vpdpbssd": ("int8", "int8", ((4, "+avxvnniint8"), (8, "+avxvnniint8"))),
        "avx2.vpdpbuud": ("uint8", "uint8", ((4, "+avxvnniint8"), (8, "+avxvnniint8"))),
    }
    of_x86 = [
        LlvmFunction(
            f"llvm.x86.{name}.{32 * lanes}",
            3,
            _dot_of_words(first, second),
            (("int32", lanes),) * 3,
            ("int32", lanes),
            feature,
            "int",
        )
        for name, (first, second, sizes) in words_of.items()
        for lanes, feature in sizes
    ]
    return of_arm + of_x86


def _minnum(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else min(a, b)


def _maxnum(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b)


def _reductions() -> list[LlvmFunction]:
    integers: dict[str, Callable[[Any, Any], Any]] = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "smax": max,
        "smin": min,
    }
    functions = [
        LlvmFunction(f"llvm.vector.reduce.{n}", 1, _fold(f), kind="int", is_reduction=True)
        for n, f in integers.items()
    ]
    for name, extremum in (("fmax", _maxnum), ("fmin", _minnum)):
        full = f"llvm.vector.reduce.{name}"
        functions.append(LlvmFunction(full, 1, _fold(extremum), is_reduction=True))
    for name, total in (("fadd", math.fsum), ("fmul", math.prod)):

        def reference(
            start: Lanes, vector: Lanes, total: Callable[[Sequence[float]], float] = total
        ) -> Lanes:
            return [total([*start, *vector])]

        full = f"llvm.vector.reduce.{name}"
        functions.append(LlvmFunction(full, 2, reference, is_reduction=True, has_start=True))
    return functions


def _elementwise() -> list[LlvmFunction]:
    ternary: Reference = _each(lambda a, b, c: a * b + c)
    unary: dict[str, Callable[[Any], Any]] = {
        "fabs": abs,
        "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
        "floor": lambda x: float(math.floor(x)) if math.isfinite(x) else x,
        "ceil": lambda x: float(math.ceil(x)) if math.isfinite(x) else x,
        "trunc": lambda x: float(math.trunc(x)) if math.isfinite(x) else x,
        "rint": lambda x: float(round(x)) if math.isfinite(x) else x,
        "nearbyint": lambda x: float(round(x)) if math.isfinite(x) else x,
        "roundeven": lambda x: float(round(x)) if math.isfinite(x) else x,
    }
    binary = {"minnum": _minnum, "maxnum": _maxnum, "copysign": math.copysign}
    return [
        *(LlvmFunction(f"llvm.{n}", 3, ternary) for n in ("fma", "fmuladd")),
        *(LlvmFunction(f"llvm.{n}", 1, _each(f)) for n, f in unary.items()),
        *(LlvmFunction(f"llvm.{n}", 2, _each(f)) for n, f in binary.items()),
    ]


LLVM_FUNCTIONS: dict[str, LlvmFunction] = {
    f.name: f
    for f in (
        *_widening("pmadd.wd", ("int16", "int16"), "int32", _pmaddwd),
        *_widening("pmadd.ub.sw", ("uint8", "int8"), "int16", _pmaddubsw),
        *_dots(),
        *_reductions(),
        *_elementwise(),
    )
}
_SUFFIX = re.compile(r"\.(v[0-9]+)?[if][0-9]+$")


def llvm_function(name: str) -> LlvmFunction:
    """Return a function by its name, with or without the type suffix.

    Raises:
        LlvmCallProblem: If the function is unknown.
    """
    function = LLVM_FUNCTIONS.get(name) or LLVM_FUNCTIONS.get(_SUFFIX.sub("", name))
    if function is None:
        names = ", ".join(sorted(LLVM_FUNCTIONS))
        raise LlvmCallProblem(f"unknown LLVM function {name}: expected one of {names}")
    return function


def llvm_result(name: str, args: Sequence[VectorType]) -> VectorType:
    """Return the type of a call, as the type of an element and a number of lanes.

    Raises:
        LlvmCallProblem: If the function is unknown, or does not take these operands.
    """
    function = llvm_function(name)
    if len(args) != function.arity:
        raise LlvmCallProblem(f"{name} takes {function.arity} operand(s), got {len(args)}")
    if function.args is not None:
        assert function.result is not None
        if tuple(args) != function.args:
            raise LlvmCallProblem(f"{name} takes {_spelled(function.args)}, got {_spelled(args)}")
        return function.result
    vector = args[-1]
    expected = [(vector[0], 1), vector] if function.has_start else [vector] * len(args)
    is_taken = vector[0].startswith("float" if function.kind == "float" else "int")
    if list(args) != expected or not is_taken:
        raise LlvmCallProblem(f"{name} does not take {_spelled(args)}")
    return (vector[0], 1) if function.is_reduction else vector


def is_offered(function: LlvmFunction, features: str) -> bool:
    """Return whether CPU features, as LLVM's text, include those that a function requires."""
    offered = set(features.split(","))
    return function.feature is None or any(
        offered.issuperset(all_of.split(",")) for all_of in function.feature.split("|")
    )


def spelled(dtype: str, lanes: int) -> str:
    """Return the dialect's name of a vector type, such as `int32x8`."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def _spelled(types: Sequence[VectorType]) -> str:
    return f"({', '.join(spelled(*t) for t in types)})"
