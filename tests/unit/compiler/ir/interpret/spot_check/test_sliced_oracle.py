"""Large inputs and results are computed in slices, with the same outputs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import loopwright as lw
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.interpret.spot_check import sliced_oracle
from compiler.ir.interpret.spot_check.sliced_oracle import interpret_sliced

Arrays = Mapping[str, NDArray[Any]]


def run_and_measure(run: Callable[[], Arrays]) -> tuple[Arrays, int]:
    """Return what a call returns, and the most memory that NumPy held meanwhile."""
    tracemalloc.start()
    outputs = run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return outputs, most


@pytest.mark.parametrize(
    "spec",
    [
        "attention:1,5,96,96,8",  # heads
        "attention:1,5,96,96,8,causal=True",  # a mask relates queries and keys
        "attention:1,1,300,96,8",  # queries
        "matmul:1,4000,64",  # columns of weights
        "dense:2,4000,64:int8",
    ],
)
def test_slices_have_the_outputs_of_the_whole_in_less_memory(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    func = lw.ops.from_spec(spec)
    inputs = random_inputs(func, 0)
    expected, memory_of_whole = run_and_measure(lambda: interpret(func, inputs))
    monkeypatch.setattr(sliced_oracle, "_MAX_BYTES", 1 << 16)
    outputs, memory_of_slices = run_and_measure(lambda: interpret_sliced(func, inputs))
    assert memory_of_slices < memory_of_whole / 2
    assert outputs.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(outputs[name], array, rtol=1e-6, atol=1e-7)


def test_a_program_without_such_an_axis_runs_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    func = lw.ops.from_spec("softmax:1,2000")
    inputs = random_inputs(func, 0)
    monkeypatch.setattr(sliced_oracle, "_MAX_BYTES", 1 << 10)
    outputs = interpret_sliced(func, inputs)
    for name, array in interpret(func, inputs).items():
        np.testing.assert_array_equal(outputs[name], array)


def test_the_growth_of_errors_in_slices_is_that_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    func = lw.ops.from_spec("attention:1,4,32,32,8:bfloat16")
    inputs = random_inputs(func, 0)
    (exact,) = interpret_sliced(func, inputs).values()
    (whole,) = interpret_sliced(func, inputs, nudge=0.01).values()
    monkeypatch.setattr(sliced_oracle, "_MAX_BYTES", 1 << 13)
    (slices,) = interpret_sliced(func, inputs, nudge=0.01).values()
    growth_of_whole, growth_of_slices = (
        float(np.abs(moved.astype(float) - exact.astype(float)).max()) for moved in (whole, slices)
    )
    assert growth_of_whole > 0
    assert 0.2 < growth_of_slices / growth_of_whole < 5
