"""Conversions and packed arithmetic, against ml_dtypes and rational numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.instructions.floats import maximum, minimum
from compiler.backends.emulator.types import Array

# Each instruction has a letter for its operands: h is 16 bits, r is 32 bits, f is float32.
CASES: dict[str, tuple[str, str, int]] = {
    "cvt.rn.f16.f32": ("h", "f", 1),
    "cvt.rz.f16.f32": ("h", "f", 1),
    "cvt.rn.bf16.f32": ("h", "f", 1),
    "cvt.rz.bf16.f32": ("h", "f", 1),
    "cvt.f32.f16": ("f", "h", 1),
    "cvt.f32.bf16": ("f", "h", 1),
    "cvt.rn.f16x2.f32": ("r", "f", 2),
    "cvt.rn.bf16x2.f32": ("r", "f", 2),
    "cvt.rn.satfinite.e4m3x2.f32": ("h", "f", 2),
    "cvt.rn.satfinite.e5m2x2.f32": ("h", "f", 2),
    "cvt.rn.f16x2.e4m3x2": ("r", "h", 1),
    "cvt.rni.s32.f32": ("r", "f", 1),
    "cvt.rzi.u32.f32": ("r", "f", 1),
    "cvt.rmi.f32.f32": ("f", "f", 1),
    "cvt.rn.f32.s32": ("f", "r", 1),
    "cvt.rp.f32.u32": ("f", "r", 1),
    "cvt.sat.s8.s32": ("r", "r", 1),
    "cvt.sat.f32.f32": ("f", "f", 1),
    "fma.rn.f16x2": ("r", "r", 3),
    "fma.rn.bf16x2": ("r", "r", 3),
    "min.f32": ("f", "f", 2),
    "max.f32": ("f", "f", 2),
    "max.NaN.f32": ("f", "f", 2),
}
SIZES: dict[str, tuple[str, Any]] = {
    "h": ("unsigned short", np.uint16),
    "r": ("unsigned", np.uint32),
    "f": ("float", np.float32),
}
SPECIAL = """
0 -0.0 1 -1.5 2.5 3.5 1e-8 -6e-8 6.1e-5 0.3 448 500 65519 65520 1e10 -3e9 300.7 inf -inf nan 57344
2147483648 1e-42 1.00390625 0.0009765627 -0.25 127.5 1e-3 240 17 19 1e38
"""
FLOATS = np.array(SPECIAL.split(), np.float32)


def run_all() -> dict[str, tuple[list[Array], Array]]:
    """Run each instruction on 32 values, and return operands and results."""
    kernels, operands = [], {}
    rng = np.random.default_rng(0)
    for number, (name, (to, of, count)) in enumerate(CASES.items()):
        result, source = SIZES[to][0], SIZES[of][0]
        inputs = ", ".join(f'"{of}"(a[{32 * i} + t])' for i in range(count))
        places = ", ".join(f"%{i}" for i in range(count + 1))
        kernels.append(
            f'extern "C" __global__ void k{number}(const {source}* a, {result}* b) {{ '
            f"int t = threadIdx.x; {result} x; "
            f'asm("{name} {places};" : "={to}"(x) : {inputs}); b[t] = x; }}'
        )
        if of == "f":
            values = [FLOATS, *(rng.permutation(FLOATS) for _ in range(count - 1))]
        elif count == 3:
            kind = ml_dtypes.bfloat16 if "bf16" in name else np.float16
            values = [rng.standard_normal(64).astype(kind).view(np.uint32) for _ in range(3)]
        else:
            values = [rng.integers(0, 2 ** (8 * SIZES[of][1]().itemsize), 32).astype(SIZES[of][1])]
        operands[name] = values
    ptx = compile_cuda("\n".join(kernels), "sm_90a").ptx
    results = {}
    for number, (name, (to, _, _)) in enumerate(CASES.items()):
        b = np.zeros(32, SIZES[to][1])
        a = np.concatenate(operands[name])
        report = emulate(ptx, f"k{number}", (1, 1, 1), (32, 1, 1), [a, b])
        assert not report.faults, report
        results[name] = (operands[name], b)
    return results


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[list[Array], Array]]:
    return run_all()


def same(result: Array, expected: Array) -> None:
    """Compare floats by their bits, but for the bits of NaN."""
    size = result.dtype.itemsize
    numbers = ~(np.isnan(result.astype(np.float32)) & np.isnan(expected.astype(np.float32)))
    bits = (np.asarray(x).view(f"u{size}") for x in (result, expected.astype(result.dtype)))
    left, right = bits
    assert left[numbers].tolist() == right[numbers].tolist()


NARROW: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}


@pytest.mark.filterwarnings("ignore:.*cast:RuntimeWarning")
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_floats_are_narrowed_to_the_nearest(
    results: dict[str, tuple[list[Array], Array]], kind: str
) -> None:
    (values,), narrow = results[f"cvt.rn.{kind}.f32"]
    same(narrow.view(NARROW[kind]), values.astype(NARROW[kind]))
    (high, low), packed = results[f"cvt.rn.{kind}x2.f32"]
    pairs = packed.view(NARROW[kind]).reshape(32, 2)
    same(pairs[:, 0].copy(), low.astype(NARROW[kind]))
    same(pairs[:, 1].copy(), high.astype(NARROW[kind]))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_floats_are_narrowed_toward_zero(
    results: dict[str, tuple[list[Array], Array]], kind: str
) -> None:
    (values,), narrow = results[f"cvt.rz.{kind}.f32"]
    result = narrow.view(NARROW[kind])
    for value, rounded in zip(values, result, strict=True):
        if np.isfinite(value):
            assert np.isfinite(rounded.astype(np.float32))
            assert abs(float(rounded)) <= abs(float(value))
            following = np.nextafter(abs(rounded), NARROW[kind](np.inf))
            assert float(following) > abs(float(value))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_widening_is_exact(results: dict[str, tuple[list[Array], Array]], kind: str) -> None:
    (values,), wide = results[f"cvt.f32.{kind}"]
    same(wide, values.view(NARROW[kind]).astype(np.float32))


@pytest.mark.parametrize(("kind", "largest"), [("e4m3", 448), ("e5m2", 57344)])
def test_8_bit_floats_saturate(
    results: dict[str, tuple[list[Array], Array]], kind: str, largest: float
) -> None:
    (high, low), packed = results[f"cvt.rn.satfinite.{kind}x2.f32"]
    pairs = packed.view(np.uint8).reshape(32, 2)
    for values, column in ((low, 0), (high, 1)):
        expected = np.clip(values, -largest, largest).astype(NARROW[kind])
        same(pairs[:, column].copy().view(NARROW[kind]), expected)


def test_8_bit_floats_are_widened_in_pairs(
    results: dict[str, tuple[list[Array], Array]],
) -> None:
    (values,), pairs = results["cvt.rn.f16x2.e4m3x2"]
    same(pairs.view(np.float16), values.view(NARROW["e4m3"]).astype(np.float16))


def test_floats_become_integers_within_their_range(
    results: dict[str, tuple[list[Array], Array]],
) -> None:
    (values,), rounded = results["cvt.rni.s32.f32"]
    wide = np.nan_to_num(values.astype(np.float64), nan=0, posinf=1e30, neginf=-1e30)
    assert rounded.view(np.int32).tolist() == np.clip(np.rint(wide), -(2**31), 2**31 - 1).tolist()
    _, truncated = results["cvt.rzi.u32.f32"]
    assert truncated.tolist() == np.clip(np.trunc(wide), 0, 2**32 - 1).tolist()
    _, down = results["cvt.rmi.f32.f32"]
    same(down, np.floor(values))
    _, unit = results["cvt.sat.f32.f32"]
    assert unit.tolist() == np.clip(np.nan_to_num(values, nan=0), 0, 1).tolist()


def test_integers_become_floats_and_bytes(
    results: dict[str, tuple[list[Array], Array]],
) -> None:
    (values,), nearest = results["cvt.rn.f32.s32"]
    same(nearest, values.view(np.int32).astype(np.float32))
    (values,), above = results["cvt.rp.f32.u32"]
    assert all(int(x) >= int(v) for v, x in zip(values, above, strict=True))
    below = np.nextafter(above, np.float32(0))
    assert all(int(x) < int(v) for v, x in zip(values, below, strict=True))
    (values,), clamped = results["cvt.sat.s8.s32"]
    assert clamped.view(np.int32).tolist() == np.clip(values.view(np.int32), -128, 127).tolist()


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_packed_fma_is_rounded_once(
    results: dict[str, tuple[list[Array], Array]], kind: str
) -> None:
    operands, result = results[f"fma.rn.{kind}x2"]
    a, b, c = (x.view(NARROW[kind]).astype(np.float64) for x in operands)
    # The product and the sum of such numbers are exact in float64, or nearly so.
    got = result.view(NARROW[kind]).astype(np.float64)
    exact = a * b + c
    spacing = np.spacing(np.abs(exact).astype(np.float32)) * 2.0 ** (13 if kind == "f16" else 16)
    assert (np.abs(got - exact) <= 0.5 * np.maximum(spacing, 2.0**-24)).all()


def test_extremes_ignore_or_propagate_nan_and_order_zeros(
    results: dict[str, tuple[list[Array], Array]],
) -> None:
    for name, function in (("min.f32", np.fmin), ("max.f32", np.fmax), ("max.NaN.f32", np.maximum)):
        (a, b), result = results[name]
        np.testing.assert_array_equal(result, function(a, b))
    zeros = np.array([0.0, -0.0, -0.0], np.float32), np.array([-0.0, 0.0, -0.0], np.float32)
    assert np.signbit(minimum(*zeros)).tolist() == [True, True, True]
    assert np.signbit(maximum(*zeros)).tolist() == [False, False, True]
