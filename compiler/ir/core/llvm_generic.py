"""The functions of LLVM that every CPU has, for vectors of any length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from compiler.ir.core.dtypes import DType, bits, smallest_and_largest, wrapped
from compiler.ir.core.llvm_functions import Lanes, LlvmFunction, Reference, each


def _fold(fn: Callable[[Any, Any], Any]) -> Reference:
    def folded(vector: Lanes) -> Lanes:
        total = vector[0]
        for lane in vector[1:]:
            total = fn(total, lane)
        return [total]

    return folded


def _minnum(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else min(a, b)


def _maxnum(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b)


def _total(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # fsum refuses sums that are infinite, or no number.
        return sum(numbers)


def _reductions() -> list[LlvmFunction]:
    integers: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
        "add": ("integer", lambda a, b: a + b),
        "mul": ("integer", lambda a, b: a * b),
        "and": ("integer", lambda a, b: a & b),
        "or": ("integer", lambda a, b: a | b),
        "xor": ("integer", lambda a, b: a ^ b),
        "smax": ("int", max),
        "smin": ("int", min),
        "umax": ("uint", max),
        "umin": ("uint", min),
    }
    functions = [
        LlvmFunction(f"llvm.vector.reduce.{name}", 1, _fold(fn), kind=kind, is_reduction=True)
        for name, (kind, fn) in integers.items()
    ]
    for name, extremum in (("fmax", _maxnum), ("fmin", _minnum)):
        full = f"llvm.vector.reduce.{name}"
        functions.append(LlvmFunction(full, 1, _fold(extremum), is_reduction=True))
    for name, total in (("fadd", _total), ("fmul", math.prod)):

        def reference(
            start: Lanes, vector: Lanes, total: Callable[[Sequence[float]], float] = total
        ) -> Lanes:
            return [total([*start, *vector])]

        full = f"llvm.vector.reduce.{name}"
        functions.append(LlvmFunction(full, 2, reference, is_reduction=True, has_start=True))
    return functions


def _minimum(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b, key=_signed_order)


def _maximum(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b, key=_signed_order)


def _signed_order(x: float) -> tuple[float, float]:
    """Order numbers, and a negative zero before a positive one."""
    return x, math.copysign(1.0, x)


def _rounded_by(fn: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(fn(x)), x) if math.isfinite(x) else x


def _floats() -> list[LlvmFunction]:
    ternary: Reference = each(lambda a, b, c: a * b + c)
    unary: dict[str, Callable[[Any], Any]] = {
        "fabs": abs,
        "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
        "floor": _rounded_by(math.floor),
        "ceil": _rounded_by(math.ceil),
        "trunc": _rounded_by(math.trunc),
        "rint": _rounded_by(round),
        "nearbyint": _rounded_by(round),
        "roundeven": _rounded_by(round),
        "round": _rounded_by(lambda x: math.trunc(x) + math.trunc(2 * (x - math.trunc(x)))),
    }
    binary = {
        "minnum": _minnum,
        "maxnum": _maxnum,
        "minimum": _minimum,
        "maximum": _maximum,
        "copysign": math.copysign,
    }
    return [
        *(LlvmFunction(f"llvm.{n}", 3, ternary) for n in ("fma", "fmuladd")),
        *(LlvmFunction(f"llvm.{n}", 1, each(f)) for n, f in unary.items()),
        *(LlvmFunction(f"llvm.{n}", 2, each(f)) for n, f in binary.items()),
    ]


def _saturated(value: int, dtype: DType) -> int:
    low, high = smallest_and_largest(dtype)
    return int(max(low, min(high, value)))


def _word(value: int, size: int) -> int:
    """Return the bits of an integer as a natural number."""
    return value % (1 << size)


def _on_bits(fn: Callable[..., int]) -> Callable[[DType], Reference]:
    """Return the reference of a function of the number of bits, and of the operands' bits."""

    def of_dtype(dtype: DType) -> Reference:
        size = bits(dtype)
        return each(lambda *words: wrapped(fn(size, *(_word(w, size) for w in words)), dtype))

    return of_dtype


def _reversed(size: int, word: int) -> int:
    return int(f"{word:0{size}b}"[::-1], 2)


def _swapped(size: int, word: int) -> int:
    return int.from_bytes(word.to_bytes(size // 8, "little"), "big")


def _funnel(size: int, high: int, low: int, shift: int, *, is_left: bool) -> int:
    """Return the upper half of a double word after a shift to the left, or the lower half."""
    double = high << size | low
    return double << shift % size >> size if is_left else double >> shift % size


def _integers() -> list[LlvmFunction]:
    # By the number of operands, whether LLVM's last operand is a flag, and the least size in bits.
    by_bits: dict[str, tuple[int, bool, int, Callable[..., int]]] = {
        "ctpop": (1, False, 8, lambda _, word: word.bit_count()),
        "ctlz": (1, True, 8, lambda size, word: size - word.bit_length()),
        "cttz": (1, True, 8, lambda size, word: (word & -word).bit_length() - 1 if word else size),
        "bitreverse": (1, False, 8, _reversed),
        "bswap": (1, False, 16, _swapped),
        "fshl": (3, False, 8, partial(_funnel, is_left=True)),
        "fshr": (3, False, 8, partial(_funnel, is_left=False)),
    }
    saturating: dict[str, Callable[[int, int], int]] = {
        "add.sat": lambda a, b: a + b,
        "sub.sat": lambda a, b: a - b,
    }

    def saturated(fn: Callable[[int, int], int]) -> Callable[[DType], Reference]:
        return lambda dtype: each(lambda a, b: _saturated(fn(a, b), dtype))

    functions: list[LlvmFunction] = [
        LlvmFunction(
            f"llvm.{name}",
            arity,
            _on_bits(fn)("int32"),
            kind="integer",
            has_flag=has_flag,
            least_bits=least,
            of_dtype=_on_bits(fn),
        )
        for name, (arity, has_flag, least, fn) in by_bits.items()
    ]
    functions.append(
        LlvmFunction(
            "llvm.abs",
            1,
            each(abs),
            kind="int",
            has_flag=True,
            of_dtype=lambda dtype: each(lambda x: wrapped(abs(x), dtype)),
        )
    )
    for prefix, kind in (("s", "int"), ("u", "uint")):
        functions += [
            LlvmFunction(f"llvm.{prefix}max", 2, each(max), kind=kind),
            LlvmFunction(f"llvm.{prefix}min", 2, each(min), kind=kind),
        ]
        functions += [
            LlvmFunction(f"llvm.{prefix}{name}", 2, each(fn), kind=kind, of_dtype=saturated(fn))
            for name, fn in saturating.items()
        ]
    return functions


GENERIC_FUNCTIONS = (*_reductions(), *_floats(), *_integers())
