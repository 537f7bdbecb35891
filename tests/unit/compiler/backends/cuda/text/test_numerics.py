"""Kernels compute what docs/numerics.md says: on special values, of each type, in the emulator."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.backends.cuda.nvrtc import CompiledSource, compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.ir.core.dtypes import DType, bits, is_signed, wrapped
from compiler.ir.core.nodes import (
    ArithOp,
    BinOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Expr,
    Load,
    Store,
    Var,
    make_buffer,
    seq,
)
from compiler.passes.device.kernel import Axis, DeviceKernel, DeviceProgram, Launch

Array = NDArray[Any]
Make = Callable[[Expr, Expr], Expr]

INTEGERS: list[DType] = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS: list[DType] = ["float16", "bfloat16", "float32", "float64"]
INT_OPS: tuple[ArithOp, ...] = ("+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "min", "max")
FLOAT_OPS: tuple[ArithOp, ...] = ("+", "-", "*", "/", "//", "min", "max")
COMPARISONS: tuple[CompareOp, ...] = ("==", "!=", "<", "<=", ">", ">=")
SPECIAL = [0.0, -0.0, 1.0, -1.5, 1e-40, 6e-8, np.inf, -np.inf, np.nan, 65504.0, 3.1415926, -7.75]


def integers_of(dtype: DType) -> list[int]:
    size = bits(dtype)
    low = -(1 << size - 1) if is_signed(dtype) else 0
    high = low + (1 << size) - 1
    return [*range(max(low, -3), 9), low, low + 1, high, high - 1, 100, 77]


def python_result(op: str, a: int, b: int, dtype: DType) -> int:
    """Compute with whole numbers, by the rules of docs/numerics.md."""
    size = bits(dtype)
    match op:
        case "//" | "%":
            result = 0 if b == 0 else a // b if op == "//" else a % b
        case "<<":
            result = a << b if 0 <= b < size else 0
        case ">>":
            result = a >> b if 0 <= b < size else (-1 if a < 0 else 0)
        case "min" | "max":
            result = min(a, b) if op == "min" else max(a, b)
        case _:
            operations = {
                "+": a + b,
                "-": a - b,
                "*": a * b,
                "&": a & b,
                "|": a | b,
                "^": a ^ b,
            }
            result = operations[op]
    return wrapped(result, dtype)


def dtype_named(array: Array) -> DType:
    return cast(DType, array.dtype.name)


class Elementwise:
    """Kernels of one thread an element; compiled together.

    Args:
        cases: By name, the operands, and by dtype of the result what is computed of them.
    """

    def __init__(self, cases: dict[str, tuple[Array, Array, list[tuple[DType, Make]]]]) -> None:
        self._cases = cases
        kernels = tuple(self._kernel(name) for name in cases)
        launches = tuple(Launch(kernel.name) for kernel in kernels)
        text = emit_cuda(DeviceProgram((), (), kernels, launches))
        self._compiled: CompiledSource = compile_cuda(text, "sm_90a")

    def _kernel(self, name: str) -> DeviceKernel:
        a, b, results = self._cases[name]
        i = Var("i")
        operands = [make_buffer(n, x.shape, dtype_named(x)) for n, x in (("A", a), ("B", b))]
        outputs = [make_buffer(f"C{n}", a.shape, dtype) for n, (dtype, _) in enumerate(results)]
        left, right = (Load(buffer, (i,)) for buffer in operands)
        stores = [
            Store(output, (i,), make(left, right))
            for output, (_, make) in zip(outputs, results, strict=True)
        ]
        axes = (Axis("threadIdx.x", i, len(a)),)
        buffers = (*operands, *outputs)
        return DeviceKernel(name, axes, buffers, frozenset(outputs), (), seq(*stores), {}, 0)

    def run(self, name: str) -> list[Array]:
        a, b, results = self._cases[name]
        outputs = [np.zeros(a.shape, dtype) for dtype, _ in results]
        report = emulate(self._compiled.ptx, name, (1, 1, 1), (len(a), 1, 1), [a, b, *outputs])
        assert not report.faults, report
        return outputs


def binary(op: ArithOp) -> Make:
    return lambda a, b: BinOp(op, a, b)


def compared(op: CompareOp) -> Make:
    return lambda a, b: Compare(op, a, b)


def cast_to(dtype: DType) -> Make:
    return lambda a, _: Cast(dtype, a)


def function(name: str) -> Make:
    return lambda a, _: Call(name, (a,), "float32")


def pairs(values: list[Any], dtype: DType) -> tuple[Array, Array]:
    left, right = zip(*product(values, values), strict=True)
    with np.errstate(over="ignore"):
        return np.array(left).astype(dtype), np.array(right).astype(dtype)


def pairs_of_integers(dtype: DType) -> tuple[Array, Array]:
    left, right = zip(*product(integers_of(dtype), integers_of(dtype)), strict=True)
    return np.array(left, dtype), np.array(right, dtype)


@pytest.fixture(scope="module")
def integers() -> Elementwise:
    return Elementwise(
        {
            f"of_{dtype}": (*pairs_of_integers(dtype), [(dtype, binary(op)) for op in INT_OPS])
            for dtype in INTEGERS
        }
    )


@pytest.fixture(scope="module")
def floats() -> Elementwise:
    return Elementwise(
        {
            f"of_{dtype}": (
                *pairs(SPECIAL, dtype),
                [
                    *((dtype, binary(op)) for op in FLOAT_OPS),
                    *(("bool", compared(op)) for op in COMPARISONS),
                    *((other, cast_to(other)) for other in ("bool", *FLOATS)),
                ],
            )
            for dtype in FLOATS
        }
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operations_are_those_of_python_and_wrap(
    integers: Elementwise, dtype: DType
) -> None:
    a, b = pairs_of_integers(dtype)
    for op, got in zip(INT_OPS, integers.run(f"of_{dtype}"), strict=True):
        expected = [python_result(op, int(x), int(y), dtype) for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(got, np.array(expected, dtype), op)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_operations_are_those_of_numpy(floats: Elementwise, dtype: DType) -> None:
    a, b = pairs(SPECIAL, dtype)
    wide = "float64" if dtype == "float64" else "float32"
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        results = [x + y, x - y, x * y, x / y, np.floor(x / y), np.minimum(x, y), np.maximum(x, y)]
        arithmetic = [result.astype(dtype) for result in results]
        comparisons = [x == y, x != y, x < y, x <= y, x > y, x >= y]
        # A float64 is rounded to 32 bits before it becomes narrower.
        narrowed = x.astype(np.float32)
        casts = [
            x != 0,
            *(x.astype(d) if d == "float64" else narrowed.astype(d) for d in FLOATS),
        ]
    names = [*FLOAT_OPS, *COMPARISONS, "bool", *FLOATS]
    everything = [*arithmetic, *comparisons, *casts]
    outputs = floats.run(f"of_{dtype}")
    for name, got, expected in zip(names, outputs, everything, strict=True):
        same = np.testing.assert_array_equal
        same(got.astype(np.float64), expected.astype(np.float64), f"{name} of {dtype}")


def test_conversions_of_integers_keep_the_lowest_bits_or_the_nearest_value() -> None:
    values = np.array(integers_of("int64"), np.int64)
    targets: list[DType] = [*INTEGERS, "float32", "float64", "bool"]
    results = [(dtype, cast_to(dtype)) for dtype in targets]
    outputs = Elementwise({"casts": (values, values, results)}).run("casts")
    for dtype, got in zip(targets, outputs, strict=True):
        np.testing.assert_array_equal(got, values.astype(dtype), dtype)


def test_functions_of_special_values_are_those_of_c() -> None:
    values = np.array(SPECIAL, np.float32)
    references: dict[str, Callable[[Array], Array]] = {
        "exp": np.exp,
        "log": np.log,
        "sqrt": np.sqrt,
        "tanh": np.tanh,
        "erf": np.vectorize(math.erf),
        "floor": np.floor,
        "round": np.rint,
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    }
    results: list[tuple[DType, Make]] = [("float32", function(name)) for name in references]
    outputs = Elementwise({"functions": (values, values, results)}).run("functions")
    with np.errstate(all="ignore"):
        for (name, reference), got in zip(references.items(), outputs, strict=True):
            expected = reference(values.astype(np.float64)).astype(np.float32)
            np.testing.assert_allclose(got, expected, rtol=3e-7, atol=1e-45, err_msg=name)
