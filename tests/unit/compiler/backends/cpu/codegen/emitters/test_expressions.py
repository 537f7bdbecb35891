"""Every kind of expression, scalar and vectorized, against NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from math import erf
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import te
from compiler.ir.core.dtypes import DType, bits
from compiler.ir.core.intrinsics import INTRINSICS
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Call,
    Compare,
    Conditional,
    FloatImm,
    For,
    If,
    IntImm,
    Load,
    LoopKind,
    Stmt,
    Store,
    Var,
    make_buffer,
)
from compiler.ir.core.program import PrimFunc
from tests.targets import runs_here
from tests.unit.compiler.backends.cpu.codegen.programs import elementwise, mark, run

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
N = 45  # not a multiple of any vector's length
LOOPS = ["serial", "vectorized", "unrolled"]
RNG = np.random.default_rng(7)

FLOATS: dict[str, tuple[Callable[[Any], Any], Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "add": (lambda x: x + 1.5, lambda x: x + np.float32(1.5)),
    "sub": (lambda x: 2.0 - x, lambda x: 2 - x),
    "div": (lambda x: x / 3.0, lambda x: x / np.float32(3)),
    "exp": (te.exp, np.exp),
    "sqrt": (lambda x: te.sqrt(x * x), np.abs),
    "tanh": (te.tanh, np.tanh),
    "sigmoid": (te.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "rsqrt": (lambda x: te.rsqrt(x * x + 1.0), lambda x: 1 / np.sqrt(x * x + 1)),
    "floor": (te.floor, np.floor),
    "round": (te.round, np.rint),
    "abs": (te.abs, np.abs),
    "power": (lambda x: te.power(te.abs(x), x), lambda x: np.abs(x) ** x),
    "select": (lambda x: te.select(x > 0.0, x, x * 2.0), lambda x: np.where(x > 0, x, 2 * x)),
    "cast": (lambda x: te.cast("float32", te.cast("int32", x)), np.trunc),
    "logic": (
        lambda x: te.select(te.all(x > -1.0, te.logical_not(x > 1.0)), x, 0.0 * x),
        lambda x: np.where((x > -1) & ~(x > 1), x, 0),
    ),
}


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("name", FLOATS)
def test_a_float_expression_is_what_numpy_computes(name: str, kind: Any) -> None:
    body, reference = FLOATS[name]
    x = (4 * RNG.standard_normal(N)).astype("float32")
    got = run(mark(elementwise(N, lambda A, i: body(A[i])), i=kind), x)
    np.testing.assert_allclose(got, reference(x), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("kind", LOOPS)
def test_erf_is_called_a_lane_at_a_time(kind: Any) -> None:
    x = RNG.standard_normal(N).astype("float32")
    got = run(mark(elementwise(N, lambda A, i: te.erf(A[i])), i=kind), x)
    np.testing.assert_allclose(got, [erf(v) for v in x], rtol=1e-6)


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("divisor", [1, 2, 3, 7])
def test_integer_division_rounds_towards_minus_infinity(divisor: int, kind: Any) -> None:
    x = RNG.integers(-1000, 1000, N).astype("int32")
    quotient = elementwise(N, lambda A, i: A[i] // divisor, "int32")
    remainder = elementwise(N, lambda A, i: A[i] % divisor, "int32")
    np.testing.assert_array_equal(run(mark(quotient, i=kind), x), x // divisor)
    np.testing.assert_array_equal(run(mark(remainder, i=kind), x), x % divisor)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "uint32"])
def test_integers_of_every_width_wrap_as_numpy_does(dtype: DType) -> None:
    x = np.arange(-20, N - 20).astype(dtype)
    func = mark(elementwise(N, lambda A, i: A[i] * A[i] + A[i], dtype), i="vectorized")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(func, x), (x * x + x).astype(dtype))


def test_unsigned_values_compare_and_divide_as_unsigned() -> None:
    x = np.array([3, 200, 255, 128], dtype="uint8")
    func = elementwise(4, lambda A, i: te.select(A[i] > A[0] * 2, A[i] // 2, A[i] % 2), "uint8")
    np.testing.assert_array_equal(run(func, x), np.where(x > 6, x // 2, x % 2))


@pytest.mark.parametrize("kind", LOOPS)
def test_a_bool_is_a_byte_in_memory(kind: Any) -> None:
    x = RNG.standard_normal(N).astype("float32")
    A = te.placeholder((N,), "float32", name="A")
    func = te.create_prim_func([A, te.compute((N,), lambda i: A[i] > 0.0, name="B")])
    np.testing.assert_array_equal(run(mark(func, i=kind), x), x > 0)


@pytest.mark.parametrize("kind", LOOPS)
def test_if_then_else_never_touches_what_it_guards_against(kind: Any) -> None:
    """The guarded load is out of bounds at both ends: a page fault or garbage would show."""
    A = te.placeholder((N,), "float32", name="A")
    B = te.compute(
        (N + 8,),
        lambda i: te.if_then_else(te.all(i >= 4, i < N + 4), A[i - 4], -1.0),
        name="B",
    )
    x = RNG.standard_normal(N).astype("float32")
    got = run(mark(te.create_prim_func([A, B]), i=kind), x)
    np.testing.assert_array_equal(got, np.pad(x, 4, constant_values=-1))


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("stride", [2, 3])
def test_a_strided_load_gathers(stride: int, kind: Any) -> None:
    A = te.placeholder((stride * N,), "float32", name="A")
    B = te.compute((N,), lambda i: A[stride * i + 1], name="B")
    x = RNG.standard_normal(stride * N).astype("float32")
    got = run(mark(te.create_prim_func([A, B]), i=kind), x)
    np.testing.assert_array_equal(got, x[1::stride])


@pytest.mark.parametrize("kind", LOOPS)
def test_an_index_with_floor_division_addresses_each_lane(kind: Any) -> None:
    A = te.placeholder((N,), "float32", name="A")
    B = te.compute((N,), lambda i: A[(i // 3) * 3 + 2 - i % 3], name="B")
    x = RNG.standard_normal(N).astype("float32")
    order = np.arange(N) // 3 * 3 + 2 - np.arange(N) % 3
    np.testing.assert_array_equal(run(mark(te.create_prim_func([A, B]), i=kind), x), x[order])


@pytest.mark.parametrize("kind", LOOPS)
def test_maximum_and_minimum_keep_nan(kind: Any) -> None:
    x = np.array([1, np.nan, -2, np.inf, -np.inf, np.nan, 0, 5, np.nan], dtype="float32")
    y = x[::-1].copy()
    A = te.placeholder((9,), "float32", name="A")
    Y = te.placeholder((9,), "float32", name="Y")
    relu = te.create_prim_func([A, te.compute((9,), lambda i: te.max(A[i], 0.0), name="B")])
    least = te.create_prim_func([A, Y, te.compute((9,), lambda i: te.min(A[i], Y[i]), name="B")])
    np.testing.assert_array_equal(run(mark(relu, i=kind), x), np.maximum(x, 0))
    np.testing.assert_array_equal(run(mark(least, i=kind), x, y), np.minimum(x, y))


def test_half_precision_is_computed_in_half_precision() -> None:
    x = RNG.standard_normal(N).astype("float16")
    func = mark(elementwise(N, lambda A, i: A[i] * A[i] + 1.0, "float16"), i="vectorized")
    np.testing.assert_allclose(run(func, x), x * x + np.float16(1), rtol=2e-3)


def test_a_float_literal_keeps_every_digit() -> None:
    value = 0.1 + 2**-20
    func = elementwise(3, lambda A, i: A[i] * 0.0 + value, "float32")
    assert (run(func, np.ones(3, "float32")) == np.float32(value)).all()


@pytest.mark.parametrize("kind", ["serial", "vectorized", "unrolled", "parallel"])
@pytest.mark.parametrize("op", ["//", "%"])
def test_a_guarded_division_does_not_divide_where_the_guard_fails(kind: LoopKind, op: str) -> None:
    C = make_buffer("C", (40,), "int32")
    i, zero = Var("i"), IntImm(0)
    divided = BinOp(op, BinOp("-", i, IntImm(25)), i)  # type: ignore[arg-type]
    guard = Compare(">", i, zero)
    by_value: Stmt = Store(C, (i,), Conditional(guard, divided, IntImm(5)))
    by_statement: Stmt = If(guard, Store(C, (i,), divided), Store(C, (i,), IntImm(5)))
    steps = np.arange(1, 40, dtype=np.int32)
    expected = (steps - 25) // steps if op == "//" else (steps - 25) % steps
    for body in (by_value, by_statement):
        root = Block("root", (), (), (), For(i, IntImm(40), body, kind))
        func = PrimFunc("main", (C,), BlockRealize((), TRUE, root))
        np.testing.assert_array_equal(run(func), [5, *expected])


def test_a_float16_literal_that_is_too_large_is_infinite() -> None:
    B, i = make_buffer("B", (4,), "float16"), Var("i")
    store = Store(B, (i,), FloatImm(1e6, "float16"))
    root = Block("root", (), (), (), For(i, IntImm(4), store))
    func = PrimFunc("main", (B,), BlockRealize((), TRUE, root))
    np.testing.assert_array_equal(run(func), np.full(4, np.inf))


def test_a_double_becomes_a_half() -> None:
    x = RNG.standard_normal(N)
    A = te.placeholder((N,), "float64", name="A")
    B = te.compute((N,), lambda i: te.cast("float16", A[i]), name="B")
    for kind in ("serial", "vectorized"):
        func = mark(te.create_prim_func([A, B]), i=kind)
        np.testing.assert_allclose(run(func, x), x.astype(np.float16), rtol=1e-3)
    half = x.astype(np.float16)
    got = run(elementwise(N, lambda A, i: te.erf(A[i]), "float16"), half)
    np.testing.assert_allclose(got, [erf(v) for v in half], rtol=2e-3)


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("cpu", [pytest.param("x86-64-v2", marks=runs_here(2)), "native"])
@pytest.mark.parametrize("narrow", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_every_narrow_float_is_read_and_rounded_as_numpy_does(
    narrow: DType, cpu: str, kind: LoopKind
) -> None:
    target = f"cpu -mcpu={cpu} -num-cores=1"
    size = bits(narrow)
    every = np.arange(1 << size).astype(f"u{size // 8}").view(narrow)
    A = te.placeholder(every.shape, narrow, name="A")
    widened = te.compute(every.shape, lambda i: te.cast("float32", A[i]), name="B")
    got = run(mark(te.create_prim_func([A, widened]), i=kind), every, target=target)
    np.testing.assert_array_equal(got, every.astype(np.float32))

    # Between two neighbours, exactly half-way, and a little to each side; and what is too large.
    exact = every[np.isfinite(every.astype(np.float32))].astype(np.float32)
    halfway = exact[1:] / 2 + exact[:-1] / 2
    steps = [np.nextafter(x, np.float32(s)) for x in (exact, halfway) for s in (np.inf, -np.inf)]
    special = [np.inf, -np.inf, np.nan, 1e38, -7e4, 65519.9, 65520, 1e-45, 464, -480, 61440]
    some = RNG.integers(0, 1 << 32, 1 << 12, np.uint32).view(np.float32)
    wide = np.concatenate([exact, halfway, *steps, np.array(special, np.float32), some])
    X = te.placeholder(wide.shape, "float32", name="X")
    rounded = te.compute(wide.shape, lambda i: te.cast(narrow, X[i]), name="Y")
    got = run(mark(te.create_prim_func([X, rounded]), i=kind), wide, target=target)
    with np.errstate(all="ignore"):
        expected = wide.astype(narrow).astype(np.float32)
    np.testing.assert_array_equal(got.astype(np.float32), expected)
    np.testing.assert_array_equal(
        np.signbit(got.astype(np.float32))[expected == 0], np.signbit(expected[expected == 0])
    )


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("op", ["//", "%", "<<", ">>"])
def test_no_divisor_and_no_shift_is_too_much(op: str, dtype: DType, kind: Any) -> None:
    """By zero all is zero, as in NumPy; the least number divided by -1 is itself again."""
    limits = np.iinfo(dtype)
    some = [limits.min, limits.min + 1, 0, 1, 7, limits.max]
    others = [0, 1, 3, limits.max, *([-1, -3, limits.min] if limits.min else [31, 8, 200])]
    x, y = (np.array(v, dtype) for v in zip(*product(some, others), strict=True))
    A, B, C = (make_buffer(name, x.shape, dtype) for name in "ABC")
    i = Var("i")
    value = BinOp(op, Load(A, (i,)), Load(B, (i,)))  # type: ignore[arg-type]
    loop = For(i, IntImm(len(x)), Store(C, (i,), value), kind)
    func = PrimFunc("main", (A, B, C), BlockRealize((), TRUE, Block("root", (), (), (), loop)))
    got = run(func, x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, BINARY[op](x, y))


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("dtype", ["float8_e5m2", "bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", sorted(INTRINSICS))
def test_every_function_compiles(name: str, dtype: DType, kind: Any) -> None:
    function = INTRINSICS[name]
    low = 1.0 if name == "acosh" else 0.1
    args = [RNG.uniform(low, low + 0.8, N).astype(dtype) for _ in range(function.arity)]
    buffers = [make_buffer(letter, (N,), dtype) for letter in "ABC"[: function.arity + 1]]
    i = Var("i")
    value = Call(name, tuple(Load(b, (i,)) for b in buffers[:-1]), dtype)
    loop = For(i, IntImm(N), Store(buffers[-1], (i,), value), kind)
    root = Block("root", (), (), (), loop)
    got = run(PrimFunc("main", tuple(buffers), BlockRealize((), TRUE, root)), *args)
    expected = function.reference(*(a.astype(np.float64) for a in args))
    limits = {"float8_e5m2": 2**-2, "bfloat16": 2**-8, "float16": 2**-10, "float32": 2e-6}
    rtol = limits.get(dtype, 1e-12)
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=rtol, atol=rtol)
