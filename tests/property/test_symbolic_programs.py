"""One kernel of a random symbolic program, under a random schedule, computes what NumPy does.

The program is a chain of stages on matrices of symbolic shapes. It is scheduled by primitives drawn
at random, built once, and called with arrays of several shapes. NumPy computes what they should
come to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from compiler import te
from compiler.backends.cpu.codegen import instruction_estimate
from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.analysis.symbols import with_ranges
from compiler.schedule.schedule import Schedule
from tests.property.acceptance import Acceptance
from tests.property.generators.schedules import RandomTrace

Matrix = NDArray[np.float64]
TARGET = "cpu -num-cores=2"
MOST = 40
# What suits CPUs. Threads of GPUs and pipelines are tried on programs of constant shapes.
STEPS = (
    *("split", "split", "split", "fuse", "reorder", "vectorize", "unroll", "parallel"),
    *("compute_at", "reverse_compute_at", "compute_inline", "cache_read", "cache_write"),
    *("decompose_reduction", "storage_align"),
)


@dataclass(frozen=True)
class Stage:
    """A step from a matrix of shape (rows, columns) to another: in tensors, and by NumPy."""

    tensors: Callable[[te.Tensor, Any, Any], tuple[te.Tensor, Any, Any]]
    reference: Callable[[Matrix], Matrix]


def _transposed(x: te.Tensor, m: Any, n: Any) -> tuple[te.Tensor, Any, Any]:
    return te.compute((n, m), lambda i, j: x[j, i], name="transposed"), n, m


def _scaled(x: te.Tensor, m: Any, n: Any) -> tuple[te.Tensor, Any, Any]:
    return te.compute((m, n), lambda i, j: x[i, j] * 2.0 + 1.0, name="scaled"), m, n


def _reversed(x: te.Tensor, m: Any, n: Any) -> tuple[te.Tensor, Any, Any]:
    return te.compute((m, n), lambda i, j: x[m - 1 - i, j], name="reversed"), m, n


def _centred(x: te.Tensor, m: Any, n: Any) -> tuple[te.Tensor, Any, Any]:
    k = te.reduce_axis((0, n), name="k")
    sums = te.compute((m,), lambda i: te.sum(x[i, k], axis=k), name="sums")
    return te.compute((m, n), lambda i, j: x[i, j] - sums[i], name="centred"), m, n


def _padded(x: te.Tensor, m: Any, n: Any) -> tuple[te.Tensor, Any, Any]:
    def element(i: Any, j: Any) -> Any:
        return te.if_then_else(te.all(i >= 1, i <= m), x[i - 1, j], 0.0)

    return te.compute((m + 2, n), element, name="padded"), m + 2, n


def _gram(x: te.Tensor, m: Any, n: Any) -> tuple[te.Tensor, Any, Any]:
    k = te.reduce_axis((0, n), name="k")
    product = te.compute((m, m), lambda i, j: te.sum(x[i, k] * x[j, k], axis=k), name="gram")
    return product, m, m


STAGES = {
    "transposed": Stage(_transposed, np.transpose),
    "scaled": Stage(_scaled, lambda x: x * 2.0 + 1.0),
    "reversed": Stage(_reversed, lambda x: x[::-1]),
    "centred": Stage(_centred, lambda x: x - x.sum(axis=1, keepdims=True)),
    "padded": Stage(_padded, lambda x: np.pad(x, ((1, 1), (0, 0)))),
    "gram": Stage(_gram, lambda x: x @ x.T),
}

symbolic = Acceptance()


@symbolic.at_least(0.6)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=12, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(STAGES)), min_size=1, max_size=3),
    columns=st.sampled_from([None, 3, 16]),
    num_steps=st.integers(0, 8),
    shapes=st.lists(st.tuples(st.integers(1, MOST), st.integers(1, MOST)), min_size=3, max_size=3),
    data=st.data(),
)
def test_a_kernel_of_any_shape_computes_what_numpy_does(
    names: list[str],
    columns: int | None,
    num_steps: int,
    shapes: list[tuple[int, int]],
    data: st.DataObject,
) -> None:
    m, n = te.var("m"), te.var("n") if columns is None else columns
    x = te.placeholder((m, n), "float32", name="x")
    y, rows, cols = x, m, n
    for name in names:
        y, rows, cols = STAGES[name].tensors(y, rows, cols)
    func = te.create_prim_func([x, y])
    func = with_ranges(func, {"m": MOST} if columns is not None else {"m": MOST, "n": MOST})
    schedule = Schedule(func)
    trace = RandomTrace(schedule, lambda options: data.draw(st.sampled_from(list(options))))
    for _ in range(num_steps):
        trace.attempt(data.draw(st.sampled_from(STEPS)))
    try:
        with mock.patch.object(instruction_estimate, "LAUNCH_INSTRUCTIONS", 0):
            kernel = build(schedule, TARGET)
    except BuildError:
        symbolic.count(is_accepted=False)
        return
    symbolic.count(is_accepted=True)
    rng = np.random.default_rng(0)
    for num_rows, num_columns in shapes:
        # Whole numbers: nothing cancels by halves, so that only the largest are rounded.
        given_values = rng.integers(-3, 4, (num_rows, columns or num_columns))
        expected: Matrix = given_values.astype(np.float64)
        for name in names:
            expected = STAGES[name].reference(expected)
        result = np.full(expected.shape, np.nan, "float32")
        kernel(given_values.astype("float32"), result)
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    kernel.close()
