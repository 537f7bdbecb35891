"""Polynomials for mathematical functions: errors, limits, every kind of loop, every kind of CPU."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from compiler import ops, te
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.cpu.codegen.operations.math_functions import POLYNOMIALS
from compiler.backends.module import Module
from compiler.driver import build, emit
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
from compiler.target.cpu import CpuTarget
from tests.targets import runs_here
from tests.unit.compiler.backends.cpu.codegen.programs import mark, run

Array = NDArray[Any]

AVX2 = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=1")
LARGEST = 2.0**128
# What the functions are, in double precision; and how many units in the last place they may be off.
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
UNARY = sorted(set(EXACT) - {"pow"})
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


def strata(seed: int = 0) -> Array:
    """Return a float for every upper half of its bits: each sign and exponent, NaN, infinity."""
    lower = np.random.default_rng(seed).integers(0, 1 << 16, 1 << 16)
    lower[::128] = 0
    patterns = (np.arange(1 << 16) << 16) + lower
    return patterns.astype(np.uint32).view(np.float32)


def edges(values: list[float]) -> Array:
    """Return the floats around some values, of both signs."""
    x = np.array(values, np.float32)
    near = [x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(0))]
    some = np.concatenate(near)
    return np.concatenate([some, -some])


def test_every_polynomial_has_a_reference() -> None:
    assert set(EXACT) == set(POLYNOMIALS)


@pytest.mark.parametrize("name", UNARY)
def test_errors_are_small_over_the_whole_range(name: str) -> None:
    limits = [88.72284, 87.33655, 103.97208, 128, 149, 150, 126, 38.5318, 45.15, 9.01, 3.92, 0.92]
    angles = [k * math.pi / 2 for k in (*range(1, 40), 10_000, 83_443, 83_444, 10**9, 10**20)]
    x = np.concatenate([strata(), edges([*SPECIAL, *limits, *angles])])
    exact, bound = EXACT[name]
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64))
        assert errors(run(calling(name, len(x)), x), expected).max() < bound


@pytest.mark.parametrize("name", sorted(EXACT))
@pytest.mark.parametrize("kind", ["serial", "unrolled", "parallel"])
def test_every_kind_of_loop_computes_the_same_bits(name: str, kind: LoopKind) -> None:
    x = strata(1)[:: 173 if kind != "unrolled" else 1733].copy()
    args = [x, np.random.default_rng(2).permutation(x)][: 2 if name == "pow" else 1]
    expected = run(calling(name, len(x)), *args)
    got = run(calling(name, len(x), kind), *args, target="cpu -num-cores=2")
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("size", [3, 8, 31, 32, 45, 64, 150])
def test_chains_of_several_vectors_run_side_by_side(size: int) -> None:
    x = np.random.default_rng(size).uniform(-9, 9, size).astype(np.float32)
    program = calling("exp", size)
    lanes = {int(n) for n in re.findall(r"@llvm\.fma\.v(\d+)f32", emit(program, AVX2).text)}
    assert max(lanes, default=1) == min(32, 1 << size.bit_length() - 1)
    assert errors(run(program, x), np.exp(x.astype(np.float64))).max() < 1


def test_powers_have_the_limits_that_c_gives_them() -> None:
    some = [*SPECIAL, *(-v for v in SPECIAL), math.nan]
    x, y = (
        np.array(v, np.float32) for v in zip(*[(a, b) for a in some for b in some], strict=True)
    )
    exact, bound = EXACT["pow"]
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64), y.astype(np.float64))
        got = run(calling("pow", len(x)), x, y)
    assert errors(got, expected).max() < bound


@lru_cache(maxsize=1)
def _power() -> Module:
    return build(calling("pow", 16), "cpu -num-cores=1")


FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(FLOATS, st.one_of(FLOATS, st.integers(-40, 40))), min_size=16, max_size=16)
)
def test_powers_of_any_floats_are_right(pairs: list[tuple[float, float]]) -> None:
    x, y = (np.array(v, np.float32) for v in zip(*pairs, strict=True))
    got = np.empty(16, np.float32)
    _power()(x, y, got)
    exact, bound = EXACT["pow"]
    with np.errstate(all="ignore"):
        assert errors(got, exact(x.astype(np.float64), y.astype(np.float64))).max() < bound


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_off_by_less_than_its_argument_could_be(approximate: str) -> None:
    x = np.linspace(-12, 12, 40001).astype(np.float32)
    wide = x.astype(np.float64)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    exact = {
        "none": np.array([v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in wide]),
        "tanh": wide / 2 * (1 + np.tanh(inner)),
    }[approximate]
    got = run(ops.gelu(len(x), approximate=approximate), x)
    assert (np.abs(got - exact) / np.spacing(np.abs(x))).max() < 1.7
    above = x >= 0
    assert errors(got[above], exact[above]).max() < 2


def test_silu_is_right_far_below_zero_too() -> None:
    x = np.linspace(-86, 20, 40001).astype(np.float32)
    wide = x.astype(np.float64)
    got = run(ops.silu(len(x)), x)
    assert errors(got, wide / (1 + np.exp(-wide))).max() < 3.2


def test_one_angle_far_out_leaves_its_neighbours_right() -> None:
    x = np.linspace(-3, 3, 64).astype(np.float32)
    x[[3, 17, 40]] = [1e30, -3e6, np.inf]
    for name in ("sin", "cos", "tan"):
        exact, bound = EXACT[name]
        with np.errstate(all="ignore"):
            expected = exact(x.astype(np.float64))
        assert errors(run(calling(name, 64), x), expected).max() < bound


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_rounded_once(name: str, dtype: DType) -> None:
    """The result is that of float32, rounded: within a whole unit of the exact one, NaN and all."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    wide = run(calling(name, len(x)), x.astype(np.float32))
    with np.errstate(all="ignore"):
        expected = wide.astype(dtype)
    got = run(calling(name, len(x), dtype=dtype), x)
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


def test_a_sigmoid_of_doubles_does_not_vanish_before_it_must() -> None:
    x = np.array([-745.0, -720.0, -709.5, -1.0, 0.0, 1.0, 800.0, -np.inf, np.nan])
    with np.errstate(over="ignore", under="ignore"):
        expected = np.where(x < 0, np.exp(x), 1.0) / (1 + np.exp(-np.abs(x)))
    np.testing.assert_allclose(
        run(calling("sigmoid", len(x), dtype="float64"), x), expected, rtol=1e-15, atol=1e-323
    )


@runs_here(2)
@pytest.mark.parametrize("name", sorted(EXACT))
def test_a_cpu_without_fused_multiply_adds_calls_the_library(name: str) -> None:
    x = np.linspace(0.5, 1.5, 19).astype(np.float32)
    args = [x, x[::-1].copy()][: 2 if name == "pow" else 1]
    got = run(calling(name, len(x)), *args, target="cpu -mcpu=x86-64-v2 -num-cores=1")
    expected = EXACT[name][0](*(a.astype(np.float64) for a in args))
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("cpu", "fused"),
    [
        ("x86-64-v3", r"vfmadd\d+ps .*%ymm"),
        ("x86-64-v4", r"vfmadd\d+ps .*%zmm"),
        ("neoverse-n1", r"fmla v\d+\.4s"),
    ],
)
@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sigmoid", "log"])
def test_vectors_of_each_cpu_are_computed_without_a_call(name: str, cpu: str, fused: str) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    text = disassemble(emit(calling(name, 1024), target).text, target).replace("\t", " ")
    assert re.search(fused, text)
    assert not re.search(rf"\b(callq?|bl?) {name}f?\b", text)


@pytest.mark.parametrize("kind", ["serial", "vectorized", "unrolled"])
def test_the_branch_of_far_angles_fits_into_loops_and_other_branches(kind: LoopKind) -> None:
    A = te.placeholder((12, 9), "float32", name="A")
    k = te.reduce_axis((0, 9), name="k")

    def term(i: te.Value, k: te.Value) -> te.Value:
        guarded = te.if_then_else(A[i, k] > 0.0, te.sin(A[i, k]) * te.cos(A[i, k]), A[i, k])
        return guarded + te.tan(A[i, k] * 0.125)

    B = te.compute((12,), lambda i: te.sum(term(i, k), axis=k), name="B")
    x = np.random.default_rng(3).uniform(-3, 3, (12, 9)).astype(np.float32)
    x[[2, 7, 11], [0, 4, 8]] = [3e5, 1e20, 2e6]
    wide = x.astype(np.float64)
    terms = np.where(wide > 0, np.sin(wide) * np.cos(wide), wide)
    exact = (terms + np.tan((x * np.float32(0.125)).astype(np.float64))).sum(1)
    got = run(mark(te.create_prim_func([A, B]), i=kind), x)
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)
