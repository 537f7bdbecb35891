"""`lw.tune` over ranges finds kernels and a dispatcher for a symbolic program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from tuner.loop.search_result import NothingMeasuredError

TARGET = "cpu -num-cores=1"


def row_sums(columns: int = 40) -> lw.PrimFunc:
    n = te.var("n")
    x = te.placeholder((n, columns), "float32", name="x")
    k = te.reduce_axis((0, columns), name="k")
    y = te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="y")
    return te.create_prim_func([x, y])


def test_one_artifact_runs_all_sizes_of_the_ranges(tmp_path: Path) -> None:
    result = lw.tune(row_sums(), ranges={"n": (1, 3)}, target=TARGET, max_trials=48)
    assert 1 <= len(result.kernels) <= 8
    assert [dict(time.sizes) for time in result.times] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert all(time.tuned_secs and time.run_secs >= time.best_secs for time in result.times)
    assert len(result.trials) == 3
    assert 3 * 8 <= sum(map(len, result.trials)) <= 48
    assert result.loss is not None
    assert "main_0(x.data, y.data)" in result.dispatcher
    assert "if n <= 1:" in result.dispatcher
    assert result.artifact.dispatcher == result.dispatcher
    result.artifact.save(tmp_path / "sums.lwk")
    kernels = (result.build(), lw.load_kernel(tmp_path / "sums.lwk"))
    for n in (1, 2, 3):
        x = np.random.default_rng(n).random((n, 40), "float32")
        for kernel in kernels:
            y = np.full(n, np.nan, "float32")
            kernel(x, y)
            np.testing.assert_allclose(y, x.sum(axis=1), rtol=1e-5)
    with pytest.raises(lw.ShapeError, match="takes n from 1 to 3: dimension 0 of parameter x is 4"):
        kernels[1](np.zeros((4, 40), "float32"), np.zeros(4, "float32"))


def test_a_search_that_is_stopped_keeps_what_it_measured() -> None:
    seen: list[lw.Trial] = []
    result = lw.tune(
        row_sums(),
        ranges={"n": (1, 64)},
        target=TARGET,
        max_trials=48,
        on_trial=seen.append,
        should_stop=lambda: len(seen) >= 3,
    )
    assert 3 <= sum(map(len, result.trials)) < 48
    kernel, x, y = result.build(), np.ones((50, 40), "float32"), np.zeros(50, "float32")
    kernel(x, y)
    np.testing.assert_allclose(y, 40.0)
    with pytest.raises(NothingMeasuredError, match="stopped before the first measurement"):
        lw.tune(row_sums(), ranges={"n": (1, 64)}, target=TARGET, should_stop=lambda: True)


def test_what_has_no_ranges_is_refused() -> None:
    with pytest.raises(ValueError, match="matmul has no symbolic extent"):
        lw.tune("matmul:8,8,8", ranges={"M": (1, 8)}, target=TARGET)
    with pytest.raises(ValueError, match="takes one workload and no weights"):
        lw.tune([row_sums()], ranges={"n": (1, 8)}, target=TARGET)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r'or tune all sizes with ranges=\{"n": \(1, 512\)\}'):
        lw.tune(row_sums(), target=TARGET)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"m": (1, 8)}, "main has no symbolic extent m: it has n"),
        ({"n": (8, 1)}, "n runs from 8 to 1"),
        ({}, r'n has no range, such as "n": \(1, 512\)'),
        ({"n": "8"}, "the range of n is '8': expected its least and greatest value"),
        ({5: (1, 8)}, "ranges has 5: expected the name of a symbolic extent"),
        (["n"], "ranges is \\['n'\\]: expected a mapping"),
    ],
)
def test_a_wrong_range_is_refused(ranges: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        lw.tune(row_sums(), ranges=ranges, target=TARGET)


def test_numbers_and_gpus_have_no_ranges() -> None:
    scaled = """
@T.prim_func
def scaled(A: T.Buffer(("n",), "float32"), by: T.float32, C: T.Buffer(("n",), "float32")):
    for i in range(n):
        with T.sblock("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = A[vi] * by
"""
    with pytest.raises(ValueError, match=r'scaled takes the number by: .*specialize\(\{"by"'):
        lw.tune(scaled, ranges={"n": (1, 8)}, target=TARGET)
    with pytest.raises(ValueError, match="ranges are tuned for CPUs only, not for cuda"):
        lw.tune(row_sums(), ranges={"n": (1, 8)}, target="cuda -arch=sm_90 -emulated")


def test_a_program_that_is_not_legal_at_all_sizes_is_refused() -> None:
    n, m = te.var("n"), te.var("m")
    x, y = te.placeholder((n,), name="x"), te.placeholder((m,), name="y")
    func = te.create_prim_func([x, y, te.compute((n,), lambda i: x[i] + y[i], name="z")])
    with pytest.raises(lw.VerifyError, match=r"can't prove that y\[.*\] is in bounds"):
        lw.tune(func, ranges={"n": (1, 8), "m": (1, 8)}, target=TARGET)
