"""Polynomials for mathematical functions: errors, limits, every kind of loop, every kind of CPU."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.cpu.codegen.operations.math_functions import POLYNOMIALS
from compiler.driver import emit
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    LoopKind,
)
from compiler.target.cpu import CpuTarget
from tests.targets import runs_here
from tests.unit.compiler.backends.cpu.codegen.operations.accuracy import (
    EXACT,
    SPECIAL,
    Array,
    calling,
    errors,
)
from tests.unit.compiler.backends.cpu.codegen.programs import run

# What the functions are, in double precision; and how many units in the last place they may be off.


UNARY = sorted(set(EXACT) - {"pow"})


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
