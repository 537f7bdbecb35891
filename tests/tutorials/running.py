"""Run programs on random arrays, for the tests to compare with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import loopwright as lw
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import poisoned

Array = NDArray[Any]


def random_array(*shape: int, seed: int = 0) -> Array:
    """Return normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def run(program: PrimFunc | lw.Schedule, *inputs: Array) -> Array:
    """Build a program, call it on inputs and one output, and return the output."""
    func = program.func if isinstance(program, lw.Schedule) else program
    output = poisoned(func.buffers[-1])
    lw.build(func, target="cpu -num-cores=1")(*inputs, output)
    return output


def assert_close(got: Array, expected: Array) -> None:
    """Compare as the notes do, a little wider where sums have another order."""
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
